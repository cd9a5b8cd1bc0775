package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
)

// reconciliationBody is a reconciliation as a client reads it.
type reconciliationBody struct {
	ID, Provider, Date, Status string
	Provisional                bool
	RequestedBy                string `json:"requested_by"`
	Reason, Error              *string
	StartedAt                  *time.Time `json:"started_at"`
	EndedAt                    *time.Time `json:"ended_at"`
	Lines, Matched, Breaks     int64
	Amounts                    []struct {
		Op              string
		Provider, Books struct{ Count, Amount int64 }
	}
	Workflow struct{ ID string }
}

// breakBody is a break as a client reads it.
type breakBody struct {
	ID, Kind, Detail string
	PacketID         *string `json:"packet_id"`
	OrderNo          *string `json:"order_no"`
	Provider         *string
	Amount           *int64
	ReconciliationID *string `json:"reconciliation_id"`
	Seen             int
	AgeSeconds       int64 `json:"age_seconds"`
	Resolved         *struct{ By, Reason string }
}

type breaksBody struct {
	Items      []breakBody
	NextCursor *string `json:"next_cursor"`
}

func (h *fixture) breaks(query string) (page breaksBody) {
	h.t.Helper()
	h.page(h.auditor, "/v1/staff/breaks"+query, &page)
	return page
}

// reconciled does what the worker does with a reconciliation: the statement says
// that money moved under n numbers nobody knows.
func (h *fixture) reconciled(id string, n int) {
	h.t.Helper()
	ctx := h.t.Context()
	r, err := h.store.BeginReconciliation(ctx, id, time.Now().Add(time.Hour))
	h.check(err)
	var lines []payout.StatementLine
	for i := range n {
		lines = append(lines, payout.StatementLine{Ref: fmt.Sprint(id, i), Op: payout.OpTransfer, OrderNo: fmt.Sprint("Foreign", i), Account: "v",
			Amount: money.Fen(i + 1), At: time.Now().Add(-time.Hour)})
	}
	h.check(h.store.SaveStatement(ctx, r.ID, payout.Adapter{Provider: r.Provider}, r.Day, lines))
	h.check(h.store.SealStatement(ctx, r.ID, payout.Adapter{Provider: r.Provider}, r.Day, r.StartedAt))
	_, err = h.store.CompareLines(ctx, r, 0, false, 100)
	h.check(err)
	h.check(h.store.FinishReconciliation(ctx, r.ID, nil))
}

func TestReconciliations(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	today := string(payout.DayOf(time.Now(), time.UTC))
	for body, code := range map[string]string{
		`{"date":""}`: "invalid_request", `{"date":"2026-02-30"}`: "invalid_request", `{"date":20260217}`: "invalid_request",
		`{"date":"` + string(payout.Day(today).Add(1)) + `"}`: "invalid_request", `{"date":"2026-02-17","provider":"bank"}`: "invalid_request",
		`{"date":"2026-02-17","reason":" "}`: "invalid_request", `{"date":"2026-02-17","x":1}`: "invalid_request", `{`: "malformed_json",
		`{"date":"2026-02-17","date":"2026-02-18"}`: "invalid_request",
	} {
		if r := h.write(h.finance, "reconciliations", "bad", body); r.code() != code {
			t.Errorf("%s: %s", body, r)
		}
	}
	if r := h.as(h.finance, "POST", "/v1/staff/reconciliations", `{"date":"2026-02-17"}`); r.code() != "idempotency_key_required" {
		t.Errorf("%s", r)
	}
	for _, who := range []owner{h.ops, h.auditor, h.app} {
		if r := h.write(who, "reconciliations", "k", `{"date":"2026-02-17"}`); r.code() != "forbidden" {
			t.Errorf("%s", r)
		}
	}
	var first, again, joined reconciliationBody
	r := h.write(h.finance, "reconciliations", "k", `{"date":"`+today+`","reason":"they announced corrections"}`)
	r.json(t, &first)
	if r.status != http.StatusAccepted || first.Status != "requested" || first.Date != today || first.Provider != "sandbox" ||
		*first.Reason != "they announced corrections" ||
		first.RequestedBy != h.finance.key.Owner || first.StartedAt != nil || len(first.Amounts) != 0 ||
		first.Workflow.ID != "reconcile/sandbox/"+today {
		t.Fatalf("%s", r)
	}
	r = h.write(h.finance, "reconciliations", "k", `{"reason":"they announced corrections","provider":"sandbox","date":"`+today+`"}`)
	if r.json(t, &again); r.header.Get("Idempotency-Replayed") != "true" || again.ID != first.ID {
		t.Errorf("defaults filled in: %s", r)
	}
	r = h.write(h.finance, "reconciliations", "k0", `{}`)
	if r.json(t, &again); r.status != http.StatusAccepted || again.ID != first.ID {
		t.Errorf("today by default: %s", r)
	}
	r = h.write(h.finance, "reconciliations", "k0", "")
	if r.json(t, &again); r.status != http.StatusAccepted || again.ID != first.ID || r.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("no body is {}: %s", r)
	}
	if r := h.write(h.finance, "reconciliations", "k", `{"date":"2026-02-17"}`); r.code() != "idempotency_key_reused" {
		t.Errorf("%s", r)
	}
	r = h.write(h.finance, "reconciliations", "k2", `{"date":"`+today+`"}`)
	if r.json(t, &joined); r.status != http.StatusAccepted || joined.ID != first.ID || r.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("one is under way: %s", r)
	}
	h.reconciled(first.ID, 3)
	for _, who := range []owner{h.finance, h.ops, h.auditor} {
		var done reconciliationBody
		r := h.as(who, "GET", "/v1/staff/reconciliations/"+first.ID, "")
		r.json(t, &done)
		if done.Status != "done" || done.Lines != 3 || done.Matched != 0 || done.Breaks != 3 || !done.Provisional || done.EndedAt == nil ||
			len(done.Amounts) != 4 ||
			done.Amounts[1].Op != "transfer" || done.Amounts[1].Provider.Amount != 6 || done.Amounts[1].Books.Count != 0 {
			t.Errorf("%s", r)
		}
	}
	for _, id := range []string{"x", "%2F", first.ID[1:], "%zz"} {
		if r := h.as(h.ops, "GET", "/v1/staff/reconciliations/"+id, ""); r.code() != "not_found" {
			t.Errorf("%s: %s", id, r)
		}
	}
	entries := h.audit("?action=reconcile")
	if len(entries.Items) != 3 || entries.Items[0].Subject != first.ID || entries.Items[2].Reason != "they announced corrections" {
		t.Errorf("%+v", entries)
	}
}

func TestReconciliationList(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	var want []string
	for i := range 5 {
		var one reconciliationBody
		h.write(h.finance, "reconciliations", fmt.Sprint(i), fmt.Sprintf(`{"date":"2026-02-%02d"}`, 10+i)).json(t, &one)
		want = append(want, one.ID)
	}
	h.reconciled(want[0], 1)
	slices.Reverse(want)
	for query, n := range map[string]int{"": 5, "?status=done": 1, "?status=requested": 4, "?status=failed": 0, "?date=2026-02-11": 1,
		"?date=2026-02-11&status=done": 0,
		"?provider=sandbox":            5, "?provider=bank": 0} {
		var page struct{ Items []reconciliationBody }
		if h.page(h.ops, "/v1/staff/reconciliations"+query, &page); len(page.Items) != n {
			t.Errorf("%s: %d, want %d", query, len(page.Items), n)
		}
	}
	var got []string
	for next, rounds := "?limit=2&provider=sandbox", 0; next != "" && rounds < 9; rounds++ {
		var page struct {
			Items      []reconciliationBody
			NextCursor *string `json:"next_cursor"`
		}
		h.page(h.ops, "/v1/staff/reconciliations"+next, &page)
		for _, one := range page.Items {
			got = append(got, one.ID)
		}
		if next = ""; page.NextCursor != nil {
			next = "?limit=2&cursor=" + url.QueryEscape(*page.NextCursor)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, query := range []string{"status=x", "date=x", "date=2026-2-1", "provider=", "x=1", "cursor=x", "limit=0"} {
		if r := h.as(h.ops, "GET", "/v1/staff/reconciliations?"+query, ""); r.code() != "invalid_request" {
			t.Errorf("%s: %s", query, r)
		}
	}
}

func TestBreaks(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	var run reconciliationBody
	h.write(h.finance, "reconciliations", "k", `{"date":"2026-02-17"}`).json(t, &run)
	h.reconciled(run.ID, 5)
	all := h.breaks("").Items
	if len(all) != 5 {
		t.Fatalf("%+v", all)
	}
	for _, b := range all {
		if b.Kind != "foreign_order" || b.PacketID != nil || !strings.HasPrefix(*b.OrderNo, "Foreign") || *b.Amount < 1 ||
			*b.ReconciliationID != run.ID || b.Seen != 1 || b.Resolved != nil || b.Detail == "" {
			t.Errorf("%+v", b)
		}
	}
	path := "breaks/" + all[0].ID + "/resolve"
	for _, who := range []owner{h.ops, h.auditor} {
		if r := h.write(who, path, "k", because); r.code() != "forbidden" {
			t.Errorf("%s", r)
		}
	}
	for path, code := range map[string]string{"breaks/b0/resolve": "not_found", "breaks/1/resolve": "not_found",
		"breaks/b999999/resolve": "not_found", "breaks/b01/resolve": "not_found", "breaks/%zz/resolve": "not_found"} {
		if r := h.write(h.finance, path, "k", because); r.code() != code {
			t.Errorf("%s: %s", path, r)
		}
	}
	if r := h.write(h.finance, path, "k", `{"reason":""}`); r.code() != "invalid_request" {
		t.Errorf("%s", r)
	}
	for try := range 2 {
		var b breakBody
		r := h.write(h.finance, path, "k", because)
		r.json(t, &b)
		if r.status != http.StatusOK || b.Resolved == nil || b.Resolved.By != h.finance.key.Owner || b.Resolved.Reason != "because" ||
			(r.header.Get("Idempotency-Replayed") == "true") != (try == 1) {
			t.Errorf("%s", r)
		}
	}
	if entries := h.audit("?action=resolve_break"); len(entries.Items) != 1 || entries.Items[0].Reason != "because" {
		t.Errorf("%+v", entries)
	}
	for query, n := range map[string]int{"?resolved=true": 1, "?resolved=false": 4, "?kind=foreign_order": 5, "?kind=mismatch": 0,
		"?packet_id=x": 0, "?older_than_seconds=0": 5,
		"?older_than_seconds=3600": 0, "?reconciliation_id=" + run.ID + "&resolved=false": 4, "?reconciliation_id=x": 0} {
		if page := h.breaks(query); len(page.Items) != n {
			t.Errorf("%s: %d, want %d", query, len(page.Items), n)
		}
	}
	var got, want []string
	for _, b := range h.breaks("?resolved=false").Items {
		want = append(want, b.ID)
	}
	for next, rounds := "?limit=1&resolved=false&older_than_seconds=0", 0; next != "" && rounds < 9; rounds++ {
		page := h.breaks(next)
		for _, b := range page.Items {
			got = append(got, b.ID)
		}
		if next = ""; page.NextCursor != nil {
			next = "?limit=1&cursor=" + url.QueryEscape(*page.NextCursor)
		}
	}
	if !slices.Equal(got, want) || len(got) != 4 {
		t.Errorf("%q, want %q", got, want)
	}
	for _, query := range []string{"resolved=yes", "resolved=", "kind=", "older_than_seconds=-1", "x=1", "cursor=x"} {
		if r := h.as(h.ops, "GET", "/v1/staff/breaks?"+query, ""); r.code() != "invalid_request" {
			t.Errorf("%s: %s", query, r)
		}
	}
}
