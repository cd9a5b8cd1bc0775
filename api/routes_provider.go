package api

import (
	"hongbao/wire"
)

func (s *API) providerRoutes() []*route {
	const tag = "staff providers"
	return []*route{
		get(route{
			id: "listProviders", path: wire.PathProviders, tag: tag, summary: "List payment providers",
			about:   "Returns for each provider its hold (who placed it, when and why) and the rate limit that all workers share.",
			answers: ok("The providers."),
		}, s.listProviders),
		post(route{
			id: "holdProvider", path: wire.PathProviders + "/{name}/hold", roles: holders, tag: tag, summary: "Hold a provider",
			about: "Stops sending to a provider. After the 2xx no charge, payout or refund is sent, except requests that " +
				"already passed the check: these take at most 5 seconds. Queries continue, and orders that the provider has " +
				"already are completed. Deferred payments keep their status, use no order number and continue after the release. " +
				"A packet created during the hold is answered 202 with status `funding` and opens after the release. When its " +
				"expires_at passes first, it is refunded in full after its charge. Holding a provider that is held keeps the " +
				"first hold and is audited too.",
			answers: ok("The provider is held."),
		}, s.holdProvider(true)),
		post(route{
			id: "releaseProvider", path: wire.PathProviders + "/{name}/release", roles: holders, tag: tag, summary: "Release a provider",
			about: "Ends the hold. Within two seconds the first 2,000 deferred payments are sent, the others in further rounds. " +
				"Releasing a provider that is not held changes nothing and is audited too.",
			answers: ok("The provider is not held."),
		}, s.holdProvider(false)),
	}
}
