package pool

import (
	"context"
	"slices"

	"hongbao/internal/packet"
)

// tombstoneBatch is the number of tombstones in one pipeline.
const tombstoneBatch = 500

// RestoreTombstones writes tombstones of packets of a lane, while its fence is closed in the
// given epoch. An existing tombstone or pool stays.
//
// Errors: ErrFenced, ErrUnavailable.
func (p *Pool) RestoreTombstones(ctx context.Context, lane int, epoch int64, tombstones []packet.Tombstone) error {
	return p.writeTombstones(ctx, lane, epoch, kindTombstone, tombstones)
}

// ReplaceByTombstones writes tombstones in place of existing pools, atomically for each
// packet.
func (p *Pool) ReplaceByTombstones(ctx context.Context, lane int, epoch int64, tombstones []packet.Tombstone) error {
	return p.writeTombstones(ctx, lane, epoch, kindRetired, tombstones)
}

func (p *Pool) writeTombstones(ctx context.Context, lane int, epoch int64, kind string, tombstones []packet.Tombstone) error {
	for some := range slices.Chunk(tombstones, tombstoneBatch) {
		calls := make([]restoreCall, len(some))
		for i, s := range some {
			fields, err := withFirst([]any{"retired", "1", "state", string(s.State), "body_hash", s.BodyHash, "app", s.App}, s.First)
			if err != nil {
				return err
			}
			calls[i] = restoreCall{restoreScript, []string{p.keys.epoch(lane), p.keys.of(s.ID).packet},
				append([]any{epoch, kind, 0, s.Until.UnixMilli()}, fields...)}
		}
		if err := p.restoreCalls(ctx, "restore tombstones", calls); err != nil {
			return err
		}
	}
	return nil
}
