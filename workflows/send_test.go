package workflows

import (
	"errors"
	"slices"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"hongbao/activities"
	"hongbao/internal/payout"
)

// TestSendIsOneStep: one activity notes, makes and settles a send of every kind of payment, so
// that no task queue delays the call. An unfinished send continues as the row says.
func TestSendIsOneStep(t *testing.T) {
	for name, tc := range map[string]struct {
		sends  []activities.Outcome
		then   []string
		timers int
		upsert []string
	}{
		"paid": {sends: []activities.Outcome{sent(payout.ObsSucceeded, ended(payout.StatusPaid))}, upsert: []string{"paid"}},
		"no answer: asked": {sends: []activities.Outcome{sent(payout.ObsNoAnswer,
			ready(payout.StatusUnknown, payout.ActionQuery, at(500*time.Millisecond)))},
			then: []string{"Ask", "Settle succeeded"}, timers: 1, upsert: []string{"unknown", "paid"}},
		"repeated or late: the note is asked about": {
			sends: []activities.Outcome{{State: ready(payout.StatusSending, payout.ActionQuery, time.Time{})}},
			then:  []string{"Ask", "Settle succeeded"}, upsert: []string{"paid"}},
		"refused for now, or deferred: sent again": {sends: []activities.Outcome{
			sent(payout.ObsRetryAfter, ready(payout.StatusSending, payout.ActionSend, at(time.Second))),
			{State: payout.State{PaymentID: payoutID, Status: payout.StatusSending, Step: payout.Step{Do: payout.ActionSend, At: at(time.Minute),
				Deferred: payout.DeferredHeld}}},
			sent(payout.ObsSucceeded, ended(payout.StatusPaid))},
			then: []string{"Send", "Send"}, timers: 2, upsert: []string{"paid"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newParts(t)
			p.send = func(n int) (activities.Outcome, error) { return tc.sends[n-1], nil }
			p.env.ExecuteWorkflow(Payout, PayoutInput{PaymentID: payoutID})
			if got := p.result(t); got != string(payout.StatusPaid) {
				t.Errorf("result %q", got)
			}
			p.want(t, append([]string{"ReadPayment " + payoutID, "Send"}, tc.then...)...)
			if len(p.timers) != tc.timers || !slices.Equal(p.upsert, tc.upsert) {
				t.Errorf("timers %v, search attributes %q", p.timers, p.upsert)
			}
		})
	}
}

// TestR3_SendAnswerIsNotLost: an unsettled answer is settled by an activity with unlimited
// retries. It keeps its own id and the order number that was sent, whatever the answer and the
// row contain.
func TestR3_SendAnswerIsNotLost(t *testing.T) {
	p := newParts(t)
	unbooked := sent(payout.ObsSucceeded, ready(payout.StatusSending, payout.ActionQuery, time.Time{}))
	unbooked.Unsettled, unbooked.OrderNo = true, payoutNo
	unbooked.Observation.OrderNo, unbooked.State.Step.OrderNo = "another", "an earlier one"
	p.send = func(int) (activities.Outcome, error) { return unbooked, nil }
	p.env.ExecuteWorkflow(Payout, PayoutInput{PaymentID: payoutID})
	p.result(t)
	p.want(t, "ReadPayment "+payoutID, "Send", "Settle succeeded")
	if o := p.settled[0]; o.ID != unbooked.Observation.ID || p.asked[0] != payoutNo {
		t.Errorf("settled %+v about %q", o, p.asked[0])
	}
}

// TestR4_LostWorkerInASend: a worker that dies in a send is noticed, and the step
// is carried out again. It finds the note and asks.
func TestR4_LostWorkerInASend(t *testing.T) {
	for name, cause := range map[string]error{
		"the worker died":        temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_HEARTBEAT, nil),
		"the worker hung":        temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_START_TO_CLOSE, nil),
		"nothing could be noted": errors.New("MySQL is away"),
	} {
		t.Run(name, func(t *testing.T) {
			p := newParts(t)
			p.send = func(n int) (activities.Outcome, error) {
				if n < 3 {
					return activities.Outcome{}, cause
				}
				return activities.Outcome{State: ready(payout.StatusSending, payout.ActionQuery, time.Time{})}, nil
			}
			p.env.ExecuteWorkflow(Payout, PayoutInput{PaymentID: payoutID})
			p.result(t)
			p.want(t, "ReadPayment "+payoutID, "Send", "Send", "Send", "Ask", "Settle succeeded")
		})
	}
}
