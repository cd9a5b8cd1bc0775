package api

import (
	"net/http"
	"slices"

	"hongbao/internal/access"
)

// breakFilters are the filters of breaks.
func breakFilters() []param {
	text := func(name, example, about string) param {
		return param{in: "query", name: name, schema: "", example: example, about: about}
	}
	return []param{
		text("kind", "not_in_statement", "Of this kind."), text("packet_id", "3q5k9v0c1m7e2u8h4r6t", "About this packet."),
		text("reconciliation_id", "sq5k9v0c1m7e2u8h4r6t00030a", "Those that this reconciliation saw, if none has seen them since."),
		{in: "query", name: "resolved", schema: true, example: false, about: "false: only the open ones; true: only those that were dealt with."},
		olderParam("Seen first at least this many seconds ago."),
	}
}

func reconciliationRoutes() []*route {
	text := func(name string, schema any, example, about string) param {
		return param{in: "query", name: name, schema: schema, example: example, about: about}
	}
	finance := []access.Role{access.RoleFinance}
	id := func(example, about string) param {
		return param{in: "path", name: "id", required: true, schema: "", example: example, about: about}
	}
	return []*route{
		{
			id: "listReconciliations", method: http.MethodGet, path: "/v1/staff/reconciliations", listener: listenStaff, realm: realmStaff,
			tag: "staff", summary: "List reconciliations", about: "Newest first. All filters have to fit.",
			params: []param{
				text("provider", "", "sandbox", "Of this provider."), text("date", Date(""), "2026-02-17", "Of this day."),
				text("status", ReconciliationStatus(""), "done", "In this status."), limitParam, cursorParam,
			},
			answers:  []reply{{status: http.StatusOK, about: "A page of reconciliations.", body: Reconciliations{}}},
			problems: []Code{CodeInvalidRequest}, handle: listReconciliations,
		},
		{
			id: "startReconciliation", method: http.MethodPost, path: "/v1/staff/reconciliations", listener: listenStaff, realm: realmStaff,
			roles: finance, tag: "staff",
			summary: "Compare a day of the provider's statement with the books",
			about: "Done every day for the day before, and now on demand. It moves no money: what asking the provider can settle is asked about, " +
				"as after a notification, for up to a minute; the rest is left as breaks. While one of the same day is requested or running, that " +
				"is the answer. Of today it is provisional, and what moved within the last minute counts as in flight. " +
				"The body may be left out: today, the only provider, no reason.",
			params: []param{keyParam}, body: ReconcileRequest{}, optional: true,
			answers:  []reply{{status: http.StatusAccepted, about: "It will be carried out.", body: Reconciliation{}, headers: []param{replayed}}},
			problems: []Code{CodeKeyRequired, CodeKeyReused}, handle: startReconciliation,
		},
		{
			id: "getReconciliation", method: http.MethodGet, path: "/v1/staff/reconciliations/{id}", listener: listenStaff, realm: realmStaff,
			tag: "staff", summary: "Get a reconciliation",
			about:    "Its breaks are listed by `GET /v1/staff/breaks?reconciliation_id=`.",
			params:   []param{id("sq5k9v0c1m7e2u8h4r6t00030a", "The reconciliation's id.")},
			answers:  []reply{{status: http.StatusOK, about: "The reconciliation.", body: Reconciliation{}}},
			problems: []Code{CodeNotFound}, handle: getReconciliation,
		},
	}
}

func breakRoutes() []*route {
	return []*route{
		{
			id: "listBreaks", method: http.MethodGet, path: "/v1/staff/breaks", listener: listenStaff, realm: realmStaff, tag: "staff",
			summary: "List breaks: disagreements that a person has to look at", about: "Newest first. All filters have to fit.",
			params:   slices.Concat(breakFilters(), paging),
			answers:  []reply{{status: http.StatusOK, about: "A page of breaks.", body: Breaks{}}},
			problems: []Code{CodeInvalidRequest}, handle: listBreaks,
		},
		{
			id: "countBreaks", method: http.MethodGet, path: "/v1/staff/breaks/count", listener: listenStaff, realm: realmStaff, tag: "staff",
			summary: "Count breaks", about: "Those that the list would show with the same filters, as far as 10,000 tell.",
			params:   breakFilters(),
			answers:  []reply{{status: http.StatusOK, about: "Their number.", body: ListCount{}}},
			problems: []Code{CodeInvalidRequest}, handle: countBreaks,
		},
		{
			id: "sumBreaks", method: http.MethodGet, path: "/v1/staff/breaks/sum", listener: listenStaff, realm: realmStaff, tag: "staff",
			summary: "Count breaks and add up what they are about",
			about: "Those that the list would show with the same filters, as far as 10,000 tell. A break is about its amount, where it has one, " +
				"else about its payment_amount. That is not what is missing or too much, and a payment that several breaks are about counts in " +
				"each. What is about neither, such as grabs that Redis lost, adds nothing; without_amount counts it.",
			params:   breakFilters(),
			answers:  []reply{{status: http.StatusOK, about: "Their number and sum.", body: BreakSum{}}},
			problems: []Code{CodeInvalidRequest}, handle: sumBreaks,
		},
		{
			id: "resolveBreak", method: http.MethodPost, path: "/v1/staff/breaks/{id}/resolve", listener: listenStaff, realm: realmStaff,
			roles: []access.Role{access.RoleFinance}, tag: "staff",
			summary: "Note that a break was dealt with",
			about: "It moves no money. One that is resolved already keeps its first reason. A resolved break is opened again when it is seen " +
				"again; of one that reconciliation found only something new counts, such as the same money moving once more.",
			params: []param{{in: "path", name: "id", required: true, schema: "", example: "b4711", about: "The break's id."}, keyParam},
			body:   Reason{}, answers: []reply{{status: http.StatusOK, about: "The break.", body: Break{}, headers: []param{replayed}}},
			problems: []Code{CodeKeyRequired, CodeNotFound, CodeKeyReused}, handle: resolveBreak,
		},
	}
}
