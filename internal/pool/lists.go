package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/packet"
)

var pageScript = newScript("page")

// ClaimsPage returns up to limit claims of a packet, newest first: of its first upTo claims,
// or of all when upTo is negative. made is the number of claims up to the first returned
// one: the next page has upTo = made - number of returned claims. The cost does not grow
// with the packet.
//
// Errors: ErrGone (no such pool, or retired), ErrUnavailable, ErrMalformed,
// packet.ErrBadClaim.
func (p *Pool) ClaimsPage(ctx context.Context, id string, upTo, limit int) (claims []packet.Claim, made int, err error) {
	keys, err := p.keysOf(id)
	if err != nil {
		return nil, 0, err
	}
	newest := ""
	if upTo >= 0 {
		newest = strconv.Itoa(upTo)
	}
	reply, err := p.runRead(ctx, pageScript, id, []string{keys.packet, keys.order, keys.winners}, newest, limit)
	if err != nil {
		return nil, 0, redisError("claims of packet "+id, err)
	}
	outcome, err := text(reply, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("claims of packet %s: %w", id, err)
	}
	if outcome == "gone" {
		return nil, 0, fmt.Errorf("claims of packet %s: %w", id, ErrGone)
	}
	first, err := number(reply, 1)
	if err != nil {
		return nil, 0, fmt.Errorf("claims of packet %s: %w", id, err)
	}
	flat, err := list(reply, 2)
	if err != nil {
		return nil, 0, fmt.Errorf("claims of packet %s: %w", id, err)
	}
	for i := 0; i+1 < len(flat); i += 2 {
		user, err := text(flat, i)
		if err != nil {
			return nil, 0, fmt.Errorf("claims of packet %s: %w", id, err)
		}
		record, err := text(flat, i+1)
		if err != nil {
			return nil, 0, fmt.Errorf("claims of packet %s: %w", id, err)
		}
		c, err := packet.DecodeClaim(id, user, record)
		if err != nil {
			return nil, 0, err
		}
		claims = append(claims, c)
	}
	return claims, int(first), nil
}

// ClaimPlaces returns the places of up to limit claims of a user in packets of an app, newest first,
// after the given position. Pages together contain every claim that was made before the call and is
// not in MySQL yet, and others that are.
//
// Errors: ErrUnavailable, ErrMalformed.
func (p *Pool) ClaimPlaces(ctx context.Context, app, user string, after packet.Cursor, limit int) ([]packet.Cursor, error) {
	of := search{app: app, user: strings.Clone(user), after: after, limit: limit} // the search may run after the caller returned
	found, err := p.search(ctx, of)
	if err != nil {
		return nil, fmt.Errorf("claims of a user: %w", err)
	}
	return found[of], nil
}

// search runs searches, of lanes whose fences are open before and after them.
func (p *Pool) search(ctx context.Context, searches ...search) (map[search][]packet.Cursor, error) {
	if err := p.CheckFences(ctx); err != nil {
		return nil, err
	}
	found, err := p.searches.get(ctx, searches...)
	return found, errors.Join(err, p.CheckFences(ctx))
}

// ClaimsOf returns the claims of a user in some packets by packet; those of retired packets are missing.
//
// Errors: ErrUnavailable, packet.ErrBadClaim.
func (p *Pool) ClaimsOf(ctx context.Context, user string, ids []string) (map[string]packet.Claim, error) {
	claims := make(map[string]packet.Claim, len(ids))
	if len(ids) == 0 {
		return claims, nil
	}
	records := make([]*redis.StringCmd, len(ids))
	_, _ = p.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error { // each command keeps its error
		for i, id := range ids {
			records[i] = pipe.HGet(ctx, p.keys.of(id).winners, user)
		}
		return nil
	})
	for i, id := range ids {
		record, err := records[i].Result()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err != nil {
			return nil, redisError("claims of a user", err)
		}
		if claims[id], err = packet.DecodeClaim(id, user, record); err != nil {
			return nil, err
		}
	}
	return claims, nil
}

// Staged returns up to limit packets of some apps, or of one sender in them when sender is
// not empty, newest first, after the given position. Pages together contain every packet
// that was created before the call and is not in MySQL yet; the others are being funded.
//
// Errors: ErrUnavailable, ErrMalformed.
func (p *Pool) Staged(ctx context.Context, apps []string, sender string, after packet.Cursor, limit int) ([]packet.Cursor, error) {
	sender = strings.Clone(sender) // the search may run after the caller returned
	searches := make([]search, len(apps))
	for i, app := range apps {
		searches[i] = search{staged: true, app: app, user: sender, after: after, limit: limit}
	}
	found, err := p.search(ctx, searches...)
	if err != nil {
		return nil, fmt.Errorf("staged packets: %w", err)
	}
	var all []packet.Cursor
	for _, of := range searches {
		all = append(all, found[of]...)
	}
	slices.SortFunc(all, packet.Cursor.Compare)
	return all[:min(limit, len(all))], nil
}

// StagedCounts counts the packets that wait for their charge, of an app and of one sender in it. Lanes that do
// not answer count as empty. The cost does not grow with the packets.
func (p *Pool) StagedCounts(ctx context.Context, app, sender string) (ofApp, ofSender int) {
	prefixes := []string{memberPrefix(app, ""), memberPrefix(app, sender)}
	counts := make([][]*redis.IntCmd, len(prefixes))
	_, _ = p.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error { // each command keeps its error
		for lane := range p.cfg.Lanes {
			for i, prefix := range prefixes {
				counts[i] = append(counts[i], pipe.ZLexCount(ctx, p.keys.staged(lane), "["+prefix, "("+prefix[:len(prefix)-1]+"\x01"))
			}
		}
		return nil
	})
	for lane := range p.cfg.Lanes {
		ofApp, ofSender = ofApp+int(counts[0][lane].Val()), ofSender+int(counts[1][lane].Val())
	}
	return ofApp, ofSender
}

// parseMemberSuffix parses the result of memberSuffix.
func parseMemberSuffix(s string) (packet.Cursor, error) {
	at, id, ok := strings.Cut(s, "\x00")
	ms, err := strconv.ParseInt(at, 10, 64)
	if !ok || err != nil || !packet.ValidID(id) {
		return packet.Cursor{}, fmt.Errorf("%w: index entry %q", ErrMalformed, s)
	}
	return packet.Cursor{At: fromMs(ms), ID: id}, nil
}

// Views returns packets as they are in Redis, tombstones too; missing packets are missing
// from the map. Now is the time of this process.
//
// Errors: ErrUnavailable, ErrMalformed.
func (p *Pool) Views(ctx context.Context, ids []string) (map[string]packet.PoolView, error) {
	if len(ids) == 0 {
		return map[string]packet.PoolView{}, nil
	}
	found := make([]*redis.MapStringStringCmd, len(ids))
	if _, err := p.readFenced(ctx, p.lanesOf(ids), func(pipe redis.Pipeliner) {
		for i, id := range ids {
			found[i] = pipe.HGetAll(ctx, p.keys.of(id).packet)
		}
	}); err != nil {
		return nil, fmt.Errorf("view packets: %w", err)
	}
	views := make(map[string]packet.PoolView, len(ids))
	for i, id := range ids {
		fields, err := found[i].Result()
		if err != nil {
			return nil, redisError("view packet "+id, err)
		}
		if len(fields) == 0 {
			continue
		}
		h := &packetHash{now: time.Now(), fields: fields}
		if views[id], err = h.view(id); err != nil {
			return nil, err
		}
	}
	return views, nil
}

// lanesOf returns the lanes of some packets, each once.
func (p *Pool) lanesOf(ids []string) []int {
	lanes := make([]int, len(ids))
	for i, id := range ids {
		lanes[i] = packet.Lane(id, p.cfg.Lanes)
	}
	slices.Sort(lanes)
	return slices.Compact(lanes)
}

// progressFields are the fields of a packet that change while users grab, and its number of shares.
var progressFields = []string{"state", "retired", "share_count", "claimed", "reason"}

// Progress returns what changes of packets while users grab, for lists that know the rest: views
// without Now whose Packet has only the id. Missing packets are missing from the map. Concurrent
// callers share the reads. It trusts the fences as the process knows them.
//
// Errors: ErrUnavailable, ErrMalformed.
func (p *Pool) Progress(ctx context.Context, ids []string) (map[string]packet.PoolView, error) {
	views := make(map[string]packet.PoolView, len(ids))
	if len(ids) == 0 {
		return views, nil
	}
	err := p.checkFencesOf(ids)
	if err != nil {
		return nil, fmt.Errorf("progress of packets: %w", err)
	}
	seen, err := p.progress.get(ctx, ids...)
	if err = errors.Join(err, p.checkFencesOf(ids)); err != nil {
		return nil, fmt.Errorf("progress of packets: %w", err)
	}
	for _, id := range ids {
		switch v, found := seen[id]; {
		case v.err != nil:
			return nil, v.err
		case found:
			views[id] = v.view
		}
	}
	return views, nil
}

// checkFencesOf checks the fences of the lanes of some packets; those of other lanes may be closed.
func (p *Pool) checkFencesOf(ids []string) error {
	for _, id := range ids {
		if _, err := p.checkFence(packet.Lane(id, p.cfg.Lanes)); err != nil {
			return err
		}
	}
	return nil
}

// progressResult is the result for one packet of a shared read.
type progressResult struct {
	view packet.PoolView
	err  error
}

// progressPause is the maximum pause between two shared reads of progress.
const progressPause = 5 * time.Millisecond

func newProgress(p *Pool) *coalescer[string, progressResult] {
	return &coalescer[string, progressResult]{base: p.base, pause: progressPause, read: p.readProgress}
}

func (p *Pool) readProgress(ctx context.Context, ids []string) (map[string]progressResult, error) {
	found := make([]*redis.SliceCmd, len(ids))
	_, _ = p.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error { // each command keeps its error
		for i, id := range ids {
			found[i] = pipe.HMGet(ctx, p.keys.of(id).packet, progressFields...)
		}
		return nil
	})
	seen := make(map[string]progressResult, len(ids))
	for i, id := range ids {
		values, err := found[i].Result()
		if err != nil {
			seen[id] = progressResult{err: redisError("progress of packet "+id, err)}
			continue
		}
		h := &packetHash{fields: map[string]string{}}
		for j, name := range progressFields[:len(values)] {
			if text, ok := values[j].(string); ok {
				h.fields[name] = text
			}
		}
		if len(h.fields) > 0 {
			view := h.progress(id)
			seen[id] = progressResult{view, h.failed(id)}
		}
	}
	return seen, nil
}
