package pool

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"hongbao/internal/failpoint"
	"hongbao/internal/money"
	"hongbao/internal/packet"
)

// tombstoneLife is the duration of a retired packet's tombstone.
const tombstoneLife = packet.TombstoneLife

// retireChunk is the number of claims that one call of retire.lua scans: a few
// milliseconds in which Redis serves no other call.
const retireChunk = 1_000

// Recall stops a packet because its sender wants the remainder back, and writes a hand-off
// for its workflow. It returns the resulting packet. A packet that is sold out, closing,
// rejected or retired stays unchanged.
//
// Errors: ErrNotFound, ErrNotOpenYet (funding; the view is returned too), ErrUnavailable,
// ErrMalformed.
func (p *Pool) Recall(ctx context.Context, id string) (packet.PoolView, error) {
	keys, err := p.keysOf(id)
	if err != nil {
		return packet.PoolView{}, err
	}
	reply, err := p.runWrite(ctx, failpoint.RecallFlag, recallScript, id, []string{keys.packet, keys.handoff})
	if err != nil {
		return packet.PoolView{}, redisError("recall packet "+id, err)
	}
	outcome, err := text(reply, 0)
	if err != nil {
		return packet.PoolView{}, fmt.Errorf("recall packet %s: %w", id, err)
	}
	if outcome == "not_found" {
		return packet.PoolView{}, fmt.Errorf("packet %s: %w", id, ErrNotFound)
	}
	h, err := readHash(reply, 1)
	if err != nil {
		return packet.PoolView{}, fmt.Errorf("recall packet %s: %w", id, err)
	}
	view, err := h.view(id)
	if err == nil && outcome == "not_open_yet" {
		err = fmt.Errorf("recall packet %s: %w", id, ErrNotOpenYet)
	}
	return view, err
}

// ClosePool ends the grabs of a packet and returns what was claimed. The first reason stays,
// and a repeated call returns the same. With reason expired or sold_out it closes only when
// Redis TIME and the counters confirm it; else NotYet is the time to wait. A
// missing or retired pool is no error: Gone.
//
// Errors: ErrState for a rejected packet, ErrUnavailable, ErrMalformed.
func (p *Pool) ClosePool(ctx context.Context, id string, reason packet.CloseReason) (packet.PoolCloseResult, error) {
	keys, err := p.keysOf(id)
	if err != nil {
		return packet.PoolCloseResult{Gone: true}, nil //nolint:nilerr // an invalid id has no pool
	}
	reply, err := p.runWrite(ctx, failpoint.ClosePool, closeScript, id, []string{keys.packet, keys.shares}, string(reason))
	if err != nil {
		return packet.PoolCloseResult{}, redisError("close packet "+id, err)
	}
	outcome, r, err := decodeRemainder(reply)
	switch {
	case err != nil:
		return packet.PoolCloseResult{}, fmt.Errorf("close packet %s: %w", id, err)
	case outcome == "rejected":
		return packet.PoolCloseResult{}, fmt.Errorf("close packet %s: %w", id, &StateError{State: packet.PoolRejected})
	}
	return r, nil
}

func decodeRemainder(reply []any) (string, packet.PoolCloseResult, error) {
	outcome, err := text(reply, 0)
	if err != nil {
		return "", packet.PoolCloseResult{}, err
	}
	var fields [3]string // reason, claimed count, claimed amount
	for i := range fields {
		if fields[i], err = text(reply, i+1); err != nil {
			return "", packet.PoolCloseResult{}, err
		}
	}
	count, err := strconv.Atoi(fields[1])
	if err != nil {
		return "", packet.PoolCloseResult{}, fmt.Errorf("%w: claimed count: %w", ErrMalformed, err)
	}
	amount, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return "", packet.PoolCloseResult{}, fmt.Errorf("%w: claimed amount: %w", ErrMalformed, err)
	}
	wait, err := number(reply, 4)
	if err != nil {
		return "", packet.PoolCloseResult{}, err
	}
	return outcome, packet.PoolCloseResult{
		NotYet: time.Duration(wait) * time.Millisecond, Gone: outcome == "gone",
		Reason: packet.CloseReason(fields[0]), ClaimedCount: count, ClaimedAmount: money.Fen(amount),
	}, nil
}

// Retire removes the pool of a closed or rejected packet, and leaves a tombstone with body
// hash and first answer for 30 days. It also retires a packet that is not open yet: a create
// without MySQL staged it again long after its end. A repeat continues an interrupted call.
// For a packet that is retired or not in Redis it changes nothing.
//
// Errors: ErrState while grabs are possible, ErrUnavailable.
func (p *Pool) Retire(ctx context.Context, id string) error {
	keys, err := p.keysOf(id)
	if err != nil {
		return err
	}
	lane := packet.Lane(id, p.cfg.Lanes)
	if _, err := p.checkFence(lane); err != nil {
		return fmt.Errorf("retire packet %s: %w", id, err)
	}
	if err := p.indexClaims(ctx, lane, ""); err != nil {
		return fmt.Errorf("retire packet %s: %w", id, err)
	}
	all := []string{keys.packet, keys.shares, keys.winners, keys.eligible, keys.live, keys.order, keys.claimed, keys.staged}
	for cursor := "0"; ; {
		reply, err := p.runWrite(ctx, failpoint.PoolRetire, retireScript, id, all, id, tombstoneLife.Milliseconds(), cursor, retireChunk)
		if err != nil {
			return redisError("retire packet "+id, err)
		}
		if outcome, err := text(reply, 0); err != nil || outcome != "more" {
			return outcomeError("retire packet "+id, reply)
		}
		if cursor, err = text(reply, 2); err != nil {
			return fmt.Errorf("retire packet %s: %w", id, err)
		}
	}
}
