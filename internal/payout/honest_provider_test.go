package payout

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// honest is what the provider says from some moment on: of every number how it really
// ended, whatever it has said before.
type honest struct {
	*liar
	truth map[int]ObservationKind
}

func (h *honest) hears(t *rapid.T, source Source, no int) {
	o := said(source, h.attempt(no).OrderNo, h.truth[no])
	h.seq++
	o.ID, o.StartedAt = fmt.Sprintf("honest/%d", h.seq), h.now
	if err := h.settle(no, o); err != nil {
		t.Fatal(err)
	}
}

// ends draws how a number ended, as far as that is open.
func (h *honest) ends(t *rapid.T, no int) {
	a := h.attempt(no)
	switch {
	case a.ReturnBooked: // what has come back and went again is for a person (TestR5_ReturnedThatIsPaidAgain)
		h.truth[no] = ObsReturned
	case a.Booked:
		h.truth[no] = ObsSucceeded
	case h.truth[no] != "":
	default:
		ends := []ObservationKind{ObsSucceeded, ObsDeclined, ObsReturned, ObsNeverReceived}
		if a.ProviderRef != "" || a.Statement != "" && a.Statement != ObsNeverReceived { // it has taken the order
			ends = ends[:3]
		}
		h.truth[no] = rapid.SampledFrom(ends).Draw(t, "truth")
	}
}

// act does the next step of the row and reports whether there was one.
func (h *honest) act(t *rapid.T) bool {
	step := h.step()
	h.now = maxTime(h.now, step.At).Add(time.Millisecond)
	switch step.Do {
	case ActionEnd:
		return false
	case ActionSend:
		no, err := h.books.send()
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
	case ActionCarryOut:
		if _, err := h.carryOut(); err != nil {
			t.Fatal(err)
		}
	}
	return true
}

// TestR4_HonestyEndsIt: whatever was said before, once the provider says the same of each
// number for good, and carries out what is sent, a payment comes to an end, or to where
// people may decide.
func TestR4_HonestyEndsIt(t *testing.T) {
	for _, kind := range []Kind{KindPayout, KindRefund, KindCharge} {
		rapid.Check(t, func(t *rapid.T) {
			h := &honest{&liar{books: newBooks(kind), heard: map[int][]Observation{}, given: map[int]bool{}, reached: map[Status]bool{}},
				map[int]ObservationKind{}}
			actions := h.actions()
			delete(actions, "") // its sums are those of a payout
			delete(actions, "a run repeats")
			t.Repeat(actions)
			for range 300 {
				if !h.act(t) {
					return
				}
			}
			// Past ask_until people may decide, of all but charges; and they may close what has
			// moved its money under another number, which keeps this one from being sent.
			if !anyForgotten(h.attempts) && CheckDecision(h.p, h.attempts, DecisionMarkPaid) != nil {
				t.Fatalf("no end: %s %s under number %d, next %+v; %+v, truth %v", h.p.ID, h.p.Status, h.p.Attempt, h.step(), h.attempts, h.truth)
			}
		})
	}
}
