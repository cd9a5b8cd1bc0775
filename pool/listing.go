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

// listChunk is how many claims one call of list.lua lists, give or take the claims
// of one hand-off: about a millisecond in which Redis serves nobody else.
const listChunk = 500

// listClaims lists the claims of a lane's hand-offs by user, up to the hand-off with
// the id upTo, or up to the one that is the newest now when upTo is empty. Grabs
// leave this to whoever reads the lists (UserClaims), removes a hand-off (Ack) or a
// packet (Retire): it costs about as much as a grab, and no grabber waits for it.
//
// Errors: ErrUnavailable, ErrMalformed.
func (p *Pool) listClaims(ctx context.Context, lane int, upTo string) error {
	keys := []string{p.keys.handoff(lane), p.keys.claimed(lane), p.keys.listed(lane)}
	for {
		reply, err := listScript.Run(ctx, p.rdb, keys, listChunk).Slice()
		if err != nil {
			return redisError("list claims of lane "+strconv.Itoa(lane), err)
		}
		listed, newest, err := decodeListed(reply)
		if err != nil {
			return fmt.Errorf("list claims of lane %d: %w", lane, err)
		}
		if upTo == "" {
			upTo = newest
		}
		if listed == newest || compareEntryIDs(listed, upTo) >= 0 {
			return nil
		}
	}
}

func decodeListed(reply []any) (listed, newest string, err error) {
	if listed, err = text(reply, 0); err != nil {
		return "", "", err
	}
	newest, err = text(reply, 1)
	return listed, newest, err
}

// listAllClaims does the same for every lane, up to what is the newest now.
func (p *Pool) listAllClaims(ctx context.Context) error {
	cmds := make([]*redis.Cmd, p.cfg.Lanes)
	_, err := p.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for lane := range cmds {
			cmds[lane] = listScript.EvalSha(ctx, pipe, []string{p.keys.handoff(lane), p.keys.claimed(lane), p.keys.listed(lane)}, listChunk)
		}
		return nil
	})
	if err != nil && !redis.HasErrorPrefix(err, "NOSCRIPT") {
		return redisError("list claims", err)
	}
	errs := make([]error, len(cmds))
	var wg sync.WaitGroup
	for lane, cmd := range cmds {
		upTo := "" // of a lane that was not asked, or has forgotten the script
		if reply, err := cmd.Slice(); err == nil {
			listed, newest, err := decodeListed(reply)
			if err != nil || listed == newest {
				errs[lane] = err
				continue
			}
			upTo = newest
		}
		wg.Go(func() { errs[lane] = p.listClaims(ctx, lane, upTo) })
	}
	wg.Wait()
	return errors.Join(errs...)
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
