package workflows

import (
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"hongbao/activities"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// Packet runs a packet from its charge to the closing of its ledger accounts. It passes funding,
// open, a durable timer to expires_at (or sold out, or recalled), closing and drain. The refund
// of a remainder is a workflow of its own, which also closes the packet. It returns how the
// packet ended.
func Packet(ctx workflow.Context, in PacketInput) (string, error) {
	defer takeSignals(ctx)
	l := &packetRun{packet: in.Packet, payment: newPaymentRun(ctx, in.Console)}
	o, err := l.begin(ctx)
	if err != nil {
		return "", err
	}
	status, reason := o.Status, packet.CloseUnopened
	switch {
	case status == packet.StatusRejected || status == packet.StatusClosed:
		return l.finishEnded(ctx, status)
	case status == packet.StatusFunding:
		st, err := l.charge(ctx, o.Charge)
		if err != nil {
			return "", err
		}
		if st.Step.Do != payout.ActionEnd {
			return "", workflow.NewContinueAsNewError(ctx, PacketWorkflow, in)
		}
		if st.Status == payout.StatusFailed {
			return l.reject(ctx, st)
		}
		if err := l.showPaid(ctx, st); err != nil {
			return "", err
		}
		if status, err = l.fund(ctx); err != nil {
			return "", err
		}
	case o.Charge == nil:
		// An earlier run funded it and may have opened it: the pool has the reason why it closed.
		// Otherwise it closes only if it has expired or is sold out.
		reason = packet.CloseExpired
	}
	if status == packet.StatusOpen && !o.PoolOpen {
		if status, err = l.open(ctx); err != nil {
			return "", err
		}
	}
	if status == packet.StatusOpen {
		if reason, err = l.awaitClose(ctx); err != nil {
			return "", err
		}
	}
	return l.close(ctx, reason)
}

// packetRun is one run of a packet's workflow.
type packetRun struct {
	packet  packet.Packet
	payment *paymentRun
}

// begin records the packet and continues from there with combined steps.
func (l *packetRun) begin(ctx workflow.Context) (activities.Opened, error) {
	what := "record the packet, charge " + amountOf(l.packet.TotalAmount) + ", open the pool"
	done, err := local[activities.Opened](ctx, what, combined.OpenNow, l.packet)
	if err == nil || temporal.IsCanceledError(err) {
		return done, err
	}
	status, err := step[packet.Status](storeStep(ctx, "record the packet and its charge"), packets.RecordPacket, l.packet)
	return activities.Opened{Status: status}, err
}

// charge makes the sender's charge, from where begin has brought it. Unknown stays funding and is
// queried, also past expires_at (rule R2).
func (l *packetRun) charge(ctx workflow.Context, begun *activities.Outcome) (payout.State, error) {
	if begun != nil {
		st, err := l.payment.sent(ctx, *begun)
		if err != nil {
			return st, err
		}
		return l.payment.run(ctx, st)
	}
	id := payout.ID(payout.KindCharge, l.packet.ID, 0)
	st, err := step[payout.State](storeStep(ctx, "read the charge"), payments.ReadPayment, id)
	if err != nil {
		return st, err
	}
	return l.payment.run(ctx, st)
}

// showPaid sets the search attributes of a paid charge if they show another status: the run
// continues until the packet ends.
func (l *packetRun) showPaid(ctx workflow.Context, st payout.State) error {
	if l.payment.shown == "" {
		return nil
	}
	return l.payment.upsertStatus(ctx, st)
}

// reject ends a packet whose charge was declined: a normal outcome, not a failed run.
func (l *packetRun) reject(ctx workflow.Context, st payout.State) (string, error) {
	f := payout.NewFailure("", "")
	if st.Failure != nil {
		f = st.Failure
	}
	if err := l.payment.upsertStatus(ctx, st); err != nil {
		return "", err
	}
	err := workflow.ExecuteActivity(storeStep(ctx, "reject: "+f.Code), packets.RejectPacket, l.packet.ID, *f).Get(ctx, nil)
	if !rowMovedBack(err) {
		return "rejected: " + f.Code, err
	}
	// The new run inherits the search attributes of this one, and its charge may still be paid.
	if err := workflow.UpsertTypedSearchAttributes(ctx, AttrPayoutStatus.ValueUnset(), AttrFailureCode.ValueUnset()); err != nil {
		return "", err
	}
	return "", l.restart(ctx)
}

// finishEnded repeats the last step of a packet that an earlier run ended: that run may have
// failed between MySQL and Redis (rule R3).
func (l *packetRun) finishEnded(ctx workflow.Context, status packet.Status) (string, error) {
	if status == packet.StatusClosed {
		_, err := step[bool](storeStep(ctx, "retire the pool of a closed packet"), packets.FinishPacket, l.packet.ID)
		return string(status), err
	}
	st, err := step[payout.State](storeStep(ctx, "read the charge"), payments.ReadPayment, payout.ID(payout.KindCharge, l.packet.ID, 0))
	if err != nil {
		return "", err
	}
	return l.reject(ctx, st)
}

// fund writes the shares of a charged packet, unless it has expired or the charge came back.
func (l *packetRun) fund(ctx workflow.Context) (packet.Status, error) {
	status := packet.StatusClosing
	err := l.beforeExpiry(ctx, "write the shares", packets.Fund, &status)
	return status, err
}

// open opens the pool; it changes nothing about a pool that is or was open.
func (l *packetRun) open(ctx workflow.Context) (packet.Status, error) {
	status := packet.StatusClosing
	err := l.beforeExpiry(ctx, "load the shares, open the pool", packets.OpenPool, &status)
	return status, err
}

// beforeExpiry runs a step on the way to an open pool, and sets status to the row's status after
// it. If the step does not succeed by expires_at, status is left and the packet goes straight to
// closing. So the sender is refunded, whatever the cause (rule R2). A late attempt is harmless:
// shares are written only while the packet is funding, and a closed pool does not open.
func (l *packetRun) beforeExpiry(ctx workflow.Context, what string, activity any, status *packet.Status) error {
	left := l.packet.ExpiresAt.Sub(workflow.Now(ctx))
	if left <= 0 {
		return nil
	}
	opts := bulkOptions(what)
	opts.ScheduleToCloseTimeout = left
	done := packet.StatusOpen // for a step without a result
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, opts), activity, l.packet.ID).Get(ctx, &done)
	switch {
	case err == nil:
		*status = done
		return nil
	case temporal.IsCanceledError(err):
		return err
	}
	// Not only a timeout: if the next retry would be too late, the server fails with the last
	// attempt's own error.
	workflow.GetLogger(ctx).Error("Packet not opened in time; closing it unopened.", "packet_id", l.packet.ID, "step", what, "error", err)
	return nil
}

// jitterFrom is the packet life from which closing times are spread. Packets of 24 h created in
// the same second should not expire in the same one.
const (
	jitterFrom = time.Hour
	jitterMax  = 2 * time.Second
)

func jitter(p packet.Packet) time.Duration {
	if p.ExpiresAt.Sub(p.OpensAt) < jitterFrom {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(p.ID))
	return time.Duration(h.Sum32()) % jitterMax
}

// awaitClose waits for the timer, "sold out" or a recall; the first reason wins.
func (l *packetRun) awaitClose(ctx workflow.Context) (packet.CloseReason, error) {
	at := l.packet.ExpiresAt.Add(jitter(l.packet))
	what := fmt.Sprintf("refund the remainder at %s", at.UTC().Format(time.RFC3339))
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("Open. Waiting for the last share, a recall, or `expires_at` %s. Packet: `GET /v1/packets/%s`",
		l.packet.ExpiresAt.UTC().Format(time.RFC3339), l.packet.ID))
	timerCtx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	timer := workflow.NewTimerWithOptions(timerCtx, max(at.Sub(workflow.Now(ctx)), 0), workflow.TimerOptions{Summary: summary(what)})
	reason, failed := packet.CloseExpired, error(nil)
	woken := false
	wake := workflow.NewSelector(ctx).
		AddFuture(timer, func(f workflow.Future) { failed, woken = f.Get(timerCtx, nil), true }).
		AddReceive(workflow.GetSignalChannel(ctx, SignalClose), func(c workflow.ReceiveChannel, _ bool) { woken = receiveClose(c, &reason) })
	for !woken {
		wake.Select(ctx)
	}
	return reason, failed
}

// receiveClose receives a close signal and reports whether it has a valid reason. Operators can
// send others from Temporal's UI; those are ignored.
func receiveClose(c workflow.ReceiveChannel, reason *packet.CloseReason) bool {
	var said packet.CloseReason
	if !c.ReceiveAsync(&said) || !said.Valid() { // not received: the payload was no text
		return false
	}
	*reason = said
	return true
}

// close ends grabbing, waits until every winner is recorded and closes the ledger accounts.
func (l *packetRun) close(ctx workflow.Context, reason packet.CloseReason) (string, error) {
	id := l.packet.ID
	workflow.SetCurrentDetails(ctx, "Closing: "+string(reason))
	done, err := l.closeNow(ctx, reason)
	if err != nil {
		return "", err
	}
	if !done.Closing {
		if _, err := step[packet.Status](storeStep(ctx, "begin closing: "+string(reason)), packets.BeginClosing, id, reason); err != nil {
			return "", err
		}
	}
	if !done.PoolClosed {
		if err := l.closePool(ctx, reason); err != nil {
			return "", err
		}
	}
	remainder := done.Remainder
	if !done.LedgerClosed {
		if remainder, err = l.closeBooks(ctx); rowMovedBack(err) {
			return "", l.restart(ctx)
		}
		if err != nil {
			return "", err
		}
	}
	if remainder > 0 {
		workflow.SetCurrentDetails(ctx, fmt.Sprintf("Books closed. Refund of %s: workflow `%s`", amountOf(remainder), RefundID(id, 0)))
		return fmt.Sprintf("%s: %s go back by %s", reason, amountOf(remainder), RefundID(id, 0)), nil
	}
	if !done.PacketClosed {
		if _, err := step[bool](storeStep(ctx, "close the packet, retire its pool"), packets.FinishPacket, id); err != nil {
			return "", err
		}
	}
	workflow.SetCurrentDetails(ctx, "Closed, nothing remained.")
	return fmt.Sprintf("%s: nothing remained", reason), nil
}

// rowMovedBack reports whether a step was refused because its row is at an earlier status. MySQL
// was restored from before the packet began to close, or before the charge failed (rule R13).
// Retrying would never succeed.
func rowMovedBack(err error) bool {
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	return ok && (app.Type() == activities.TypeNotClosing || app.Type() == activities.TypeNotDeclined)
}

// restart continues as new, so that the run starts from the row (rule R3).
func (l *packetRun) restart(ctx workflow.Context) error {
	return workflow.NewContinueAsNewError(ctx, PacketWorkflow, PacketInput{Packet: l.packet, Console: l.payment.console})
}

// closeNow closes the packet with combined steps as far as they succeed.
func (l *packetRun) closeNow(ctx workflow.Context, reason packet.CloseReason) (activities.Closed, error) {
	done, err := local[activities.Closed](ctx, "close the pool and the books: "+string(reason), combined.CloseNow, l.packet, reason)
	if err != nil && !temporal.IsCanceledError(err) {
		return activities.Closed{}, nil // its progress is unknown: repeat it with single steps
	}
	return done, err
}

// A pool that has not expired by its own clock is checked again after a part of the remaining
// time.
const (
	notYetShortest = 15 * time.Second
	notYetPart     = 40
)

// closePool ends grabbing; for expiry, once Redis' clock agrees.
func (l *packetRun) closePool(ctx workflow.Context, reason packet.CloseReason) error {
	for {
		rem, err := step[packet.PoolCloseResult](storeStep(ctx, "close the pool: "+string(reason)), packets.ClosePool, l.packet.ID, reason)
		if err != nil || rem.NotYet <= 0 {
			return err
		}
		if reason, err = l.awaitPool(ctx, rem.NotYet, reason); err != nil {
			return err
		}
	}
}

// awaitPool waits before the next check of a pool that has not expired by its own clock, and
// returns the reason to close. A recall ends the wait.
func (l *packetRun) awaitPool(ctx workflow.Context, left time.Duration, reason packet.CloseReason) (packet.CloseReason, error) {
	// Its clock may be corrected in between, so a distant expiry is checked earlier.
	wait := min(left, max(notYetShortest, left/notYetPart))
	timerCtx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	timer := workflow.NewTimerWithOptions(timerCtx, wait, workflow.TimerOptions{Summary: "not expired yet by Redis TIME"})
	var failed error
	woken := false
	wake := workflow.NewSelector(ctx).
		AddFuture(timer, func(f workflow.Future) { failed, woken = f.Get(timerCtx, nil), true }).
		AddReceive(workflow.GetSignalChannel(ctx, SignalClose), func(c workflow.ReceiveChannel, _ bool) { woken = receiveClose(c, &reason) })
	for !woken {
		wake.Select(ctx)
	}
	return reason, failed
}

// closeBooks waits until every winner is recorded, closes the ledger accounts and returns the
// remainder.
func (l *packetRun) closeBooks(ctx workflow.Context) (money.Fen, error) {
	drain := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{TaskQueue: DrainTaskQueue, StartToCloseTimeout: 24 * time.Hour,
		HeartbeatTimeout: heartbeat, RetryPolicy: retryForever(), Summary: "wait until every winner is recorded"})
	if err := workflow.ExecuteActivity(drain, packets.Drain, l.packet).Get(ctx, nil); err != nil {
		return 0, err
	}
	return step[money.Fen](bulkStep(ctx, "close the books"), packets.CloseBooks, l.packet.ID)
}
