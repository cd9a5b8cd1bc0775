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

// Reads without the fence, for a rebuild and a recovery: whatever Redis has of a
// lane, which may be older than what was acknowledged, or nothing.

// LivePageUnfenced is LivePage without the fence.
//
// Errors: ErrUnavailable.
func (p *Pool) LivePageUnfenced(ctx context.Context, lane int, from time.Time, limit int) ([]packet.LivePacket, error) {
	if lane < 0 || lane >= p.cfg.Lanes {
		return nil, fmt.Errorf("lane %d of %d", lane, p.cfg.Lanes)
	}
	span := &redis.ZRangeBy{Min: "-inf", Max: "+inf", Count: int64(limit)}
	if !from.IsZero() {
		span.Min = strconv.FormatInt(from.UnixMilli(), 10)
	}
	found, err := p.rdb.ZRangeByScoreWithScores(ctx, p.keys.live(lane), span).Result()
	if err != nil {
		return nil, redisError("read live packets of lane "+strconv.Itoa(lane), err)
	}
	live := make([]packet.LivePacket, len(found))
	for i, z := range found {
		id, _ := z.Member.(string)
		live[i] = packet.LivePacket{ID: id, CreatedAt: fromMs(int64(z.Score))}
	}
	return live, nil
}

// EligibleUnfenced is Eligible without the fence; an unreadable list is empty.
//
// Errors: ErrUnavailable.
func (p *Pool) EligibleUnfenced(ctx context.Context, id string) ([]string, error) {
	keys, err := p.keysOf(id)
	if err != nil {
		return nil, nil //nolint:nilerr // an invalid id has no guest list
	}
	users, err := p.rdb.SMembers(ctx, keys.eligible).Result()
	if err != nil && !isReply(err) {
		return nil, redisError("eligible users of packet "+id, err)
	}
	slices.Sort(users)
	return users, nil
}

// EachClaimUnfenced is EachClaim without the fence. A claim may be visited twice. It stops
// at the first error of visit, and skips unreadable records.
//
// Errors: ErrUnavailable, and errors of visit.
func (p *Pool) EachClaimUnfenced(ctx context.Context, id string, visit func([]packet.Claim) error) error {
	keys, err := p.keysOf(id)
	if err != nil {
		return nil //nolint:nilerr // an invalid id has no claims
	}
	for cursor := uint64(0); ; {
		pairs, next, err := p.rdb.HScan(ctx, keys.winners, cursor, "", scanCount).Result()
		if err != nil {
			return redisError("claims of packet "+id, err)
		}
		claims := make([]packet.Claim, 0, len(pairs)/2)
		for i := 0; i+1 < len(pairs); i += 2 {
			if c, err := packet.DecodeClaim(id, pairs[i], pairs[i+1]); err == nil {
				claims = append(claims, c)
			}
		}
		if err := visit(claims); err != nil {
			return err
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}
