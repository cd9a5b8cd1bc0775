package workflows

import (
	"errors"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"hongbao/activities"
	"hongbao/payout"
)

func payNowInput() PayoutInput {
	in := claimInput()
	in.PayNow, in.Shape = true, ShapeWhole
	return in
}

// sent is a payment whose send left and came to st.
func sent(kind payout.ObservationKind, st payout.State) activities.Outcome {
	return activities.Outcome{State: st, Observation: &payout.Observation{ID: "run/now", Source: payout.SourceSend, Kind: kind, OrderNo: payoutNo}}
}

// TestPayNowCourses: a claim is paid by one step when that is possible. What did
// not come to its end there goes on as it always does: visible, and for ever.
func TestPayNowCourses(t *testing.T) {
	for name, tc := range map[string]struct {
		now    activities.Outcome
		err    error
		then   []string
		timers int
		upsert []string
	}{
		"paid": {now: sent(payout.ObsSucceeded, ended(payout.StatusPaid))},
		"no answer: asked": {now: sent(payout.ObsNoAnswer, ready(payout.StatusUnknown, payout.ActionAsk, at(500*time.Millisecond))),
			then: []string{"Ask", "Settle succeeded"}, timers: 1, upsert: []string{"unknown", "paid"}},
		"declined: confirmed": {now: sent(payout.ObsDeclined, ready(payout.StatusSending, payout.ActionAsk, time.Time{})),
			then: []string{"Ask", "Settle succeeded"}},
		"refused for now: sent again": {now: sent(payout.ObsRetryAfter, ready(payout.StatusSending, payout.ActionSend, at(time.Second))),
			then: []string{"Send"}, timers: 1},
		"parked: sent later": {now: activities.Outcome{State: payout.State{PaymentID: payoutID, Status: payout.StatusPending,
			Step: payout.Step{Do: payout.ActionSend, At: at(time.Second), Parked: payout.ParkedHeld}}},
			then: []string{"Send"}, timers: 1},
		"booked only: sent by steps": {now: activities.Outcome{State: ready(payout.StatusPending, payout.ActionSend, time.Time{})},
			then: []string{"Send"}},
		"found its own note: asked": {now: activities.Outcome{State: ready(payout.StatusSending, payout.ActionAsk, time.Time{})},
			then: []string{"Ask", "Settle succeeded"}},
		"the step broke: the row says": {err: errors.New("MySQL is away"),
			then: []string{"RecordClaim u", "Send"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newParts(t)
			p.payNow = func() (activities.Outcome, error) { return tc.now, tc.err }
			p.env.ExecuteWorkflow(Payout, payNowInput())
			if got := p.result(t); got != string(payout.StatusPaid) {
				t.Errorf("result %q", got)
			}
			p.want(t, append([]string{"PayNow u"}, tc.then...)...)
			if len(p.timers) != tc.timers || !slices.Equal(p.upsert, tc.upsert) {
				t.Errorf("timers %v, search attributes %q", p.timers, p.upsert)
			}
		})
	}
}

// TestR3_PayNowAnswerIsNotLost: an answer that could not be booked is booked by a
// step that never gives up, under the name it had, and about the number that was
// sent, whatever number the answer names.
func TestR3_PayNowAnswerIsNotLost(t *testing.T) {
	p := newParts(t)
	now := sent(payout.ObsSucceeded, ready(payout.StatusSending, payout.ActionAsk, time.Time{}))
	now.Unbooked, now.Observation.OrderNo = true, "another"
	p.payNow = func() (activities.Outcome, error) { return now, nil }
	p.env.ExecuteWorkflow(Payout, payNowInput())
	p.result(t)
	p.want(t, "PayNow u", "Settle succeeded")
	if o := p.settled[0]; o.ID != now.Observation.ID || p.asked[0] != payoutNo {
		t.Errorf("settled %+v about %q", o, p.asked[0])
	}
}

// TestR10_PayNowConflict: a promise that cannot be booked ends the run as ever.
func TestR10_PayNowConflict(t *testing.T) {
	p := newParts(t)
	conflict := temporal.NewNonRetryableApplicationError("taken by another", activities.TypeConflict, nil)
	p.payNow = func() (activities.Outcome, error) { return activities.Outcome{}, conflict }
	p.record = func() error {
		return temporal.NewNonRetryableApplicationError("taken by another", payout.FailureShareConflict, nil)
	}
	p.env.ExecuteWorkflow(Payout, payNowInput())
	var app *temporal.ApplicationError
	if err := p.env.GetWorkflowError(); !errors.As(err, &app) || app.Type() != payout.FailureShareConflict {
		t.Errorf("ended with %v", err)
	}
	p.want(t, "PayNow u", "RecordClaim u")
}

// TestPayNowOnlyForClaims: a run that a decision started takes every step.
func TestPayNowOnlyForClaims(t *testing.T) {
	p := newParts(t)
	p.env.ExecuteWorkflow(Payout, PayoutInput{PaymentID: payoutID, PayNow: true, Shape: ShapeWhole})
	p.result(t)
	p.want(t, "ReadPayment "+payoutID, "Send")
}
