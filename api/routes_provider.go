package api

import (
	"net/http"

	"hongbao/internal/access"
	"hongbao/wire"
)

var providerParam = param{in: "path", name: "name", required: true, schema: "", example: "sandbox",
	about: "The provider's name, as in the provider member of payouts."}

func providerRoutes() []*route {
	return []*route{
		{
			id: "listProviders", method: http.MethodGet, path: wire.PathProviders, listener: listenStaff, realm: realmStaff,
			tag:     "staff providers",
			summary: "List payment providers",
			about:   "Returns for each provider its hold (who placed it, when and why) and the rate limit that all workers share.",
			answers: []reply{{status: http.StatusOK, about: "The providers.", body: wire.List[wire.PaymentProvider]{}}},
			handle:  listProviders,
		},
		{
			id: "holdProvider", method: http.MethodPost, path: wire.PathProviders + "/{name}/hold", listener: listenStaff, realm: realmStaff,
			roles: []access.Role{access.RoleOps, access.RoleFinance}, tag: "staff providers",
			summary: "Hold a provider",
			about: "Stops sending to a provider. After the 2xx no charge, payout or refund is sent, except requests that " +
				"already passed the check: these take at most 5 seconds. Queries continue, and orders that the provider has " +
				"already are completed. Deferred payments keep their status, use no order number and continue after the release. " +
				"A packet created during the hold is answered 202 with status `funding` and opens after the release. When its " +
				"expires_at passes first, it is refunded in full after its charge. Holding a provider that is held keeps the " +
				"first hold and is audited too.",
			params: []param{providerParam, keyParam}, body: wire.HoldDecision{},
			answers:  []reply{{status: http.StatusOK, about: "The provider is held.", body: wire.PaymentProvider{}, headers: []param{replayed}}},
			problems: []wire.Code{wire.CodeKeyRequired, wire.CodeNotFound, wire.CodeKeyReused}, handle: holdProvider,
		},
		{
			id: "releaseProvider", method: http.MethodPost, path: wire.PathProviders + "/{name}/release", listener: listenStaff, realm: realmStaff,
			roles: []access.Role{access.RoleOps, access.RoleFinance}, tag: "staff providers",
			summary: "Release a provider",
			about: "Ends the hold. Within two seconds the first 2,000 deferred payments are sent, the others in further rounds. " +
				"Releasing a provider that is not held changes nothing and is audited too.",
			params: []param{providerParam, keyParam}, body: wire.HoldDecision{},
			answers:  []reply{{status: http.StatusOK, about: "The provider is not held.", body: wire.PaymentProvider{}, headers: []param{replayed}}},
			problems: []wire.Code{wire.CodeKeyRequired, wire.CodeNotFound, wire.CodeKeyReused}, handle: releaseProvider,
		},
	}
}
