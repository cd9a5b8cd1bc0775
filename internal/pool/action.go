package pool

import (
	"context"

	"hongbao/internal/failpoint"
)

// StoreAction stores the sealed client data with which a packet's sender pays; nil withdraws it for good.
//
// Errors: ErrGone, ErrState when it is not funding or the data was withdrawn, ErrUnavailable.
func (p *Pool) StoreAction(ctx context.Context, id string, sealed []byte) error {
	keys, err := p.keysOf(id)
	if err != nil {
		return err
	}
	reply, err := p.runWrite(ctx, failpoint.PoolAction, actionScript, id, []string{keys.packet}, sealed)
	if err != nil {
		return redisError("store the client data of packet "+id, err)
	}
	return outcomeError("store the client data of packet "+id, reply)
}
