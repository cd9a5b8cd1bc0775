package payout

import (
	"slices"
	"testing"
	"time"
)

// TestR4_OnlyADocumentedAnswerClosesASend: the first send is answered, the query finds nothing, and
// the repeat is refused. That is a failure only if the first send cannot land any more: after an
// answer documented as final, or past the landing window.
func TestR4_OnlyADocumentedAnswerClosesASend(t *testing.T) {
	type answer struct {
		name string
		o    Observation
	}
	var answers []answer
	for _, kind := range allKinds {
		answers = append(answers, answer{string(kind), Observation{Kind: kind}})
		answers = append(answers, answer{string(kind) + " of another amount", Observation{Kind: kind, Amount: amount + 1}})
		answers = append(answers, answer{string(kind) + " of another account", Observation{Kind: kind, Account: "other"}})
		answers = append(answers,
			answer{string(kind) + " of another order", Observation{Kind: kind, OrderNo: OrderNo(ID(KindPayout, packetID, 4), 1)}})
	}
	for _, first := range answers {
		t.Run(first.name, func(t *testing.T) {
			s := story(t, KindPayout).sends("")
			o := first.o
			if o.Source = SourceSend; o.OrderNo == "" {
				o.OrderNo = s.attempt(1).OrderNo
			}
			s.must(s.settle(1, o))
			final := first.name == string(o.Kind) && slices.Contains(finalAnswers, o.Kind)
			if open := s.attempt(1).open(s.now); open == final {
				t.Fatalf("after the answer the send is open: %v, want %v", open, !final)
			}
			switch o.Kind {
			case ObsSucceeded, ObsReturned, ObsPending, ObsNeedsRecipient:
				if final {
					return // the provider has the order
				}
			}
			if s.step().Do == ActionQuery {
				s.after(time.Second).queries(1, ObsNeverReceived)
			}
			if final && o.Kind == ObsDeclined {
				s.is(StatusFailed)
				return
			}
			s.after(time.Second).sends(ObsDeclined)
			landsUntil := s.now.Add(LeaveWithin + limits.LandingWindow) // the refusal may be the answer to the first send
			s.after(time.Second).queries(1, ObsNeverReceived)
			if final {
				s.is(StatusFailed)
				return
			}
			s.is(StatusUnknown).next(ActionQuery, 1)
			s.now = landsUntil.Add(-time.Millisecond)
			s.queries(1, ObsNeverReceived).is(StatusUnknown)
			s.now = landsUntil
			s.queries(1, ObsNeverReceived).is(StatusFailed)
		})
	}
}
