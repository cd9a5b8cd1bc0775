package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"hongbao/internal/fence"
	"hongbao/internal/payout"
	"hongbao/internal/pool"
	"hongbao/internal/reconcile/rebuild"
	"hongbao/internal/store"
	"hongbao/worker"
)

// poolConfig holds the settings of the commands about the pool.
type poolConfig struct {
	Redis    pool.Config // from redisConfig
	MySQLDSN Secret
	Temporal temporalConfig // for rebuild only
}

func poolCommand() command {
	status := command{
		use:   "status",
		short: "Show open, shut and rebuilding lanes, and the last rebuilds",
		long: `Show open, shut and rebuilding lanes, and the last 20 rebuilds with the number of
acknowledged grabs that may be lost. The command reads Redis and MySQL directly and
changes nothing. For a lane that is open in MySQL but has lost data in Redis it shows the
state of Redis; API and workers shut such lanes.

Exit code: 0 every lane is open; 1 some are not.`,
		as: local(cmdPoolStatus),
		run: func(ctx context.Context, t *call) error {
			cfg, err := poolConfigOf(t.config)
			if err != nil {
				return err
			}
			return poolStatus(ctx, cfg, t.out)
		},
	}
	return command{
		use: "pool", short: "Show the lanes of the pool in Redis, and rebuild them from MySQL", sub: []command{status, poolRebuilds()},
	}
}

func poolRebuilds() command {
	var lane string
	var all bool
	return command{
		use:   "rebuild --lane <number> | --all",
		short: "Rebuild lanes of the pool from MySQL",
		long: `Rebuild lanes of the pool from MySQL, as workers do after Redis has lost data unless
HONGBAO_POOL_REBUILD is manual. Workers have to run: the rebuild waits for the hand-offs
that Redis still holds and for the claims that Temporal is recording.

--all rebuilds the lanes that are shut. --lane rebuilds one lane, also an open one: it is
shut first and refuses grabs until it is rebuilt. A restored MySQL is refused: run
"hongbao recover" first.

A rebuild takes some seconds per lane. It may be interrupted and repeated.

Exit code: 0 all selected lanes are open; 1 some stay shut, each with its cause.`,
		as: local(cmdPoolRebuild),
		flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&lane, "lane", "", "`number` of the lane, from 0")
			flags.BoolVar(&all, "all", false, "rebuild every lane that is shut")
		},
		run: func(ctx context.Context, t *call) error {
			cfg, err := poolConfigOf(t.config)
			if err != nil {
				return err
			}
			cfg.Temporal = t.config.temporal()
			one := -1
			if all == (lane != "") {
				return &usageError{errors.New("give either --lane or --all")}
			}
			if lane != "" {
				if one, err = strconv.Atoi(lane); err != nil || one < 0 || one >= cfg.Redis.Lanes {
					return &usageError{fmt.Errorf("parse --lane %q: write a number from 0 to %d", lane, cfg.Redis.Lanes-1)}
				}
			}
			return poolRebuild(ctx, cfg, one, t.out, t.config.logger(t.notes))
		},
	}
}

func poolConfigOf(c config) (poolConfig, error) {
	redis, err := redisConfig(c)
	redis.AllowVolatile = true // these commands accept no grabs
	return poolConfig{Redis: redis, MySQLDSN: c.secret("mysql-dsn")}, err
}

// openBoth opens Redis and MySQL. Unless Redis.Observe is set, the pool compares the two and shuts lanes that have lost
// data, as every process does.
func (c poolConfig) openBoth(ctx context.Context, logger *slog.Logger) (*store.Store, *pool.Pool, func(), error) {
	db, err := openMigrated(ctx, store.Config{DSN: c.MySQLDSN.Reveal(), MaxOpenConns: 4, Lanes: c.Redis.Lanes}, logger)
	if err != nil {
		return nil, nil, nil, err
	}
	pools := c.Redis
	pools.Epochs, pools.Logger = db, logger
	redis, err := pool.Open(ctx, pools)
	if err != nil {
		if do := redisAdvice(err); do != "" {
			err = fmt.Errorf("%w\n%s", err, do)
		}
		return nil, nil, nil, errors.Join(err, db.Close())
	}
	return db, redis, func() { _ = redis.Close(); _ = db.Close() }, nil
}

// shownRebuilds is the number of rebuilds that the status lists.
const shownRebuilds = 20

// poolStatus prints the lanes. It must not change them: the operator may have named the
// wrong Redis, and to compare as every process does would shut every lane for it.
func poolStatus(ctx context.Context, cfg poolConfig, out io.Writer) error {
	cfg.Redis.Observe = true
	db, redis, done, err := cfg.openBoth(ctx, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer done()
	lanes, err := db.PoolLanes(ctx) // before Redis is read, which can only have come further since
	if err != nil {
		return err
	}
	t := newGrid(out, "lane", "state", "epoch", "reason", "shut at (UTC)", "seen", "Redis has", "lost", "rebuilt at (UTC)")
	shut, behind, shown := 0, 0, 0
	for _, l := range lanes {
		found, err := redis.ReadEpoch(ctx, l.Lane)
		if err != nil {
			return err
		}
		lacks := l.State == fence.LaneOpen && !l.Position().Intact(found, 0)
		switch {
		case l.State != fence.LaneOpen:
			shut++
		case lacks:
			behind++
		case l.RebuiltAt.IsZero():
			continue // never shut
		}
		t.row(l.Lane, l.State, l.Epoch, l.Reason, formatUTC(l.ShutAt), l.AckedSeq, redisLaneText(found, lacks), l.Lost,
			formatUTC(l.RebuiltAt))
		shown++
	}
	if shown > 0 {
		t.render()
	}
	if err := showRebuilds(ctx, db, out); err != nil {
		return err
	}
	switch {
	case behind > 0:
		err = printf(out, "%d lanes are open in MySQL, but Redis at %s does not match them: check that it is the right Redis. API and "+
			"workers shut such lanes.\n", behind, cfg.Redis.Addr)
	case len(lanes) == 0:
		return printf(out, "There are no lanes yet: the first API or worker creates them.\n")
	}
	if shut+behind > 0 {
		return errors.Join(err, printf(out, "%d of %d lanes are NOT OPEN\n", shut+behind, len(lanes)), errReported)
	}
	return printf(out, "All %d lanes are open.\n", len(lanes))
}

// has is what Redis has of a lane; of one that it should have open also its gate.
func redisLaneText(found fence.Epoch, lacks bool) string {
	switch {
	case found.Number == 0:
		return "nothing"
	case lacks:
		return fmt.Sprintf("epoch %d, %d, %s", found.Number, found.Seq, found.Fence)
	}
	return fmt.Sprintf("epoch %d, %d", found.Number, found.Seq)
}

func showRebuilds(ctx context.Context, db *store.Store, out io.Writer) error {
	rebuilds, err := db.Rebuilds(ctx, shownRebuilds)
	if err != nil || len(rebuilds) == 0 {
		return err
	}
	t := newGrid(out, "rebuild", "lane", "epochs", "reason", "began (UTC)", "ended (UTC)", "grabs seen", "in Redis", "in MySQL", "lost",
		"packets")
	for _, b := range rebuilds {
		t.row(b.ID, b.Lane, fmt.Sprintf("%d to %d", b.From, b.Epoch), b.Reason, formatUTC(b.StartedAt), formatUTC(b.EndedAt),
			b.Acked.Grabs, b.Found.Grabs, b.Recorded, b.Lost, b.Packets)
	}
	t.render()
	return nil
}

// poolRebuild rebuilds one lane, or with a negative number all lanes that are shut.
func poolRebuild(ctx context.Context, cfg poolConfig, lane int, out io.Writer, logger *slog.Logger) error {
	db, redis, done, err := cfg.openBoth(ctx, logger)
	if err != nil {
		return err
	}
	defer done()
	handoffs, err := pool.NewHandoffs(ctx, redis)
	if err != nil {
		return err
	}
	defer func() { _ = handoffs.Close() }()
	temporal, err := cfg.Temporal.dialNow(ctx, logger)
	if err != nil {
		return err
	}
	defer temporal.Close()
	if err := rejectRestored(ctx, db, redis); err != nil {
		return err
	}
	lanes, err := db.PoolLanes(ctx)
	if err != nil {
		return err
	}
	r := rebuild.New(rebuild.Config{Store: db, Rows: db, Fences: redis, Pools: redis, Backlog: handoffs,
		Runs: worker.NewStarter(temporal), Lanes: cfg.Redis.Lanes, Logger: logger})
	n := 0
	var stay error // lanes that stay shut
	for _, l := range lanes {
		switch {
		case lane >= 0 && l.Lane != lane, lane < 0 && l.State == fence.LaneOpen:
			continue
		case lane < 0 && !l.Rebuildable():
			stay = errors.Join(stay, fmt.Errorf("lane %d stays shut: %s", l.Lane, l.Reason))
			continue
		case l.State == fence.LaneOpen:
			if _, err := db.ShutPoolLane(ctx, l.Lane, l.Epoch, fence.LaneRequested); err != nil {
				return err
			}
		case !l.Rebuildable():
			return fmt.Errorf("lane %d is shut because of %s: a rebuild from this MySQL would be wrong", l.Lane, l.Reason)
		}
		n++
		if err := rebuildLane(ctx, db, r, l.Lane, out); err != nil {
			return err
		}
	}
	if n == 0 && lane >= 0 {
		return fmt.Errorf("MySQL does not know lane %d: it was never used", lane)
	}
	if stay != nil {
		stay = fmt.Errorf("%w\nA rebuild does not open these lanes: docs/disaster.md gives the steps for each reason", stay)
	}
	return errors.Join(printf(out, "%d lanes rebuilt.\n", n), stay)
}

// rejectRestored compares MySQL's heartbeat with what Redis knows of it. Rebuilt from a MySQL that was restored, a lane would
// lack acknowledged grabs.
func rejectRestored(ctx context.Context, db *store.Store, redis *pool.Pool) error {
	known, err := redis.HeartbeatNumber(ctx)
	if err != nil {
		return err
	}
	state, err := db.CompareHeartbeat(ctx, known)
	if err == nil && state.State == payout.MySQLRestored {
		err = fmt.Errorf("no lane is rebuilt: %w; see docs/disaster.md, \"MySQL restored\"", payout.ErrMySQLRestored)
	}
	return err
}

// rebuildLane rebuilds a lane, or waits for the worker that rebuilds it.
func rebuildLane(ctx context.Context, db *store.Store, r *rebuild.Rebuilder, lane int, out io.Writer) error {
	for {
		b, did, err := r.Lane(ctx, lane)
		if err != nil {
			return err
		}
		if did {
			return printf(out, "lane %d: %d packets, %d grabs lost\n", lane, b.Packets, b.Lost)
		}
		lanes, err := db.PoolLanes(ctx)
		if err != nil {
			return err
		}
		for _, l := range lanes {
			if l.Lane == lane && l.State == fence.LaneOpen {
				return printf(out, "lane %d: rebuilt by a worker, %d grabs lost\n", lane, l.Lost)
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
