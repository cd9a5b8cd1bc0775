package worker

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"hongbao/activities"
	"hongbao/internal/packet"
	"hongbao/internal/pool"
)

const (
	// lanePage is how many live packets of a lane one round looks at.
	lanePage = 500
	// rejectedKept is how long a rejected packet stays in Redis, so that a repeated
	// create gets its 402 from there.
	rejectedKept = 10 * time.Minute
	// compareUsers is how many winners one look at MySQL asks about.
	compareUsers = 500
	// manyWinners is from how many on they are not all looked through in every round while
	// the relay gets on with them: a million take seconds of Redis.
	manyWinners = 10_000
	// relayStuck is for how long a lane's oldest hand-off may be the same one before
	// the watch no longer counts on the relay.
	relayStuck = time.Minute
	// handoffAfter is longer than a script takes from a claim's time to its hand-off's.
	handoffAfter = time.Second
)

// laneWatch compares the pools of one lane with MySQL.
type laneWatch struct {
	watch  *Watch
	lane   int
	from   time.Time // where the next page begins
	agreed agreedPackets
	// The oldest hand-off at the last look, and when it was seen first.
	oldest, since time.Time
}

// Backlog tells what of a lane waits for a relay.
type Backlog interface {
	Depth(ctx context.Context, lane int) (entries int, oldest time.Time, err error)
}

// carried returns since when hand-offs of the lane wait for a relay that gets on;
// claims made from then on are its matter, however many there are and however long
// that takes. Zero when none waits, or when the relay is stuck.
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

// round compares a page of the lane; now is the books' time.
func (l *laneWatch) round(ctx context.Context, now time.Time) (failed error) {
	cfg := l.watch.cfg
	live, err := cfg.Pools.LivePage(ctx, l.lane, l.from, lanePage)
	if err != nil {
		return err
	}
	l.next(live)
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
	// Pools before rows: what a row tells is then the later truth.
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
		if storeUnavailable(err) {
			return err
		}
		if err != nil && failed == nil { // it keeps no other packet from its turn
			failed = err
		}
	}
	return failed
}

// next moves on to the page behind this one. Packets created in the same
// millisecond may be seen twice.
func (l *laneWatch) next(live []pool.LivePacket) {
	if l.from.IsZero() { // this is the first page
		l.agreed.nextPass()
	}
	if len(live) < lanePage {
		l.from = time.Time{}
		return
	}
	last := live[len(live)-1].CreatedAt
	if !last.After(l.from) { // a page full of one millisecond
		last = last.Add(time.Millisecond)
	}
	l.from = last
}

// compare finds what is wrong with one packet that is older than the grace;
// settledRow: its row is, too.
func (l *laneWatch) compare(ctx context.Context, id string, view packet.PoolView, row packet.RowState, recorded, settledRow bool) error {
	w, cfg := l.watch, l.watch.cfg
	now := time.Now()
	early := view.State == packet.PoolFunding || view.State == packet.PoolOpening
	switch {
	case view.Retired, row.Stored == packet.StatusClosed:
		// Retiring is the last step; a run may have died before it or in it.
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
		if err := l.withheld(ctx, id, view); err != nil {
			return err
		}
		if err := l.resendClose(ctx, id, view, now); err != nil {
			return err
		}
	}
	if recorded {
		return l.winners(ctx, id, view)
	}
	return nil
}

// restage gives a staged packet whose row is not there, or a rejected one of
// which Redis has not heard, a run.
func (l *laneWatch) restage(ctx context.Context, id string, view packet.PoolView) error {
	w := l.watch
	if !w.retryState.allow("restage/"+id, time.Now()) {
		return nil
	}
	started, err := w.cfg.Starter.RestartPacket(ctx, view.Packet)
	if err == nil && started {
		w.repaired(ctx, RepairUnrecorded, id)
	}
	return err
}

// heard tells the run of a packet again that nobody can grab any more: what was
// said to a run that a person ended was said to nobody.
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
	if err := w.cfg.Starter.SignalClose(ctx, id, reason); err != nil {
		return err
	}
	w.repaired(ctx, RepairCloseSignal, id)
	return nil
}

// winners compares the count first, then the sets, and starts the payouts that are
// missing. Where promises could not be booked (rule R10) the count says nothing: the pool
// counts them, or knows them, or neither.
func (l *laneWatch) winners(ctx context.Context, id string, view packet.PoolView) error {
	w, now := l.watch, time.Now()
	if l.agreed.holds(id, view.ClaimedCount, now) {
		return nil
	}
	recorded, err := w.cfg.Store.CountClaimedShares(ctx, id)
	if err != nil {
		return err
	}
	if recorded > view.ClaimedCount {
		if behind, err := l.checkBehind(ctx, id); behind || err != nil {
			return err
		}
	}
	promised, err := w.cfg.Store.ShareConflictUsers(ctx, id)
	if err != nil {
		return err
	}
	key, waits := "winners/"+id, "carried/"+id
	if recorded >= view.ClaimedCount && len(promised) == 0 {
		l.agreed.note(id, view.ClaimedCount, now)
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
		return nil // the relay gets on with them: so many are looked through ever more rarely
	}
	if !w.retryState.allow(key, now) {
		return nil
	}
	if behind, err := l.checkConflicts(ctx, id, promised); behind || err != nil {
		return err
	}
	found, err := w.startMissingWinners(ctx, id, view, carried)
	if err != nil {
		return err
	}
	if found.missing == 0 {
		l.agreed.note(id, view.ClaimedCount, now)
	}
	if found.asked == 0 || found.started > 0 {
		w.retryState.clear(key) // only what waits in Temporal is asked about ever more rarely
	}
	return nil
}

// behind looks whether the books know more claims of a packet than its pool, which then
// has lost some: the gate of the lane is shut (rule R9).
func (l *laneWatch) checkBehind(ctx context.Context, id string) (bool, error) {
	cfg := l.watch.cfg
	// The books first: by the time the pool is asked it has all that they know.
	recorded, err := cfg.Store.CountClaimedShares(ctx, id)
	if err != nil {
		return false, err
	}
	claimed, err := cfg.Pools.ClaimedCount(ctx, id)
	switch {
	case errors.Is(err, packet.ErrNotFound): // retired meanwhile
		return false, nil
	case err != nil:
		return false, err
	case recorded <= claimed:
		return false, nil
	}
	cfg.Logger.WarnContext(ctx, "The books know claims that the pool lacks.", slog.String("packet_id", id), slog.Int("recorded", recorded),
		slog.Int("claimed", claimed))
	return true, cfg.Pools.HaltLane(ctx, l.lane, packet.LanePoolBehind)
}

// checkConflicts does the same for promises: whoever was told that he has won is told so
// again. The pool is read after the promises.
func (l *laneWatch) checkConflicts(ctx context.Context, id string, promised []string) (bool, error) {
	if len(promised) == 0 {
		return false, nil
	}
	lacks := make(map[string]bool, len(promised))
	for _, user := range promised {
		lacks[user] = true
	}
	err := l.watch.cfg.Pools.EachClaim(ctx, id, func(some []packet.Claim) error {
		for _, c := range some {
			delete(lacks, c.UserID)
		}
		return nil
	})
	if err != nil || len(lacks) == 0 {
		return false, err
	}
	cfg := l.watch.cfg
	switch _, err := cfg.Pools.ClaimedCount(ctx, id); {
	case errors.Is(err, packet.ErrNotFound): // retired meanwhile
		return false, nil
	case err != nil:
		return false, err
	}
	cfg.Logger.WarnContext(ctx, "The books know promises that the pool lacks.", slog.String("packet_id", id), slog.Int("users", len(lacks)))
	return true, cfg.Pools.HaltLane(ctx, l.lane, packet.LanePoolBehind)
}

// withheld has the lane of a packet rebuilt once a person has decided what a recovery
// of the books left to him: until then nobody was given a share of it.
func (l *laneWatch) withheld(ctx context.Context, id string, view packet.PoolView) error {
	if !view.Withheld || view.State != packet.PoolOpen {
		return nil
	}
	cfg := l.watch.cfg
	if undecided, err := cfg.Store.Undecided(ctx, id); err != nil || undecided {
		return err
	}
	cfg.Logger.WarnContext(ctx, "A packet that was withheld is decided; its lane is rebuilt.", slog.String("packet_id", id),
		slog.Int("lane", l.lane))
	return cfg.Pools.HaltLane(ctx, l.lane, packet.LaneRequested)
}

// missingResult is what came of a look at the winners of a packet.
type missingResult struct {
	missing int // for whom the books do not account, or who were not looked at
	asked   int // those of them that Temporal was asked to start: the others wait elsewhere
	started int // those that it had to start, or that had to be booked: the others wait there
}

// startMissingWinners starts the payout of every winner that MySQL does not account for
// and whose claim is not carried to Temporal at the moment. Claims are read after carried.
func (w *Watch) startMissingWinners(ctx context.Context, id string, view packet.PoolView, carried time.Time) (n missingResult, err error) {
	var failed error
	err = w.cfg.Pools.EachClaim(ctx, id, func(some []packet.Claim) error {
		all := len(some)
		some = slices.DeleteFunc(some, func(c packet.Claim) bool {
			// The relay is normally much faster; a dead one is taken over.
			return view.Now.Sub(c.ClaimedAt) < w.cfg.Pace.Grace || !carried.IsZero() && !c.ClaimedAt.Before(carried)
		})
		n.missing += all - len(some) // as far as was looked
		for part := range slices.Chunk(some, compareUsers) {
			unrecorded, err := w.cfg.Store.UnrecordedClaims(ctx, id, part)
			if err != nil {
				return err
			}
			n.missing += len(unrecorded)
			err = w.startWinners(ctx, view, unrecorded, &n)
			if storeUnavailable(err) {
				return err
			}
			if err != nil && failed == nil {
				failed = err
			}
		}
		return nil
	})
	if err == nil {
		err = failed
	}
	return n, err
}

// startWinners starts the payouts of winners that the books do not have. One that cannot be
// started keeps no other from its start, unless Temporal or MySQL is away.
func (w *Watch) startWinners(ctx context.Context, view packet.PoolView, unrecorded []packet.Claim, n *missingResult) (failed error) {
	for _, c := range unrecorded {
		if w.retryState.since("winner/"+c.PacketID+"/"+c.UserID, time.Now()) < w.cfg.Pace.Every {
			continue // seen for the first time: a run that was started just now is about to record it
		}
		n.asked++
		started, err := restartPayout(ctx, w.cfg.Starter, w.cfg.Store, c, view.Packet.App)
		if storeUnavailable(err) {
			return err
		}
		if err != nil && failed == nil {
			failed = err
		}
		if started {
			n.started++
			w.repaired(ctx, RepairWinner, c.PacketID+"/"+c.UserID)
		}
	}
	return failed
}

// away reports whether an error says that the next start would fail as well.
func storeUnavailable(err error) bool {
	return activities.TemporalUnavailable(err) || errors.Is(err, packet.ErrUnavailable)
}
