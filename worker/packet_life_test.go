package worker_test

import (
	"fmt"
	"sync"
	"testing"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

func TestPacketLife(t *testing.T) {
	r := sharedRig(t)

	t.Run("a crowd empties it and it closes without its timer", func(t *testing.T) {
		p := r.create(t, spec{total: 12345, count: 20})
		r.awaitOpen(t, p.ID)
		var mu sync.Mutex
		var won []packet.Claim
		var wg sync.WaitGroup
		for i := range 60 {
			wg.Go(func() {
				g, err := r.pool.Grab(t.Context(), p.ID, fmt.Sprintf("u%d", i), packet.Profile{})
				if err != nil {
					t.Error(err)
					return
				}
				if g.Result == packet.GrabWon {
					mu.Lock()
					won = append(won, g.Claim)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if len(won) != 20 {
			t.Fatalf("%d winners of 20 shares", len(won))
		}
		var sum money.Fen
		for _, c := range won {
			sum += c.Amount
			r.awaitPayout(t, c, payout.StatusPaid)
		}
		if sum != p.TotalAmount {
			t.Errorf("claims sum to %d of %d", sum, p.TotalAmount)
		}
		rec := r.awaitStatus(t, p.ID, packet.StatusClosed)
		if rec.Reason != packet.CloseSoldOut || rec.RefundedAmount != 0 {
			t.Errorf("closed by %s with %d refunded", rec.Reason, rec.RefundedAmount)
		}
		r.balanced(t, p)
		if n := len(r.movements(t, p.ID)); n != 21 {
			t.Errorf("%d movements, want one charge and 20 transfers", n)
		}
	})
}
