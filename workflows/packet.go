package workflows

import (
	"cmp"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"hongbao/activities"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// Packet runs a packet from its charge to the closing of its ledger accounts: it does the step that
// packet.Next names until that is the end. It starts without facts, so any start may be repeated
// (rule R3). The refund of a remainder is a workflow of its own, which also closes the packet. It
// returns how the packet ended.
func Packet(ctx workflow.Context, in PacketInput) (string, error) {
	defer takeSignals(ctx)
	l := &packetRun{packet: in.Packet, payment: newPaymentRun(ctx, in.Console)}
	if err := l.advance(ctx); err != nil {
		return "", err
	}
	for {
		step, wait := packet.Next(l.packet, l.facts, workflow.Now(ctx))
		var err error
		switch {
		case wait > 0:
			err = l.await(ctx, step, wait)
		case step == packet.StepEnd:
			return l.end(ctx)
		case step == packet.StepCharge:
			if err = l.charge(ctx); err == nil && l.facts.Charge == packet.ChargeUnknown { // a long history
				err = workflow.NewContinueAsNewError(ctx, PacketWorkflow, in)
			}
		default:
			err = l.take(ctx, step)
		}
		if err != nil {
			return "", err
		}
	}
}

// packetRun is one run of a packet's workflow.
type packetRun struct {
	packet  packet.Packet
	facts   packet.Facts
	payment *paymentRun
	begun   *activities.Outcome // of the charge, by advance
}

// advance takes the steps that need no waiting in one local activity. What fails is taken again, as an
// activity of its own: visible, and with unlimited retries.
func (l *packetRun) advance(ctx workflow.Context) error {
	what := "close the pool and the books: " + string(l.facts.CloseReason())
	switch {
	case l.facts.Status == "":
		what = "record the packet, charge " + amountOf(l.packet.TotalAmount) + ", open the pool"
	case l.facts.Status == packet.StatusFunding && !l.facts.Late:
		what = "write the shares, open the pool"
	}
	done, err := local[activities.Advanced](ctx, what, combined.Advance, l.packet, l.facts)
	if err == nil {
		l.facts, l.begun = done.Facts, done.Charge
		return nil
	}
	if temporal.IsCanceledError(err) {
		return err
	}
	return nil
}

// take does one step as an activity of its own.
func (l *packetRun) take(ctx workflow.Context, step packet.Step) error {
	do := map[packet.Step]struct {
		what     string
		activity any
		opts     func(workflow.Context, string) workflow.Context
	}{
		packet.StepRecord:       {"record the packet and its charge", packets.RecordPacket, storeStep},
		packet.StepReject:       {"reject the packet", packets.RejectPacket, storeStep},
		packet.StepFund:         {"write the shares", packets.Fund, l.openStep},
		packet.StepOpenPool:     {"load the shares, open the pool", packets.OpenPool, l.openStep},
		packet.StepBeginClosing: {"begin closing: " + string(l.facts.CloseReason()), packets.BeginClosing, storeStep},
		packet.StepClosePool:    {"close the pool: " + string(l.facts.CloseReason()), packets.ClosePool, storeStep},
		packet.StepDrain:        {"wait until every winner is recorded", packets.Drain, drainStep},
		packet.StepCloseBooks:   {"close the books", packets.CloseBooks, bulkStep},
		packet.StepFinish:       {"close the packet, retire its pool", packets.FinishPacket, storeStep},
	}[step]
	if l.facts.Status == packet.StatusClosing {
		workflow.SetCurrentDetails(ctx, "Closing: "+string(l.facts.CloseReason()))
	}
	// Decoded into facts of its own: a fact that became unknown is absent from the result.
	var after packet.Facts
	err := workflow.ExecuteActivity(do.opts(ctx, do.what), do.activity, l.packet, l.facts).Get(ctx, &after)
	if err == nil {
		l.facts = after
		return nil
	}
	if opening := step == packet.StepFund || step == packet.StepOpenPool; !opening || temporal.IsCanceledError(err) {
		return err
	}
	// Not only a timeout: if the next retry would be too late, the server fails with the last
	// attempt's own error. The sender is refunded, whatever the cause (rule R2).
	workflow.GetLogger(ctx).Error("Packet not opened in time; closing it unopened.", "packet_id", l.packet.ID, "step", do.what, "error", err)
	l.facts.Late = true
	return l.advance(ctx)
}

// openStep returns options for a step towards an open pool, which is tried until expires_at. A late
// attempt is harmless: shares are written only while the packet is funding, and a closed pool does
// not open.
func (l *packetRun) openStep(ctx workflow.Context, what string) workflow.Context {
	opts := bulkOptions(what)
	opts.ScheduleToCloseTimeout = l.packet.ExpiresAt.Sub(workflow.Now(ctx)) // positive: otherwise it is not the next step
	return workflow.WithActivityOptions(ctx, opts)
}

func drainStep(ctx workflow.Context, what string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{TaskQueue: DrainTaskQueue, StartToCloseTimeout: 24 * time.Hour,
		HeartbeatTimeout: heartbeat, RetryPolicy: retryForever(), Summary: summary(what)})
}

// charge makes the sender's charge, from where advance has brought it. Unknown stays funding and is
// queried, also past expires_at (rule R2).
func (l *packetRun) charge(ctx workflow.Context) error {
	st, err := l.beginCharge(ctx)
	if err != nil {
		return err
	}
	if st, err = l.payment.run(ctx, st); err != nil {
		return err
	}
	switch l.facts.Charge = activities.ChargeFact(st); {
	case l.facts.Charge == packet.ChargeUnknown: // a long history
		return nil
	case l.facts.Charge == packet.ChargeTaken && l.payment.shown != "": // the run continues until the packet ends
		if err := l.payment.upsertStatus(ctx, st); err != nil {
			return err
		}
	}
	return l.advance(ctx)
}

func (l *packetRun) beginCharge(ctx workflow.Context) (payout.State, error) {
	if begun := l.begun; begun != nil {
		l.begun = nil
		return l.payment.sent(ctx, *begun)
	}
	return step[payout.State](storeStep(ctx, "read the charge"), payments.ReadPayment, payout.ID(payout.KindCharge, l.packet.ID, 0))
}

// await waits until a step is due. A close signal ("sold out", a recall) ends the wait; the first
// reason wins.
func (l *packetRun) await(ctx workflow.Context, step packet.Step, wait time.Duration) error {
	what := "not expired yet by Redis TIME"
	if step == packet.StepBeginClosing {
		what = fmt.Sprintf("refund the remainder at %s", workflow.Now(ctx).Add(wait).UTC().Format(time.RFC3339))
		workflow.SetCurrentDetails(ctx, fmt.Sprintf("Open. Waiting for the last share, a recall, or `expires_at` %s. Packet: "+
			"`GET /v1/packets/%s`", l.packet.ExpiresAt.UTC().Format(time.RFC3339), l.packet.ID))
	}
	reason, err := sleepOrClose(ctx, wait, what)
	if err != nil {
		return err
	}
	l.facts.NotYet = 0
	if reason != "" || l.facts.Reason == "" {
		l.facts.Reason = cmp.Or(reason, packet.CloseExpired)
	}
	if step == packet.StepBeginClosing {
		return l.advance(ctx)
	}
	return nil
}

// sleepOrClose waits for d or for a close signal with a valid reason, whichever is first. Operators
// can send other reasons from Temporal's UI; those are ignored. "" means that d has passed.
func sleepOrClose(ctx workflow.Context, d time.Duration, what string) (reason packet.CloseReason, failed error) {
	timerCtx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	timer := workflow.NewTimerWithOptions(timerCtx, d, workflow.TimerOptions{Summary: summary(what)})
	woken := false
	wake := workflow.NewSelector(ctx).
		AddFuture(timer, func(f workflow.Future) { failed, woken = f.Get(timerCtx, nil), true }).
		AddReceive(workflow.GetSignalChannel(ctx, SignalClose), func(c workflow.ReceiveChannel, _ bool) {
			var said packet.CloseReason
			if c.ReceiveAsync(&said) && said.Valid() { // not received: the payload was no text
				reason, woken = said, true
			}
		})
	for !woken {
		wake.Select(ctx)
	}
	return reason, failed
}

// end describes how the packet ended. A declined charge is a normal outcome, not a failed run.
func (l *packetRun) end(ctx workflow.Context) (string, error) {
	f := l.facts
	switch {
	case f.Status == packet.StatusRejected:
		err := workflow.UpsertTypedSearchAttributes(ctx, AttrPayoutStatus.ValueSet(string(payout.StatusFailed)),
			AttrFailureCode.ValueSet(f.Failure.Code))
		return "rejected: " + f.Failure.Code, err
	case f.Remainder == nil:
		return string(f.Status), nil
	case *f.Remainder > 0:
		id := RefundID(l.packet.ID, 0)
		workflow.SetCurrentDetails(ctx, fmt.Sprintf("Books closed. Refund of %s: workflow `%s`", amountOf(*f.Remainder), id))
		return fmt.Sprintf("%s: %s go back by %s", f.CloseReason(), amountOf(*f.Remainder), id), nil
	}
	workflow.SetCurrentDetails(ctx, "Closed, nothing remained.")
	return fmt.Sprintf("%s: nothing remained", f.CloseReason()), nil
}
