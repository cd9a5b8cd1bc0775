package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"hongbao/internal/failpoint"
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

	// funded is the split of the packet that was funded last. The same worker usually opens it
	// next, and computing a million shares takes 0.1 s. It holds at most 8 MB until then.
	funded atomic.Pointer[funded]
}

type funded struct {
	id     string
	shares []money.Fen
}

// RecordPacket writes the packet row (funding, sealed seed) and its pending charge, and returns
// the row's status. Repeatable.
func (a *Packets) RecordPacket(ctx context.Context, p packet.Packet) (packet.Status, error) {
	sealed, err := packet.SealedSeed(a.SeedKey, p)
	if err != nil {
		return "", typed(err)
	}
	var eligible []string
	if p.EligibleCount > 0 {
		if eligible, err = a.Pool.Eligible(ctx, p.ID); err != nil {
			return "", typed(err)
		}
		if len(eligible) != p.EligibleCount {
			// A recorded packet may have lost its pool: a new run reads the row (rule R3).
			if rec, err := a.Store.Packet(ctx, p.ID); err == nil && rec.BodyHash == p.BodyHash {
				return rec.Stored, nil
			}
			return "", typed(fmt.Errorf("packet %s: eligible list has %d of %d ids: %w", p.ID, len(eligible), p.EligibleCount, packet.ErrPoolGone))
		}
	}
	status, err := a.Store.RecordPacket(ctx, p, sealed, eligible, a.Provider.Name())
	return status, typed(err)
}

// Fund moves the packet to open and writes its shares in one transaction. Repeatable.
func (a *Packets) Fund(ctx context.Context, id string) (packet.Status, error) {
	defer heartbeat(ctx)()
	shares, rec, err := a.computeShares(ctx, id)
	if err != nil {
		return "", typed(err)
	}
	if rec.Stored != packet.StatusFunding {
		return rec.Stored, nil
	}
	status, err := a.Store.Fund(ctx, id, shares)
	if err == nil && status == packet.StatusOpen {
		a.funded.Store(&funded{id, shares})
	}
	return status, typed(err)
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
			return typed(err)
		}
	}
	err := a.Pool.OpenPool(ctx, id, shares, nil)
	if errors.Is(err, packet.ErrPoolGone) {
		err = cmp.Or(a.requestRebuild(ctx, id), err)
	}
	if err != nil {
		return typed(err)
	}
	return typed(a.keepFirstAnswer(ctx, id))
}

// keepFirstAnswer stores in MySQL the answer that the create request got before its packet
// opened. A rebuild (rule R9) assumes 201 for packets without a stored answer.
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
		return typed(err)
	}
	// The reason that the sender was given stays, even if the charge has another one by now.
	rec, err := a.Store.Packet(ctx, id)
	if err != nil {
		return typed(err)
	}
	if rec.Failure != nil {
		failure = *rec.Failure
	}
	err = a.Pool.Reject(ctx, id, failure)
	if errors.Is(err, packet.ErrPoolGone) || errors.Is(err, packet.ErrNotFound) {
		return nil // the pool was lost; the row says the same
	}
	return typed(err)
}

// BeginClosing moves the row to closing and returns its status. Repeatable.
func (a *Packets) BeginClosing(ctx context.Context, id string, reason packet.CloseReason) (packet.Status, error) {
	status, err := a.Store.BeginClosing(ctx, id, reason)
	return status, typed(err)
}

// ClosePool ends grabbing and returns the claimed total, the same at every repeat. For expiry it
// may return Remainder.NotYet: the pool has not expired by Redis TIME.
func (a *Packets) ClosePool(ctx context.Context, id string, reason packet.CloseReason) (packet.PoolCloseResult, error) {
	rem, err := a.Pool.ClosePool(ctx, id, reason)
	if err != nil {
		return rem, typed(err)
	}
	if rem.NotYet == 0 && !rem.Gone && rem.Reason != "" {
		// Also if the reason is the requested one: the row may hold an earlier expiry that Redis
		// did not know when the recall arrived.
		err = a.Store.CorrectReason(ctx, id, rem.Reason)
	}
	return rem, typed(err)
}

// Pauses between two checks of Drain.
const (
	drainFirstPause = 50 * time.Millisecond
	drainPauseCap   = 2 * time.Second
	// drainStalled is how long no further claim must be recorded before the drain starts payouts
	// itself. While the relay makes progress, the drain would only repeat its work.
	drainStalled = time.Second
	// drainLookShare bounds the load of the checks of a large packet, whose claims are counted:
	// they take at most a tenth of the time.
	drainLookShare = 9
)

// Drain returns once every winner of the pool has a row in MySQL (rule R11). It compares counts,
// then sets. When the relay makes no progress, it starts the missing payouts. It sends
// heartbeats, is repeatable and never gives up.
func (a *Packets) Drain(ctx context.Context, p packet.Packet) error {
	defer heartbeat(ctx)()
	pause, before, moved := drainFirstPause, -1, time.Now()
	for {
		began := time.Now()
		recorded, all, err := a.recorded(ctx, p.ID)
		if err != nil || all {
			return err
		}
		took := time.Since(began)
		switch {
		case recorded != before:
			before, moved = recorded, time.Now()
		case time.Since(moved) >= drainStalled:
			if err := a.startMissing(ctx, p); err != nil {
				return typed(err)
			}
			pause, moved = drainFirstPause, time.Now()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(max(pause, drainLookShare*took)):
		}
		pause = min(pause*2, drainPauseCap)
	}
}

// recorded counts the winners of a pool that have a row, and reports whether all have one.
func (a *Packets) recorded(ctx context.Context, id string) (n int, all bool, err error) {
	view, err := a.Pool.View(ctx, id)
	if errors.Is(err, packet.ErrNotFound) || err == nil && view.Retired {
		return 0, true, nil // nothing in Redis to compare with
	}
	if err != nil {
		return 0, false, typed(err)
	}
	n, err = a.Store.CountRecordedClaims(ctx, id)
	if err != nil || n < view.ClaimedCount {
		return n, false, typed(err)
	}
	// A rebuilt pool (rule R9) may not contain share conflicts. Then counts prove nothing, and
	// the sets are compared.
	promised, err := a.Store.ShareConflictUsers(ctx, id)
	if err != nil || len(promised) == 0 {
		return n, err == nil, typed(err)
	}
	missing, err := a.missing(ctx, id)
	return n, err == nil && len(missing) == 0, typed(err)
}

// compareSets is the number of users that one query of MySQL compares.
const compareSets = 500

// startMissing starts the payouts of winners without a row. A failed start does not delay the
// others. A claim whose start Temporal rejects is recorded without a run; the watch starts that
// once Temporal accepts it.
func (a *Packets) startMissing(ctx context.Context, p packet.Packet) error {
	missing, err := a.missing(ctx, p.ID)
	if err != nil {
		return err
	}
	var failed error
	for _, c := range missing {
		start := func() error { // also if an operator terminated its run, which the relay treats as done
			_, err := a.Starter.RestartPayout(ctx, c, p.App)
			if TemporalRefuses(err) {
				_, err = RecordClaimOrConflict(ctx, a.Store, c, a.Provider.Name())
			}
			return err
		}
		err := failpoint.Do(failpoint.DrainStart, start)
		if err != nil && failed == nil {
			failed = fmt.Errorf("start payout of packet %s: %w", p.ID, err)
		}
		if TemporalUnavailable(err) || errors.Is(err, packet.ErrUnavailable) {
			break
		}
	}
	return failed
}

// missing returns the winners of a pool without a row in MySQL.
func (a *Packets) missing(ctx context.Context, id string) (missing []packet.Claim, err error) {
	err = a.Pool.EachClaim(ctx, id, func(some []packet.Claim) error {
		for part := range slices.Chunk(some, compareSets) {
			unrecorded, err := a.Store.UnrecordedClaims(ctx, id, part)
			if err != nil {
				return err
			}
			missing = append(missing, unrecorded...)
		}
		return nil
	})
	return missing, err
}

// CloseBooks closes the packet's ledger accounts and returns the remainder. A remainder becomes a
// pending refund, whose workflow the outbox starts. Repeatable.
func (a *Packets) CloseBooks(ctx context.Context, id string) (money.Fen, error) {
	defer heartbeat(ctx)() // it reads every claim
	rem, err := a.Store.CloseBooks(ctx, id)
	return rem, typed(err)
}

// FinishPacket closes a packet whose remainder is refunded (or zero) and retires its pool. It
// reports whether the packet is closed. Repeatable.
func (a *Packets) FinishPacket(ctx context.Context, id string) (bool, error) {
	view, err := a.Pool.View(ctx, id)
	if err != nil && !errors.Is(err, packet.ErrNotFound) {
		return false, typed(err)
	}
	closed, err := a.Store.FinishPacket(ctx, id, view.First)
	if err != nil || !closed {
		return false, typed(err)
	}
	return true, typed(a.Pool.Retire(ctx, id))
}
