package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/packet"
)

// scanCount is the number of elements in one step of a scan: well under a millisecond of
// Redis' time.
const scanCount = 1_000

// Claim returns the claim of one user, and whether there is one.
//
// Errors: ErrUnavailable, packet.ErrBadClaim.
func (p *Pool) Claim(ctx context.Context, id, user string) (packet.Claim, bool, error) {
	c, found, _, err := p.LiveClaim(ctx, id, user)
	return c, found, err
}

// LiveClaim is Claim, and reports whether the packet is in the pool and not retired. Then a
// claim that is not found exists nowhere.
//
// Errors: ErrUnavailable, packet.ErrBadClaim.
func (p *Pool) LiveClaim(ctx context.Context, id, user string) (c packet.Claim, found, alive bool, err error) {
	keys, err := p.keysOf(id)
	if err != nil {
		return packet.Claim{}, false, false, nil //nolint:nilerr // an invalid id has no claims
	}
	var record *redis.StringCmd
	var state *redis.SliceCmd
	_, err = p.readFenced(ctx, p.laneOf(id), func(pipe redis.Pipeliner) {
		record = pipe.HGet(ctx, keys.winners, user)
		state = pipe.HMGet(ctx, keys.packet, "state", "retired")
	})
	if err != nil {
		return packet.Claim{}, false, false, fmt.Errorf("claim of packet %s: %w", id, err)
	}
	fields, err := state.Result()
	if err != nil {
		return packet.Claim{}, false, false, redisError("claim of packet "+id, err)
	}
	alive = len(fields) == 2 && fields[0] != nil && fields[1] == nil
	text, err := record.Result()
	switch {
	case errors.Is(err, redis.Nil):
		return packet.Claim{}, false, alive, nil
	case err != nil:
		return packet.Claim{}, false, false, redisError("claim of packet "+id, err)
	}
	c, err = packet.DecodeClaim(id, user, text)
	return c, err == nil, alive, err
}

// IsGuest reports whether a user is on a packet's guest list.
//
// Errors: ErrUnavailable.
func (p *Pool) IsGuest(ctx context.Context, id, user string) (bool, error) {
	keys, err := p.keysOf(id)
	if err != nil {
		return false, nil //nolint:nilerr // an invalid id has no guests
	}
	var found *redis.BoolSliceCmd
	_, err = p.readFenced(ctx, p.laneOf(id), func(pipe redis.Pipeliner) { found = pipe.SMIsMember(ctx, keys.eligible, user) })
	if err != nil {
		return false, fmt.Errorf("guests of packet %s: %w", id, err)
	}
	guest, err := found.Result()
	return len(guest) == 1 && guest[0], redisError("guests of packet "+id, err)
}

// Claims returns all claims of a packet by share index, with the guarantees of EachClaim. A
// million claims take some hundreds of MiB.
//
// Errors: ErrUnavailable, packet.ErrBadClaim.
func (p *Pool) Claims(ctx context.Context, id string) ([]packet.Claim, error) {
	seen := map[string]packet.Claim{} // a scan may return an element twice
	err := p.EachClaim(ctx, id, func(some []packet.Claim) error {
		for _, c := range some {
			seen[c.UserID] = c
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	claims := make([]packet.Claim, 0, len(seen))
	for _, c := range seen {
		claims = append(claims, c)
	}
	slices.SortFunc(claims, byShare)
	return claims, nil
}

// EachClaim calls visit with all claims of a packet, in batches and in no order: every claim
// made before the call, and perhaps some made during it. A claim may be visited twice. A
// packet that is retired or not in Redis has none. It stops at the first error of visit.
//
// Errors: ErrUnavailable, packet.ErrBadClaim, and errors of visit.
func (p *Pool) EachClaim(ctx context.Context, id string, visit func([]packet.Claim) error) error {
	keys, err := p.keysOf(id)
	if err != nil {
		return nil //nolint:nilerr // an invalid id has no claims
	}
	lane := packet.Lane(id, p.cfg.Lanes)
	at, err := p.checkFence(lane)
	if err != nil {
		return fmt.Errorf("claims of packet %s: %w", id, err)
	}
	for cursor := uint64(0); ; {
		var found *redis.ScanCmd
		if _, err := p.readFenced(ctx, p.laneOf(id),
			func(pipe redis.Pipeliner) { found = pipe.HScan(ctx, keys.winners, cursor, "", scanCount) }); err != nil {
			return fmt.Errorf("claims of packet %s: %w", id, err)
		}
		pairs, next, err := found.Result()
		if err != nil {
			return redisError("claims of packet "+id, err)
		}
		if now, err := p.checkFence(lane); err != nil || now != at {
			return fmt.Errorf("claims of packet %s: the lane was rebuilt during the scan: %w", id, ErrFenced) // a scan of two epochs
		}
		if err := p.checkReplicated(ctx, lane, ""); err != nil { // the caller starts payouts for them
			return redisError("claims of packet "+id, err)
		}
		some := make([]packet.Claim, len(pairs)/2)
		for i := range some {
			if some[i], err = packet.DecodeClaim(id, pairs[2*i], pairs[2*i+1]); err != nil {
				return err
			}
		}
		if err := visit(some); err != nil {
			return err
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

func byShare(a, b packet.Claim) int { return cmp.Compare(a.ShareIndex, b.ShareIndex) }

// WinnersCount returns the number of winners of a packet; 0 when it is retired or not in
// Redis.
//
// Errors: ErrUnavailable.
func (p *Pool) WinnersCount(ctx context.Context, id string) (int, error) {
	keys, err := p.keysOf(id)
	if err != nil {
		return 0, nil //nolint:nilerr // an invalid id has no winners
	}
	var n *redis.IntCmd
	if _, err := p.readFenced(ctx, p.laneOf(id), func(pipe redis.Pipeliner) { n = pipe.HLen(ctx, keys.winners) }); err != nil {
		return 0, fmt.Errorf("winners of packet %s: %w", id, err)
	}
	return int(n.Val()), redisError("winners of packet "+id, n.Err())
}

// Eligible returns the user ids that may grab a packet, in byte order; none when every user
// may, or when the packet is retired or not in Redis.
//
// Errors: ErrUnavailable.
func (p *Pool) Eligible(ctx context.Context, id string) ([]string, error) {
	keys, err := p.keysOf(id)
	if err != nil {
		return nil, nil //nolint:nilerr // an invalid id has no guest list
	}
	var guests *redis.StringSliceCmd
	if _, err := p.readFenced(ctx, p.laneOf(id), func(pipe redis.Pipeliner) { guests = pipe.SMembers(ctx, keys.eligible) }); err != nil {
		return nil, fmt.Errorf("eligible users of packet %s: %w", id, err)
	}
	users, err := guests.Result()
	if err != nil {
		return nil, redisError("eligible users of packet "+id, err)
	}
	slices.Sort(users)
	return users, nil
}

// LivePage returns up to limit packets of a lane that are not retired, created at or after
// the given time, oldest first (R11). The cost does not grow with the lane.
//
// Errors: ErrUnavailable.
func (p *Pool) LivePage(ctx context.Context, lane int, from time.Time, limit int) ([]packet.LivePacket, error) {
	if lane < 0 || lane >= p.cfg.Lanes {
		return nil, fmt.Errorf("lane %d of %d", lane, p.cfg.Lanes)
	}
	span := &redis.ZRangeBy{Min: "-inf", Max: "+inf", Count: int64(limit)}
	if !from.IsZero() {
		span.Min = strconv.FormatInt(from.UnixMilli(), 10)
	}
	var page *redis.ZSliceCmd
	if _, err := p.readFenced(ctx, []int{lane},
		func(pipe redis.Pipeliner) { page = pipe.ZRangeByScoreWithScores(ctx, p.keys.live(lane), span) }); err != nil {
		return nil, fmt.Errorf("live packets: %w", err)
	}
	found, err := page.Result()
	if err != nil {
		return nil, redisError("live packets", err)
	}
	live := make([]packet.LivePacket, len(found))
	for i, z := range found {
		id, _ := z.Member.(string)
		live[i] = packet.LivePacket{ID: id, CreatedAt: fromMs(int64(z.Score))}
	}
	return live, nil
}
