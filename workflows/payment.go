package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"hongbao/activities"
	"hongbao/internal/payout"
)

// paymentRun makes one payment: it does the row's next step until the row says end.
type paymentRun struct {
	runID string
	// console is the address for links in the details; "": no links.
	console Console
	settled int           // number of observations of this run
	shown   payout.Status // last status upserted
	// onFinal, if set, runs once when the payment is final. Requested queries may follow.
	onFinal func(workflow.Context) error
}

func newPaymentRun(ctx workflow.Context, console Console) *paymentRun {
	return &paymentRun{runID: workflow.GetInfo(ctx).WorkflowExecution.RunID, console: console}
}

// enter brings a payout to its row. It pays a claim at once if possible. If that step fails, the
// row shows its progress: a noted send is queried (rule R3).
func (m *paymentRun) enter(ctx workflow.Context, in PayoutInput) (payout.State, error) {
	if in.Claim == nil {
		return step[payout.State](storeStep(ctx, "read the row"), payments.ReadPayment, in.PaymentID)
	}
	c := *in.Claim
	paid, err := local[activities.Outcome](ctx, "record the claim, pay "+amountOf(c.Amount)+" to "+c.Account(), payments.PayNow, c)
	if err == nil {
		return m.sent(ctx, paid)
	}
	if temporal.IsCanceledError(err) {
		return paid.State, err
	}
	return step[payout.State](storeStep(ctx, "record the claim: "+amountOf(c.Amount)+" from holding to owed"), payments.RecordClaim, c)
}

// run does steps until the payment needs none. It returns early, with the open state, when the
// history is long: the caller continues as new.
func (m *paymentRun) run(ctx workflow.Context, st payout.State) (payout.State, error) {
	for {
		if st.Status.Final() && m.onFinal != nil {
			if err := m.onFinal(ctx); err != nil {
				return st, err
			}
			m.onFinal = nil
		}
		if st.Step.Do == payout.ActionEnd {
			workflow.SetCurrentDetails(ctx, endDetails(st, m.console))
			return st, nil
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			return st, nil
		}
		if err := m.showStatus(ctx, st); err != nil {
			return st, err
		}
		woken, err := m.await(ctx, st)
		if err != nil {
			return st, err
		}
		switch {
		case woken:
			st, err = step[payout.State](storeStep(ctx, "read the row"), payments.ReadPayment, st.PaymentID)
		case st.Step.Do == payout.ActionSend:
			st, err = m.send(ctx, st)
		case st.Step.Do == payout.ActionQuery:
			st, err = m.ask(ctx, st)
		case st.Step.Do == payout.ActionClose:
			st, err = step[payout.State](queryStep(ctx, "close order "+st.Step.OrderNo), payments.CloseOrder, st.PaymentID)
		case st.Step.Do == payout.ActionCarryOut:
			st, err = step[payout.State](storeStep(ctx, "carry out the decision"), payments.CarryOut, st.PaymentID)
		default:
			err = temporal.NewNonRetryableApplicationError(fmt.Sprintf("unknown action %q", st.Step.Do), activities.TypeDefect, nil)
		}
		if err != nil {
			return st, err
		}
	}
}

// await waits until the step is due or a wake signal arrives.
func (m *paymentRun) await(ctx workflow.Context, st payout.State) (woken bool, err error) {
	wait := st.Wait()
	if wait <= 0 {
		return false, nil
	}
	what := fmt.Sprintf("%s: %s order %s again", st.Status, st.Step.Do, st.Step.OrderNo)
	if st.Step.Deferred != payout.NotDeferred {
		what = fmt.Sprintf("%s: deferred, %s", st.Status, st.Step.Deferred)
	}
	workflow.SetCurrentDetails(ctx, waitDetails(st, m.console))
	return sleepOrWake(ctx, wait, what)
}

// send makes a send and settles its answer. A send that was noted but not made, because the step
// was repeated or late, is queried: the row says so.
func (m *paymentRun) send(ctx workflow.Context, st payout.State) (payout.State, error) {
	sent, err := step[activities.Outcome](sendStep(ctx, "note the send, call the provider, settle its answer"), payments.Send, st.PaymentID)
	if err != nil {
		return sent.State, err
	}
	return m.sent(ctx, sent)
}

// sent returns the state after a send, whose answer may still have to be settled.
func (m *paymentRun) sent(ctx workflow.Context, o activities.Outcome) (payout.State, error) {
	if o.Unsettled {
		return m.settleOnce(ctx, *o.Observation, o.OrderNo)
	}
	return o.State, nil
}

func (m *paymentRun) ask(ctx workflow.Context, st payout.State) (payout.State, error) {
	obs, err := step[payout.Observation](queryStep(ctx, "query order "+st.Step.OrderNo), payments.Ask, st.Step.OrderNo)
	if err != nil {
		return st, err
	}
	return m.settle(ctx, obs, st.Step.OrderNo)
}

func (m *paymentRun) settle(ctx workflow.Context, o payout.Observation, asked string) (payout.State, error) {
	m.settled++
	o.ID = fmt.Sprintf("%s/%d", m.runID, m.settled)
	return m.settleOnce(ctx, o, asked)
}

// settleOnce settles an observation that has its id.
func (m *paymentRun) settleOnce(ctx workflow.Context, o payout.Observation, asked string) (payout.State, error) {
	return step[payout.State](storeStep(ctx, fmt.Sprintf("settle: %s", o.Kind)), payments.Settle, o, asked)
}

// showStatus upserts the search attributes when a payment leaves the normal path, and once when
// it returns to it.
func (m *paymentRun) showStatus(ctx workflow.Context, st payout.State) error {
	offPath := st.Status == payout.StatusUnknown || st.Status == payout.StatusAwaitingRecipient ||
		st.Status == payout.StatusAwaitingPayer
	if !offPath && (m.shown == "" || !st.Status.Open()) || st.Status == m.shown {
		return nil
	}
	return m.upsertStatus(ctx, st)
}

func (m *paymentRun) upsertStatus(ctx workflow.Context, st payout.State) error {
	m.shown = st.Status
	updates := []temporal.SearchAttributeUpdate{AttrPayoutStatus.ValueSet(string(st.Status)), AttrProvider.ValueSet(st.Provider)}
	if st.Failure != nil {
		updates = append(updates, AttrFailureCode.ValueSet(st.Failure.Code))
	}
	return workflow.UpsertTypedSearchAttributes(ctx, updates...)
}

// finish ends a run whose payment needs no more steps. A payment that needs staff ends the run as
// Failed, red in the UI, with its failure code as type.
func (m *paymentRun) finish(ctx workflow.Context, st payout.State, mending bool) error {
	switch st.Status {
	case payout.StatusFailed, payout.StatusReturned:
		if err := m.upsertStatus(ctx, st); err != nil {
			return err
		}
		f := st.Failure
		if f == nil {
			f = payout.NewFailure("", "")
		}
		return temporal.NewApplicationErrorWithOptions(fmt.Sprintf("%s: %s %s", st.Status, f.Message, f.NextAction), f.Code,
			temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{st}})
	}
	if (mending || m.shown != "") && m.shown != st.Status {
		return m.upsertStatus(ctx, st)
	}
	return nil
}
