package browser

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store"
	"hongbao/internal/store/report"
)

// tieToday closes the day as a worker would after its end, with a statement that contains a
// foreign order.
func (h *testbed) tieToday(day payout.Day, foreign string) (later *store.Store, off *atomic.Int64) {
	h.t.Helper()
	off = new(atomic.Int64)
	off.Store(int64(24 * time.Hour))
	later, err := store.Open(store.Config{DSN: h.DSN, ClockOff: func() time.Duration { return time.Duration(off.Load()) }})
	h.must(err)
	h.t.Cleanup(func() { _ = later.Close() })
	ctx := h.t.Context()
	asked, err := later.RequestDailyReconciliation(ctx, "sandbox", day, "tester")
	h.must(err)
	_, end := day.Span(time.UTC)
	r, err := later.BeginReconciliation(ctx, asked.ID, end)
	h.must(err)
	page, err := h.Provider.Statement(ctx, day, "")
	h.must(err)
	lines := append(page.Lines, payout.StatementLine{Ref: "foreign", Op: payout.OpTransfer, OrderNo: foreign, Account: "v", Amount: 77,
		At: time.Now().UTC()})
	h.must(later.SaveStatement(ctx, r.ID, payout.Adapter{Provider: r.Provider}, day, lines))
	h.must(later.SealStatement(ctx, r.ID, payout.Adapter{Provider: r.Provider}, day, r.StartedAt))
	_, err = later.CompareLines(ctx, r, 0, false, 1000)
	h.must(err)
	h.must(later.FinishReconciliation(ctx, r.ID, nil))
	h.closeDays(later)
	return later, off
}

// closeDays runs the periodic work of the worker on day-end closes.
func (h *testbed) closeDays(s *store.Store) {
	h.t.Helper()
	ctx := context.WithoutCancel(h.t.Context())
	reports := report.New(s.MySQL())
	for more := true; more; {
		var err error
		more, err = reports.SaveLedgerSums(ctx, time.UTC)
		h.must(err)
	}
	_, err := reports.MatchDays(ctx, "sandbox", time.UTC)
	h.must(err)
}

// TestDayClose: a day-end close from list to CSV, in progress, with an open break, and final, in
// both languages. A foreign order number is shown escaped.
func TestDayClose(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	day := payout.DayOf(time.Now(), time.UTC)
	if _, end := day.Span(time.UTC); time.Until(end) < 5*time.Minute {
		t.Skip("a few minutes from midnight UTC there is no one day to close")
	}
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 300, "share_count": 3, "split": "equal"})
	h.grab(id, "ann", "")
	h.grab(id, "ben~frozen", "")
	const hostile = `<img src=x onerror=alert(1)>`
	look := func(b *reader) {
		t.Helper()
		for _, path := range []string{"/closes", "/closes/" + string(day)} {
			if status := b.open(path); status != http.StatusOK {
				t.Errorf("%s: %d", path, status)
			}
		}
	}
	b := h.signIn(h.auditor, "en")
	b.follow(`.nav a[href="/closes"]`)
	b.has("main", string(day), "day in progress")
	b.follow(`main tbody a`)
	b.has("main", "Day-end close "+string(day), "the end of the day", "Charged to senders", "¥3.00", "Payouts owed", "1 · ¥1.00",
		"is not compared yet")
	look(b)

	later, off := h.tieToday(day, hostile)
	b.open("/closes/" + string(day))
	b.has("main", "Only in the provider's statement", hostile, "¥0.77", "foreign_order",
		"Both sides agree, apart from the explained differences below")
	look(b)
	found, err := h.Reports.Breaks(t.Context(), staff.BreakFilter{Limit: 10})
	h.must(err)
	w := h.By(t, staff.Write{Owner: "finance", Role: "finance", Route: "POST /x", Key: "k", BodyHash: "h", Reason: "r"})
	_, err = h.Store.ResolveBreak(t.Context(), w, found[0].ID, func(staff.BreakRow) (int, []byte) { return 200, []byte("{}") })
	h.must(err)
	off.Add(int64(time.Hour))
	h.closeDays(later)
	zh := h.signIn(h.ops, "zh-CN")
	zh.open("/closes/" + string(day))
	zh.has("main", "日结", "定稿", "应付领取人", "仅渠道有", hostile, "分毫不差")
	look(zh)
	text := string(zh.file("#csv"))
	if !strings.HasPrefix(text, "\ufeffdate,status,section,") || !strings.Contains(text, string(day)+",final,closing,,owed,") {
		t.Errorf("%.300s", text)
	}
}
