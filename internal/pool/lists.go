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

// UserClaims returns up to limit claims of a user in packets of an app that are not
// retired, newest first, after the given position. Pages together contain every claim that
// was made before the call and is not in MySQL yet.
//
// Errors: ErrUnavailable, ErrMalformed, packet.ErrBadClaim.
func (p *Pool) UserClaims(ctx context.Context, app, user string, after packet.Cursor, limit int) ([]packet.Claim, error) {
	if err := p.CheckFences(ctx); err != nil {
		return nil, fmt.Errorf("claims of a user: %w", err)
	}
	for range userClaimsTries {
		claims, complete, err := p.userClaims(ctx, app, user, after, limit)
		if err != nil || complete {
			return claims, err
		}
	}
	return nil, fmt.Errorf("claims of a user: index and winners disagree: %w", ErrUnavailable)
}

// userClaimsTries is far more than the packets of one user that are retired within a
// millisecond.
const userClaimsTries = 5

// userClaims is one attempt of UserClaims. It is incomplete when a packet was retired during
// the read; then its entry is gone from the index, and a retry progresses.
func (p *Pool) userClaims(ctx context.Context, app, user string, after packet.Cursor, limit int) (claims []packet.Claim, complete bool,
	err error) {
	of := search{app: app, user: strings.Clone(user), after: after, limit: limit} // the search may run after the caller returned
	found, err := p.searches.get(ctx, of)
	if err != nil {
		return nil, false, fmt.Errorf("claims of a user: %w", err)
	}
	entries := found[of]
	records := make([]*redis.StringCmd, len(entries))
	_, err = p.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, at := range entries {
			records[i] = pipe.HGet(ctx, p.keys.of(at.ID).winners, user)
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, false, redisError("claims of a user", err)
	}
	for i, at := range entries {
		record, err := records[i].Result()
		if errors.Is(err, redis.Nil) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, redisError("claims of a user", err)
		}
		c, err := packet.DecodeClaim(at.ID, user, record)
		if err != nil {
			return nil, false, err
		}
		claims = append(claims, c)
	}
	return claims, true, nil
}

// Staged returns up to limit packets of some apps, or of one sender in them when sender is
// not empty, newest first, after the given position. Pages together contain every packet
// that was created before the call and is not in MySQL yet; the others are being funded.
//
// Errors: ErrUnavailable, ErrMalformed.
func (p *Pool) Staged(ctx context.Context, apps []string, sender string, after packet.Cursor, limit int) ([]packet.Cursor, error) {
	if err := p.CheckFences(ctx); err != nil {
		return nil, fmt.Errorf("staged packets: %w", err)
	}
	sender = strings.Clone(sender) // the search may run after the caller returned
	searches := make([]search, len(apps))
	for i, app := range apps {
		searches[i] = search{staged: true, app: app, user: sender, after: after, limit: limit}
	}
	found, err := p.searches.get(ctx, searches...)
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
// from the map. Concurrent callers share the reads.
//
// Errors: ErrUnavailable, ErrMalformed.
func (p *Pool) Views(ctx context.Context, ids []string) (map[string]packet.PoolView, error) {
	views := make(map[string]packet.PoolView, len(ids))
	if len(ids) == 0 {
		return views, nil
	}
	for _, id := range ids {
		if _, err := p.checkFence(packet.Lane(id, p.cfg.Lanes)); err != nil { // other lanes may be closed
			return nil, fmt.Errorf("view packets: %w", err)
		}
	}
	seen, err := p.views.get(ctx, ids...)
	if err != nil {
		return nil, fmt.Errorf("view packets: %w", err)
	}
	for _, id := range ids {
		switch v := seen[id]; {
		case v.err == nil:
			views[id] = v.view
		case !errors.Is(v.err, ErrNotFound):
			return nil, v.err
		}
	}
	return views, nil
}

// viewResult is the result for one packet of a shared read.
type viewResult struct {
	view packet.PoolView
	err  error
}

// viewPause is the maximum pause between two shared reads of views.
const viewPause = 5 * time.Millisecond

func newViews(p *Pool) *coalescer[string, viewResult] {
	return &coalescer[string, viewResult]{base: p.base, pause: viewPause,
		read: func(ctx context.Context, ids []string) (map[string]viewResult, error) {
			return p.viewAll(ctx, ids), nil
		}}
}

func (p *Pool) viewAll(ctx context.Context, ids []string) map[string]viewResult {
	seen := make(map[string]viewResult, len(ids))
	replies := make([]*redis.Cmd, len(ids))
	at := make([]*positionTracker, len(ids))
	for i, id := range ids {
		s, err := p.checkFence(packet.Lane(id, p.cfg.Lanes))
		if err != nil {
			seen[id] = viewResult{err: fmt.Errorf("view packets: %w", err)}
		}
		at[i] = s
	}
	_, _ = p.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error { // each command keeps its error
		for i, id := range ids {
			if at[i] != nil {
				k := p.keys.of(id)
				replies[i] = viewScript.EvalSha(ctx, pipe, []string{k.epoch, k.packet}, token(at[i].position(), p.process))
			}
		}
		return nil
	})
	for i, id := range ids {
		if at[i] == nil {
			continue
		}
		_ = p.closeIfFenced(packet.Lane(id, p.cfg.Lanes), at[i], replies[i].Err())
		view, err := p.viewOf(ctx, id, replies[i])
		seen[id] = viewResult{view, err}
	}
	return seen
}

// viewOf decodes one reply of a pipeline of view.lua. When Redis lost the script, it reads
// the packet again.
func (p *Pool) viewOf(ctx context.Context, id string, cmd *redis.Cmd) (packet.PoolView, error) {
	if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
		return p.View(ctx, id)
	}
	reply, err := cmd.Slice()
	if err != nil {
		return packet.PoolView{}, redisError("view packet "+id, err)
	}
	return decodeView(id, reply)
}
