package workflows

import (
	"errors"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"hongbao/activities"
	"hongbao/internal/payout"
)

// sent is a payment whose send left and came to st.
func sent(kind payout.ObservationKind, st payout.State) activities.Outcome {
	return activities.Outcome{State: st, Observation: &payout.Observation{ID: "run/now", Source: payout.SourceSend, Kind: kind,
		OrderNo: payoutNo}}
}

// TestPayNowCourses: a claim is paid by one local activity if possible. The rest continues with
// single activities: visible, and with unlimited retries.
func TestPayNowCourses(t *testing.T) {
	for name, tc := range map[string]struct {
		now    activities.Outcome
		err    error
		then   []string
		timers int
		upsert []string
	}{
		"paid": {now: sent(payout.ObsSucceeded, ended(payout.StatusPaid))},
		"no answer: asked": {now: sent(payout.ObsNoAnswer, ready(payout.StatusUnknown, payout.ActionQuery, at(500*time.Millisecond))),
			then: []string{"Ask", "Settle succeeded"}, timers: 1, upsert: []string{"unknown", "paid"}},
		"declined: confirmed": {now: sent(payout.ObsDeclined, ready(payout.StatusSending, payout.ActionQuery, time.Time{})),
			then: []string{"Ask", "Settle succeeded"}},
		"refused for now: sent again": {now: sent(payout.ObsRetryAfter, ready(payout.StatusSending, payout.ActionSend, at(time.Second))),
			then: []string{"Send"}, timers: 1},
		"deferred: sent later": {now: activities.Outcome{State: payout.State{PaymentID: payoutID, Status: payout.StatusPending,
			Step: payout.Step{Do: payout.ActionSend, At: at(time.Second), Deferred: payout.DeferredHeld}}},
			then: []string{"Send"}, timers: 1},
		"booked only: sent by steps": {now: activities.Outcome{State: ready(payout.StatusPending, payout.ActionSend, time.Time{})},
			then: []string{"Send"}},
		"found its own note: asked": {now: activities.Outcome{State: ready(payout.StatusSending, payout.ActionQuery, time.Time{})},
			then: []string{"Ask", "Settle succeeded"}},
		"the step broke: the row says": {err: errors.New("MySQL is away"),
			then: []string{"RecordClaim u", "Send"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newParts(t)
			p.payNow = func() (activities.Outcome, error) { return tc.now, tc.err }
			p.env.ExecuteWorkflow(Payout, claimInput())
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

// TestR3_PayNowAnswerIsNotLost: an unsettled answer is settled by an activity with unlimited
// retries. It keeps its own id and the order number that was sent, whatever the answer and the
// row contain.
func TestR3_PayNowAnswerIsNotLost(t *testing.T) {
	p := newParts(t)
	now := sent(payout.ObsSucceeded, ready(payout.StatusSending, payout.ActionQuery, time.Time{}))
	now.Unsettled, now.OrderNo = true, payoutNo
	now.Observation.OrderNo, now.State.Step.OrderNo = "another", "an earlier one"
	p.payNow = func() (activities.Outcome, error) { return now, nil }
	p.env.ExecuteWorkflow(Payout, claimInput())
	p.result(t)
	p.want(t, "PayNow u", "Settle succeeded")
	if o := p.settled[0]; o.ID != now.Observation.ID || p.asked[0] != payoutNo {
		t.Errorf("settled %+v about %q", o, p.asked[0])
	}
}

// conflictID is the payment of a claim that could not be recorded.
const conflictID = "h" + packetID + "0001"

// notBooked is a claim's run whose claim becomes a share conflict, in the given state.
func notBooked(t *testing.T, st payout.State) *parts {
	p := newParts(t)
	p.payNow = func() (activities.Outcome, error) {
		return activities.Outcome{}, temporal.NewNonRetryableApplicationError("taken by another", activities.TypeConflict, nil)
	}
	st.PaymentID = conflictID
	p.record = func() payout.State { return st }
	return p
}

// TestR10_PayNowConflict: a share conflict ends the run like any failed payout, with its own
// code.
func TestR10_PayNowConflict(t *testing.T) {
	failed := ended(payout.StatusFailed)
	failed.Failure = payout.NewFailure(payout.FailureShareConflict, "")
	p := notBooked(t, failed)
	p.env.ExecuteWorkflow(Payout, claimInput())
	var app *temporal.ApplicationError
	if err := p.env.GetWorkflowError(); !errors.As(err, &app) || app.Type() != payout.FailureShareConflict || !app.NonRetryable() {
		t.Errorf("ended with %v", err)
	}
	if !slices.Equal(p.upsert, []string{"failed/share_conflict"}) {
		t.Errorf("search attributes %q", p.upsert)
	}
	p.want(t, "PayNow u", "RecordClaim u")
}

// TestR10_ShareConflictIsHonoured: a run that was started with the claim makes the conflict's
// payment, never that of the share, which belongs to another user.
func TestR10_ShareConflictIsHonoured(t *testing.T) {
	p := notBooked(t, ready(payout.StatusPending, payout.ActionSend, time.Time{}))
	p.env.ExecuteWorkflow(Payout, claimInput())
	if err := p.env.GetWorkflowError(); err != nil {
		t.Error(err)
	}
	p.want(t, "PayNow u", "RecordClaim u", "Send")
	if !slices.Equal(p.sends, []string{conflictID}) {
		t.Errorf("sent %q", p.sends)
	}

	p = notBooked(t, ready(payout.StatusPending, payout.ActionSend, time.Time{}))
	p.env.SetContinueAsNewSuggested(true)
	p.env.ExecuteWorkflow(Payout, claimInput())
	var again *workflow.ContinueAsNewError
	var in PayoutInput
	if err := p.env.GetWorkflowError(); !errors.As(err, &again) {
		t.Fatalf("ended with %v", err)
	}
	if err := converter.GetDefaultDataConverter().FromPayloads(again.Input, &in); err != nil || in.PaymentID != conflictID || in.Claim != nil {
		t.Errorf("goes on as %+v, %v", in, err)
	}
}

// TestPayNowOnlyForClaims: a run that a decision started takes every step.
func TestPayNowOnlyForClaims(t *testing.T) {
	p := newParts(t)
	p.env.ExecuteWorkflow(Payout, PayoutInput{PaymentID: payoutID})
	p.result(t)
	p.want(t, "ReadPayment "+payoutID, "Send")
}
