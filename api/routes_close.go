package api

import (
	"strconv"
	"strings"

	"hongbao/internal/staff"
	"hongbao/wire"
)

func (s *API) closeRoutes() []*route {
	const tag = "staff ledger"
	return []*route{
		get(route{
			id: "getBalances", path: wire.PathBalances, tag: tag, summary: "Get the balances of the ledger at a moment",
			about: "Returns every account, in total and by app. Balances of a moment more than five minutes ago do not change: " +
				"the ledger is append-only.",
			limit: listTimeout, answers: ok("The balances."),
		}, s.getBalances),
		get(route{
			id: "listCloses", path: wire.PathCloses, tag: tag, summary: "List the day-end closes",
			about: "Newest first, from today back to the day of the first transfer in the ledger.",
			limit: listTimeout, answers: ok("A page of days."),
		}, s.closes().page()),
		get(route{
			id: "getClose", path: wire.PathCloses + "/{date}", tag: tag, summary: "Get the day-end close of a day",
			about: "Returns balances and movements beside the provider's statement. A day is a day of the statement, in the " +
				"provider's time zone; a ledger entry belongs to the day on which it was posted. The close is final once the day " +
				"is over, its statement was read and no break of it is open. A final close does not change.",
			limit: listTimeout, answers: ok("The close."),
		}, s.getClose),
		get(route{
			id: "exportClose", path: wire.PathExports + "/close.csv", tag: "staff exports",
			summary: "Export the day-end close of a day as CSV",
			about: "RFC 4180 in UTF-8 with a header line. The columns are " + strings.Join(closeColumns, ", ") +
				". Sections: opening, movement and closing for all apps (app_id is empty) and for each app; provider_opening and " +
				"provider_closing for each provider; for each statement, by provider, statement, differences (sums by operation and kind), " +
				"difference (single differences, the first " + strconv.Itoa(staff.MatchDifferences) + "), and not_listed with the count of " +
				"the others if there are any. Amounts are given in whole fen and in yuan, times in UTC and at UTC+8; " +
				"cells that do not apply are empty. Text that a spreadsheet could read as a formula or a value is prefixed with an apostrophe, as " +
				"in the export of payouts.",
			limit: listTimeout, answers: csvAnswer(), problems: []wire.Code{wire.CodeNotFound},
		}, s.exportClose),
	}
}
