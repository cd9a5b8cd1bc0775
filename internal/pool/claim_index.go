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

// indexChunk is the number of claims after which one call of index.lua ends: about a
// millisecond in which Redis serves no other call.
const indexChunk = 500

// indexClaims indexes the claims of a lane's hand-offs by user, up to the hand-off upTo, or
// up to the newest one when upTo is empty. Grabs leave this to reads by user (UserClaims)
// and to the removal of a hand-off (Ack) or a packet (Retire): it costs about as much as a
// grab. It returns the number of indexed claims of the lane.
//
// Errors: ErrUnavailable, ErrMalformed.
func (p *Pool) indexClaims(ctx context.Context, lane int, upTo string) (total int64, err error) {
	keys := []string{p.keys.handoff(lane), p.keys.claimed(lane), p.keys.listed(lane)}
	for {
		reply, err := indexScript.Run(ctx, p.rdb, keys, indexChunk).Slice()
		if err != nil {
			return 0, redisError("index claims of lane "+strconv.Itoa(lane), err)
		}
		listed, newest, total, err := decodeListed(reply)
		if err != nil {
			return 0, fmt.Errorf("index claims of lane %d: %w", lane, err)
		}
		if upTo == "" {
			upTo = newest
		}
		if listed == newest || compareEntryIDs(listed, upTo) >= 0 {
			return total, nil
		}
	}
}

func decodeListed(reply []any) (listed, newest string, total int64, err error) {
	if listed, err = text(reply, 0); err != nil {
		return "", "", 0, err
	}
	if newest, err = text(reply, 1); err != nil {
		return "", "", 0, err
	}
	total, err = number(reply, 2)
	return listed, newest, total, err
}

// indexLanes is indexClaims for some lanes, up to their newest hand-offs.
func (p *Pool) indexLanes(ctx context.Context, lanes []int) (total []int64, err error) {
	cmds := make([]*redis.Cmd, len(lanes))
	_, err = p.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, lane := range lanes {
			cmds[i] = indexScript.EvalSha(ctx, pipe, []string{p.keys.handoff(lane), p.keys.claimed(lane), p.keys.listed(lane)}, indexChunk)
		}
		return nil
	})
	if err != nil && !redis.HasErrorPrefix(err, "NOSCRIPT") {
		return nil, redisError("index claims", err)
	}
	total, errs := make([]int64, len(cmds)), make([]error, len(cmds))
	var wg sync.WaitGroup
	for i, cmd := range cmds {
		upTo := "" // the call failed, or Redis lost the script
		if reply, err := cmd.Slice(); err == nil {
			listed, newest, n, err := decodeListed(reply)
			if err != nil || listed == newest {
				total[i], errs[i] = n, err
				continue
			}
			upTo = newest
		}
		wg.Go(func() { total[i], errs[i] = p.indexClaims(ctx, lanes[i], upTo) })
	}
	wg.Wait()
	return total, errors.Join(errs...)
}

// compareEntryIDs compares ids of stream entries, "<ms>-<number>", by age.
func compareEntryIDs(a, b string) int {
	ams, an := entryID(a)
	bms, bn := entryID(b)
	return cmp.Or(cmp.Compare(ams, bms), cmp.Compare(an, bn))
}

// entryID parses an id; an invalid id is the oldest.
func entryID(id string) (ms, n uint64) {
	first, second, _ := strings.Cut(id, "-")
	ms, _ = strconv.ParseUint(first, 10, 64)
	n, _ = strconv.ParseUint(second, 10, 64)
	return ms, n
}
