package pool

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
)

// indexChunk is the number of claims after which one call of index.lua ends: about a
// millisecond in which Redis serves no other call.
const indexChunk = 500

// indexClaims indexes the claims of a lane's hand-offs by user, up to the hand-off upTo, or
// up to the newest one when upTo is empty. Grabs and reads by user leave this to the removal
// of a hand-off (Ack) or a packet (Retire): it costs about as much as a grab.
//
// Errors: ErrUnavailable, ErrMalformed.
func (p *Pool) indexClaims(ctx context.Context, lane int, upTo string) error {
	keys := []string{p.keys.handoff(lane), p.keys.claimed(lane), p.keys.listed(lane)}
	for {
		reply, err := indexScript.Run(ctx, p.rdb, keys, indexChunk).Slice()
		if err != nil {
			return redisError("index claims of lane "+strconv.Itoa(lane), err)
		}
		listed, newest, err := decodeListed(reply)
		if err != nil {
			return fmt.Errorf("index claims of lane %d: %w", lane, err)
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
