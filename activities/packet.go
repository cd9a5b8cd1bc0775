package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// Packets holds the activities of a packet's workflow. Each step of a packet (packet.Next) is one
// activity: it takes the packet and the facts that the run has, and returns the facts afterwards. All
// are repeatable. One that finds the row at another step than the facts say returns no facts, so that
// the run reads the row again (rule R3).
type Packets struct {
	Store   PacketStore
	Pool    Pool
	Starter Starter
	// SeedKey derives and seals the seeds of packets; 32 bytes from the configuration.
	SeedKey [32]byte
	// PoolRebuild requests the rebuild of lost pools; nil where lanes are rebuilt only by hand.
	PoolRebuild *PoolRebuild

	// funded has the shares of the packet that was funded last: the same worker usually opens it
	// next, and computing a million shares takes 0.1 s. They are at most 8 MB.
	funded atomic.Pointer[fundedShares]
}

type fundedShares struct {
	id     string
	shares []money.Fen
}

// RecordPacket writes the row of a packet with its sealed seed, in status funding, and its pending
// charge. An existing row stays as it is; its status becomes a fact.
func (a *Packets) RecordPacket(ctx context.Context, p packet.Packet, _ packet.Facts) (packet.Facts, error) {
	status, err := a.record(ctx, p)
	return packet.Facts{Status: status}, temporalError(err)
}

func (a *Packets) record(ctx context.Context, p packet.Packet) (packet.Status, error) {
	sealed, err := packet.SealedSeed(a.SeedKey, p)
	if err != nil {
		return "", err
	}
	var eligible []string
	if p.EligibleCount > 0 {
		if eligible, err = a.Pool.Eligible(ctx, p.ID); err != nil {
			return "", err
		}
		if len(eligible) != p.EligibleCount {
			// The pool may be lost after the packet was recorded: the row counts (rule R3).
			if rec, err := a.Store.PacketRow(ctx, p.ID); err == nil && rec.BodyHash == p.BodyHash {
				return rec.Stored, nil
			}
			return "", fmt.Errorf("packet %s: eligible list has %d of %d ids: %w", p.ID, len(eligible), p.EligibleCount, packet.ErrPoolGone)
		}
	}
	return a.Store.RecordPacket(ctx, p, sealed, eligible)
}

// afterStep returns the facts after a step on the row: none if the row was at another step.
func afterStep(f packet.Facts, err error) (packet.Facts, error) {
	if errors.Is(err, packet.ErrMoved) {
		return packet.Facts{}, nil
	}
	return f, temporalError(err)
}

// Fund moves the packet to open and writes its shares in one transaction.
func (a *Packets) Fund(ctx context.Context, p packet.Packet, f packet.Facts) (packet.Facts, error) {
	defer heartbeat(ctx)()
	shares, rec, err := a.computeShares(ctx, p.ID)
	if err != nil {
		return f, temporalError(err)
	}
	if f.Status = rec.Stored; f.Status != packet.StatusFunding {
		return f, nil
	}
	f.Status, err = a.Store.Fund(ctx, p.ID, shares)
	if err == nil && f.Status == packet.StatusOpen {
		a.funded.Store(&fundedShares{p.ID, shares})
	}
	return afterStep(f, err)
}

// computeShares derives the shares of a packet from its sealed seed.
func (a *Packets) computeShares(ctx context.Context, id string) ([]money.Fen, packet.Record, error) {
	rec, err := a.Store.PacketRow(ctx, id)
	if err != nil {
		return nil, rec, err
	}
	seed, err := packet.OpenSeed(a.SeedKey, id, rec.SealedSeed)
	if err != nil {
		return nil, rec, fmt.Errorf("open seed of packet %s: %w", id, err)
	}
	shares, err := packet.Split(seed, rec.SplitParams())
	return shares, rec, err
}

// OpenPool loads the shares into Redis and opens the pool (rule R7). While the pool is not in Redis it
// fails, until a rebuild of the lane has written it (rebuild.go).
func (a *Packets) OpenPool(ctx context.Context, p packet.Packet, f packet.Facts) (packet.Facts, error) {
	defer heartbeat(ctx)()
	var shares []money.Fen
	if last := a.funded.Load(); last != nil && last.id == p.ID && a.funded.CompareAndSwap(last, nil) {
		shares = last.shares
	} else {
		var err error
		if shares, _, err = a.computeShares(ctx, p.ID); err != nil {
			return f, temporalError(err)
		}
	}
	err := a.Pool.OpenPool(ctx, p.ID, shares, nil)
	if errors.Is(err, packet.ErrPoolGone) {
		err = cmp.Or(a.requestRebuild(ctx, p.ID), err)
	}
	if err == nil {
		err = a.keepFirstAnswer(ctx, p.ID)
	}
	f.Pool = packet.PoolUsed
	return f, temporalError(err)
}

// keepFirstAnswer stores in MySQL which answer the create request got, so that a repeat gets the
// same after a rebuild. A rebuild assumes 201 for packets without a stored answer, 402 for rejected ones.
func (a *Packets) keepFirstAnswer(ctx context.Context, id string) error {
	view, err := a.Pool.View(ctx, id)
	if errors.Is(err, packet.ErrNotFound) || err == nil && (view.First == nil || view.Retired) {
		return nil
	}
	if err != nil {
		return err
	}
	return a.Store.SaveFirstAnswer(ctx, id, *view.First)
}

// RejectPacket ends a packet whose charge was declined, in MySQL and in Redis.
func (a *Packets) RejectPacket(ctx context.Context, p packet.Packet, f packet.Facts) (packet.Facts, error) {
	charge, err := a.Store.PaymentState(ctx, payout.ID(payout.KindCharge, p.ID, 0))
	if err != nil {
		return f, temporalError(err)
	}
	why := payout.NewFailure("", "")
	if charge.Failure != nil {
		why = charge.Failure
	}
	if err := a.Store.RejectPacket(ctx, p.ID, packet.Failure{Code: why.Code, Message: why.Message}); err != nil {
		return afterStep(f, err)
	}
	// The first reason stays, because the sender has it, even if the charge has another one by now.
	rec, err := a.Store.PacketRow(ctx, p.ID)
	if err != nil {
		return f, temporalError(err)
	}
	if f.Failure = rec.Failure; f.Failure == nil {
		f.Failure = &packet.Failure{Code: why.Code, Message: why.Message}
	}
	err = a.Pool.Reject(ctx, p.ID, *f.Failure)
	if errors.Is(err, packet.ErrPoolGone) || errors.Is(err, packet.ErrNotFound) {
		err = nil // the pool was lost; the row says the same
	}
	if err == nil { // of a sender who did not pay it was 202
		err = a.keepFirstAnswer(ctx, p.ID)
	}
	f.Status, f.Finished = packet.StatusRejected, true
	return f, temporalError(err)
}

// BeginClosing moves the row to closing, with the reason of the facts.
func (a *Packets) BeginClosing(ctx context.Context, p packet.Packet, f packet.Facts) (packet.Facts, error) {
	var err error
	f.Reason = f.CloseReason()
	f.Status, err = a.Store.BeginClosing(ctx, p.ID, f.Reason)
	return afterStep(f, err)
}

// ClosePool ends grabs. A pool that is open closes for expiry only once the clock of Redis has passed
// expires_at. Before, nothing changes, and the time to wait is a fact.
func (a *Packets) ClosePool(ctx context.Context, p packet.Packet, f packet.Facts) (packet.Facts, error) {
	closed, err := a.Pool.ClosePool(ctx, p.ID, f.CloseReason())
	if f.NotYet = closed.NotYet; err != nil || f.NotYet > 0 {
		return f, temporalError(err)
	}
	f.Pool = packet.PoolEnded
	f.Reason = closed.Reason // "" if the pool is lost: then the row keeps its own
	return f, nil
}

// CloseBooks fixes the remainder of a packet, after which no claim of it is recorded (rule R6). A
// remainder becomes a pending refund, whose workflow the outbox starts. The row gets the pool's reason.
func (a *Packets) CloseBooks(ctx context.Context, p packet.Packet, f packet.Facts) (packet.Facts, error) {
	defer heartbeat(ctx)() // it reads every claim
	remainder, err := a.Store.CloseBooks(ctx, p.ID, f.Reason)
	f.Remainder = &remainder
	return afterStep(f, err)
}

// FinishPacket closes a packet whose remainder is refunded (or zero) and retires its pool. While the
// refund is not final it changes nothing and returns no facts.
func (a *Packets) FinishPacket(ctx context.Context, p packet.Packet, f packet.Facts) (packet.Facts, error) {
	view, err := a.Pool.View(ctx, p.ID)
	if err != nil && !errors.Is(err, packet.ErrNotFound) {
		return f, temporalError(err)
	}
	closed, err := a.Store.FinishPacket(ctx, p.ID, view.First)
	if err != nil {
		return f, temporalError(err)
	}
	if !closed {
		return packet.Facts{}, nil
	}
	f.Status, f.Finished = packet.StatusClosed, true
	return f, temporalError(a.Pool.Retire(ctx, p.ID))
}

// TakeStep does one step of a packet, any but its charge.
func TakeStep(ctx context.Context, a *Packets, step packet.Step, p packet.Packet, f packet.Facts) (packet.Facts, error) {
	do := map[packet.Step]func(context.Context, packet.Packet, packet.Facts) (packet.Facts, error){
		packet.StepRecord: a.RecordPacket, packet.StepFund: a.Fund, packet.StepOpenPool: a.OpenPool, packet.StepReject: a.RejectPacket,
		packet.StepBeginClosing: a.BeginClosing, packet.StepClosePool: a.ClosePool, packet.StepDrain: a.Drain,
		packet.StepCloseBooks: a.CloseBooks, packet.StepFinish: a.FinishPacket,
	}[step]
	return do(ctx, p, f)
}
