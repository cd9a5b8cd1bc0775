package api

import (
	"hongbao/wire"
)

func (s *API) overviewRoutes() []*route {
	const tag = "staff overview"
	return []*route{
		get(route{
			id: "getOverview", path: wire.PathOverview, tag: tag, summary: "Get the balances and the open work",
			about: "Returns the ledger over all packets, unfinished payments by kind and status, open breaks, and decisions " +
				"that wait for a second person.",
			limit: listTimeout, answers: ok("The overview."),
		}, s.getOverview),
		get(route{
			id: "getActivity", path: wire.PathActivity, tag: tag, summary: "Get grabs and payouts per minute",
			about: "Counts what was recorded in each of the last 60 minutes, by MySQL's clock. A worker records a grab right " +
				"after it was won.",
			limit: listTimeout, answers: ok("The last hour."),
		}, s.getActivity),
		get(route{
			id: "getHealth", path: wire.PathHealth, tag: tag, summary: "Get the health of every part",
			about: "Applies the limits of /readyz, the metrics and `hongbao doctor` and returns one status per part. It answers " +
				"also while MySQL, Redis or Temporal is unavailable; figures are up to five seconds old. The audit chain is " +
				"verified in steps, completely about once an hour.",
			limit: requestTimeout, answers: ok("Each part."),
		}, s.getHealth),
	}
}
