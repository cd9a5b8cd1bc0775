package rebuild

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"hongbao/activities"
	"hongbao/internal/fence"
	"hongbao/internal/packet"
	"hongbao/internal/pause"
	"hongbao/internal/reconcile"
)

const (
	// rebuildLook is the pause between two checks of a wait.
	rebuildLook = 100 * time.Millisecond
	// livePage is the number of live packets that are read at once.
	livePage = 500
)

// claimed identifies the claims of a user of a packet.
type claimed struct{ packetID, user string }

// drain waits until everything that the lane holds is recorded (rule R11). The relays continue
// with hand-offs; then winners and staged packets follow whose hand-offs were lost. It adds what
// it waited for to waited. It returns the number of hand-offs that this process still relays
// because Temporal does not accept them.
func (r *Rebuilder) drain(ctx context.Context, b *fence.Rebuild, waited map[claimed]bool) (left int, err error) {
	if left, err = r.drainHandoffs(ctx, b.Lane); err != nil {
		return left, err
	}
	missing, failed := map[claimed]int{}, map[claimed]payoutStart{}
	var staged []string
	err = r.eachLive(ctx, b.Lane, func(views map[string]packet.PoolView, rows map[string]packet.RowState) error {
		for id, view := range views {
			if _, recorded := rows[id]; !recorded && !view.Retired {
				if _, err := r.cfg.Runs.RestartPacket(ctx, view.Packet); activities.StoreUnavailable(err) {
					return err
				} else if err != nil { // it does not delay the others, and has no claims yet
					r.cfg.Logger.ErrorContext(ctx, "Staged packet not started.", slog.String("packet_id", id), slog.Any("error", err))
					continue
				}
				staged = append(staged, id)
			}
			if err := r.restartPayouts(ctx, id, view, missing, failed); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return left, err
	}
	for c := range missing {
		waited[c] = true
	}
	for _, id := range staged {
		waited[claimed{packetID: id}] = true
	}
	return left, r.awaitRecorded(ctx, *b, missing, staged, failed)
}

// drainHandoffs waits until the lane's hand-offs have reached Temporal. If some do not for a long
// time although Temporal answers, the rebuild reads their claims from Redis instead. One
// permanently rejected hand-off must not keep the lane closed. It returns how many this process
// still relays.
func (r *Rebuilder) drainHandoffs(ctx context.Context, lane int) (left int, err error) {
	var before [2]int
	loggedAt, moved, asked := time.Now(), time.Now(), time.Now()
	for {
		waiting, _, err := r.cfg.Backlog.Depth(ctx, lane)
		if err != nil {
			return 0, err
		}
		underway := r.cfg.Underway(lane)
		if waiting == 0 && underway == 0 {
			return 0, nil
		}
		if now := [2]int{waiting, underway}; now != before {
			before, moved = now, time.Now()
		}
		if time.Since(asked) >= temporalLook {
			asked = time.Now()
			if _, _, err := r.runs.list(ctx); err != nil {
				moved = time.Now() // Temporal is unavailable: hand-offs wait for it
			}
		}
		attrs := []slog.Attr{slog.Int("lane", lane), slog.Int("left", waiting), slog.Int("underway", underway)}
		if time.Since(moved) >= r.cfg.Pace.Patience {
			r.cfg.Logger.LogAttrs(ctx, slog.LevelError, "Rebuild continues without hand-offs that Temporal does not accept.", attrs...)
			return underway, nil
		}
		r.logWaiting(ctx, &loggedAt, "Rebuild waits for hand-offs to reach Temporal.", attrs...)
		if !pause.For(ctx, rebuildLook) {
			return underway, ctx.Err()
		}
	}
}

// temporalLook is the interval at which a rebuild that waits for hand-offs checks that Temporal
// answers.
const temporalLook = time.Second

// rebuildLogEvery is the interval at which a waiting rebuild logs the reason.
const rebuildLogEvery = 10 * time.Second

// logWaiting logs the reason of a wait at intervals. loggedAt is the time of the last line, or
// the start of the wait.
func (r *Rebuilder) logWaiting(ctx context.Context, loggedAt *time.Time, what string, attrs ...slog.Attr) {
	if time.Since(*loggedAt) < rebuildLogEvery {
		return
	}
	*loggedAt = time.Now()
	r.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, what, attrs...)
}

// eachLive calls do with the packets of a lane in Redis and their rows, page by page.
func (r *Rebuilder) eachLive(ctx context.Context, lane int, do func(map[string]packet.PoolView, map[string]packet.RowState) error) error {
	return reconcile.LivePackets(r.cfg.Pools.LivePageUnfenced, lane, livePage).Each(ctx, func(live []packet.LivePacket) error {
		ids := reconcile.ValidIDs(live)
		views, err := r.cfg.Pools.ViewsUnfenced(ctx, ids)
		if err != nil {
			return err
		}
		rows, err := r.cfg.Rows.PacketStates(ctx, ids)
		if err != nil {
			return err
		}
		return do(views, rows)
	})
}

// payoutStart starts the payout of a claim. It is repeatable.
type payoutStart func(ctx context.Context) error

// restartPayouts starts the payouts of a packet's winners without a row. It adds the claims to missing, and
// those whose start failed to failed.
func (r *Rebuilder) restartPayouts(ctx context.Context, id string, view packet.PoolView, missing map[claimed]int,
	failed map[claimed]payoutStart) error {
	if view.Retired {
		return nil
	}
	from := reconcile.Unfenced{Pools: r.cfg.Pools}
	return reconcile.Unrecorded(ctx, from, r.cfg.Rows, reconcile.Normal, id, func(repairs []reconcile.Repair) error {
		for _, repair := range repairs {
			c := claimed{repair.Claim.PacketID, repair.Claim.UserID}
			start := func(ctx context.Context) error {
				_, err := activities.RepairClaim(ctx, r.cfg.Runs, r.cfg.Rows, repair, view.Packet.App)
				return err
			}
			if err := start(ctx); activities.StoreUnavailable(err) {
				return err
			} else if err != nil { // it does not delay the others, and is awaited like them
				r.cfg.Logger.ErrorContext(ctx, "Payout of a claim not started; it is retried.", slog.String("packet_id", id),
					slog.Int("share_index", repair.Claim.ShareIndex), slog.Any("error", err))
				failed[c] = start
			}
			missing[c] = repair.Claim.ShareIndex
		}
		return nil
	})
}

// retryStarts starts the payouts of missing claims whose start failed. It reports whether one was started.
func (r *Rebuilder) retryStarts(ctx context.Context, missing map[claimed]int, failed map[claimed]payoutStart) (started bool, err error) {
	for c, start := range failed {
		if _, still := missing[c]; still {
			if err := start(ctx); activities.StoreUnavailable(err) {
				return started, err
			} else if err != nil {
				continue
			}
			started = true
		}
		delete(failed, c)
	}
	return started, nil
}

// awaitRuns waits until every started run of the lane's packets is recorded. Claims that Redis
// lost may be in Temporal, or still with another process's relay. It repeats until nothing new
// has appeared for Pace.Settle. left is the number of hand-offs that this process may keep
// relaying.
func (r *Rebuilder) awaitRuns(ctx context.Context, b *fence.Rebuild, waited map[claimed]bool, left int) error {
	quiet, loggedAt := time.Now(), time.Now()
	for {
		runs, looked, err := r.runs.list(ctx)
		if err != nil {
			return err
		}
		missing := map[claimed]int{}
		var packets []string
		for _, id := range runs {
			kind, rest, _ := strings.Cut(id, "/")
			packetID, user, _ := strings.Cut(rest, "/")
			switch {
			case !packet.ValidID(packetID), packet.Lane(packetID, r.cfg.Lanes) != b.Lane:
			case kind == "packet":
				if !waited[claimed{packetID, ""}] {
					packets = append(packets, packetID)
				}
			case kind == "payout" && !waited[claimed{packetID, user}]:
				missing[claimed{packetID, user}] = reconcile.AnyShare
			}
		}
		seen := slices.Collect(maps.Keys(missing))
		for _, id := range packets {
			seen = append(seen, claimed{packetID: id})
		}
		fresh, err := r.dropRecorded(ctx, missing, packets)
		if err != nil {
			return err
		}
		if fresh {
			if err := r.awaitRecorded(ctx, *b, missing, packets, nil); err != nil {
				return err
			}
			quiet = time.Now()
		}
		for _, c := range seen {
			waited[c] = true
		}
		underway := r.cfg.Underway(b.Lane)
		// The time when the list began: a long list takes time, and does not cover it.
		if looked.Sub(quiet) >= r.cfg.Pace.Settle && underway <= left {
			return nil
		}
		r.logWaiting(ctx, &loggedAt, "Rebuild waits until every run is recorded in MySQL.",
			slog.Int("lane", b.Lane), slog.Int("runs", len(runs)), slog.Duration("quiet", time.Since(quiet)), slog.Int("underway", underway))
		wait := r.cfg.Pace.Settle / 8
		if time.Since(looked) > wait { // a long list: the next one begins when it may be the last
			wait = max(wait, r.cfg.Pace.Settle-time.Since(quiet))
		}
		if !pause.For(ctx, wait) {
			return ctx.Err()
		}
	}
}

// dropRecorded removes recorded claims from missing, and reports whether claims are left or a
// packet has no row.
func (r *Rebuilder) dropRecorded(ctx context.Context, missing map[claimed]int, packets []string) (bool, error) {
	claims := map[string][]packet.Claim{}
	for c, share := range missing {
		claims[c.packetID] = append(claims[c.packetID], packet.Claim{PacketID: c.packetID, UserID: c.user, ShareIndex: share})
	}
	clear(missing)
	for id, all := range claims {
		err := reconcile.DiffClaims(ctx, r.cfg.Rows, reconcile.Normal, id, all, func(left []reconcile.Repair) error {
			for _, l := range left {
				missing[claimed{id, l.Claim.UserID}] = l.Claim.ShareIndex
			}
			return nil
		})
		if err != nil {
			return false, err
		}
	}
	for some := range slices.Chunk(packets, comparePackets) {
		rows, err := r.cfg.Rows.PacketStates(ctx, some)
		if err != nil {
			return false, err
		}
		if len(rows) < len(some) {
			return true, nil
		}
	}
	return len(missing) > 0, nil
}

// comparePackets is the number of packets that one query of MySQL compares.
const comparePackets = 500

// stagedTimeout bounds the wait for packets without a row. They are not charged before they have
// one; a packet that gets it later is staged again by its app.
const stagedTimeout = 10 * time.Second

// startRetry is the pause before a payout that could not be started is started again.
const startRetry = time.Second

// awaitRecorded returns once claims and packets are recorded, or the wait times out. While claims
// are recorded, however slowly, the wait continues: a lane rebuilt without the others would deal
// their shares again. It repeats the starts in failed.
func (r *Rebuilder) awaitRecorded(ctx context.Context, b fence.Rebuild, missing map[claimed]int, packets []string,
	failed map[claimed]payoutStart) error {
	began := time.Now()
	loggedAt, moved, retried := began, began, began
	for {
		before := len(missing)
		left, err := r.dropRecorded(ctx, missing, packets)
		if err != nil || !left {
			return err
		}
		if len(missing) < before {
			moved = time.Now()
		}
		if time.Since(retried) >= startRetry {
			started, err := r.retryStarts(ctx, missing, failed)
			if err != nil {
				return err
			}
			if retried = time.Now(); started {
				moved = retried
			}
		}
		if time.Since(began) >= stagedTimeout && len(missing) == 0 || time.Since(moved) >= r.cfg.Pace.Patience {
			r.cfg.Logger.WarnContext(ctx, "Rebuild continues without claims or packets that are not recorded in MySQL.",
				slog.Int("lane", b.Lane), slog.Int("claims", len(missing)))
			return nil
		}
		r.logWaiting(ctx, &loggedAt, "Rebuild waits for claims or packets to be recorded in MySQL.",
			slog.Int("lane", b.Lane), slog.Int("claims", len(missing)), slog.Int("packets", len(packets)))
		if !pause.For(ctx, rebuildLook) {
			return ctx.Err()
		}
	}
}

const (
	// runsFresh is the maximum age of a list of runs, which concurrent rebuilds share.
	runsFresh = 250 * time.Millisecond
	// packetRuns is the age up to which packet runs are read. Older ones have written their row
	// long ago if they can, even if this machine's clock is ten minutes ahead of Temporal's.
	packetRuns = 20 * time.Minute
)

// openRuns caches the ids of Temporal's open runs.
type openRuns struct {
	from Runs
	mu   sync.Mutex
	at   time.Time
	ids  []string
}

// list returns the ids, and when the list that found them began. A caller that waited for another
// lane's list uses its result if that began after the call.
func (o *openRuns) list(ctx context.Context) (ids []string, at time.Time, err error) {
	asked := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if asked.Sub(o.at) < runsFresh {
		return o.ids, o.at, nil
	}
	now := time.Now()
	ids, err = o.from.OpenRuns(ctx, now.Add(-packetRuns))
	if err != nil {
		return nil, at, err
	}
	o.at, o.ids = now, ids
	return ids, now, nil
}
