package api

import (
	"net/http"
	"strconv"
	"strings"

	"hongbao/internal/payout"
)

func closeRoutes() []*route {
	return []*route{
		{
			id: "getBalances", method: http.MethodGet, path: "/v1/staff/balances", listener: listenStaff, realm: realmStaff, tag: "staff",
			summary: "Balances of every account of the ledger at a moment",
			about: "Over all packets and by app. Balances at a moment that lies more than five minutes back are the same whenever they are asked " +
				"for: the ledger is append-only.",
			params: []param{{in: "query", name: "at", schema: "", example: "2026-02-17T16:00:00.000Z",
				about: "The moment: postings before it count. Now by default."}},
			answers:  []reply{{status: http.StatusOK, about: "The balances.", body: Balances{}}},
			problems: []Code{CodeInvalidRequest}, handle: getBalances,
		},
		{
			id: "listCloses", method: http.MethodGet, path: "/v1/staff/closes", listener: listenStaff, realm: realmStaff, tag: "staff",
			summary: "List the days of the ledger", about: "Newest first, from today back to the day of the first posting.",
			params:   []param{limitParam, cursorParam},
			answers:  []reply{{status: http.StatusOK, about: "A page of days.", body: Closes{}}},
			problems: []Code{CodeInvalidRequest}, handle: listCloses,
		},
		{
			id: "getClose", method: http.MethodGet, path: "/v1/staff/closes/{date}", listener: listenStaff, realm: realmStaff, tag: "staff",
			summary: "Get the close of a day: its balances and movements, beside the provider's statement",
			about: "A day is one of the provider's statement, in its time zone; a posting belongs to the day in which it was made. Once the day " +
				"is over, its statement was read and no break of it is open, the close is final: the same answer from then on, whatever is found " +
				"later.",
			params:   []param{{in: "path", name: "date", required: true, schema: Date(""), example: "2026-02-17", about: "The day."}},
			answers:  []reply{{status: http.StatusOK, about: "The close.", body: Close{}}},
			problems: []Code{CodeNotFound}, handle: getClose,
		},
		{
			id: "exportClose", method: http.MethodGet, path: "/v1/staff/export/close.csv", listener: listenStaff, realm: realmStaff, tag: "staff",
			summary: "Export the close of a day as CSV",
			about: "RFC 4180, UTF-8, under a line of names. The columns are " + strings.Join(closeColumns, ", ") +
				". Sections: opening, movement and closing of all " +
				"(app_id is empty) and of each app, statement, differences (all, added up by operation and kind), difference (one by one, the first " +
				strconv.Itoa(payout.MatchDifferences) + "), and " +
				"not_listed with the number of the others when there are any. Amounts are whole fen, and once more in yuan; times are UTC, and once " +
				"more at UTC+8; what does not apply is empty. Text that a spreadsheet could take for a formula or a value is preceded by an " +
				"apostrophe, as in the export of payouts.",
			params: []param{{in: "query", name: "date", required: true, schema: Date(""), example: "2026-02-17", about: "The day."},
				{in: "query", name: "bom", schema: false, example: true, about: "true puts a byte order mark first, without which Excel takes UTF-8 " +
					"for something else."}},
			answers: []reply{{status: http.StatusOK, about: "The file.", body: "", kind: contentCSV,
				headers: []param{{name: "Content-Disposition", about: "With the file's name."}}}},
			problems: []Code{CodeInvalidRequest, CodeNotFound}, handle: exportClose,
		},
	}
}
