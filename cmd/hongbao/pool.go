package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/pool"
	"hongbao/internal/store"
	"hongbao/worker"
)

// poolConfig is what the commands about the pool are told.
type poolConfig struct {
	Redis    pool.Config // as redisConfig makes it
	MySQLDSN Secret
	Temporal temporalConfig // of rebuild only
}

func newPoolCommand(env environment) *cobra.Command {
	group := &cobra.Command{
		Use:   "pool",
		Short: "Look at the lanes of the pool in Redis, and rebuild them from the books",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	status := &cobra.Command{
		Use:   "status",
		Short: "Show which lanes are open, shut or being rebuilt, and the last rebuilds",
		Long: `Show which lanes are open, shut or being rebuilt, and the last rebuilds with the
number of acknowledged grabs that may be lost. Redis and MySQL are asked directly;
nothing is changed: a lane that is open in MySQL, and of which Redis lacks something
that nobody has noticed yet, is shown with what Redis has. API and workers shut it.

Exit code: 0 every lane is open; 1 some are not.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := readConfig(cmd, cmdPoolStatus, env)
			if err != nil {
				return err
			}
			cfg, err := poolConfigOf(c)
			if err != nil {
				return err
			}
			return poolStatus(cmd.Context(), cfg, cmd.OutOrStdout())
		},
	}
	addSettings(status, cmdPoolStatus)
	group.AddCommand(status, newRebuildCommand(env))
	return group
}

func newRebuildCommand(env environment) *cobra.Command {
	var lane string
	var all bool
	rebuild := &cobra.Command{
		Use:   "rebuild --lane <number> | --all",
		Short: "Make lanes of the pool again from the books",
		Long: `Make lanes of the pool again from the books, as the workers do by themselves when
Redis has lost something (unless HONGBAO_POOL_REBUILD is manual). Workers have to
run: what Redis still holds, and what Temporal is about to book, is waited for.

--all rebuilds the lanes that are shut. --lane rebuilds one, also one that is open:
it is shut first, and takes no grabs meanwhile. Books that were restored are not
rebuilt from: "hongbao recover" comes first.

The rebuild needs some seconds a lane. It may be broken off and repeated at any time.

Exit code: 0 every lane that was to be rebuilt is open; 1 some stay shut, and why.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := readConfig(cmd, cmdPoolRebuild, env)
			if err != nil {
				return err
			}
			cfg, err := poolConfigOf(c)
			if err != nil {
				return err
			}
			cfg.Temporal = c.temporal()
			one := -1
			if all == (lane != "") {
				return &usageError{errors.New("give --lane or --all")}
			}
			if lane != "" {
				if one, err = strconv.Atoi(lane); err != nil || one < 0 || one >= cfg.Redis.Lanes {
					return &usageError{fmt.Errorf("--lane must be a number from 0 to %d", cfg.Redis.Lanes-1)}
				}
			}
			return poolRebuild(cmd.Context(), cfg, one, cmd.OutOrStdout(), c.logger(cmd.ErrOrStderr()))
		},
	}
	rebuild.Flags().StringVar(&lane, "lane", "", "number of the lane")
	rebuild.Flags().BoolVar(&all, "all", false, "every lane that is shut")
	addSettings(rebuild, cmdPoolRebuild)
	return rebuild
}

func poolConfigOf(c config) (poolConfig, error) {
	redis, err := redisConfig(c)
	redis.AllowVolatile = true // they look, and mend
	return poolConfig{Redis: redis, MySQLDSN: c.secret("mysql-dsn")}, err
}

// openBoth opens Redis and MySQL. The pool compares the two and writes down what is
// wrong, as every process does, unless Redis.Observe.
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

// shownRebuilds is how many rebuilds the status shows.
const shownRebuilds = 20

// poolStatus tells of the lanes. It must not change them: whoever asks may have named the
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
		lacks := l.State == packet.LaneOpen && !laneUsable(l, found)
		switch {
		case l.State != packet.LaneOpen:
			shut++
		case lacks:
			behind++
		case l.RebuiltAt.IsZero():
			continue // nothing ever happened to it
		}
		t.row(l.Lane, l.State, l.Epoch, l.Reason, formatPoolTime(l.ShutAt), l.AckedSeq, redisLaneText(found, lacks), l.Lost,
			formatPoolTime(l.RebuiltAt))
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
		err = printf(out, "%d lanes are open in MySQL, and Redis at %s is not as they say: is it the right one? API and workers shut such "+
			"lanes by themselves.\n", behind, cfg.Redis.Addr)
	case len(lanes) == 0:
		return printf(out, "There are no lanes yet: the first API or worker makes them.\n")
	}
	if shut+behind > 0 {
		return errors.Join(err, printf(out, "%d of %d lanes are NOT OPEN\n", shut+behind, len(lanes)), errReported)
	}
	return printf(out, "All %d lanes are open.\n", len(lanes))
}

// agrees reports whether Redis carries out what it is asked in a lane that is open.
func laneUsable(l packet.LaneRow, found pool.Epoch) bool {
	return found.Open() && found.Number == l.Epoch && found.Seq >= l.AckedSeq
}

// has is what Redis has of a lane; of one that it should have open also its gate.
func redisLaneText(found pool.Epoch, lacks bool) string {
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
	t := newGrid(out, "rebuild", "lane", "epochs", "reason", "began (UTC)", "ended (UTC)", "grabs seen", "in Redis", "in the books", "lost",
		"packets")
	for _, b := range rebuilds {
		t.row(b.ID, b.Lane, fmt.Sprintf("%d to %d", b.From, b.Epoch), b.Reason, formatPoolTime(b.StartedAt), formatPoolTime(b.EndedAt),
			b.Acked.Grabs, b.Found.Grabs, b.Recorded, b.Lost, b.Packets)
	}
	t.render()
	return nil
}

func formatPoolTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format("2006-01-02 15:04:05")
}

// poolRebuild rebuilds one lane, or with a negative number every one that is shut.
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
	r := worker.NewRebuilder(worker.RebuildConfig{Books: db, Rows: db, Fences: redis, Pools: redis, Backlog: handoffs,
		Starter: worker.NewStarter(temporal, "sandbox"), Lanes: cfg.Redis.Lanes, Logger: logger})
	n := 0
	var stay error // lanes that are shut and not rebuilt: they take no grabs, and that is no success
	for _, l := range lanes {
		switch {
		case lane >= 0 && l.Lane != lane, lane < 0 && l.State == packet.LaneOpen:
			continue
		case lane < 0 && !worker.Rebuildable(l):
			stay = errors.Join(stay, fmt.Errorf("lane %d stays shut: %s", l.Lane, l.Reason))
			continue
		case l.State == packet.LaneOpen:
			if _, err := db.ShutPoolLane(ctx, l.Lane, l.Epoch, packet.LaneRequested); err != nil {
				return err
			}
		case !worker.Rebuildable(l):
			return fmt.Errorf("lane %d is shut because of %s: a rebuild from these books would be wrong", l.Lane, l.Reason)
		}
		n++
		if err := rebuildLane(ctx, db, r, l.Lane, out); err != nil {
			return err
		}
	}
	if n == 0 && lane >= 0 {
		return fmt.Errorf("the books do not know lane %d: nothing was ever put into it", lane)
	}
	if stay != nil {
		stay = fmt.Errorf("%w\nNo rebuild opens these: docs/disaster.md says what to do about each reason", stay)
	}
	return errors.Join(printf(out, "%d lanes rebuilt.\n", n), stay)
}

// rejectRestored compares MySQL's books with what Redis knows of them. Made from books that
// are older than reality, a lane would lack grabs that were told (rule R13).
func rejectRestored(ctx context.Context, db *store.Store, redis *pool.Pool) error {
	known, err := redis.BooksNumber(ctx)
	if err != nil {
		return err
	}
	books, err := db.CompareHeartbeat(ctx, known)
	if err == nil && books.State == payout.MySQLRestored {
		err = fmt.Errorf("nothing is rebuilt: %w; see docs/disaster.md, \"MySQL restored\"", payout.ErrMySQLRestored)
	}
	return err
}

// rebuildLane rebuilds a lane, or waits for the worker that is doing so.
func rebuildLane(ctx context.Context, db *store.Store, r *worker.Rebuilder, lane int, out io.Writer) error {
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
			if l.Lane == lane && l.State == packet.LaneOpen {
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
