package console

import (
	"net/http"
	"net/url"

	"hongbao/client"
	"hongbao/wire"
)

// closesPage is a list of day-end closes.
type closesPage struct {
	Items []wire.CloseSummary
	Next  string
}

func (v *visit) listCloses() error {
	found, err := v.staff.ListCloses(v.r.Context(), client.Page{Limit: 31, Cursor: v.query.Get("cursor")})
	if err != nil {
		return err
	}
	body := closesPage{Items: found.Items}
	if found.NextCursor != nil {
		body.Next = v.next(*found.NextCursor)
	}
	v.show("closes", http.StatusOK, body)
	return nil
}

// showClose shows the day-end close of a day.
func (v *visit) showClose() error {
	found, err := v.staff.DayClose(v.r.Context(), v.r.PathValue("date"))
	if err != nil {
		return err
	}
	v.show("close", http.StatusOK, found)
	return nil
}

// exportClose returns the API's CSV of a day.
func (v *visit) exportClose() error {
	return v.proxy(wire.PathExports + "/close.csv?" + url.Values{"date": {v.r.PathValue("date")}, "bom": {"true"}}.Encode())
}

// sumAccounts adds up the accounts of a day. Every transfer is in two accounts, so balances
// add up to zero, and debits equal credits.
func sumAccounts(accounts []wire.AccountDay) wire.AccountDay {
	var all wire.AccountDay
	for _, a := range accounts {
		all.Opening += a.Opening
		all.Debits += a.Debits
		all.Credits += a.Credits
		all.Closing += a.Closing
	}
	return all
}
