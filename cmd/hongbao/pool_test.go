package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/fence"
	"hongbao/internal/pool"
	"hongbao/internal/store"
)

// lanesRig is an installation of four lanes: MySQL and the Redis that belongs to it.
type lanesRig struct {
	t     *testing.T
	dsn   string
	redis string
	env   []string
	db    *store.Store
}

func newLanesRig(t *testing.T, more ...string) *lanesRig {
	r := &lanesRig{t: t, dsn: stacktest.MariaDB(t), redis: stacktest.FreshRedis(t).Addr}
	stacktest.Migrate(t, r.dsn)
	r.env = append([]string{"HONGBAO_MYSQL_DSN=" + r.dsn, "HONGBAO_LANES=4", "HONGBAO_REDIS_ADDR=" + r.redis}, more...)
	var err error
	if r.db, err = store.Open(store.Config{DSN: r.dsn, Lanes: 4}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.db.Close() })
	made, err := pool.Open(t.Context(), pool.Config{Addr: r.redis, Lanes: 4, Epochs: r.db, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := made.Close(); err != nil {
		t.Fatal(err)
	}
	return r
}

// run runs a command and expects how it ends and what it says.
func (r *lanesRig) run(want int, says string, args ...string) {
	r.t.Helper()
	var out, errs bytes.Buffer
	if code := execute(r.t.Context(), args, r.env, &out, &errs); code != want || !strings.Contains(out.String()+errs.String(), says) {
		r.t.Errorf("%q: exit code %d, want %d and %q\n%s%s", args, code, want, says, &out, &errs)
	}
}

// held returns everything that MySQL and a Redis hold: every row of every table, every key.
func (r *lanesRig) held(addr string) map[string]string {
	r.t.Helper()
	all := map[string]string{}
	db, err := store.OpenSQL(r.dsn)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, table := range r.texts(db, "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_type = "+
		"'BASE TABLE'") {
		var name, sum sql.NullString
		if err := db.QueryRowContext(r.t.Context(), "CHECKSUM TABLE "+table+" EXTENDED").Scan(&name, &sum); err != nil {
			r.t.Fatal(err)
		}
		all["table "+table] = sum.String
	}
	if _, there := all["table pool_lanes"]; !there {
		r.t.Fatalf("tables: %v", all)
	}
	c := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = c.Close() }()
	for _, key := range c.Keys(r.t.Context(), "*").Val() {
		all["key "+key] = c.Dump(r.t.Context(), key).Val()
	}
	return all
}

func (r *lanesRig) texts(db *sql.DB, query string) (all []string) {
	r.t.Helper()
	rows, err := db.QueryContext(r.t.Context(), query)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			r.t.Fatal(err)
		}
		all = append(all, text)
	}
	if err := rows.Err(); err != nil {
		r.t.Fatal(err)
	}
	return all
}

// TestPoolStatusChangesNothing: the status of the lanes is printed, and MySQL and Redis stay as
// they are, byte for byte: beside the Redis of the installation, one that is empty, and one that
// has another epoch. It does not guess which Redis is meant.
func TestPoolStatusChangesNothing(t *testing.T) {
	r := newLanesRig(t)
	empty, other := stacktest.FreshRedis(t).Addr, stacktest.FreshRedis(t).Addr
	further, err := pool.Open(t.Context(), pool.Config{Addr: other, Lanes: 4, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := further.CloseFence(t.Context(), 2, 7); err != nil {
		t.Fatal(err)
	}
	if err := further.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what, addr, says string
		code             int
	}{
		{"its Redis", r.redis, "All 4 lanes are open.", exitOK},
		{"an empty Redis", empty, "4 of 4 lanes are NOT OPEN", exitFailed},
		{"an empty Redis, and why", empty, "4 lanes are open in MySQL, but Redis at " + empty, exitFailed},
		{"a later epoch", other, "epoch 7, 0, closed", exitFailed},
	} {
		t.Run(c.what, func(t *testing.T) {
			was := r.held(c.addr)
			r.run(c.code, c.says, "pool", "status", "--redis-addr", c.addr)
			if is := r.held(c.addr); !maps.Equal(is, was) {
				t.Errorf("was %q, is %q", was, is)
			}
		})
	}
	r.run(exitFailed, "configured 5, in use 4\nSet HONGBAO_LANES to the number in use", "pool", "status", "--lanes", "5")
	r.env = r.env[:2]
	for _, command := range []string{"pool status", "pool rebuild --all"} {
		r.run(exitUsage, "HONGBAO_REDIS_ADDR (--redis-addr) is required", strings.Fields(command)...)
	}
}

// TestPoolRebuildReportsClosedLanes: lanes that no rebuild may open are named, and the command fails,
// though it has rebuilt others; on books that are restored it does nothing at all.
func TestPoolRebuildReportsClosedLanes(t *testing.T) {
	t.Parallel()
	temporal, namespace := stacktest.Temporal(t)
	r := newLanesRig(t, "HONGBAO_TEMPORAL_ADDRESS="+temporal, "HONGBAO_TEMPORAL_NAMESPACE="+namespace, "HONGBAO_LOG_LEVEL=error")
	ctx := t.Context()
	shut := func(lane int, reason fence.LaneReason) {
		t.Helper()
		if ok, err := r.db.ShutPoolLane(ctx, lane, 1, reason); err != nil || !ok {
			t.Fatal(ok, err)
		}
	}
	r.run(exitOK, "0 lanes rebuilt.", "pool", "rebuild", "--all")
	shut(1, fence.LaneMySQLOlder)
	shut(3, fence.LaneSeqBehind)
	r.run(exitFailed, "lane 1 stays shut: books_older", "pool", "rebuild", "--all")
	states := func() string {
		lanes, err := r.db.PoolLanes(context.WithoutCancel(ctx))
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, l := range lanes {
			fmt.Fprintf(&b, "%d:%s ", l.Epoch, l.State)
		}
		return b.String()
	}
	if got := states(); got != "1:open 1:shut 1:open 2:open " {
		t.Errorf("lanes: %s", got)
	}
	r.run(exitFailed, "lane 1 is shut because of books_older", "pool", "rebuild", "--lane", "1")
	if _, err := r.db.AdvanceHeartbeat(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := r.db.CompareHeartbeat(ctx, 9); err != nil { // as if Redis had kept it
		t.Fatal(err)
	}
	was := states()
	for _, which := range []string{"--all", "--lane=2"} {
		r.run(exitFailed, "MySQL was restored from an older backup", "pool", "rebuild", which)
	}
	if got := states(); got != was {
		t.Errorf("lanes: %s, were %s", got, was)
	}
}
