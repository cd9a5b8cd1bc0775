package browser

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store"
)

// likelyRuns returns the runs that Temporal would have for a payment; the test replaces the
// workflow.
func (h *testbed) likelyRuns(ctx context.Context, workflowID string) (staff.WorkflowRuns, error) {
	id := ""
	kind, rest, _ := strings.Cut(workflowID, "/")
	packetID, who, _ := strings.Cut(rest, "/")
	switch kind {
	case "payout":
		c, err := h.Store.Claim(ctx, packetID, who)
		if err != nil {
			return staff.WorkflowRuns{}, err
		}
		id = c.PayoutID
	case "refund":
		n := 0
		_, _ = fmt.Sscan(who, &n)
		id = payout.ID(payout.KindRefund, packetID, n)
	}
	p, err := h.Store.PaymentRow(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return staff.WorkflowRuns{}, nil
	}
	if err != nil {
		return staff.WorkflowRuns{}, err
	}
	run := staff.WorkflowRun{ID: "0198a1b2-c3d4-7e5f-8a9b-" + id[1:13], Status: "completed", StartedAt: p.CreatedAt, ClosedAt: p.UpdatedAt}
	switch {
	case p.Status.Open():
		run.Status, run.ClosedAt = "running", time.Time{}
	case p.Status == payout.StatusFailed || p.Status == payout.StatusReturned:
		run.Status = "failed"
	}
	return staff.WorkflowRuns{Known: true, Runs: []staff.WorkflowRun{run}}, nil
}

// TestOneTimeline: the page of a payout shows one timeline with the source of each entry, and
// works without Temporal.
func TestOneTimeline(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "sender", "total_amount": 400, "share_count": 4, "split": "equal"})
	bad := h.grab(id, "bob~frozen", "Bob")
	d, err := h.Reports.Payment(t.Context(), bad)
	h.must(err)
	h.must(h.Store.RecordNotification(t.Context(), h.Provider.Adapter(), "evt-<b>1</b>", d.OrderNo, []byte("{}")))
	h.runs = func(context.Context, string) (staff.WorkflowRuns, error) {
		at := d.CreatedAt
		return staff.WorkflowRuns{Known: true, Runs: []staff.WorkflowRun{{ID: "run-1", Status: "failed", StartedAt: at,
			ClosedAt: at.Add(time.Second)},
			{ID: "run-2", Status: "running", StartedAt: at.Add(2 * time.Second)}},
			Pending: []staff.PendingActivity{{Name: "Settle", State: "scheduled", Attempt: 7, LastFailure: "mysql is <i>away</i>",
				NextAt: time.Now().Add(10 * time.Second)}}}, nil
	}
	b := h.signIn(h.finance, "en")
	b.open("/payouts/" + bad)
	b.has(".timeline", "Redis", "Grab acknowledged, hand-off written", "Temporal", "Run run-1 started", "ledger", "Claim booked, payout owed",
		"provider",
		"declined (account_frozen)", "notification", "Notification for "+d.OrderNo+" (event evt-<b>1</b>)", "outbox",
		"query the provider, attempts so far: 0", "Run run-1 ended: failed, needs a decision", "Run run-2 started")
	b.has("#temporal", "Step Settle, attempt 7:", "waiting for the next attempt", "mysql is <i>away</i>")
	sources := b.texts(".timeline .source")
	if len(sources) != 9 || sources[0] != "Redis" || sources[1] != "Temporal" || sources[2] != "ledger" || sources[8] != "Temporal" {
		t.Errorf("sources in order: %q", sources)
	}
	h.runs = func(ctx context.Context, _ string) (staff.WorkflowRuns, error) {
		<-ctx.Done()
		return staff.WorkflowRuns{}, ctx.Err()
	}
	b.open("/payouts/" + bad)
	b.has("#temporal", "Temporal is not responding")
	b.has(".timeline", "Claim booked, payout owed", "Notification for "+d.OrderNo)
	h.runs = func(context.Context, string) (staff.WorkflowRuns, error) { return staff.WorkflowRuns{}, nil }
	b.open("/payouts/" + bad)
	b.has("#temporal", "Temporal has no run of this workflow")
	zh := h.signIn(h.auditor, "zh-CN")
	zh.open("/payouts/" + bad)
	zh.has(".timeline", "抢红包已确认，交接记录已写入", "收到单号 "+d.OrderNo+" 的渠道通知")
}

// TestSignedOutEverywhere: after a sign-out a copy of the cookie is invalid.
func TestSignedOutEverywhere(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	b := h.signIn(h.finance, "en")
	copied := b.cookie("hongbao_desk")
	b.open("/payouts?status=failed")
	if status := h.cookieStatus(copied); status != 200 {
		t.Fatalf("the copy is not signed in: %d", status)
	}
	b.follow("#logout")
	if b.where() != "/login" {
		t.Errorf("at %s", b.where())
	}
	if status := h.cookieStatus(copied); status != 303 {
		t.Errorf("the copy is still signed in: %d", status)
	}
}

// cookieStatus returns the status of a page for a cookie.
func (h *testbed) cookieStatus(value string) int {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, h.Staff+"/payouts?status=failed", nil)
	h.must(err)
	req.AddCookie(&http.Cookie{Name: "hongbao_desk", Value: value})
	res, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(req)
	h.must(err)
	_ = res.Body.Close()
	return res.StatusCode
}

// TestLateRefunds: late refunds have a list, which the overview counts and links to.
func TestLateRefunds(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	ctx := t.Context()
	id := h.open(map[string]any{"sender_id": "lin mei", "total_amount": 888, "share_count": 3})
	_, err := h.Store.BeginClosing(ctx, id, packet.CloseRecalled)
	h.must(err)
	_, err = h.Store.CloseBooks(ctx, id, "") // its refund is due and not carried out
	h.must(err)
	refund := payout.ID(payout.KindRefund, id, 0)
	b := h.signIn(h.finance, "en")
	b.open("/refunds?late=true")
	b.has("main", "No entries.")
	db, err := store.OpenSQL(h.DSN)
	h.must(err)
	defer func() { h.must(db.Close()) }()
	_, err = db.ExecContext(ctx, "UPDATE payments SET created_at = created_at - INTERVAL 6 MINUTE WHERE id = ?", refund)
	h.must(err)
	b.open("/")
	b.has("#live", "Late refunds")
	b.follow(`#live a[href="/refunds?late=true"]`)
	b.has("#total", "1 in total", "¥8.88")
	b.has("tbody", "lin mei", refund)
	b.has(".tabs [aria-current]", "Late")
	b.follow(".tabs li:first-child a")
	if b.where() != "/refunds?status=failed" {
		t.Errorf("at %s", b.where())
	}
}
