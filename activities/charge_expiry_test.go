package activities

import (
	"context"
	"testing"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// watched is a pool with a state and a clock.
type watched struct {
	ClaimPools
	view packet.PoolView
	err  error
	asks int
}

func (w *watched) View(context.Context, string) (packet.PoolView, error) {
	w.asks++
	return w.view, w.err
}

// ExpireCharge fails a charge that was never sent.
func (b *book) ExpireCharge(_ context.Context, id string) (payout.State, error) {
	b.lapses++
	st := b.state(id)
	if b.late { // the books' own clock says that it has not expired
		return st, nil
	}
	st.Status, st.Step, st.Failure = payout.StatusFailed, payout.Step{Do: payout.ActionEnd},
		payout.FailureOf(payout.KindCharge, payout.FailureExpiredBeforeCharge, "")
	return st, nil
}

// TestR2_LapsesByTheClockOfThePool: a charge is not sent if its packet has expired by the pool
// and by MySQL, also while the provider fails. An unreadable state does not stop the charge.
func TestR2_LapsesByTheClockOfThePool(t *testing.T) {
	charge := payout.ID(payout.KindCharge, "0123456789abcdefghij", 0)
	at := time.Now()
	view := func(state packet.PoolState, now time.Time) packet.PoolView {
		return packet.PoolView{State: state, Now: now, Packet: packet.Packet{ExpiresAt: at}}
	}
	for name, tc := range map[string]struct {
		id            string
		pool          *watched
		late, trouble bool
		asks, lapses  int
		sends         int
	}{
		"expired":                      {id: charge, pool: &watched{view: view(packet.PoolFunding, at)}, asks: 1, lapses: 1},
		"expired, provider in trouble": {id: charge, pool: &watched{view: view(packet.PoolFunding, at)}, trouble: true, asks: 1, lapses: 1},
		"not yet": {id: charge, pool: &watched{view: view(packet.PoolFunding, at.Add(-time.Millisecond))}, asks: 1,
			sends: 1},
		"by the pool's clock alone": {id: charge, pool: &watched{view: view(packet.PoolFunding, at)}, late: true, asks: 1, lapses: 1,
			sends: 1},
		"opened although unpaid": {id: charge, pool: &watched{view: view(packet.PoolOpen, at)}, asks: 1, sends: 1},
		"Redis away":             {id: charge, pool: &watched{err: packet.ErrUnavailable}, asks: 1, sends: 1},
		"pool lost":              {id: charge, pool: &watched{err: packet.ErrNotFound}, asks: 1, sends: 1},
		"a payout":               {id: paymentID(0), pool: &watched{view: view(packet.PoolFunding, at)}, sends: 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := newTimed(nil)
			c.Pools, c.book.late = tc.pool, tc.late
			if tc.trouble {
				c.bank.answer = low
				for i := range 3 {
					c.try(t, paymentID(i+1))
				}
				c.bank.sends = 0
			}
			out, err := c.Payments.Send(t.Context(), tc.id)
			if err != nil {
				t.Fatal(err)
			}
			if tc.pool.asks != tc.asks || c.book.lapses != tc.lapses || c.bank.sends != tc.sends {
				t.Errorf("pool asked %d times, lapsed %d, sent %d; want %d, %d, %d", tc.pool.asks, c.book.lapses, c.bank.sends, tc.asks, tc.lapses,
					tc.sends)
			}
			if ended := tc.lapses == 1 && !tc.late; ended != (out.Observation == nil && out.State.Status == payout.StatusFailed &&
				out.State.Failure.Code == payout.FailureExpiredBeforeCharge) {
				t.Errorf("%+v", out)
			}
		})
	}
}
