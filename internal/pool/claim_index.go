package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// indexChunk is how many claims one call of list.lua lists, give or take the claims
// of one hand-off: about a millisecond in which Redis serves nobody else.
const indexChunk = 500

// indexClaims lists the claims of a lane's hand-offs by user, up to the hand-off with
// the id upTo, or up to the one that is the newest now when upTo is empty. Grabs
// leave this to whoever reads the lists (UserClaims), removes a hand-off (Ack) or a
// packet (Retire): it costs about as much as a grab, and no grabber waits for it. It
// returns how many claims the lane has in its list.
//
// Errors: ErrUnavailable, ErrMalformed.
func (p *Pool) indexClaims(ctx context.Context, lane int, upTo string) (left int64, err error) {
	keys := []string{p.keys.handoff(lane), p.keys.claimed(lane), p.keys.listed(lane)}
	for {
		reply, err := indexScript.Run(ctx, p.rdb, keys, indexChunk).Slice()
		if err != nil {
			return 0, redisError("list claims of lane "+strconv.Itoa(lane), err)
		}
		listed, newest, left, err := decodeListed(reply)
		if err != nil {
			return 0, fmt.Errorf("list claims of lane %d: %w", lane, err)
		}
		if upTo == "" {
			upTo = newest
		}
		if listed == newest || compareEntryIDs(listed, upTo) >= 0 {
			return left, nil
		}
	}
}

func decodeListed(reply []any) (listed, newest string, left int64, err error) {
	if listed, err = text(reply, 0); err != nil {
		return "", "", 0, err
	}
	if newest, err = text(reply, 1); err != nil {
		return "", "", 0, err
	}
	left, err = number(reply, 2)
	return listed, newest, left, err
}

// indexLanes does the same for some lanes, up to what is the newest now.
func (p *Pool) indexLanes(ctx context.Context, lanes []int) (left []int64, err error) {
	cmds := make([]*redis.Cmd, len(lanes))
	_, err = p.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, lane := range lanes {
			cmds[i] = indexScript.EvalSha(ctx, pipe, []string{p.keys.handoff(lane), p.keys.claimed(lane), p.keys.listed(lane)}, indexChunk)
		}
		return nil
	})
	if err != nil && !redis.HasErrorPrefix(err, "NOSCRIPT") {
		return nil, redisError("list claims", err)
	}
	left, errs := make([]int64, len(cmds)), make([]error, len(cmds))
	var wg sync.WaitGroup
	for i, cmd := range cmds {
		upTo := "" // of a lane that was not asked, or has forgotten the script
		if reply, err := cmd.Slice(); err == nil {
			listed, newest, n, err := decodeListed(reply)
			if err != nil || listed == newest {
				left[i], errs[i] = n, err
				continue
			}
			upTo = newest
		}
		wg.Go(func() { left[i], errs[i] = p.indexClaims(ctx, lanes[i], upTo) })
	}
	wg.Wait()
	return left, errors.Join(errs...)
}

// compareEntryIDs compares ids of stream entries, "<ms>-<number>", by age.
func compareEntryIDs(a, b string) int {
	ams, an := entryID(a)
	bms, bn := entryID(b)
	return cmp.Or(cmp.Compare(ams, bms), cmp.Compare(an, bn))
}

// entryID takes an id apart; what is none is older than all.
func entryID(id string) (ms, n uint64) {
	first, second, _ := strings.Cut(id, "-")
	ms, _ = strconv.ParseUint(first, 10, 64)
	n, _ = strconv.ParseUint(second, 10, 64)
	return ms, n
}
