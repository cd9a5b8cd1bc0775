package console

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"hongbao/client"
	"hongbao/wire"
)

// reconciliationsPage is a list of reconciliations.
type reconciliationsPage struct {
	Status string
	Items  []wire.Reconciliation
	Next   string
}

// Tabs are the statuses of the tabs; "" is all of them.
func (reconciliationsPage) Tabs() []string {
	return []string{"", "requested", "running", "done", "failed"}
}

func (v *visit) listReconciliations() error {
	body := reconciliationsPage{Status: v.query.Get("status")}
	found, err := v.staff.ListReconciliations(v.r.Context(), wire.ReconciliationFilter{Status: wire.ReconciliationStatus(body.Status)},
		client.Page{Cursor: v.query.Get("cursor")})
	if err != nil {
		return err
	}
	body.Items = found.Items
	if found.NextCursor != nil {
		body.Next = v.next(*found.NextCursor)
	}
	v.show("reconciliations", http.StatusOK, body)
	return nil
}

// reconcile requests the reconciliation of a day.
func (v *visit) reconcile() error {
	made, err := v.staff.Reconcile(v.r.Context(),
		wire.ReconcileRequest{Date: wire.Date(strings.TrimSpace(v.r.PostFormValue("date"))),
			Reason: strings.TrimSpace(v.reason())}, v.key())
	if err != nil {
		return v.showFormAgain(err)
	}
	return v.redirectDone("/reconciliations/"+made.ID, "reconcile")
}

// reconciliationPage is one reconciliation with the breaks that it saw last.
type reconciliationPage struct {
	Run    *wire.Reconciliation
	Breaks []wire.Break
	Total  *total // nil if unavailable
	More   bool   // there are more breaks
}

// Query is the query of the list of all its breaks.
func (p reconciliationPage) Query() string {
	return url.Values{"run": {p.Run.ID}, "resolved": {""}}.Encode()
}

// maxShown is how many breaks the page of a reconciliation shows.
const maxShown = 200

func (v *visit) showReconciliation() error {
	run, err := v.staff.Reconciliation(v.r.Context(), v.r.PathValue("id"))
	if err != nil {
		return err
	}
	filter := wire.BreakFilter{ReconciliationID: run.ID}
	found, err := v.staff.ListBreaks(v.r.Context(), filter, client.Page{Limit: maxShown})
	if err != nil {
		return err
	}
	v.show("reconciliation", http.StatusOK, reconciliationPage{Run: run, Breaks: found.Items, More: found.NextCursor != nil,
		Total: v.breaksOf(v.staff.SumBreaks(v.r.Context(), filter))})
	return nil
}

// breaksPage is a list of breaks.
type breaksPage struct {
	Kind     string
	Packet   string
	Run      string // the reconciliation that saw them last
	Resolved string // true, false or "" for both
	Items    []wire.Break
	Total    *total // nil if unavailable
	Next     string
}

// Tabs are the values of Resolved.
func (breaksPage) Tabs() []string { return []string{"false", "true", ""} }

// breakKinds are suggested as a filter; others can be entered.
var breakKinds = []string{"account_differs", "amount_differs", "contradiction", "foreign_order", "forgotten", "late_success", "mismatch",
	"moved_twice", "not_booked", "not_in_statement", "op_differs", "outcome_unknown", "pool_lost", "restored", "return_not_booked",
	"second_success", "share_conflict", "superseded"}

// Kinds are the suggested kinds.
func (breaksPage) Kinds() []string { return breakKinds }

// With is the query of the same list with another value of Resolved.
func (p breaksPage) With(resolved string) string {
	q := queryOf(map[string]string{"kind": p.Kind, "packet": p.Packet, "run": p.Run})
	q.Set("resolved", resolved)
	return q.Encode()
}

// Query is the filter of the list, as a query of the console.
func (p breaksPage) Query() string { return p.With(p.Resolved) }

func readBreaksPage(q url.Values) breaksPage {
	p := breaksPage{Kind: q.Get("kind"), Packet: q.Get("packet"), Run: q.Get("run"), Resolved: "false"}
	if q.Has("resolved") {
		p.Resolved = q.Get("resolved")
	}
	return p
}

// exportBreaks returns the API's CSV of the same filter.
func (v *visit) exportBreaks() error {
	p := readBreaksPage(v.query)
	return v.export("breaks", map[string]string{"kind": p.Kind, "packet_id": p.Packet, "reconciliation_id": p.Run, "resolved": p.Resolved})
}

func (v *visit) listBreaks() error {
	body := readBreaksPage(v.query)
	f := wire.BreakFilter{Kind: body.Kind, PacketID: body.Packet, ReconciliationID: body.Run}
	if yes, err := strconv.ParseBool(body.Resolved); err == nil {
		f.Resolved = &yes
	}
	found, err := v.staff.ListBreaks(v.r.Context(), f, client.Page{Cursor: v.query.Get("cursor")})
	if err != nil {
		refused, err := v.refused(err)
		if err != nil {
			return err
		}
		v.show("breaks", refused, body)
		return nil
	}
	body.Items = found.Items
	body.Total = v.breaksOf(v.staff.SumBreaks(v.r.Context(), f))
	if found.NextCursor != nil {
		body.Next = v.next(*found.NextCursor)
	}
	v.show("breaks", http.StatusOK, body)
	return nil
}

// outcomes are what staff can state about the money of every break's order number.
var outcomes = []string{"none", "moved", "not_moved"}

// Outcomes are the choices of the form of a break of a kind.
func (breaksPart) Outcomes(kind string) []string {
	if kind == "second_success" {
		return append(outcomes[:len(outcomes):len(outcomes)], "written_off")
	}
	return outcomes
}

// resolveBreak resolves a break, or submits the decision that its outcome is.
func (v *visit) resolveBreak() error {
	ctx, id := v.r.Context(), v.r.PathValue("id")
	key, r := v.key(), wire.ResolveBreak{Reason: v.reason(), Outcome: v.r.PostFormValue("outcome"),
		Evidence: v.r.PostFormValue("evidence")}
	if r.States() {
		made, err := v.staff.DecideBreak(ctx, id, r, key)
		if err != nil {
			return v.showFormAgain(err)
		}
		return v.redirectDone(v.returnPath(), made.Decision.Kind+"_"+made.Decision.Status)
	}
	_, err := v.staff.ResolveBreak(ctx, id, r, key)
	if err != nil {
		return v.showFormAgain(err)
	}
	return v.redirectDone(v.returnPath(), "resolve")
}
