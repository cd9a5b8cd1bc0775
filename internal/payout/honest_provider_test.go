package payout

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// honest is a provider that from some moment on reports the true outcome of every number, whatever
// it has reported before.
type honestProvider struct {
	*adversary
	truth map[int]ObservationKind
}

func (h *honestProvider) hears(t *rapid.T, source Source, no int) {
	o := said(source, h.attempt(no).OrderNo, h.truth[no])
	h.seq++
	o.ID, o.StartedAt = fmt.Sprintf("honest/%d", h.seq), h.now
	if err := h.settle(no, o); err != nil {
		t.Fatal(err)
	}
}

// ends draws the outcome of a number, as far as it is open.
func (h *honestProvider) ends(t *rapid.T, no int) {
	a := h.attempt(no)
	switch {
	case a.ReturnBooked: // returned and paid again: for staff (TestR5_ReturnedThatIsPaidAgain)
		h.truth[no] = ObsReturned
	case a.Booked:
		h.truth[no] = ObsSucceeded
	case h.truth[no] != "":
	default:
		ends := []ObservationKind{ObsSucceeded, ObsDeclined, ObsReturned, ObsNeverReceived}
		if a.ProviderRef != "" || a.Statement != "" && a.Statement != ObsNeverReceived { // it has accepted the order
			ends = ends[:3]
		}
		h.truth[no] = rapid.SampledFrom(ends).Draw(t, "truth")
	}
}

// act does the next step of the row and reports whether there was one.
func (h *honestProvider) act(t *rapid.T) bool {
	step := h.step()
	h.now = maxTime(h.now, step.At).Add(time.Millisecond)
	switch step.Do {
	case ActionEnd:
		return false
	case ActionSend:
		no, err := h.paymentStore.send()
		if err != nil {
			t.Fatal(err)
		}
		if n := len(h.attempts); no != "" {
			if h.truth[n] == "" || h.truth[n] == ObsNeverReceived {
				h.truth[n] = ObsSucceeded
			}
			h.hears(t, SourceSend, n)
		}
	case ActionQuery:
		parts, _ := Parse(step.OrderNo)
		h.ends(t, parts.Attempt)
		h.hears(t, SourceQuery, parts.Attempt)
	case ActionClose:
		h.recordClose(true)
	case ActionCarryOut:
		if _, err := h.carryOut(); err != nil {
			t.Fatal(err)
		}
	}
	return true
}

// TestR4_HonestProviderEndsPayment: whatever was reported before, once the provider reports the
// same about each number, and carries out sends, a payment becomes final or waits for a decision.
func TestR4_HonestProviderEndsPayment(t *testing.T) {
	for _, kind := range []Kind{KindPayout, KindRefund, KindCharge} {
		rapid.Check(t, func(t *rapid.T) {
			h := &honestProvider{newAdversary(kind), map[int]ObservationKind{}}
			actions := h.actions()
			delete(actions, "") // its sums are those of a payout
			delete(actions, "a run repeats")
			t.Repeat(actions)
			for range 300 {
				if !h.act(t) {
					return
				}
			}
			// Past QueryUntil staff may decide, except about charges; and they may end a payment
			// whose money moved under another number, which blocks this one.
			charge := h.p.Kind == KindCharge && anyForgotten(h.attempts)
			if !charge && CheckDecision(h.p, h.attempts, DecisionMarkPaid, h.now) != nil {
				t.Fatalf("no end: %s %s under number %d, next %+v; %+v, truth %v", h.p.ID, h.p.Status, h.p.Attempt, h.step(), h.attempts, h.truth)
			}
		})
	}
}
