package pool

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/packet"
)

// What a rebuild reads behind a gate that is shut (rule R9): whatever Redis has of the
// lane, which may be older than what was told, or nothing.

// LivePageUnfenced is LivePage behind a shut gate.
//
// Errors: ErrUnavailable.
func (p *Pool) LivePageUnfenced(ctx context.Context, lane int, from time.Time, limit int) ([]LivePacket, error) {
	if lane < 0 || lane >= p.cfg.Lanes {
		return nil, fmt.Errorf("lane %d of %d", lane, p.cfg.Lanes)
	}
	span := &redis.ZRangeBy{Min: "-inf", Max: "+inf", Count: int64(limit)}
	if !from.IsZero() {
		span.Min = strconv.FormatInt(from.UnixMilli(), 10)
	}
	found, err := p.rdb.ZRangeByScoreWithScores(ctx, p.keys.live(lane), span).Result()
	if err != nil {
		return nil, redisError("remains of lane "+strconv.Itoa(lane), err)
	}
	live := make([]LivePacket, len(found))
	for i, z := range found {
		id, _ := z.Member.(string)
		live[i] = LivePacket{ID: id, CreatedAt: fromMs(int64(z.Score))}
	}
	return live, nil
}

// Remains is Views behind a shut gate; what cannot be read is missing.
//
// Errors: ErrUnavailable.
func (p *Pool) ViewsUnfenced(ctx context.Context, ids []string) (map[string]packet.PoolView, error) {
	found := make([]*redis.MapStringStringCmd, len(ids))
	_, err := p.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, id := range ids {
			found[i] = pipe.HGetAll(ctx, p.keys.of(id).packet)
		}
		return nil
	})
	if err != nil && !isReply(err) {
		return nil, redisError("remains of packets", err)
	}
	views := make(map[string]packet.PoolView, len(ids))
	for i, id := range ids {
		h := &packetHash{now: time.Now(), fields: found[i].Val()}
		if view, err := h.view(id); err == nil && len(h.fields) > 0 {
			views[id] = view
		}
	}
	return views, nil
}

// EligibleUnfenced is Eligible behind a shut gate; what cannot be read is missing.
//
// Errors: ErrUnavailable.
func (p *Pool) EligibleUnfenced(ctx context.Context, id string) ([]string, error) {
	keys, err := p.keysOf(id)
	if err != nil {
		return nil, nil //nolint:nilerr // what cannot exist has no list
	}
	users, err := p.rdb.SMembers(ctx, keys.eligible).Result()
	if err != nil && !isReply(err) {
		return nil, redisError("remaining eligible users of packet "+id, err)
	}
	slices.Sort(users)
	return users, nil
}

// EachClaimUnfenced is Claims behind a shut gate, some at a time and in no order: a
// claim may be told twice. It ends with the first error of tell. Records that cannot
// be read are left out.
//
// Errors: ErrUnavailable, and what tell returns.
func (p *Pool) EachClaimUnfenced(ctx context.Context, id string, tell func([]packet.Claim) error) error {
	keys, err := p.keysOf(id)
	if err != nil {
		return nil //nolint:nilerr // what cannot exist has no claims
	}
	for cursor := uint64(0); ; {
		pairs, next, err := p.rdb.HScan(ctx, keys.winners, cursor, "", scanCount).Result()
		if err != nil {
			return redisError("remaining claims of packet "+id, err)
		}
		claims := make([]packet.Claim, 0, len(pairs)/2)
		for i := 0; i+1 < len(pairs); i += 2 {
			if c, err := packet.DecodeClaim(id, pairs[i], pairs[i+1]); err == nil {
				claims = append(claims, c)
			}
		}
		if err := tell(claims); err != nil {
			return err
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}
