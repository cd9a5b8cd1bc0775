package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/store"
	"hongbao/internal/store/report"
)

// closeBody is the close of a day as a client reads it.
type closeBody struct {
	Date, Status  string
	Pending       []string
	FinalAt       *time.Time `json:"final_at"`
	Entries       int64
	Funded, Owed  struct{ Count, Amount int64 }
	Checked, Ties *bool
	Accounts      []struct {
		Account                           string
		Opening, Debits, Credits, Closing int64
		Payments                          *int64
	}
	Movements []struct {
		Kind, Debit, Credit string
		Count, Amount       int64
	}
	Apps []struct {
		AppID string `json:"app_id"`
	}
	Providers []struct {
		Provider                          string
		Opening, Debits, Credits, Closing int64
	}
	Statements []struct {
		Operations []struct {
			Op           string
			Ours, Theirs struct{ Count, Amount int64 }
			Explained    struct{ Count, Amount int64 }
		}
		Differences []struct {
			Kind    string
			OrderNo string `json:"order_no"`
			Theirs  int64
			Breaks  []struct {
				ID, Kind string
				Open     bool
			}
		}
	}
}

// tomorrow is the store of a process that works after the end of the day.
func (h *fixture) tomorrow() (s *store.Store, off *atomic.Int64) {
	h.t.Helper()
	off = new(atomic.Int64)
	off.Store(int64(24 * time.Hour))
	s, err := store.Open(store.Config{DSN: h.dsn, ClockOff: func() time.Duration { return time.Duration(off.Load()) }})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { h.check(s.Close()) })
	return s, off
}

// closeDay does what the worker does after the end of a day, in whose statement money
// has moved under numbers that are none of ours.
func (h *fixture) closeDay(s *store.Store, day payout.Day, foreign ...string) {
	h.t.Helper()
	ctx := h.t.Context()
	asked, err := s.RequestDailyReconciliation(ctx, "sandbox", day, "tester")
	h.check(err)
	_, end := day.Span(time.UTC)
	r, err := s.BeginReconciliation(ctx, asked.ID, end)
	h.check(err)
	page, err := h.sandbox.Statement(ctx, day, "")
	h.check(err)
	for i, no := range foreign {
		page.Lines = append(page.Lines, payout.StatementLine{Ref: fmt.Sprint("foreign", i), Op: payout.OpTransfer, OrderNo: no, Account: "v",
			Amount: money.Fen(i + 1), At: time.Now().UTC()})
	}
	h.check(s.SaveStatement(ctx, r.ID, payout.Adapter{Provider: r.Provider}, day, page.Lines))
	h.check(s.SealStatement(ctx, r.ID, payout.Adapter{Provider: r.Provider}, day, r.StartedAt))
	_, err = s.CompareLines(ctx, r, 0, false, 1000)
	h.check(err)
	h.check(s.FinishReconciliation(ctx, r.ID, nil))
	h.tieDay(s)
}

// tieDay does what the worker does about days from time to time.
func (h *fixture) tieDay(s *store.Store) {
	h.t.Helper()
	ctx := h.t.Context()
	reports := report.New(s.MySQL())
	for more := true; more; {
		var err error
		more, err = reports.SaveLedgerSums(ctx, time.UTC)
		h.check(err)
	}
	_, err := reports.MatchDays(ctx, "sandbox", time.UTC)
	h.check(err)
}

// TestCloses: balances, a list of days, the close of one and its file, for every role
// of the staff, and the same again once it is final.
func TestCloses(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	day := payout.DayOf(time.Now(), time.UTC)
	if _, end := day.Span(time.UTC); time.Until(end) < 5*time.Minute {
		t.Skip("a few minutes from midnight UTC there is no one day to close")
	}
	path := "/v1/staff/closes/" + string(day)
	if r := h.as(h.ops, "GET", path, ""); r.code() != "not_found" {
		t.Errorf("nothing was ever posted: %s", r)
	}
	h.open(h.app, with())
	h.open(h.app, with())
	var now struct {
		Entries  int64
		Sound    bool
		Accounts []struct {
			Account string
			Balance int64
		}
	}
	h.page(h.ops, "/v1/staff/balances", &now)
	if sum := now.Accounts[0].Balance + now.Accounts[1].Balance; !now.Sound || now.Entries != 2 || now.Accounts[0].Account != "provider" ||
		now.Accounts[0].Balance >= 0 || sum != 0 {
		t.Errorf("%+v", now)
	}
	total := -now.Accounts[0].Balance
	h.page(h.ops, "/v1/staff/balances?at="+time.Now().Add(-time.Hour).UTC().Format(time.RFC3339), &now)
	if now.Entries != 0 || now.Accounts[0].Balance != 0 {
		t.Errorf("an hour ago: %+v", now)
	}
	for query, code := range map[string]string{"?at=yesterday": "invalid_request", "?at=2999-01-01T00:00:00Z": "invalid_request",
		"?x=1": "invalid_request"} {
		if r := h.as(h.ops, "GET", "/v1/staff/balances"+query, ""); r.code() != code {
			t.Errorf("%s: %s", query, r)
		}
	}
	var c closeBody
	h.page(h.auditor, path, &c)
	if c.Status != "open" || !slices.Equal(c.Pending, []string{"day"}) || c.Funded.Count != 2 || c.Funded.Amount != total ||
		c.Checked != nil || len(c.Statements) != 0 {
		t.Errorf("%+v", c)
	}
	for _, bad := range []string{"/v1/staff/closes/2026-02-30", "/v1/staff/closes/" + string(day.Add(-1)), "/v1/staff/closes/" +
		string(day.Add(1)), "/v1/staff/export/close.csv?date=" + string(day.Add(1))} {
		if r := h.as(h.ops, "GET", bad, ""); r.code() != "not_found" {
			t.Errorf("%s: %s", bad, r)
		}
	}

	for bad, code := range map[string]string{"closes/9999-12-31": "not_found", "export/close.csv?date=9999-12-31": "invalid_request",
		"reconciliations?date=9999-12-31": "invalid_request",
		"closes/9998-12-31":               "not_found", "export/close.csv?date=9998-12-31": "not_found"} {
		if r := h.as(h.ops, "GET", "/v1/staff/"+bad, ""); r.code() != code {
			t.Errorf("%s: %s", bad, r)
		}
	}

	const hostile = `=HYPERLINK("http://x","y")`
	later, off := h.tomorrow()
	h.closeDay(later, day, hostile)
	h.page(h.auditor, path, &c)
	if c.Status == "final" || len(c.Statements) != 1 || len(c.Statements[0].Differences) != 1 ||
		c.Statements[0].Differences[0].OrderNo != hostile || !c.Statements[0].Differences[0].Breaks[0].Open {
		t.Fatalf("%+v", c)
	}
	if r := h.write(h.finance, "breaks/"+c.Statements[0].Differences[0].Breaks[0].ID+"/resolve", "dealt", because); r.status != http.StatusOK {
		t.Fatalf("%s", r)
	}
	off.Add(int64(time.Hour))
	h.tieDay(later)
	first := h.as(h.auditor, "GET", path, "")
	first.json(t, &c)
	if c.Status != "final" || len(c.Pending) != 0 || c.FinalAt == nil || c.Checked == nil || !*c.Checked || c.Ties == nil || !*c.Ties ||
		len(c.Apps) != 1 || len(c.Movements) != len(payout.TransferKinds) {
		t.Errorf("%s", first)
	}
	for _, o := range c.Statements[0].Operations {
		if o.Ours.Count+o.Explained.Count != o.Theirs.Count || o.Ours.Amount+o.Explained.Amount != o.Theirs.Amount {
			t.Errorf("%+v", o)
		}
	}
	if one := c.Providers; len(one) != 1 || one[0].Provider != "sandbox" || one[0].Closing != c.Accounts[0].Closing ||
		one[0].Opening-one[0].Debits+one[0].Credits != one[0].Closing {
		t.Errorf("%+v", one)
	}
	for _, a := range c.Accounts {
		if a.Opening-a.Debits+a.Credits != a.Closing || (a.Payments != nil) != (a.Account == "owed" || a.Account == "refunding") {
			t.Errorf("%+v", a)
		}
	}
	var list struct {
		Items      []closeBody
		NextCursor *string `json:"next_cursor"`
	}
	h.page(h.finance, "/v1/staff/closes?limit=1", &list)
	if len(list.Items) != 1 || list.Items[0].Date != string(day) || list.Items[0].Status != "final" || list.NextCursor != nil {
		t.Errorf("%+v", list)
	}
	h.closeFile(day, hostile, total)
	h.closeDay(later, day, hostile, "another")
	if r := h.as(h.auditor, "GET", path, ""); !bytes.Equal(r.body, first.body) {
		t.Errorf("final, and another one now:\n%s\n%s", first, r)
	}
}

// closeFile reads the file of a day.
func (h *fixture) closeFile(day payout.Day, hostile string, total int64) {
	t := h.t
	t.Helper()
	r := h.as(h.finance, "GET", "/v1/staff/export/close.csv?bom=true&date="+string(day), "")
	text, marked := bytes.CutPrefix(r.body, []byte("\ufeff"))
	if r.status != http.StatusOK || !marked || !strings.Contains(r.header.Get("Content-Disposition"), "close-"+string(day)+".csv") ||
		r.header.Get("Content-Type") != "text/csv; charset=utf-8" {
		t.Fatalf("%s", r)
	}
	found := map[string]int{}
	for _, line := range lines(t, text) {
		found[line["section"]]++
		switch {
		case line["section"] == "movement" && line["name"] == "charge" && line["app_id"] == "":
			if line["count"] != "2" || line["amount"] != fmt.Sprint(total) || line["amount_yuan"] != money.Fen(total).String() ||
				line["debit"] != "provider" {
				t.Errorf("%v", line)
			}
		case line["section"] == "differences":
			if line["name"] != "transfer" || line["difference"] != "theirs_only" || line["count"] != "1" || line["amount"] != "1" ||
				line["ours"] != "0" || line["theirs_yuan"] != "0.01" {
				t.Errorf("%v", line)
			}
		case line["section"] == "difference":
			if line["order_no"] != "'"+hostile || line["theirs"] != "1" || line["theirs_yuan"] != "0.01" || line["booked_at"] != "" ||
				!strings.HasSuffix(line["moved_at"], "Z") || !strings.HasSuffix(line["moved_at_local"], "+08:00") ||
				!strings.Contains(line["breaks"], "foreign_order") {
				t.Errorf("%v", line)
			}
		}
		if line["date"] != string(day) || line["status"] != "final" {
			t.Errorf("%v", line)
		}
	}
	if found["opening"] != 2*len(payout.Accounts) || found["closing"] != 2*len(payout.Accounts) ||
		found["movement"] != 2*len(payout.TransferKinds) || found["statement"] != 4 ||
		found["provider_opening"] != 1 || found["provider_closing"] != 1 ||
		found["differences"] != 1 || found["difference"] != 1 || found["not_listed"] != 0 {
		t.Errorf("%v", found)
	}
	if r := h.as(h.finance, "GET", "/v1/staff/export/close.csv", ""); r.code() != "invalid_request" {
		t.Errorf("%s", r)
	}
}
