package worker_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/fence"
	"hongbao/internal/observe"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/pool"
	"hongbao/test/harness"
	"hongbao/test/wait"
	"hongbao/worker"
)

// errorLines counts lines of level error with a text, and passes nothing on.
type errorLines struct {
	slog.Handler
	text string
	n    *atomic.Int64
}

func (e errorLines) Enabled(context.Context, slog.Level) bool { return true }
func (e errorLines) WithAttrs([]slog.Attr) slog.Handler       { return e }
func (e errorLines) WithGroup(string) slog.Handler            { return e }

func (e errorLines) Handle(_ context.Context, r slog.Record) error {
	if r.Level == slog.LevelError && strings.Contains(r.Message, e.text) {
		e.n.Add(1)
	}
	return nil
}

// stuckHandoffs is what a worker's figure of stuck hand-offs shows.
func stuckHandoffs(t testing.TB, w prometheus.Collector) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(w)
	for _, f := range must(registry.Gather())(t) {
		if f.GetName() == observe.MetricHandoffsStuck {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("no %s", observe.MetricHandoffsStuck)
	return 0
}

// TestR11_RefusedStartsHoldNothingUp: Temporal permanently rejects the starts of more claims than
// can be sent concurrently, because their ids are too long. All others are paid, of the same
// packet and lane too. The rejected ones stay in the stream, are logged once each, and are
// recorded without a run, so that their packet closes.
func TestR11_RefusedStartsHoldNothingUp(t *testing.T) {
	t.Parallel()
	temporal, ns := stacktest.FreshTemporal(t, "limit.maxIDLength=80")
	lines := errorLines{text: "Temporal refuses a hand-off", n: new(atomic.Int64)}
	redisAddr := stacktest.FreshRedis(t).Addr
	r := newParts(t, redisAddr, stacktest.MariaDB(t), temporal.Addr, ns)
	r.logger = slog.New(lines)
	r.change = func(_ *rig, cfg *worker.Config) { cfg.Rebuild.Pace.Patience = 2 * time.Second }
	w, stop := r.startWorker(t)
	r.stop = stop
	wait.Until(t, "worker ready", w.Ready)

	const refused = 40
	p := r.create(t, spec{total: 1000, count: refused + 10})
	other := r.create(t, spec{total: 10, count: 1})
	r.awaitOpen(t, p.ID)
	r.awaitOpen(t, other.ID)
	var long []packet.Claim
	for n := range refused {
		long = append(long, r.grab(t, p.ID, fmt.Sprintf("%02d%s", n, strings.Repeat("x", 60))).Claim)
	}
	r.awaitPayout(t, r.grab(t, other.ID, "u").Claim, payout.StatusPaid)
	for n := range 9 {
		r.awaitPayout(t, r.grab(t, p.ID, userNamed(n)).Claim, payout.StatusPaid)
	}
	wait.Until(t, "every refused hand-off is counted", func() bool { return stuckHandoffs(t, w) == refused })

	// They do not prevent the rebuild of their lane either.
	lane := packet.Lane(p.ID, harness.Lanes)
	if err := r.pool.HaltLane(t.Context(), lane, fence.LaneRequested); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the lane is open again", func() bool {
		lanes, err := r.store.PoolLanes(t.Context())
		return err == nil && slices.ContainsFunc(lanes, func(l fence.LaneRow) bool {
			return l.Lane == lane && l.Epoch > 1 &&
				l.State == fence.LaneOpen
		})
	})
	for _, c := range long {
		if g := r.grab(t, p.ID, c.UserID); g.Result != packet.GrabReplayed || g.Claim.Amount != c.Amount {
			t.Errorf("%q has %d, and after the rebuild %s, %d", c.UserID, c.Amount, g.Result, g.Claim.Amount)
		}
	}

	r.recall(t, p.ID)
	r.awaitStatus(t, p.ID, packet.StatusClosed)
	for _, c := range long {
		if got := r.payoutOf(t, c).Status; got != payout.StatusPending {
			t.Errorf("payout of %q is %q", c.UserID, got)
		}
	}
	depth := must(pool.NewHandoffs(t.Context(), r.pool))(t)
	defer func() { _ = depth.Close() }()
	if n, _, err := depth.Depth(t.Context(), lane); err != nil || n < refused {
		t.Errorf("%d hand-offs are left, %v: one that Temporal did not take was acknowledged", n, err)
	}
	if n := lines.n.Load(); n != refused {
		t.Errorf("%d alarms of %d hand-offs", n, refused)
	}
}

// TestUndecodableWhileMySQLIsAway: hand-offs that cannot be decoded wait for MySQL, and are
// acknowledged once they are in quarantine. The lane continues in between.
func TestUndecodableWhileMySQLIsAway(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	db, dsn := stacktest.FreshMariaDB(t)
	addr, ns := stacktest.TemporalNamespace(t)
	r := newRig(t, server.Addr, dsn, addr, ns)
	p := r.create(t, spec{total: 1000, count: 10})
	r.awaitOpen(t, p.ID)
	r.quietLanes(t)
	db.Kill()

	const bad = 2100 // more than a lane may have in a process
	c := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer func() { _ = c.Close() }()
	found := must(c.Keys(t.Context(), fmt.Sprintf("hb:{l%02d*}:handoff", packet.Lane(p.ID, harness.Lanes))).Result())(t)
	if len(found) != 1 {
		t.Fatalf("streams of the lane: %q", found)
	}
	stream := found[0]
	must(c.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
		for n := range bad {
			pipe.XAdd(t.Context(), &redis.XAddArgs{Stream: stream, Values: []any{"kind", "nonsense", "n", n}})
		}
		return nil
	}))(t)
	g := r.grab(t, p.ID, "u")
	wait.Until(t, "the claim behind them has reached Temporal", func() bool {
		ids, err := r.starter.WinnersSince(t.Context(), g.Claim.ClaimedAt.Add(-1e9))
		return err == nil && len(ids[p.ID]) == 1
	})
	if left := c.XLen(t.Context(), stream).Val(); left < bad {
		t.Errorf("%d hand-offs are left: some were acknowledged before they were kept", left)
	}
	db.Restart(t)
	r.awaitPayout(t, g.Claim, payout.StatusPaid)
	rows := r.sql(t)
	wait.Until(t, "they are in quarantine", func() bool {
		n := 0
		err := rows.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM quarantine").Scan(&n)
		return err == nil && n == bad
	})
	r.quietLanes(t)
}
