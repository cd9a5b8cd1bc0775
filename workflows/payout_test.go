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

// ids are the observation ids settled; each must be new, else Settle skips it.
func (p *parts) ids(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, o := range p.settled {
		if o.ID == "" || slices.Contains(out, o.ID) {
			t.Errorf("observation id %q after %q", o.ID, out)
		}
		out = append(out, o.ID)
	}
	return out
}

// TestR4_FailedRunIsRed: a confirmed failure ends the run as Failed, with the failure code as its
// type, and Temporal never retries it.
func TestR4_FailedRunIsRed(t *testing.T) {
	for _, tc := range []struct {
		status payout.Status
		code   string
	}{
		{payout.StatusFailed, "account_frozen"},
		{payout.StatusReturned, "returned"},
	} {
		t.Run(string(tc.status), func(t *testing.T) {
			p := newSteps(t)
			p.settle = func(payout.Observation) payout.State { return ended(tc.status) }
			p.env.ExecuteWorkflow(Payout, claimInput())
			var app *temporal.ApplicationError
			if err := p.env.GetWorkflowError(); !errors.As(err, &app) {
				t.Fatalf("ended with %v", err)
			}
			if app.Type() != tc.code || !app.NonRetryable() {
				t.Errorf("type %q, non-retryable %v", app.Type(), app.NonRetryable())
			}
			var st payout.State
			if err := app.Details(&st); err != nil || st.Status != tc.status || st.Failure == nil {
				t.Errorf("details %+v, %v", st, err)
			}
			if want := []string{string(tc.status) + "/" + tc.code}; !slices.Equal(p.upsert, want) {
				t.Errorf("search attributes %q, want %q", p.upsert, want)
			}
		})
	}
}

func TestR3_PayoutRunHasNoAuthority(t *testing.T) {
	t.Run("overtaken: the send finds its row paid, and sends nothing", func(t *testing.T) {
		p := newSteps(t)
		p.send = func(int) (activities.Outcome, error) { return activities.Outcome{State: ended(payout.StatusPaid)}, nil }
		p.env.ExecuteWorkflow(Payout, claimInput())
		p.result(t)
		p.want(t, "PayNow u", "RecordClaim u", "Send")
	})

	for _, tc := range []struct {
		row   payout.State
		steps []string
		fails bool
	}{
		{ended(payout.StatusPaid), nil, false},
		{ended(payout.StatusCancelled), nil, false},
		{ended(payout.StatusPaidOutside), nil, false},
		{ended(payout.StatusFailed), nil, true},
		{ended(payout.StatusReturned), nil, true},
		{ready(payout.StatusPending, payout.ActionSend, time.Time{}), []string{"Send"}, false},
		{ready(payout.StatusPending, payout.ActionQuery, time.Time{}), []string{"Ask", "Settle succeeded"}, false},
		{ready(payout.StatusSending, payout.ActionQuery, time.Time{}), []string{"Ask", "Settle succeeded"}, false},
		{ready(payout.StatusUnknown, payout.ActionQuery, at(time.Hour)), []string{"Ask", "Settle succeeded"}, false},
		{ready(payout.StatusAwaitingRecipient, payout.ActionQuery, at(time.Hour)), []string{"Ask", "Settle succeeded"}, false},
	} {
		t.Run("row is "+string(tc.row.Status)+", "+string(tc.row.Step.Do), func(t *testing.T) {
			p := newSteps(t)
			p.read = func(int) payout.State { return tc.row }
			p.env.ExecuteWorkflow(Payout, PayoutInput{PaymentID: payoutID})
			if err := p.env.GetWorkflowError(); (err != nil) != tc.fails {
				t.Errorf("ended with %v", err)
			}
			p.want(t, append([]string{"ReadPayment " + payoutID}, tc.steps...)...)
		})
	}
}

// TestR5_WithdrawnCancelEndsItsRun: a run that queries for a cancel, or is about to carry it out, finds
// in the row that the cancel was withdrawn.
func TestR5_WithdrawnCancelEndsItsRun(t *testing.T) {
	for do, steps := range map[payout.Action][]string{
		payout.ActionQuery:    {"Ask", "Settle succeeded"},
		payout.ActionCarryOut: {"CarryOut"},
	} {
		p := newSteps(t)
		p.read = func(int) payout.State { return ready(payout.StatusFailed, do, at(time.Minute)) }
		p.settle = func(payout.Observation) payout.State { return ended(payout.StatusFailed) }
		p.env.ExecuteWorkflow(Payout, PayoutInput{PaymentID: payoutID})
		if err := p.env.GetWorkflowError(); err == nil {
			t.Error("a failed payout ends its run as failed")
		}
		p.want(t, append([]string{"ReadPayment " + payoutID}, steps...)...)
	}
}

// TestPayoutWake: a signal makes the run read its row at once instead of waiting.
func TestPayoutWake(t *testing.T) {
	p := newSteps(t)
	confirmed := false
	p.read = func(int) payout.State {
		if confirmed {
			return ready(payout.StatusAwaitingRecipient, payout.ActionQuery, at(5*time.Second)) // not at once: leftover signals would wake it again
		}
		return ready(payout.StatusAwaitingRecipient, payout.ActionQuery, at(24*time.Hour))
	}
	p.env.RegisterDelayedCallback(func() {
		p.mu.Lock()
		confirmed = true
		p.mu.Unlock()
		// Several pending signals cause one read.
		p.env.SignalWorkflowSkippingWorkflowTask(SignalWake, nil)
		p.env.SignalWorkflowSkippingWorkflowTask(SignalWake, nil)
		p.env.SignalWorkflow(SignalWake, nil)
	}, 2*time.Second)
	p.env.ExecuteWorkflow(Payout, claimInput())
	p.result(t)
	p.want(t, "PayNow u", "RecordClaim u", "ReadPayment "+payoutID, "Ask", "Settle succeeded")
	if got := p.elapsed(); got > time.Minute {
		t.Errorf("took %v: the signal did not end the wait", got)
	}
	if want := []string{"awaiting_recipient", "paid"}; !slices.Equal(p.upsert, want) {
		t.Errorf("search attributes %q, want %q", p.upsert, want)
	}
}

func TestPayoutWaitsUntilTheStepIsDue(t *testing.T) {
	p := newSteps(t)
	p.read = func(int) payout.State { return ready(payout.StatusUnknown, payout.ActionQuery, at(5*time.Minute)) }
	p.env.ExecuteWorkflow(Payout, claimInput())
	p.result(t)
	if got := p.elapsed(); got < 5*time.Minute || got > 5*time.Minute+time.Second {
		t.Errorf("asked after %v", got)
	}
}

// TestPayoutObservationIDs: each observation of a run has its own id.
func TestPayoutObservationIDs(t *testing.T) {
	p := newSteps(t)
	p.settle = func(payout.Observation) payout.State {
		if p.count("Settle") < 6 {
			return ready(payout.StatusUnknown, payout.ActionQuery, time.Time{})
		}
		return ended(payout.StatusPaid)
	}
	p.env.ExecuteWorkflow(Payout, claimInput())
	p.result(t)
	if got := p.ids(t); len(got) != 6 {
		t.Errorf("observed %q", got)
	}
}

func TestPayoutContinuesAsNew(t *testing.T) {
	p := newSteps(t)
	p.settle = func(payout.Observation) payout.State {
		p.env.SetContinueAsNewSuggested(p.count("Settle") >= 3)
		return ready(payout.StatusUnknown, payout.ActionQuery, time.Time{})
	}
	p.payNow = func() (activities.Outcome, error) {
		return activities.Outcome{State: ready(payout.StatusPending, payout.ActionSend, time.Time{})}, nil
	}
	begun := claimInput()
	begun.Console = "https://desk.example"
	p.env.ExecuteWorkflow(Payout, begun)
	var next *workflow.ContinueAsNewError
	if err := p.env.GetWorkflowError(); !errors.As(err, &next) || next.WorkflowType.Name != PayoutWorkflow {
		t.Fatalf("ended with %v", err)
	}
	var in PayoutInput
	want := PayoutInput{PaymentID: payoutID, Console: begun.Console}
	if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &in); err != nil || in != want {
		t.Errorf("goes on with %+v, %v", in, err)
	}
	if n := p.count("Settle"); n != 3 {
		t.Errorf("%d observations before it went on as new", n)
	}
}

// TestPayoutMended: a run that a decision of finance started shows once that the payment is paid.
func TestPayoutMended(t *testing.T) {
	p := newSteps(t)
	p.env.ExecuteWorkflow(Payout, PayoutInput{PaymentID: payoutID})
	p.result(t)
	if want := []string{"paid"}; !slices.Equal(p.upsert, want) {
		t.Errorf("search attributes %q, want %q", p.upsert, want)
	}
}

func TestRefund(t *testing.T) {
	in := RefundInput{PaymentID: refundID, PacketID: packetID}
	t.Run("paid closes the packet", func(t *testing.T) {
		p := newSteps(t)
		p.env.ExecuteWorkflow(Refund, in)
		p.result(t)
		p.want(t, "RefundNow "+refundID, "ReadPayment "+refundID, "Send", "FinishPacket")
		if len(p.upsert) != 0 {
			t.Errorf("the happy path paid for upserts: %q", p.upsert)
		}
	})
	t.Run("a repeat of a paid one closes the packet again", func(t *testing.T) {
		p := newSteps(t)
		p.read = func(int) payout.State { return ended(payout.StatusPaid) }
		p.env.ExecuteWorkflow(Refund, in)
		p.result(t)
		p.want(t, "RefundNow "+refundID, "ReadPayment "+refundID, "FinishPacket")
	})
	t.Run("a requested query does not delay the close", func(t *testing.T) {
		p := newSteps(t)
		p.read = func(int) payout.State {
			st := ended(payout.StatusPaid)
			st.Step = payout.Step{Do: payout.ActionQuery, OrderNo: "r"}
			return st
		}
		p.env.ExecuteWorkflow(Refund, in)
		p.result(t)
		p.want(t, "RefundNow "+refundID, "ReadPayment "+refundID, "FinishPacket", "Ask", "Settle succeeded")
	})
	t.Run("failed leaves the packet closing, and is red", func(t *testing.T) {
		p := newSteps(t)
		p.settle = func(payout.Observation) payout.State { return ended(payout.StatusFailed) }
		p.env.ExecuteWorkflow(Refund, in)
		var app *temporal.ApplicationError
		if err := p.env.GetWorkflowError(); !errors.As(err, &app) || app.Type() != "account_frozen" {
			t.Errorf("ended with %v", err)
		}
		if p.count("FinishPacket") != 0 {
			t.Errorf("steps %q", p.calls)
		}
	})
	t.Run("goes on as new with the same input", func(t *testing.T) {
		p := newSteps(t)
		p.env.SetContinueAsNewSuggested(true)
		p.env.ExecuteWorkflow(Refund, in)
		var next *workflow.ContinueAsNewError
		if err := p.env.GetWorkflowError(); !errors.As(err, &next) || next.WorkflowType.Name != RefundWorkflow {
			t.Fatalf("ended with %v", err)
		}
		var got RefundInput
		if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &got); err != nil || got != in {
			t.Errorf("goes on with %+v, %v", got, err)
		}
	})
}

// TestCharge: a run that queries a charge again takes single steps, and continues as new with the
// same input.
func TestCharge(t *testing.T) {
	in := PayoutInput{PaymentID: "c" + packetID + "0000"}
	p := newParts(t)
	p.env.ExecuteWorkflow(Charge, in)
	p.result(t)
	p.want(t, "ReadPayment "+in.PaymentID, "Send")

	p = newParts(t)
	p.env.SetContinueAsNewSuggested(true)
	p.env.ExecuteWorkflow(Charge, in)
	var next *workflow.ContinueAsNewError
	if err := p.env.GetWorkflowError(); !errors.As(err, &next) || next.WorkflowType.Name != ChargeWorkflow {
		t.Fatalf("ended with %v", err)
	}
	var got PayoutInput
	if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &got); err != nil || got != in {
		t.Errorf("goes on with %+v, %v", got, err)
	}
}
