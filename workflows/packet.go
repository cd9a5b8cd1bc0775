package workflows

import (
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"hongbao/money"
	"hongbao/packet"
	"hongbao/payout"
)

// Packet lives a packet from its charge to the closing of its books: funding,
// open, a durable timer to expires_at (or sold out, or recalled), closing,
// drain, books. A remainder's refund is a workflow of its own, which also
// closes the packet. Returns how the packet ended.
func Packet(ctx workflow.Context, p packet.Packet) (string, error) {
	l := &life{packet: p, machine: newMachine(ctx)}
	status, err := step[packet.Status](storeStep(ctx, "record the packet and its charge"), packets.RecordPacket, p)
	if err != nil {
		return "", err
	}
	reason := packet.CloseUnopened
	if status == packet.StatusFunding {
		st, err := l.charge(ctx)
		if err != nil {
			return "", err
		}
		if st.Step.Do != payout.ActionEnd {
			return "", workflow.NewContinueAsNewError(ctx, PacketWorkflow, p)
		}
		if st.Status != payout.StatusPaid {
			return l.reject(ctx, st)
		}
		status, err = l.open(ctx)
		if err != nil {
			return "", err
		}
	}
	if status == packet.StatusOpen {
		if reason, err = l.awaitClose(ctx); err != nil {
			return "", err
		}
	}
	if status == packet.StatusRejected || status == packet.StatusClosed {
		return string(status), nil
	}
	return l.close(ctx, reason)
}

// life is one run of a packet's workflow.
type life struct {
	packet  packet.Packet
	machine *machine
}

// charge carries out the sender's charge. Unknown stays funding and keeps
// asking, also past expires_at (rule R2).
func (l *life) charge(ctx workflow.Context) (payout.State, error) {
	id := payout.ID(payout.KindCharge, l.packet.ID, 0)
	st, err := step[payout.State](storeStep(ctx, "read the charge"), payments.ReadPayment, id)
	if err != nil {
		return st, err
	}
	return l.machine.run(ctx, st)
}

// reject ends a packet whose charge was declined: an ordinary outcome, not a failed run.
func (l *life) reject(ctx workflow.Context, st payout.State) (string, error) {
	f := payout.NewFailure("", "")
	if st.Failure != nil {
		f = st.Failure
	}
	if err := l.machine.upsert(ctx, st); err != nil {
		return "", err
	}
	err := workflow.ExecuteActivity(storeStep(ctx, "reject: "+f.Code), packets.RejectPacket, l.packet.ID, *f).Get(ctx, nil)
	return "rejected: " + f.Code, err
}

// open funds the packet and opens its pool. Past expires_at, or when the pool
// cannot be opened by then, the packet goes straight to closing (rule R2).
func (l *life) open(ctx workflow.Context) (packet.Status, error) {
	left := l.packet.ExpiresAt.Sub(workflow.Now(ctx))
	if left <= 0 {
		return packet.StatusClosing, nil
	}
	status, err := step[packet.Status](bulkStep(ctx, "write the shares"), packets.Fund, l.packet.ID)
	if err != nil || status != packet.StatusOpen {
		return status, err
	}
	if left = l.packet.ExpiresAt.Sub(workflow.Now(ctx)); left <= 0 {
		return packet.StatusClosing, nil
	}
	opts := workflow.ActivityOptions{StartToCloseTimeout: bulkTimeout, ScheduleToCloseTimeout: left, HeartbeatTimeout: heartbeat,
		RetryPolicy: retryForever(), Summary: "load the shares, open the pool"}
	err = workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, opts), packets.OpenPool, l.packet.ID).Get(ctx, nil)
	var timeout *temporal.TimeoutError
	if errors.As(err, &timeout) {
		return packet.StatusClosing, nil
	}
	return packet.StatusOpen, err
}

// jitterFrom is the life from which on refund instants are spread: packets of
// 24 h made in the same second should not all expire in the same one.
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

// awaitClose waits for the timer, for "sold out" or for a recall; the first reason wins.
func (l *life) awaitClose(ctx workflow.Context) (packet.CloseReason, error) {
	at := l.packet.ExpiresAt.Add(jitter(l.packet))
	what := fmt.Sprintf("refund the remainder at %s", at.UTC().Format(time.RFC3339))
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("Open. Waiting for the last share, a recall, or `expires_at` %s. Packet: `GET /v1/packets/%s`",
		l.packet.ExpiresAt.UTC().Format(time.RFC3339), l.packet.ID))
	timerCtx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	timer := workflow.NewTimerWithOptions(timerCtx, max(at.Sub(workflow.Now(ctx)), 0), workflow.TimerOptions{Summary: what})
	reason := packet.CloseExpired
	var failed error
	workflow.NewSelector(ctx).
		AddFuture(timer, func(f workflow.Future) { failed = f.Get(timerCtx, nil) }).
		AddReceive(workflow.GetSignalChannel(ctx, SignalClose), func(c workflow.ReceiveChannel, _ bool) { c.Receive(ctx, &reason) }).
		Select(ctx)
	return reason, failed
}

// close ends grabbing, waits until every winner is recorded and closes the books.
func (l *life) close(ctx workflow.Context, reason packet.CloseReason) (string, error) {
	id := l.packet.ID
	workflow.SetCurrentDetails(ctx, "Closing: "+string(reason))
	if _, err := step[packet.Status](storeStep(ctx, "begin closing: "+string(reason)), packets.BeginClosing, id, reason); err != nil {
		return "", err
	}
	for {
		rem, err := step[packet.Remainder](storeStep(ctx, "close the pool: "+string(reason)), packets.ClosePool, id, reason)
		if err != nil {
			return "", err
		}
		if rem.NotYet <= 0 {
			break
		}
		if err := workflow.NewTimerWithOptions(ctx, rem.NotYet, workflow.TimerOptions{Summary: "not expired yet by Redis TIME"}).Get(ctx, nil); err != nil {
			return "", err
		}
	}
	drain := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{TaskQueue: DrainTaskQueue, StartToCloseTimeout: 24 * time.Hour,
		HeartbeatTimeout: heartbeat, RetryPolicy: retryForever(), Summary: "wait until every winner is recorded"})
	if err := workflow.ExecuteActivity(drain, packets.Drain, l.packet).Get(ctx, nil); err != nil {
		return "", err
	}
	remainder, err := step[money.Fen](storeStep(ctx, "close the books"), packets.CloseBooks, id)
	if err != nil {
		return "", err
	}
	if remainder > 0 {
		workflow.SetCurrentDetails(ctx, fmt.Sprintf("Books closed. Refund of %s: workflow `%s`", amountOf(remainder), RefundID(id, 0)))
		return fmt.Sprintf("%s: %s go back by %s", reason, amountOf(remainder), RefundID(id, 0)), nil
	}
	if _, err := step[bool](storeStep(ctx, "close the packet, retire its pool"), packets.FinishPacket, id); err != nil {
		return "", err
	}
	workflow.SetCurrentDetails(ctx, "Closed, nothing remained.")
	return fmt.Sprintf("%s: nothing remained", reason), nil
}
