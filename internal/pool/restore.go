package pool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

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
	return p.restoreCalls(ctx, "clear lane "+strconv.Itoa(lane), []restoreCall{p.clearCall(lane, epoch, keys)})
}

func (p *Pool) clearCall(lane int, epoch int64, keys []string) restoreCall {
	return restoreCall{clearScript, append([]string{p.keys.epoch(lane)}, keys...), []any{epoch}}
}

// restoreCall is one call of a script that a rebuild makes. It can be repeated.
type restoreCall struct {
	script *redis.Script
	keys   []string
	args   []any
}

// restoreCalls makes calls of one lane in order, in one pipeline. Errors: ErrFenced, ErrUnavailable, ErrTorn.
func (p *Pool) restoreCalls(ctx context.Context, what string, calls []restoreCall) error {
	replies := make([]*redis.Cmd, len(calls))
	_, err := p.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, c := range calls {
			replies[i] = c.script.EvalSha(ctx, pipe, c.keys, c.args...)
		}
		return nil
	})
	if redis.HasErrorPrefix(err, "NOSCRIPT") { // Redis lost the scripts. All again: the order matters
		for i, c := range calls {
			replies[i] = c.script.Run(ctx, p.rdb, c.keys, c.args...)
		}
	}
	for i, c := range calls {
		done, err := replies[i].Int()
		if err != nil {
			return redisError(what, err)
		}
		if done == 0 && c.script == restoreScript {
			return fmt.Errorf("%s: a list has another length: %w", what, ErrTorn)
		}
	}
	return nil
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
	f.calls = []restoreCall{p.clearCall(lane, epoch, []string{keys.packet, keys.shares, keys.winners, keys.eligible, keys.order})}
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

// packetRestore is the restore of one packet.
type packetRestore struct {
	pool     *Pool
	keys     packetKeys
	epochKey string
	epoch    int64
	packet   packet.RebuildInput

	free         int // free shares
	claims       claimedField
	luckiest     packet.Claim
	withoutShare map[string]packet.Claim // claims without a share by user, not yet found among the shares

	calls []restoreCall // not made yet
	size  int           // elements and shares in them
}

// write adds elements to a key; before is the number of elements in a list, or of bytes in a string, which
// is one element. Calls are made together, when they have enough elements.
func (f *packetRestore) write(ctx context.Context, key, kind string, before int, elements []any) error {
	for from := 0; from < len(elements); from += 2 * restorePart { // even: pairs stay together
		part := elements[from:min(from+2*restorePart, len(elements))]
		f.calls = append(f.calls, restoreCall{restoreScript, []string{f.epochKey, key}, append([]any{f.epoch, kind, before + from, 0}, part...)})
		if f.size += len(part); f.size >= 2*restorePart {
			if err := f.flush(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *packetRestore) flush(ctx context.Context) error {
	calls := f.calls
	f.calls, f.size = nil, 0
	return f.pool.restoreCalls(ctx, "write the pool", calls)
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
		record, err := claimRecord(*s.Claim, restoredMark)
		if err != nil {
			return err
		}
		c := s.Claim
		f.count(*c)
		delete(f.withoutShare, c.UserID) // a claim with a share wins
		winners = append(winners, c.UserID, record)
		members = append(members, 0, memberPrefix(f.packet.App, c.UserID)+memberSuffix(c.ClaimedAt.UnixMilli(), c.PacketID))
		order = append(order, c.UserID)
	}
	f.size += len(shares)
	if len(free) > 0 && f.packet.Stored == packet.StatusOpen { // a closing packet needs no free shares
		if err := f.write(ctx, f.keys.shares, kindString, packet.ShareLen*(f.packet.ClaimedCount+f.free), []any{free}); err != nil {
			return err
		}
	}
	if err := f.write(ctx, f.keys.winners, kindHash, 0, winners); err != nil {
		return err
	}
	if err := f.write(ctx, f.keys.order, kindList, int(f.claims.count)-len(order), order); err != nil {
		return err
	}
	f.free += len(free) / packet.ShareLen
	return f.write(ctx, f.keys.claimed, kindZset, 0, members)
}

// count adds a claim to what the packet's key says about its claims.
func (f *packetRestore) count(c packet.Claim) {
	f.claims.count++
	f.claims.amount += int64(c.Amount)
	f.claims.lastAt = max(f.claims.lastAt, c.ClaimedAt.UnixMilli())
	if f.claims.count == 1 || packet.Luckier(c, f.luckiest) {
		f.luckiest, f.claims.best, f.claims.bestAmount = c, int64(c.ShareIndex), int64(c.Amount)
	}
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
	claimed := int(f.claims.count)
	shares := f.free + claimed
	opened := r.Stored != packet.StatusFunding && shares > 0 // a packet that closes unopened has no shares
	if claimed != r.ClaimedCount || opened && shares != r.ShareCount || r.Stored == packet.StatusOpen && !opened {
		return fmt.Errorf("%d claims and %d free shares, the record counts %d of %d: %w", claimed, f.free, r.ClaimedCount, r.ShareCount,
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
	fields, err := packetFields(r, f.claims)
	if err != nil {
		return err
	}
	if err := f.write(ctx, f.keys.packet, kindHash, 0, fields); err != nil {
		return err
	}
	return f.flush(ctx)
}

// poolStates maps row statuses to pool states.
var poolStates = map[packet.Status]packet.PoolState{
	packet.StatusFunding: packet.PoolFunding, packet.StatusOpen: packet.PoolOpen, packet.StatusClosing: packet.PoolClosing,
}

// packetFields returns the fields of a packet's key, as the scripts would have written them.
func packetFields(r packet.RebuildInput, claims claimedField) ([]any, error) {
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
	fields := []any{
		"id", r.ID, "app", r.App, "sender", r.SenderID, "state", string(state), "packet", encoded, "body_hash", r.BodyHash,
		"share_count", r.ShareCount, "claimed", claims.String(), "restricted", restricted,
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
