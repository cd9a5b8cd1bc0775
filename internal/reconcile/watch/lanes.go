package watch

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"hongbao/activities"
	"hongbao/internal/fence"
	"hongbao/internal/packet"
	"hongbao/internal/reconcile"
)

const (
	// lanePage is the number of live packets of a lane that one round checks.
	lanePage = 500
	// rejectedKept is how long a rejected packet stays in Redis, so that a repeated
	// create gets its 402 from there.
	rejectedKept = 10 * time.Minute
	// manyWinners is the number of winners from which they are not all compared every round while
	// the relay makes progress: a million cost Redis seconds.
	manyWinners = 10_000
	// relayStuck is the time without a change of the lane's oldest hand-off after which the watch
	// no longer waits for the relay.
	relayStuck = time.Minute
	// maxLanes is the number of lanes that are compared at once.
	maxLanes = 8
	// handoffAfter exceeds the time between a claim and its hand-off in a script.
	handoffAfter = time.Second
)

// laneWatch compares the pools of one lane with MySQL.
type laneWatch struct {
	watch  *Watch
	lane   int
	after  packet.Cursor // where the next page begins
	agreed agreedPackets
	// The oldest hand-off at the last check, and when it was first seen.
	oldest, since time.Time
}

// Backlog returns the hand-offs of a lane that wait for a relay.
type Backlog interface {
	Depth(ctx context.Context, lane int) (entries int, oldest time.Time, err error)
}

// relayBacklogSince returns the time from which claims are left to a relay that makes progress,
// however many they are. It is zero if no hand-off waits or the relay is stuck.
func (l *laneWatch) relayBacklogSince(ctx context.Context) (time.Time, error) {
	if l.watch.cfg.Backlog == nil {
		return time.Time{}, nil
	}
	_, oldest, err := l.watch.cfg.Backlog.Depth(ctx, l.lane)
	if err != nil {
		return time.Time{}, err
	}
	now := time.Now()
	if !oldest.Equal(l.oldest) {
		l.oldest, l.since = oldest, now
	}
	if oldest.IsZero() || now.Sub(l.since) > relayStuck {
		return time.Time{}, nil
	}
	return oldest.Add(-handoffAfter), nil
}

// round compares a page of the lane; now is MySQL's time.
func (l *laneWatch) round(ctx context.Context, now time.Time) (failed error) {
	cfg := l.watch.cfg
	live, err := l.next(ctx)
	if err != nil {
		return err
	}
	var ids []string
	for _, p := range live {
		if now.Sub(p.CreatedAt) > cfg.Pace.Grace {
			ids = append(ids, p.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	epoch, _ := cfg.Pools.Fence(ids[0])
	l.agreed.resetForEpoch(epoch)
	// Pools before rows: the rows are then the later state.
	views, err := cfg.Pools.Views(ctx, ids)
	if err != nil {
		return err
	}
	rows, err := cfg.Store.PacketStates(ctx, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		view, ok := views[id]
		if !ok {
			continue
		}
		row, recorded := rows[id]
		settled := now.Sub(row.UpdatedAt).Abs() > cfg.Pace.Grace
		err := l.compare(ctx, id, view, row, recorded, settled)
		if activities.StoreUnavailable(err) {
			return err
		}
		if err != nil && failed == nil { // it does not delay other packets
			failed = err
		}
	}
	return failed
}

// next reads the following page.
func (l *laneWatch) next(ctx context.Context) (live []packet.LivePacket, err error) {
	if l.after == (packet.Cursor{}) { // the first page
		l.agreed.nextPass()
	}
	live, l.after, err = reconcile.LivePackets(l.watch.cfg.Pools.LivePage, l.lane, lanePage).Page(ctx, l.after)
	return live, err
}

// compare repairs one packet that is older than the grace time. settledRow: so is its row.
func (l *laneWatch) compare(ctx context.Context, id string, view packet.PoolView, row packet.RowState, recorded, settledRow bool) error {
	w, cfg := l.watch, l.watch.cfg
	now := time.Now()
	early := view.State == packet.PoolFunding || view.State == packet.PoolOpening
	switch {
	case view.Retired, row.Stored == packet.StatusClosed:
		// Retiring is the last step; a run may have failed before or during it.
		if row.Stored == packet.StatusClosed && settledRow && w.retryState.allow("retire/"+id, now) {
			if err := cfg.Pools.Retire(ctx, id); err != nil {
				return err
			}
			w.repaired(ctx, RepairUnretired, id)
		}
		return nil
	case !recorded && view.State == packet.PoolFunding, row.Stored == packet.StatusRejected && early && settledRow:
		return l.restage(ctx, id, view)
	case view.State == packet.PoolRejected:
		if view.Now.Sub(view.Packet.CreatedAt) > rejectedKept {
			return cfg.Pools.Retire(ctx, id)
		}
		return nil
	}
	if row.Stored == packet.StatusOpen {
		if err := l.resendClose(ctx, id, view, now); err != nil {
			return err
		}
	}
	if recorded {
		return l.winners(ctx, id, view)
	}
	return nil
}

// restage starts a run for a staged packet without a row, or for a rejected one that Redis still
// has as funding.
func (l *laneWatch) restage(ctx context.Context, id string, view packet.PoolView) error {
	w := l.watch
	if !w.retryState.allow("restage/"+id, time.Now()) {
		return nil
	}
	started, err := w.cfg.Runs.RestartPacket(ctx, view.Packet)
	if err == nil && started {
		w.repaired(ctx, RepairUnrecorded, id)
	}
	return err
}

// resendClose signals a packet's run again that grabbing has ended: a signal to a run that an
// operator ended is lost.
func (l *laneWatch) resendClose(ctx context.Context, id string, view packet.PoolView, now time.Time) error {
	w := l.watch
	reason := view.Reason
	switch {
	case view.State == packet.PoolClosing && reason != "":
	case view.State == packet.PoolOpen && view.RemainingCount == 0:
		reason = packet.CloseSoldOut
	default:
		return nil
	}
	key := "heard/" + id
	if w.retryState.since(key, now) < w.cfg.Pace.Grace || !w.retryState.allow(key, now) {
		return nil
	}
	if err := w.cfg.Runs.SignalClose(ctx, id, reason); err != nil {
		return err
	}
	w.repaired(ctx, RepairCloseSignal, id)
	return nil
}

// winners compares the counts first, then the claims, and starts the missing payouts.
func (l *laneWatch) winners(ctx context.Context, id string, view packet.PoolView) error {
	w, now := l.watch, time.Now()
	if l.agreed.holds(id, view, now) {
		return nil
	}
	counts := reconcile.Counts{First: reconcile.ClaimsFirst, Pool: view.ClaimedCount, Kept: view.KeptCount}
	var err error
	if counts.Shares, counts.Conflicts, err = w.cfg.Store.CountClaims(ctx, id); err != nil {
		return err
	}
	if counts.Shares > counts.Pool {
		if lacks, err := l.poolLacksShares(ctx, id); lacks || err != nil {
			return err
		}
	}
	key, waits := "winners/"+id, "carried/"+id
	if counts.Compare() == reconcile.Agree {
		l.agreed.note(id, view, now)
		w.retryState.clear(key)
		w.retryState.clear(waits)
		return nil
	}
	carried, err := l.relayBacklogSince(ctx)
	if err != nil {
		return err
	}
	switch {
	case carried.IsZero():
		w.retryState.clear(waits)
	case view.ClaimedCount > manyWinners && !w.retryState.allow(waits, now):
		return nil // the relay makes progress: large sets are compared at growing intervals
	}
	if !w.retryState.allow(key, now) {
		return nil
	}
	if counts.Conflicts > 0 {
		if lacks, err := l.poolLacksUsers(ctx, id); lacks || err != nil {
			return err
		}
	}
	found, err := w.startMissingWinners(ctx, id, view, carried)
	if err != nil {
		return err
	}
	if found.missing == 0 {
		l.agreed.note(id, view, now)
	}
	if found.asked == 0 || found.started > 0 {
		w.retryState.clear(key) // only claims that wait in Temporal are retried at growing intervals
	}
	return nil
}

// poolLacksShares checks whether MySQL has more claims of a packet than its pool. Then the pool has
// lost some, and the lane is fenced.
func (l *laneWatch) poolLacksShares(ctx context.Context, id string) (bool, error) {
	cfg := l.watch.cfg
	counts := reconcile.Counts{First: reconcile.RecordedFirst}
	var err error
	if counts.Shares, counts.Conflicts, err = cfg.Store.CountClaims(ctx, id); err != nil {
		return false, err
	}
	counts.Pool, err = cfg.Pools.ClaimedCount(ctx, id)
	switch {
	case errors.Is(err, packet.ErrNotFound): // retired since
		return false, nil
	case err != nil:
		return false, err
	case counts.Compare() != reconcile.Lacks:
		return false, nil
	}
	cfg.Logger.WarnContext(ctx, "Pool lacks claims that MySQL has; fencing its lane.", slog.String("packet_id", id),
		slog.Int("recorded", counts.Shares),
		slog.Int("claimed", counts.Pool))
	return true, cfg.Pools.HaltLane(ctx, l.lane, fence.LanePoolBehind)
}

// poolLacksUsers does the same for a packet with share conflicts, of which the counts prove nothing: each
// user with a claim in MySQL, with or without a share, has one in the pool.
func (l *laneWatch) poolLacksUsers(ctx context.Context, id string) (bool, error) {
	cfg := l.watch.cfg
	users, err := cfg.Store.ClaimUsers(ctx, id)
	if err != nil {
		return false, err
	}
	lacks, err := reconcile.Lacking(ctx, reconcile.Fenced{Pools: cfg.Pools}, reconcile.Normal, id, users)
	if err != nil || len(lacks) == 0 {
		return false, err
	}
	switch _, err := cfg.Pools.ClaimedCount(ctx, id); {
	case errors.Is(err, packet.ErrNotFound): // retired since
		return false, nil
	case err != nil:
		return false, err
	}
	cfg.Logger.WarnContext(ctx, "Pool lacks users whose claims MySQL has; fencing its lane.", slog.String("packet_id", id),
		slog.Int("users", len(lacks)))
	return true, cfg.Pools.HaltLane(ctx, l.lane, fence.LanePoolBehind)
}

// missingResult is the result of comparing the winners of a packet.
type missingResult struct {
	missing int // winners without a row, or not compared
	asked   int // of those, starts requested from Temporal
	started int // of those, payouts started or claims recorded
}

// waitingClaims reads the claims of a packet for which nobody else is at work: older than the grace, and
// not being relayed, as those from carried on are.
type waitingClaims struct {
	pools        Pools
	now, carried time.Time
	grace        time.Duration
	left         int // claims that were left to others
}

// EachClaim implements reconcile.Fenced.
func (c *waitingClaims) EachClaim(ctx context.Context, id string, visit func([]packet.Claim) error) error {
	return c.pools.EachClaim(ctx, id, func(some []packet.Claim) error {
		all := len(some)
		some = slices.DeleteFunc(some, func(claim packet.Claim) bool {
			// The relay is normally much faster; that of a dead worker is taken over.
			return c.now.Sub(claim.ClaimedAt) < c.grace || !c.carried.IsZero() && !claim.ClaimedAt.Before(c.carried)
		})
		c.left += all - len(some) // as far as compared
		return visit(some)
	})
}

// startMissingWinners starts the payout of every winner without a row whose claim is not being
// relayed. Claims are read after carried.
func (w *Watch) startMissingWinners(ctx context.Context, id string, view packet.PoolView, carried time.Time) (n missingResult, err error) {
	due := &waitingClaims{pools: w.cfg.Pools, now: view.Now, carried: carried, grace: w.cfg.Pace.Grace}
	var failed error
	err = reconcile.Unrecorded(ctx, reconcile.Fenced{Pools: due}, w.cfg.Store, reconcile.Normal, id, func(repairs []reconcile.Repair) error {
		n.missing += len(repairs)
		err := w.startWinners(ctx, view, repairs, &n)
		if activities.StoreUnavailable(err) {
			return err
		}
		if err != nil && failed == nil {
			failed = err
		}
		return nil
	})
	n.missing += due.left
	if err == nil {
		err = failed
	}
	return n, err
}

// startWinners starts the payouts of winners without a row. A failed start does not delay the
// others, unless Temporal or MySQL is unavailable.
func (w *Watch) startWinners(ctx context.Context, view packet.PoolView, repairs []reconcile.Repair, n *missingResult) (failed error) {
	for _, r := range repairs {
		c := r.Claim
		if w.retryState.since("winner/"+c.PacketID+"/"+c.UserID, time.Now()) < w.cfg.Pace.Every {
			continue // first seen: a run that has just started may be recording it
		}
		n.asked++
		started, err := w.startWinner(ctx, view, r)
		if activities.StoreUnavailable(err) {
			return err
		}
		if err != nil && failed == nil {
			failed = err
		}
		if started {
			n.started++
		}
	}
	return failed
}

// startWinner starts the payout of a winner without a row.
func (w *Watch) startWinner(ctx context.Context, view packet.PoolView, r reconcile.Repair) (started bool, err error) {
	started, err = activities.RepairClaim(ctx, w.cfg.Runs, w.cfg.Store, r, view.Packet.App)
	if started {
		w.repaired(ctx, RepairWinner, r.Claim.PacketID+"/"+r.Claim.UserID)
	}
	return started, err
}
