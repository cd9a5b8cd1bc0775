package worker_test

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/payout"
	"hongbao/internal/pool"
	"hongbao/internal/store"
	"hongbao/test/harness"
	"hongbao/worker"
)

// TestR13_Heartbeat: MySQL's number is copied to Redis. If Redis lost it, MySQL counts as current
// and the copy is restored. A MySQL below the copy is restored, for every process and whatever
// Redis loses later. Without Redis MySQL does not count as current at the start.
func TestR13_Heartbeat(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server, dsn := stacktest.FreshRedis(t), stacktest.MariaDB(t)
	raw := must(store.OpenSQL(dsn))(t)
	t.Cleanup(func() { _ = raw.Close() })
	stacktest.Migrate(t, dsn)
	p := harness.OpenPool(t, pool.Config{Addr: server.Addr, Lanes: harness.Lanes, Logger: slog.New(slog.DiscardHandler)})
	process := func() (*store.Store, *worker.Heartbeat) {
		s := must(store.Open(store.Config{DSN: dsn, MustCompare: true}))(t)
		t.Cleanup(func() { _ = s.Close() })
		return s, &worker.Heartbeat{Store: s, Copy: p, Beats: true, Logger: slog.New(slog.DiscardHandler)}
	}
	beat := func(h *worker.Heartbeat) {
		t.Helper()
		if err := h.Beat(ctx); err != nil {
			t.Fatal(err)
		}
	}
	numbers := func(s *store.Store, mysql, copied int64, state payout.MySQLStatus) {
		t.Helper()
		b := must(s.MySQLState(ctx))(t)
		if n := must(p.HeartbeatNumber(ctx))(t); b.Heartbeat != mysql || n != copied || b.State != state {
			t.Errorf("MySQL %d (%s), Redis %d; want %d (%s), %d", b.Heartbeat, b.State, n, mysql, state, copied)
		}
	}
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = rdb.Close() })
	forget := func() {
		t.Helper()
		keys := must(rdb.Keys(ctx, "hb:{*}:books").Result())(t)
		if len(keys) != 3 {
			t.Fatalf("kept at %q", keys)
		}
		if err := rdb.Del(ctx, keys...).Err(); err != nil {
			t.Fatal(err)
		}
	}

	one, first := process()
	if err := one.CheckNotRestored(ctx); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("believed before anything was compared: %v", err)
	}
	beat(first)
	beat(first)
	numbers(one, 2, 2, payout.MySQLNormal)
	two, second := process()
	second.Beats = false
	beat(second)
	numbers(two, 2, 2, payout.MySQLNormal)
	forget()
	beat(first)
	numbers(one, 3, 3, payout.MySQLNormal)

	if _, err := raw.ExecContext(ctx, "UPDATE books SET number = 1"); err != nil {
		t.Fatal(err)
	}
	three, third := process()
	beat(third)
	numbers(three, 1, 3, payout.MySQLRestored)
	forget()
	four, fourth := process()
	beat(fourth)
	numbers(four, 1, 0, payout.MySQLRestored)
	for _, s := range []*store.Store{one, two, three, four} {
		if err := s.CheckNotRestored(ctx); !errors.Is(err, payout.ErrMySQLRestored) {
			t.Errorf("a restored MySQL counts as current: %v", err)
		}
	}
	server.Kill()
	five, fifth := process()
	if err := fifth.Beat(ctx); !errors.Is(err, pool.ErrUnavailable) {
		t.Errorf("a beat without Redis: %v", err)
	}
	if err := five.CheckNotRestored(ctx); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("believed without Redis: %v", err)
	}
}
