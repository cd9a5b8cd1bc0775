package api

import (
	"net/http"

	"hongbao/internal/access"
)

var providerParam = param{in: "path", name: "name", required: true, schema: "", example: "sandbox",
	about: "The provider's name, as payouts carry it."}

func providerRoutes() []*route {
	return []*route{
		{
			id: "listProviders", method: http.MethodGet, path: "/v1/staff/providers", listener: listenStaff, realm: realmStaff, tag: "staff",
			summary:  "List payment providers",
			about:    "Which provider a person has stopped, who, why and since when, and how fast all workers together may call it.",
			answers:  []reply{{status: http.StatusOK, about: "The providers.", body: PaymentProviders{}}},
			problems: []Code{CodeInvalidRequest}, handle: listProviders,
		},
		{
			id: "holdProvider", method: http.MethodPost, path: "/v1/staff/providers/{name}/hold", listener: listenStaff, realm: realmStaff,
			roles: []access.Role{access.RoleOps, access.RoleFinance}, tag: "staff",
			summary: "Stop what is sent to a provider",
			about: "From the 2xx on no charge, payout or refund is sent: each looks right before it leaves, so only a request that has looked " +
				"already can still be on its way, for the 5 seconds that a call may take. Asking goes on, and what the provider has already is " +
				"finished. Waiting payments keep their status, take no order number and go on by themselves after the release. Packets created " +
				"meanwhile are answered 202 with status `funding` and open after the release; one whose expires_at passes before its charge is " +
				"refunded in full once the charge went through. A provider that is held stays held by whom it was; this is audited too.",
			params: []param{providerParam, keyParam}, body: HoldDecision{},
			answers:  []reply{{status: http.StatusOK, about: "It is held.", body: PaymentProvider{}, headers: []param{replayed}}},
			problems: []Code{CodeKeyRequired, CodeNotFound, CodeKeyReused}, handle: holdProvider,
		},
		{
			id: "releaseProvider", method: http.MethodPost, path: "/v1/staff/providers/{name}/release", listener: listenStaff, realm: realmStaff,
			roles: []access.Role{access.RoleOps, access.RoleFinance}, tag: "staff",
			summary: "Let go what is sent to a provider",
			about: "What the hold has kept waiting starts to go out within two seconds: the first 2,000 payments at once, what waits beyond them " +
				"in turns. A provider that is not held stays as it is; this is audited too.",
			params: []param{providerParam, keyParam}, body: HoldDecision{},
			answers:  []reply{{status: http.StatusOK, about: "It is not held.", body: PaymentProvider{}, headers: []param{replayed}}},
			problems: []Code{CodeKeyRequired, CodeNotFound, CodeKeyReused}, handle: releaseProvider,
		},
	}
}
