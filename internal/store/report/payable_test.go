package report

import (
	"maps"
	"strings"
	"testing"

	"hongbao/internal/money"
	"hongbao/internal/packet"
)

// TestPayable: what may still be paid out is what is claimed and not paid, and what is unclaimed in open packets, by the
// provider of the payouts. Beyond a number of shares, open packets count with their totals.
func TestPayable(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	expect := func(step string, want map[string]money.Fen) {
		t.Helper()
		if got, err := s.Payable(t.Context()); err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", step, got, err, want)
		}
	}
	expect("nothing", map[string]money.Fen{})
	recorded(t, s, samplePacket(1000, 1)) // not charged yet
	expect("unpaid", map[string]money.Fen{})
	p := funded(t, s, 400, 4)
	expect("open", map[string]money.Fen{provider: 400})
	for share, user := range []string{"a", "b", "c"} {
		claim(t, s, p, share, user)
	}
	expect("claimed", map[string]money.Fen{provider: 400})
	pay(t, s, payoutID(p, 0))
	expect("one is paid", map[string]money.Fen{provider: 300})
	fail(t, s, payoutID(p, 1))
	expect("one has failed", map[string]money.Fen{provider: 300})

	other := samplePacket(50, 1)
	other.PayoutProvider = "wechat"
	open(t, s, other)
	expect("two providers", map[string]money.Fen{provider: 300, "wechat": 50})
	for most, want := range map[int64]money.Fen{5: 300, 4: 600} {
		if got, err := s.payable(t.Context(), most); err != nil || got[provider] != want || got["wechat"] != 50 {
			t.Errorf("at most %d shares: %v, %v", most, got, err)
		}
	}

	_, err := s.BeginClosing(t.Context(), p.ID, packet.CloseExpired)
	must(t, err)
	expect("closing", map[string]money.Fen{provider: 300, "wechat": 50})
	_, err = s.CloseBooks(t.Context(), p.ID, packet.CloseExpired)
	must(t, err)
	expect("closed", map[string]money.Fen{provider: 200, "wechat": 50})

	for _, text := range []string{selectOpenTotals, selectUnclaimed, selectOwed} {
		text = strings.Replace(text, "?", "1", 1)
		explain(t, s.db.SQL, strings.Replace(text, "?", "('pending', 'failed')", 1))
	}
}
