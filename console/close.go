package console

import (
	"net/http"
	"net/url"

	"hongbao/client"
)

// closesPage is a list of days.
type closesPage struct {
	Items []client.CloseSummary
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

// showClose shows the statement of a day.
func (v *visit) showClose() error {
	found, err := v.staff.DayClose(v.r.Context(), v.r.PathValue("date"))
	if err != nil {
		return err
	}
	v.show("close", http.StatusOK, found)
	return nil
}

// exportClose hands on the file of a day that the API makes.
func (v *visit) exportClose() error {
	return v.proxy("/v1/staff/export/close.csv?" + url.Values{"date": {v.r.PathValue("date")}, "bom": {"true"}}.Encode())
}

// together adds up the accounts of a day. Every posting is in two of them, so that
// the balances are nothing together, and debits and credits the same.
func sumAccounts(accounts []client.AccountDay) client.AccountDay {
	var all client.AccountDay
	for _, a := range accounts {
		all.Opening += a.Opening
		all.Debits += a.Debits
		all.Credits += a.Credits
		all.Closing += a.Closing
	}
	return all
}
