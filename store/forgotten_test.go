package store

import (
	"testing"
	"time"

	"hongbao/payout"
)

// TestR5_NothingLeavesPastAskUntil: a send noted in time that waited until the
// provider may have forgotten the number does not leave any more, however late
// it could still have landed.
func TestR5_NothingLeavesPastAskUntil(t *testing.T) {
	s, c := newStore(t)
	id := owing(t, s)
	short := payout.Limits{LandingWindow: time.Hour, Remembers: 24*time.Hour + time.Minute}
	begun, err := s.BeginSend(t.Context(), id, short, func(payout.Instruction) ([]byte, error) { return []byte("{}"), nil })
	must(t, err)
	for _, tc := range []struct {
		later time.Duration
		want  bool
	}{{0, true}, {59 * time.Second, true}, {2 * time.Second, false}} {
		c.pass(tc.later)
		if got, err := s.StillCurrent(t.Context(), begun.Order.OrderNo, begun.Order.Send, limits); err != nil || got != tc.want {
			t.Errorf("%v later: %t, %v; want %t", tc.later, got, err, tc.want)
		}
	}
}
