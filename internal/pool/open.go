package pool

import (
	"context"
	"encoding/json"
	"fmt"

	"hongbao/internal/failpoint"
	"hongbao/internal/money"
	"hongbao/internal/packet"
)

// openChunk is the number of shares loaded by one call: 500 KB, about a millisecond in which
// Redis serves no other call.
const openChunk = 50_000

// OpenPool loads the shares of a funded packet, element i with index i, and opens it with
// the last one. It may be repeated at any time, also by several workers at once: each
// continues where the loaded shares end (R7). After the first opening it changes nothing in any
// state. progress, when not nil, is called after each chunk with the number of loaded
// shares.
//
// Errors: ErrGone, ErrUnavailable, ErrMalformed when the number of shares is not the
// packet's.
func (p *Pool) OpenPool(ctx context.Context, id string, shares []money.Fen, progress func(loaded int)) error {
	keys, err := p.keysOf(id)
	if err != nil {
		return err
	}
	for i, a := range shares {
		if err := a.Check(); err != nil || a == 0 {
			return fmt.Errorf("open packet %s: share %d is %d fen", id, i, a)
		}
	}
	for offset := 0; ; {
		var chunk []byte
		for i := offset; i < min(offset+openChunk, len(shares)); i++ {
			chunk = packet.AppendShare(chunk, i, shares[i])
		}
		reply, err := p.runWrite(ctx, failpoint.CreateOpen, openScript, id, []string{keys.packet, keys.shares, keys.staged}, offset, chunk)
		if err != nil {
			return redisError("open packet "+id, err)
		}
		outcome, err := text(reply, 0)
		if err != nil {
			return fmt.Errorf("open packet %s: %w", id, err)
		}
		loaded, err := number(reply, 1)
		if err != nil {
			return fmt.Errorf("open packet %s: %w", id, err)
		}
		switch {
		case outcome == "done":
			return nil
		case outcome == "gone":
			return fmt.Errorf("open packet %s: %w", id, ErrGone)
		case outcome == "excess" || int(loaded) >= len(shares):
			return fmt.Errorf("open packet %s: %w: %d shares given, %d loaded: not the number of the packet", id, ErrMalformed, len(shares), loaded)
		}
		offset = int(loaded)
		if progress != nil {
			progress(offset)
		}
	}
}

// Reject ends a packet whose charge was declined. A repeat changes nothing; the first
// failure stays.
//
// Errors: ErrGone, ErrState when it is not funding, ErrUnavailable.
func (p *Pool) Reject(ctx context.Context, id string, failure packet.Failure) error {
	keys, err := p.keysOf(id)
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(failure)
	if err != nil {
		return fmt.Errorf("encode failure of packet %s: %w", id, err)
	}
	reply, err := p.runWrite(ctx, failpoint.RejectPool, rejectScript, id, []string{keys.packet, keys.staged}, encoded)
	if err != nil {
		return redisError("reject packet "+id, err)
	}
	return outcomeError("reject packet "+id, reply)
}

// outcomeError converts a reply {done|gone|state, state} into an error.
func outcomeError(op string, reply []any) error {
	outcome, err := text(reply, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	switch outcome {
	case "done":
		return nil
	case "gone":
		return fmt.Errorf("%s: %w", op, ErrGone)
	}
	state, err := text(reply, 1)
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return fmt.Errorf("%s: %w", op, &StateError{State: packet.PoolState(state)})
}
