package pool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/money"
	"hongbao/internal/packet"
)

var (
	restoreScript = newScript("restore")
	clearScript   = newScript("clear")
)

const (
	// restorePart is the number of elements that one call of restore.lua writes: some
	// milliseconds in which Redis serves no other call.
	restorePart = 5_000
	// clearPackets is the number of packets that one call of clear.lua removes.
	clearPackets = 200
	// tombstoneBatch is the number of tombstones in one pipeline.
	tombstoneBatch = 500
	// restoredMark replaces the call's mark in a restored claim record, conflictMark in one without a
	// share.
	restoredMark = "restored"
	conflictMark = "conflict"
)

// The kinds of keys that restore.lua writes.
const (
	kindHash      = "hash"
	kindList      = "list"
	kindSet       = "set"
	kindZset      = "zset"
	kindString    = "string"
	kindTombstone = "tombstone"
	kindRetired   = "retired"
)

// ErrTorn is returned when rows of a packet change while its pool is restored. Repeat the call.
var ErrTorn = errors.New("rows changed during the restore")

// ClearLane removes every pool of a lane whose fence is closed in the given epoch, except
// tombstones, which never change, and hand-offs. The packet keys in keep stay. visit, when
// not nil, is called with the ids of the packets before they are removed, in batches. It
// returns the number of packets.
//
// Errors: ErrFenced (the fence is not closed in this epoch), ErrUnavailable, and errors of
// visit.
func (p *Pool) ClearLane(ctx context.Context, lane int, epoch int64, keep map[string]bool, visit func(ids []string) error) (int, error) {
	if lane < 0 || lane >= p.cfg.Lanes {
		return 0, fmt.Errorf("lane %d of %d", lane, p.cfg.Lanes)
	}
	n := 0
	for {
		ids, err := p.rdb.ZRange(ctx, p.keys.live(lane), int64(n), int64(n+clearPackets-1)).Result()
		if err != nil {
			return n, redisError("live packets", err)
		}
		if len(ids) == 0 {
			break
		}
		if visit != nil {
			if err := visit(ids); err != nil {
				return n, err
			}
		}
		var keys []string
		for _, id := range ids {
			if packet.ValidID(id) {
				k := p.keys.of(id)
				keys = append(keys, k.shares, k.winners, k.eligible, k.order)
				if !keep[id] {
					keys = append(keys, k.packet)
				}
			}
		}
		if err := p.clear(ctx, lane, epoch, keys); err != nil {
			return n, err
		}
		n += len(ids)
	}
	// These keys come last, so that a repeat finds what an interrupted call left.
	return n, p.clear(ctx, lane, epoch, []string{p.keys.live(lane), p.keys.claimed(lane), p.keys.listed(lane), p.keys.staged(lane)})
}

func (p *Pool) clear(ctx context.Context, lane int, epoch int64, keys []string) error {
	err := clearScript.Run(ctx, p.rdb, append([]string{p.keys.epoch(lane)}, keys...), epoch).Err()
	return redisError("clear lane "+strconv.Itoa(lane), err)
}

// Restore replaces the pool of a packet by one made from its rows, while the fence of its
// lane is closed in the given epoch. The state is funding, open or closing, as in the
// row. An open packet whose guest list is lost is closed unopened, and its workflow follows as
// after a recall. after returns the shares after an index, in order, in batches, and none at
// the end; -1 is before all. Memory does not grow with the packet.
//
// Errors: ErrFenced, ErrUnavailable, ErrTorn when the shares differ from the row's counts,
// and errors of after. After an error the call has to be repeated.
func (p *Pool) Restore(ctx context.Context, epoch int64, r packet.RebuildInput, after func(index int) ([]packet.Share, error)) error {
	keys, err := p.keysOf(r.ID)
	if err != nil {
		return err
	}
	if r.Stored == packet.StatusOpen && r.EligibleListLost() {
		r.Stored, r.Reason = packet.StatusClosing, packet.CloseUnopened
	}
	lane := packet.Lane(r.ID, p.cfg.Lanes)
	f := &packetRestore{pool: p, keys: keys, epochKey: p.keys.epoch(lane), epoch: epoch, packet: r,
		withoutShare: map[string]packet.Claim{}}
	for _, c := range r.ShareConflicts {
		f.withoutShare[c.UserID] = c
	}
	if err := p.clear(ctx, lane, epoch, []string{keys.packet, keys.shares, keys.winners, keys.eligible, keys.order}); err != nil {
		return err
	}
	if err := f.writeHeader(ctx); err != nil {
		return fmt.Errorf("restore packet %s: %w", r.ID, err)
	}
	for index := -1; ; {
		shares, err := after(index)
		if err != nil {
			return err
		}
		if len(shares) == 0 {
			break
		}
		for len(shares) > 0 {
			some := shares[:min(restorePart, len(shares))]
			shares, index = shares[len(some):], some[len(some)-1].Index
			if err := f.writeShares(ctx, some); err != nil {
				return fmt.Errorf("restore packet %s: %w", r.ID, err)
			}
		}
	}
	if err := f.finish(ctx); err != nil {
		return fmt.Errorf("restore packet %s: %w", r.ID, err)
	}
	return nil
}

func best(r packet.RebuildInput) int {
	if r.BestShare == nil {
		return 0
	}
	return *r.BestShare
}

// packetRestore is the restore of one packet.
type packetRestore struct {
	pool     *Pool
	keys     packetKeys
	epochKey string
	epoch    int64
	packet   packet.RebuildInput

	free, claimed int // free shares, claims in winners
	sum           money.Fen
	withoutShare  map[string]packet.Claim // claims without a share by user, not yet found among the shares
}

// write adds elements to a key; before is the number of elements in a list, or of bytes in a string, which
// is one element.
func (f *packetRestore) write(ctx context.Context, key, kind string, before int, elements []any) error {
	for from := 0; from < len(elements); from += 2 * restorePart { // even: pairs stay together
		part := elements[from:min(from+2*restorePart, len(elements))]
		args := append([]any{f.epoch, kind, before + from, 0}, part...)
		done, err := restoreScript.Run(ctx, f.pool.rdb, []string{f.epochKey, key}, args...).Int()
		if err != nil {
			return redisError("write "+key, err)
		}
		if done != 1 {
			return fmt.Errorf("list %s has another length: %w", key, ErrTorn)
		}
	}
	return nil
}

// writeHeader writes the keys before shares and winners. The entry among the live packets
// comes first: ClearLane finds the other keys by it.
func (f *packetRestore) writeHeader(ctx context.Context) error {
	r := f.packet
	if err := f.write(ctx, f.keys.live, kindZset, 0, []any{r.CreatedAt.UnixMilli(), r.ID}); err != nil {
		return err
	}
	if r.Stored == packet.StatusFunding {
		at := memberSuffix(r.CreatedAt.UnixMilli(), r.ID)
		members := []any{0, memberPrefix(r.App, "") + at, 0, memberPrefix(r.App, r.SenderID) + at}
		if err := f.write(ctx, f.keys.staged, kindZset, 0, members); err != nil {
			return err
		}
	}
	guests := make([]any, len(r.Eligible))
	for i, user := range r.Eligible {
		guests[i] = user
	}
	return f.write(ctx, f.keys.eligible, kindSet, 0, guests)
}

// writeShares writes some shares: claimed ones to the winners, free ones to the packed shares. There the
// claimed ones come first, as zero bytes: nobody reads them.
func (f *packetRestore) writeShares(ctx context.Context, shares []packet.Share) error {
	var winners, members, order []any
	var free []byte
	for _, s := range shares {
		if s.Claim == nil {
			free = packet.AppendShare(free, s.Index, s.Amount)
			continue
		}
		f.sum += s.Amount
		record, err := claimRecord(*s.Claim, restoredMark)
		if err != nil {
			return err
		}
		c := s.Claim
		delete(f.withoutShare, c.UserID) // a claim with a share wins
		winners = append(winners, c.UserID, record)
		members = append(members, 0, memberPrefix(f.packet.App, c.UserID)+memberSuffix(c.ClaimedAt.UnixMilli(), c.PacketID))
		order = append(order, c.UserID)
	}
	if len(free) > 0 && f.packet.Stored == packet.StatusOpen { // a closing packet needs no free shares
		if err := f.write(ctx, f.keys.shares, kindString, packet.ShareLen*(f.packet.ClaimedCount+f.free), []any{free}); err != nil {
			return err
		}
	}
	if err := f.write(ctx, f.keys.winners, kindHash, 0, winners); err != nil {
		return err
	}
	if err := f.write(ctx, f.keys.order, kindList, f.claimed, order); err != nil {
		return err
	}
	if err := f.write(ctx, f.keys.claimed, kindZset, 0, members); err != nil {
		return err
	}
	f.free, f.claimed = f.free+len(free)/packet.ShareLen, f.claimed+len(order)
	return nil
}

// claimRecord returns a claim record as grab.lua writes it.
func claimRecord(c packet.Claim, mark string) (string, error) {
	profile := ""
	if c.Profile != (packet.Profile{}) {
		encoded, err := json.Marshal(c.Profile)
		if err != nil {
			return "", fmt.Errorf("encode profile: %w", err)
		}
		profile = string(encoded)
	}
	return fmt.Sprintf("%d:%d:%d:%s:%s", c.ShareIndex, c.Amount, c.ClaimedAt.UnixMilli(), mark, profile), nil
}

// finish compares the shares with the row's counts, and writes the packet's hash.
func (f *packetRestore) finish(ctx context.Context) error {
	r := f.packet
	shares := f.free + f.claimed
	opened := r.Stored != packet.StatusFunding && shares > 0 // a packet that closes unopened has no shares
	if f.claimed != r.ClaimedCount || f.sum != r.ClaimedAmount || opened && shares != r.ShareCount || r.Stored == packet.StatusOpen &&
		!opened {
		return fmt.Errorf("%d claims and %d free shares, the record counts %d of %d: %w", f.claimed, f.free, r.ClaimedCount, r.ShareCount,
			ErrTorn)
	}
	var records []any // of users without a share
	for _, c := range f.withoutShare {
		record, err := claimRecord(c, conflictMark)
		if err != nil {
			return err
		}
		records = append(records, c.UserID, record)
	}
	if err := f.write(ctx, f.keys.winners, kindHash, 0, records); err != nil {
		return err
	}
	fields, err := packetFields(r)
	if err != nil {
		return err
	}
	return f.write(ctx, f.keys.packet, kindHash, 0, fields)
}

// poolStates maps row statuses to pool states.
var poolStates = map[packet.Status]packet.PoolState{
	packet.StatusFunding: packet.PoolFunding, packet.StatusOpen: packet.PoolOpen, packet.StatusClosing: packet.PoolClosing,
}

// packetFields returns the fields of a packet's key, as the scripts would have written them.
func packetFields(r packet.RebuildInput) ([]any, error) {
	state, ok := poolStates[r.Stored]
	if !ok {
		return nil, fmt.Errorf("a packet that is %s has no pool", r.Stored)
	}
	static := r.Packet
	static.CreatedAt, static.OpensAt, static.ExpiresAt = time.Time{}, time.Time{}, time.Time{}
	encoded, err := json.Marshal(static)
	if err != nil {
		return nil, fmt.Errorf("encode packet: %w", err)
	}
	restricted := "0"
	if r.EligibleCount > 0 {
		restricted = "1"
	}
	var claimed claimedField
	if r.ClaimedCount > 0 {
		claimed = claimedField{int64(r.ClaimedCount), int64(r.ClaimedAmount), int64(best(r)), int64(r.BestAmount), r.LastClaimedAt.UnixMilli()}
	}
	fields := []any{
		"id", r.ID, "app", r.App, "sender", r.SenderID, "state", string(state), "packet", encoded, "body_hash", r.BodyHash,
		"share_count", r.ShareCount, "claimed", claimed.String(), "restricted", restricted,
		"created_at", r.CreatedAt.UnixMilli(), "opens_at", r.OpensAt.UnixMilli(), "expires_at", r.ExpiresAt.UnixMilli(),
		// No request is busy with the packet: the next one takes over.
		"busy_until", r.CreatedAt.UnixMilli(), "holder", "",
	}
	if state == packet.PoolClosing {
		fields = append(fields, "reason", string(r.Reason))
	}
	if r.OneWin {
		fields = append(fields, "wins_until", r.ExpiresAt.Add(packet.WinsKept).UnixMilli())
	}
	return withFirst(fields, r.First)
}

func withFirst(fields []any, first *packet.FirstAnswer) ([]any, error) {
	if first == nil {
		return fields, nil
	}
	encoded, err := json.Marshal(first)
	if err != nil {
		return nil, fmt.Errorf("encode first answer: %w", err)
	}
	return append(fields, "first", encoded), nil
}

// RestoreWins adds users to the winners of a campaign, while the fence of its lane is closed
// in the given epoch. campaign is its id, or that of one of its packets. The wins count at
// least until the given time.
//
// Errors: ErrFenced, ErrUnavailable.
func (p *Pool) RestoreWins(ctx context.Context, epoch int64, campaign string, users []string, until time.Time) error {
	keys, err := p.keysOf(campaign)
	if err != nil {
		return err
	}
	args := []any{epoch, kindSet, 0, until.UnixMilli()}
	for _, user := range users {
		args = append(args, user)
	}
	err = restoreScript.Run(ctx, p.rdb, []string{p.keys.epoch(packet.Lane(campaign, p.cfg.Lanes)), keys.wins}, args...).Err()
	return redisError("wins of campaign "+campaign, err)
}

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
	epochKey := p.keys.epoch(lane)
	for len(tombstones) > 0 {
		some := tombstones[:min(tombstoneBatch, len(tombstones))]
		tombstones = tombstones[len(some):]
		args := make([][]any, len(some))
		for i, s := range some {
			fields, err := withFirst([]any{"retired", "1", "state", string(s.State), "body_hash", s.BodyHash, "app", s.App}, s.First)
			if err != nil {
				return err
			}
			args[i] = append([]any{epoch, kind, 0, s.Until.UnixMilli()}, fields...)
		}
		replies := make([]*redis.Cmd, len(some))
		_, err := p.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i, s := range some {
				replies[i] = restoreScript.EvalSha(ctx, pipe, []string{epochKey, p.keys.of(s.ID).packet}, args[i]...)
			}
			return nil
		})
		if err != nil && !redis.HasErrorPrefix(err, "NOSCRIPT") {
			return redisError("restore tombstones", err)
		}
		for i, s := range some { // Redis lost the script: send it again with its source
			if redis.HasErrorPrefix(replies[i].Err(), "NOSCRIPT") {
				replies[i] = restoreScript.Run(ctx, p.rdb, []string{epochKey, p.keys.of(s.ID).packet}, args[i]...)
			}
			if err := replies[i].Err(); err != nil {
				return redisError("restore tombstones", err)
			}
		}
	}
	return nil
}
