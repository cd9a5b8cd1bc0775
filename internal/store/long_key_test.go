package store

import (
	"strings"
	"testing"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
	"hongbao/internal/store/storetest"
)

// TestLongKeys: keys are never cut. Two texts that differ after their column's width stay distinct,
// and a repeated one is recognized.
func TestLongKeys(t *testing.T) {
	t.Parallel()
	long := func(n int, end string) string { return strings.Repeat("x", n) + end }
	t.Run("key", func(t *testing.T) {
		t.Parallel()
		seen := map[string]bool{}
		for _, s := range []string{"", "a", long(63, "a"), long(64, "a"), long(64, "b"), long(600, "a"), strings.Repeat("长", 22),
			strings.Repeat("🧧", 17),
			strings.Repeat("\xbf", 65)} {
			got := mysql.ClipKey(s, 64)
			if seen[got] || len(got) > 64 || len(s) <= 64 && got != s || mysql.ClipKey(got, 64) != got {
				t.Errorf("%q: %q", s, got)
			}
			seen[got] = true
		}
	})
	t.Run("notifications", func(t *testing.T) {
		t.Parallel()
		s, _ := newStore(t)
		id := owing(t, s)
		o := begin(t, s, id)
		for _, event := range []string{"a", "b", "a"} {
			must(t, s.RecordNotification(t.Context(), adapter, long(128, event), o.OrderNo, nil))
			must(t, s.RecordNotification(t.Context(), adapter, "of "+event, long(64, event), nil))
		}
		if got := storetest.Query[int](t, s, "SELECT COUNT(*) FROM notifications WHERE order_no = ?", o.OrderNo); got != 2 {
			t.Errorf("%d notifications of two events", got)
		}
		if got := storetest.Query[int](t, s, "SELECT COUNT(DISTINCT order_no) FROM notifications"); got != 3 {
			t.Errorf("%d order numbers of three", got)
		}
	})
	t.Run("statement", func(t *testing.T) {
		t.Parallel()
		x := newStatement(t)
		for _, end := range []string{"a", "b"} {
			x.Add(payout.OpTransfer, long(64, end), long(255, end), 5, x.s.Now())
		}
		day := payout.DayOf(x.s.Now(), time.UTC)
		for range 2 {
			x.Reconcile(day)
		}
		if got := storetest.Query[int](t, x.s, "SELECT COUNT(DISTINCT order_no) FROM breaks WHERE kind = 'foreign_order'"); got != 2 {
			t.Errorf("%d breaks of two foreign orders", got)
		}
		if got := storetest.Query[int](t, x.s, "SELECT COUNT(DISTINCT account) FROM statement_lines"); got != 2 {
			t.Errorf("%d accounts of two", got)
		}
	})
	t.Run("attempt", func(t *testing.T) {
		t.Parallel()
		s, _ := newStore(t)
		refs := map[string]string{}
		for action, kept := range map[string]string{long(2048, "a"): "", long(2047, "b"): long(2047, "b")} {
			id := owing(t, s)
			o := begin(t, s, id)
			seen := observation(payout.SourceSend, o.OrderNo, payout.ObsNeedsRecipient)
			seen.ProviderRef, seen.SealedAction = long(64, action[len(action)-1:]), []byte(action)
			_, err := s.Settle(t.Context(), seen, o.OrderNo)
			must(t, err)
			refs[id] = seen.ProviderRef
			got, err := s.RecipientAction(t.Context(), id)
			if must(t, err); string(got) != kept {
				t.Errorf("of an action of %d bytes %q was kept", len(action), got)
			}
		}
		for id, ref := range refs {
			rows, err := s.Payments(t.Context(), staff.PaymentFilter{Kind: payout.KindPayout, ProviderRef: ref, Limit: 5})
			must(t, err)
			if len(rows) != 1 || rows[0].ID != id {
				t.Errorf("%q finds %+v", ref, rows)
			}
		}
	})
}
