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

// Packets holds the activities of a packet's workflow.
type Packets struct {
	Store    PacketStore
	Pool     Pool
	Provider Provider
	Starter  Starter
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
// charge. It returns the row's status. Repeatable.
func (a *Packets) RecordPacket(ctx context.Context, p packet.Packet) (packet.Status, error) {
	sealed, err := packet.SealedSeed(a.SeedKey, p)
	if err != nil {
		return "", temporalError(err)
	}
	var eligible []string
	if p.EligibleCount > 0 {
		if eligible, err = a.Pool.Eligible(ctx, p.ID); err != nil {
			return "", temporalError(err)
		}
		if len(eligible) != p.EligibleCount {
			// The pool may be lost after the packet was recorded: the row counts (rule R3).
			if rec, err := a.Store.Packet(ctx, p.ID); err == nil && rec.BodyHash == p.BodyHash {
				return rec.Stored, nil
			}
			return "", temporalError(fmt.Errorf("packet %s: eligible list has %d of %d ids: %w",
				p.ID, len(eligible), p.EligibleCount, packet.ErrPoolGone))
		}
	}
	status, err := a.Store.RecordPacket(ctx, p, sealed, eligible, a.Provider.Name())
	return status, temporalError(err)
}

// Fund moves the packet to open and writes its shares in one transaction. Repeatable.
func (a *Packets) Fund(ctx context.Context, id string) (packet.Status, error) {
	defer heartbeat(ctx)()
	shares, rec, err := a.computeShares(ctx, id)
	if err != nil {
		return "", temporalError(err)
	}
	if rec.Stored != packet.StatusFunding {
		return rec.Stored, nil
	}
	status, err := a.Store.Fund(ctx, id, shares)
	if err == nil && status == packet.StatusOpen {
		a.funded.Store(&fundedShares{id, shares})
	}
	return status, temporalError(err)
}

// computeShares derives the shares of a packet from its sealed seed.
func (a *Packets) computeShares(ctx context.Context, id string) ([]money.Fen, packet.Record, error) {
	rec, err := a.Store.Packet(ctx, id)
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

// OpenPool loads the shares into Redis and opens the pool (rule R7). Repeatable. While the pool
// is not in Redis it fails, until a rebuild of the lane has written it (rebuild.go).
func (a *Packets) OpenPool(ctx context.Context, id string) error {
	defer heartbeat(ctx)()
	var shares []money.Fen
	if last := a.funded.Load(); last != nil && last.id == id && a.funded.CompareAndSwap(last, nil) {
		shares = last.shares
	} else {
		var err error
		if shares, _, err = a.computeShares(ctx, id); err != nil {
			return temporalError(err)
		}
	}
	err := a.Pool.OpenPool(ctx, id, shares, nil)
	if errors.Is(err, packet.ErrPoolGone) {
		err = cmp.Or(a.requestRebuild(ctx, id), err)
	}
	if err != nil {
		return temporalError(err)
	}
	return temporalError(a.keepFirstAnswer(ctx, id))
}

// keepFirstAnswer stores in MySQL which answer the create request got, so that a repeat gets the
// same after a rebuild (rule R9). A rebuild assumes 201 for packets without a stored answer.
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

// RejectPacket ends a packet whose charge was declined, in MySQL and in Redis. Repeatable.
func (a *Packets) RejectPacket(ctx context.Context, id string, f payout.Failure) error {
	failure := packet.Failure{Code: f.Code, Message: f.Message}
	if err := a.Store.RejectPacket(ctx, id, failure); err != nil {
		return temporalError(err)
	}
	// The first reason stays, because the sender has it, even if the charge has another one by now.
	rec, err := a.Store.Packet(ctx, id)
	if err != nil {
		return temporalError(err)
	}
	if rec.Failure != nil {
		failure = *rec.Failure
	}
	err = a.Pool.Reject(ctx, id, failure)
	if errors.Is(err, packet.ErrPoolGone) || errors.Is(err, packet.ErrNotFound) {
		return nil // the pool was lost; the row says the same
	}
	return temporalError(err)
}

// BeginClosing moves the row to closing and returns its status. Repeatable.
func (a *Packets) BeginClosing(ctx context.Context, id string, reason packet.CloseReason) (packet.Status, error) {
	status, err := a.Store.BeginClosing(ctx, id, reason)
	return status, temporalError(err)
}

// ClosePool ends grabbing and returns the claimed total, the same at every repeat. A close for
// expiry returns NotYet, and changes nothing, until the clock of Redis has passed expires_at.
func (a *Packets) ClosePool(ctx context.Context, id string, reason packet.CloseReason) (packet.PoolCloseResult, error) {
	closed, err := a.Pool.ClosePool(ctx, id, reason)
	if err != nil {
		return closed, temporalError(err)
	}
	if closed.NotYet == 0 && !closed.Gone && closed.Reason != "" {
		// Also if the reason is the requested one: the row may hold an earlier expiry that Redis
		// did not know when the recall arrived.
		err = a.Store.CorrectReason(ctx, id, closed.Reason)
	}
	return closed, temporalError(err)
}

// CloseBooks fixes and returns the remainder of a packet, after which no claim of it is recorded
// (rule R6). A remainder becomes a pending refund, whose workflow the outbox starts. Repeatable.
// The name is in the histories of runs.
func (a *Packets) CloseBooks(ctx context.Context, id string) (money.Fen, error) {
	defer heartbeat(ctx)() // it reads every claim
	rem, err := a.Store.CloseBooks(ctx, id)
	return rem, temporalError(err)
}

// FinishPacket closes a packet whose remainder is refunded (or zero) and retires its pool. It
// reports whether the packet is closed. Repeatable.
func (a *Packets) FinishPacket(ctx context.Context, id string) (bool, error) {
	view, err := a.Pool.View(ctx, id)
	if err != nil && !errors.Is(err, packet.ErrNotFound) {
		return false, temporalError(err)
	}
	closed, err := a.Store.FinishPacket(ctx, id, view.First)
	if err != nil || !closed {
		return false, temporalError(err)
	}
	return true, temporalError(a.Pool.Retire(ctx, id))
}
