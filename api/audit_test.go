package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
)

// auditBody is a page of the audit.
type auditBody struct {
	Items []struct {
		Seq                                        int64
		At                                         time.Time
		Actor, Role, Action, Subject, Reason, Hash string
		KeyID                                      *string `json:"key_id"`
		Before, After                              map[string]any
	}
	NextCursor *string `json:"next_cursor"`
}

// verdict is the answer to the check of the audit.
type verdict struct {
	Valid    bool
	Entries  int64
	Head     string
	FirstBad *int64 `json:"first_bad"`
}

func (h *fixture) audit(query string) auditBody {
	h.t.Helper()
	var page auditBody
	h.page(h.auditor, "/v1/staff/audit"+query, &page)
	return page
}

func (h *fixture) verdict() (v verdict) {
	h.t.Helper()
	h.page(h.auditor, "/v1/staff/audit/verify", &v)
	return v
}

// audited makes n entries, by retries of a payout that stays frozen.
func (h *fixture) audited(n int) (payoutID string) {
	h.t.Helper()
	_, bad := h.failed()
	for i := range n {
		if r := h.retry(h.finance, bad, fmt.Sprint(bad, i), fmt.Sprintf(`{"reason":"第%d次"}`, i)); r.status != http.StatusAccepted {
			h.t.Fatalf("%s", r)
		}
		h.drive(bad)
	}
	return bad
}

func TestAudit(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	if v := h.verdict(); !v.Valid || v.Entries != 0 || v.FirstBad != nil || v.Head != strings.Repeat("0", 64) {
		t.Errorf("empty: %+v", v)
	}
	before := time.Now().Add(-time.Minute).UTC()
	bad := h.audited(3)
	other := h.audited(2)
	page := h.audit("")
	if len(page.Items) != 5 || page.NextCursor != nil {
		t.Fatalf("%+v", page)
	}
	for i, e := range page.Items {
		if e.Seq != int64(5-i) || e.Actor != h.finance.key.Owner || e.Role != "finance" || e.Action != "retry" ||
			e.Before["status"] != "failed" ||
			e.After["status"] != "pending" || !strings.HasPrefix(e.Reason, "第") || e.At.Before(before) || len(e.Hash) != 64 {
			t.Errorf("%+v", e)
		}
	}
	if v := h.verdict(); !v.Valid || v.Entries != 5 || v.Head != page.Items[0].Hash {
		t.Errorf("%+v", v)
	}
	hourAgo, soon := url.QueryEscape(before.Format(time.RFC3339)),
		url.QueryEscape(time.Now().Add(time.Minute).In(time.FixedZone("", 8*3600)).Format(time.RFC3339Nano))
	for query, want := range map[string]int{
		"?subject=" + bad: 3, "?subject=" + other: 2, "?subject=" + strings.ToUpper(bad): 0, "?actor=" + h.finance.key.Owner: 5, "?actor=x": 0,
		"?action=retry": 5, "?action=cancel": 0, "?from=" + hourAgo: 5, "?to=" + hourAgo: 0, "?from=" + soon: 0, "?to=" + soon: 5, "?from=" +
			hourAgo + "&to=" + soon + "&subject=" + other + "&action=retry": 2,
	} {
		if got := h.audit(query); len(got.Items) != want {
			t.Errorf("%s: %d entries, want %d", query, len(got.Items), want)
		}
	}
	for query, field := range map[string]string{
		"actor=": "actor", "action=" + strings.Repeat("x", 129): "action", "subject=%FF": "subject", "from=yesterday": "from",
		"from=2026-02-17": "from", "to=1969-12-31T23:59:59Z": "to", "from=2026-02-17T00:00:00+08:00": "from",
		"from=2026-02-17T00:00:00Z&to=2026-02-17T00:00:00Z": "to", "from=2026-01-01T00:00:00Z&from=2026-01-01T00:00:00Z": "from",
		"status=failed": "status", "limit=0": "limit", "limit=201": "limit", "cursor=": "cursor", "cursor=x": "cursor", "cursor=e30": "cursor",
	} {
		r := h.as(h.auditor, "GET", "/v1/staff/audit?"+query, "")
		if got := fieldsOf(t, r); r.status != http.StatusUnprocessableEntity || len(got) != 1 || !strings.HasPrefix(got[0], field+" ") {
			t.Errorf("%s: %s", query, r)
		}
	}
	if r := h.as(h.auditor, "GET", "/v1/staff/audit/verify?seq=1", ""); r.code() != "invalid_request" {
		t.Errorf("%s", r)
	}
}

// TestAuditPages: the cursor keeps filters and order while entries are appended.
func TestAuditPages(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	bad := h.audited(4)
	for _, repeat := range []bool{false, true} {
		var got []int64
		filters := "subject=" + bad + "&action=retry"
		query := "?limit=1&" + filters
		top := h.audit("?limit=1&" + filters).Items[0].Seq
		for range 20 {
			page := h.audit(query)
			for _, e := range page.Items {
				got = append(got, e.Seq)
			}
			if page.NextCursor == nil {
				break
			}
			query = "?limit=1&cursor=" + url.QueryEscape(*page.NextCursor)
			if repeat {
				query += "&" + filters
			}
			if len(got) == 2 { // in between
				h.retry(h.finance, bad, fmt.Sprint("between", repeat), `{"reason":"r"}`)
				h.drive(bad)
			}
		}
		var want []int64
		for seq := top; seq > 0; seq-- {
			want = append(want, seq)
		}
		if !slices.Equal(got, want) {
			t.Errorf("filters repeated %v: %v, want %v", repeat, got, want)
		}
	}
	cursor := url.QueryEscape(*h.audit("?limit=1&action=retry").NextCursor)
	for _, query := range []string{"&action=cancel", "&subject=" + bad, "&action=retry&subject=" + bad} {
		if r := h.as(h.auditor, "GET", "/v1/staff/audit?cursor="+cursor+query, ""); r.code() != "invalid_request" {
			t.Errorf("other filters with the cursor: %s: %s", query, r)
		}
	}
	payouts := url.QueryEscape(*h.payouts("?limit=1").NextCursor)
	if r := h.as(h.auditor, "GET", "/v1/staff/audit?cursor="+payouts, ""); r.code() != "invalid_request" {
		t.Errorf("another list's cursor: %s", r)
	}
	if r := h.as(h.auditor, "GET", "/v1/staff/payouts?cursor="+cursor, ""); r.code() != "invalid_request" {
		t.Errorf("the cursor for another list: %s", r)
	}
}

// TestBrokenAuditIsReported: a manipulated entry is located and stays readable, also when it
// is no longer JSON.
func TestBrokenAuditIsReported(t *testing.T) {
	t.Parallel()
	dsn := stacktest.MariaDB(t)
	h := newFixture(t, parts{dsn: dsn})
	h.audited(3)
	h.exec(dsn, "DROP TRIGGER IF EXISTS audit_no_update", "DROP TRIGGER IF EXISTS audit_no_delete",
		"UPDATE audit SET after_is = '{\"status\":' WHERE seq = 2")
	v := h.verdict()
	if v.Valid || v.Entries != 3 || v.FirstBad == nil || *v.FirstBad != 2 {
		t.Errorf("%+v", v)
	}
	r := h.as(h.auditor, "GET", "/v1/staff/audit", "")
	if r.status != http.StatusOK || !strings.Contains(string(r.body), `"after":{"unreadable":"{\"status\":"}`) {
		t.Errorf("%s", r)
	}
	h.exec(dsn, "DELETE FROM audit WHERE seq = 3")
	if v := h.verdict(); v.Valid || v.Entries != 2 || *v.FirstBad != 2 {
		t.Errorf("%+v", v)
	}
}

// exec runs statements with the rights of the database owner.
func (h *fixture) exec(dsn string, statements ...string) {
	h.t.Helper()
	db := h.database(dsn)
	for _, text := range statements {
		if _, err := db.ExecContext(h.t.Context(), text); err != nil {
			h.t.Fatalf("%s: %v", text, err)
		}
	}
}
