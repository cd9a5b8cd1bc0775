package payout

import (
	"errors"
	"reflect"
	"testing"
)

// withdraws withdraws the open cancel.
func (s *script) withdraws() *script {
	s.t.Helper()
	s.must(WithdrawCancel(&s.p, s.now))
	return s
}

// retryAlone reports whether one person can retry a payment of a small amount.
func (s *script) retryAlone() bool {
	return !NeedsApproval(s.p, s.attempts, DecisionRequest{Kind: DecisionRetry, ApproveFrom: amount + 1}, s.now)
}

// TestR5_CancelWithdrawn: the provider answers "in progress" for ever, and the cancel is withdrawn.
// Nothing has moved, the order number is queried further, and the next retry needs two persons.
func TestR5_CancelWithdrawn(t *testing.T) {
	s := failed(t).decides(DecisionCancel, true)
	for range 3 {
		s.queries(1, ObsPending).carries(DecisionOpen)
	}
	posted := len(s.posted)
	s.withdraws().is(StatusFailed).carries(DecisionOpen).is(StatusFailed).next(ActionQuery, 1).owes(amount)
	if s.p.OpenDecision != "" || s.p.Failure == nil || len(s.posted) != posted || s.retryAlone() {
		t.Errorf("%+v, posted %v", s.p, s.posted)
	}
	s.queries(1, ObsDeclined).queries(1, ObsDeclined).next(ActionEnd, 0)
	if s.retryAlone() {
		t.Error("an answer ended the need of a second person")
	}
	s.decides(DecisionRetry, true).is(StatusPending).queries(1, ObsDeclined).sends(ObsDeclined).queries(2, ObsDeclined).is(StatusFailed)
	if !s.retryAlone() {
		t.Error("the second retry needs a second person too")
	}
	// A returned payout, with no answer at all.
	s = cameBack(t).decides(DecisionCancel, true).withdraws().is(StatusReturned).owes(amount)
	if s.retryAlone() {
		t.Error("one person retries after a withdrawn cancel")
	}
	// Another cancel is carried out as if none had been withdrawn.
	s.decides(DecisionCancel, true).queries(1, ObsReturned).carries(DecisionCarriedOut).is(StatusCancelled).owes(0)
	// A success counts as without a cancel.
	failed(t).decides(DecisionCancel, true).queries(1, ObsSucceeded).withdraws().queries(1, ObsSucceeded).is(StatusPaid).owes(0)
}

// TestWithdrawnTooLate: only an open cancel is withdrawn; the refusal changes nothing.
func TestWithdrawnTooLate(t *testing.T) {
	for name, s := range map[string]*script{
		"no decision":         failed(t),
		"carried out":         failed(t).decides(DecisionCancel, true).queries(1, ObsDeclined).carries(DecisionCarriedOut),
		"overtaken":           failed(t).decides(DecisionCancel, true).queries(1, ObsSucceeded).queries(1, ObsSucceeded),
		"withdrawn already":   failed(t).decides(DecisionCancel, true).withdraws(),
		"retried":             failed(t).retries(),
		"unknown and waiting": lost(t),
	} {
		before := s.p
		err := WithdrawCancel(&s.p, s.now)
		if !errors.Is(err, ErrNoOpenCancel) || !errors.Is(err, ErrNotRetryable) || !reflect.DeepEqual(s.p, before) {
			t.Errorf("%s: %v, %+v", name, err, s.p)
		}
	}
}
