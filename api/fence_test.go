package api_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/fence"
	"hongbao/internal/packet"
	"hongbao/internal/pool"
	"hongbao/internal/store"
	"hongbao/test/harness"
	"hongbao/test/wait"
)

// goOnWithNothing opens all lanes in a later epoch, as a rebuild does that finds nothing
// to put back, once they were found to have lost something.
func (h *fixture) goOnWithNothing() {
	h.t.Helper()
	ctx := h.t.Context()
	wait.Until(h.t, "every lane is shut in the books", func() bool {
		lanes, err := h.store.PoolLanes(ctx)
		h.check(err)
		for _, l := range lanes {
			if l.State != fence.LaneShut {
				return false
			}
		}
		return len(lanes) == h.pool.Lanes()
	})
	db, err := store.OpenSQL(h.dsn)
	h.check(err)
	defer db.Close()
	_, err = db.ExecContext(ctx, "UPDATE pool_lanes SET epoch = 2") // first: a later epoch in Redis means that MySQL was restored
	h.check(err)
	for lane := range h.pool.Lanes() {
		h.check(h.pool.CloseFence(ctx, lane, 2))
	}
	_, err = db.ExecContext(ctx, "UPDATE pool_lanes SET state = 'open', reason = NULL, shut_at = NULL, seen = 0, seen_grabs = 0")
	h.check(err)
	for lane := range h.pool.Lanes() {
		h.check(h.pool.OpenFence(ctx, lane, 2, 0))
	}
	wait.Until(h.t, "the gates are open", func() bool { return h.pool.CheckFences(ctx) == nil })
}

// laneOf is the lane of a packet as the books know it.
func (h *fixture) laneOf(id string) fence.LaneRow {
	h.t.Helper()
	lanes, err := h.store.PoolLanes(h.t.Context())
	h.check(err)
	for _, l := range lanes {
		if l.Lane == packet.Lane(id, h.pool.Lanes()) {
			return l
		}
	}
	h.t.Fatalf("packet %s: no lane in the books", id)
	return fence.LaneRow{}
}

// seen waits until MySQL has recorded every acknowledged seq.
func (h *fixture) seen(id string) fence.LaneRow {
	h.t.Helper()
	var l fence.LaneRow
	wait.Until(h.t, "the books have heard", func() bool {
		e, err := h.pool.ReadEpoch(h.t.Context(), packet.Lane(id, h.pool.Lanes()))
		h.check(err)
		l = h.laneOf(id)
		return e.Seq > 0 && l.AckedSeq == e.Seq && l.AckedGrabs == e.Grabs
	})
	return l
}

// refused asks for everything that changes a packet.
func (h *fixture) refused(when, id string) {
	h.t.Helper()
	for what, r := range map[string]result{
		"grab":         h.grab(h.app, id, rand.Text()),
		"winner":       h.grab(h.app, id, "winner0"),
		"recall":       h.as(h.app, "POST", "/v1/packets/"+id+"/close", ""),
		"grab of none": h.grab(h.app, anonymous, "u"),
	} {
		if what == "grab of none" && packet.Lane(anonymous, h.pool.Lanes()) != packet.Lane(id, h.pool.Lanes()) {
			continue
		}
		if r.status != http.StatusServiceUnavailable || r.code() != "unavailable" || r.header.Get("Retry-After") == "" {
			h.t.Errorf("%s: %s: %s", when, what, r)
		}
	}
	key := rand.Text()
	for packet.Lane(packet.NewID(h.app.app.Salt, key), h.pool.Lanes()) != packet.Lane(id, h.pool.Lanes()) {
		key = rand.Text()
	}
	if r := h.post(h.app, key, with()); r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "" {
		h.t.Errorf("%s: create: %s", when, r)
	}
}

// TestR9_LostGrabsAreNotAcknowledgedAgain: when Redis has lost acknowledged grabs, create,
// grab and recall in that lane get 503, also from a process that started later: it compares
// with MySQL.
func TestR9_LostGrabsAreNotAcknowledgedAgain(t *testing.T) {
	for name, prepare := range stacktest.RedisDataLosses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := stacktest.FreshRedis(t)
			h := newFixture(t, parts{redis: server.Addr})
			closed := h.open(h.app, with())
			h.finish(closed, packet.CloseRecalled)
			id := h.open(h.app, with("share_count", "200", "total_amount", "20000"))
			for i := range 60 {
				h.grab(h.app, id, fmt.Sprint("before", i))
			}
			harm := prepare(t, server)
			won := h.sellOut(id, 20)
			before := h.seen(id)
			harm()
			h.refused("at once", id)

			wait.Until(h.t, "the books know", func() bool { return h.laneOf(id).State == fence.LaneShut })
			shut := h.laneOf(id)
			if shut.Epoch != 1 || shut.AckedSeq < before.AckedSeq || shut.AckedGrabs != 80 || shut.ShutAt.IsZero() {
				t.Errorf("the lane was %+v, is %+v", before, shut)
			}
			if want := map[string]fence.LaneReason{"emptied": fence.LaneKeyMissing, "file deleted": fence.LaneKeyMissing}[name]; want != "" &&
				shut.Reason != want || want == "" && shut.Reason != fence.LaneSeqBehind {
				t.Errorf("shut because of %q", shut.Reason)
			}
			h.reads(id, closed)

			// A process that has seen nothing of all that.
			fresh, err := pool.Open(t.Context(), pool.Config{Addr: server.Addr, Lanes: harness.Lanes, Epochs: h.store})
			h.check(err)
			defer fresh.Close()
			if _, open := fresh.Fence(id); open {
				t.Error("a new process goes on")
			}
			if _, err := fresh.Grab(t.Context(), id, "new", packet.Profile{}); !errors.Is(err, pool.ErrFenced) {
				t.Errorf("a new process returns %v", err)
			}
			h.refused("later", id)
			if len(won) != 20 {
				t.Errorf("%d have won", len(won))
			}
		})
	}
}

// reads checks that data complete in MySQL is returned while the lane is closed, and other
// data is unavailable, never not found. /readyz reports the closed lane.
func (h *fixture) reads(open, closed string) {
	h.t.Helper()
	if r := h.as(h.app, "GET", "/v1/packets/"+closed, ""); r.status != http.StatusOK {
		h.t.Errorf("closed packet: %s", r)
	}
	for _, path := range []string{"", "/grabs/winner0", "/grabs/nobody", "/grabs"} {
		if r := h.as(h.app, "GET", "/v1/packets/"+open+path, ""); r.code() != "unavailable" {
			h.t.Errorf("open packet%s: %s", path, r)
		}
	}
	var ready struct {
		Status       string
		Dependencies map[string]struct{ Status string }
	}
	r := h.get("/readyz")
	r.json(h.t, &ready)
	if r.status != http.StatusOK || ready.Status != "degraded" || ready.Dependencies["pool"].Status != "unavailable" ||
		ready.Dependencies["redis"].Status != "ok" {
		h.t.Errorf("readyz: %s", r)
	}
}

// TestR9_OnlyANewProcessKnows: the process that acknowledged grabs died together with Redis; a
// new one compares with MySQL only.
func TestR9_OnlyANewProcessKnows(t *testing.T) {
	for name, prepare := range stacktest.RedisDataLosses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := stacktest.FreshRedis(t)
			h := newFixture(t, parts{redis: server.Addr})
			id := h.open(h.app, with("share_count", "200", "total_amount", "20000"))
			for i := range 60 {
				h.grab(h.app, id, fmt.Sprint("before", i))
			}
			harm := prepare(t, server)
			h.sellOut(id, 20)
			before := h.seen(id)
			h.check(h.stop())
			h.check(h.pool.Close())
			harm()
			fresh, err := pool.Open(t.Context(), pool.Config{Addr: server.Addr, Lanes: harness.Lanes, Epochs: h.store})
			h.check(err)
			defer fresh.Close()
			if _, err := fresh.Grab(t.Context(), id, "new", packet.Profile{}); !errors.Is(err, pool.ErrFenced) {
				t.Errorf("a new process returns %v", err)
			}
			if l := h.laneOf(id); l.State != fence.LaneShut || l.AckedSeq != before.AckedSeq {
				t.Errorf("the lane was %+v, is %+v", before, l)
			}
		})
	}
}

// TestR9_ReplicaThatLacksGrabs: a replica without the last acknowledged writes of its master
// takes over; a process that connects to it refuses writes.
func TestR9_ReplicaThatLacksGrabs(t *testing.T) {
	t.Parallel()
	master, replica := stacktest.FreshRedis(t, "--repl-diskless-sync-delay", "0"), stacktest.FreshRedis(t)
	h := newFixture(t, parts{redis: master.Addr})
	client := redis.NewClient(&redis.Options{Addr: replica.Addr})
	defer client.Close()
	host, port, err := net.SplitHostPort(master.Addr)
	h.check(err)
	h.check(client.ReplicaOf(t.Context(), host, port).Err())
	id := h.open(h.app, with("share_count", "20", "total_amount", "2000"))
	h.grab(h.app, id, "kept")
	all := h.seen(id)
	wait.Until(h.t, "the replica has it", func() bool {
		seq, err := client.HGet(t.Context(), h.epochKey(id, master.Addr), "seq").Int64()
		return err == nil && seq == all.AckedSeq
	})
	h.check(client.ReplicaOf(t.Context(), "NO", "ONE").Err())
	h.sellOut(id, 3)
	h.seen(id)
	master.Kill()
	var fresh *pool.Pool
	wait.Until(h.t, "the replica's first rewrite has ended", func() bool {
		fresh, err = pool.Open(t.Context(), pool.Config{Addr: replica.Addr, Lanes: harness.Lanes, Epochs: h.store})
		return !errors.Is(err, pool.ErrRewrite)
	})
	h.check(err)
	defer fresh.Close()
	if _, err := fresh.Grab(t.Context(), id, "new", packet.Profile{}); !errors.Is(err, pool.ErrFenced) {
		t.Errorf("the replica returns %v", err)
	}
	if l := h.laneOf(id); l.State != fence.LaneShut || l.Reason != fence.LaneSeqBehind {
		t.Errorf("%+v", l)
	}
	e, err := fresh.ReadEpoch(t.Context(), packet.Lane(id, fresh.Lanes()))
	h.check(err)
	if e.Fence != fence.Halted {
		t.Errorf("others may go on: %+v", e)
	}
}

// epochKey finds the key of the epoch of a packet's lane.
func (h *fixture) epochKey(id, addr string) string {
	h.t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	found, err := client.Keys(h.t.Context(), fmt.Sprintf("hb:{l%02d*}:epoch", packet.Lane(id, h.pool.Lanes()))).Result()
	if err != nil || len(found) != 1 {
		h.t.Fatal(found, err)
	}
	return found[0]
}

// TestR9_LaneOpensAfterRebuild: what was shut answers again in a later epoch, and what a process had
// in memory of the epoch before is worth nothing.
func TestR9_LaneOpensAfterRebuild(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	h := newFixture(t, parts{redis: server.Addr})
	id := h.open(h.app, with("share_count", "2"))
	h.sellOut(id, 2)
	h.tooLate(id)
	h.empty(server.Addr)
	wait.Until(h.t, "it has noticed", func() bool { return h.grab(h.app, id, "x").code() == "unavailable" })
	h.refused("shut", id)
	h.goOnWithNothing()
	before := h.soldOutLocally()
	if r := h.grab(h.app, id, "x"); r.code() != "unavailable" || h.soldOutLocally() != before { // its pool was not put back
		t.Errorf("rebuilt with nothing: %s", r)
	}
	next := h.open(h.app, with())
	if r := h.grab(h.app, next, "u"); r.status != http.StatusCreated {
		t.Errorf("in the new epoch: %s", r)
	}
	if r := h.get("/readyz"); r.status != http.StatusOK {
		t.Errorf("readyz: %s", r)
	}
}

// TestR9_MySQLAwayAtStartup: a process that starts while MySQL is away serves what Redis
// says, and compares when MySQL is back.
func TestR9_MySQLAwayAtStartup(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	mysql, dsn := stacktest.FreshMariaDB(t)
	h := newFixture(t, parts{redis: server.Addr, dsn: dsn})
	id := h.open(h.app, with("share_count", "200", "total_amount", "20000"))
	older := stacktest.RedisDataLosses["older copy restored"](t, server)
	h.sellOut(id, 3)
	h.seen(id)
	h.check(h.stop())
	h.check(h.pool.Close())
	older()
	mysql.Kill()
	fresh, err := pool.Open(t.Context(), pool.Config{Addr: server.Addr, Lanes: harness.Lanes, Epochs: h.store})
	h.check(err)
	defer fresh.Close()
	if g, err := fresh.Grab(t.Context(), id, "new", packet.Profile{}); err != nil || g.Result != packet.GrabWon {
		t.Errorf("nobody can know yet: %+v, %v", g, err)
	}
	mysql.Restart(t)
	wait.Until(h.t, "it has compared", func() bool { _, open := fresh.Fence(id); return !open })
	if _, err := fresh.Create(t.Context(), packet.Packet{ID: id}, nil, nil, time.Hour, time.Second); !errors.Is(err, pool.ErrFenced) {
		t.Errorf("create: %v", err)
	}
}

// TestR9_FirstStart: the first process creates the lanes, also after an interrupted start. A
// lane that was open is never created again, and a Redis that is ahead of MySQL is not
// changed.
func TestR9_FirstStart(t *testing.T) {
	fresh := fence.LaneRow{Epoch: 1, State: fence.LaneShut, Reason: fence.LaneNew}
	opened := fence.LaneRow{Epoch: 1, State: fence.LaneOpen}
	for name, c := range map[string]struct {
		row    fence.LaneRow // none without an epoch
		redis  func(p *pool.Pool, lane int) error
		reason fence.LaneReason // "": it opens
	}{
		"nothing there":        {},
		"row made":             {row: fresh},
		"key made":             {row: fresh, redis: begun(1, false)},
		"row opened":           {row: opened, redis: begun(1, false)},
		"key alone":            {redis: begun(1, true)},
		"key alone, not open":  {redis: begun(1, false)},
		"open, then emptied":   {row: opened, reason: fence.LaneKeyMissing},
		"books older":          {row: opened, redis: begun(2, true), reason: fence.LaneMySQLOlder},
		"books have lost rows": {redis: begun(2, true), reason: fence.LaneMySQLOlder},
		"Redis older":          {row: fence.LaneRow{Epoch: 2, State: fence.LaneOpen}, redis: begun(1, true), reason: fence.LaneRedisOlder},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := stacktest.FreshRedis(t)
			h := &fixture{t: t, store: newStore(t)}
			const lanes = 4
			before, err := pool.Open(t.Context(), pool.Config{Addr: server.Addr, Lanes: lanes, Epochs: silent{}})
			h.check(err)
			for lane := range lanes {
				if c.row.Epoch > 0 {
					row := c.row
					row.Lane = lane
					h.check(h.store.AddPoolLanes(t.Context(), []fence.LaneRow{row}))
				}
				if c.redis != nil {
					h.check(c.redis(before, lane))
				}
			}
			h.check(before.Close())

			p, err := pool.Open(t.Context(), pool.Config{Addr: server.Addr, Lanes: lanes, Epochs: h.store})
			h.check(err)
			defer p.Close()
			if (p.CheckFences(t.Context()) == nil) != (c.reason == "") {
				t.Errorf("%d lanes shut", p.LanesFenced())
			}
			rows, err := h.store.PoolLanes(t.Context())
			h.check(err)
			for _, l := range rows {
				if l.Reason != c.reason || (l.State == fence.LaneOpen) != (c.reason == "") {
					t.Errorf("%+v", l)
				}
			}
			if len(rows) != lanes {
				t.Errorf("%d lanes in the books", len(rows))
			}
			two, err := pool.Open(t.Context(), pool.Config{Addr: server.Addr, Lanes: lanes, Epochs: h.store})
			h.check(err)
			defer two.Close()
			if two.LanesFenced() != p.LanesFenced() {
				t.Errorf("%d lanes are shut for one, %d for another", p.LanesFenced(), two.LanesFenced())
			}
		})
	}
}

// newStore opens a store on a new database, in which no lane is known.
func newStore(t *testing.T) *store.Store {
	t.Helper()
	dsn := stacktest.MariaDB(t)
	stacktest.Migrate(t, dsn)
	s, err := store.Open(store.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// begun brings a lane of Redis into an epoch.
func begun(epoch int64, open bool) func(p *pool.Pool, lane int) error {
	return func(p *pool.Pool, lane int) error {
		if err := p.CloseFence(context.Background(), lane, epoch); err != nil || !open {
			return err
		}
		return p.OpenFence(context.Background(), lane, epoch, 0)
	}
}

// silent are books that are away: a process beside them makes no lanes.
type silent struct{}

func (silent) PoolLanes(context.Context) ([]fence.LaneRow, error)  { return nil, packet.ErrUnavailable }
func (silent) AddPoolLanes(context.Context, []fence.LaneRow) error { return packet.ErrUnavailable }
func (silent) OpenNewPoolLanes(context.Context, []int) error       { return packet.ErrUnavailable }
func (silent) RaiseSeenSeqs(context.Context, []fence.LanePosition) error {
	return packet.ErrUnavailable
}
func (silent) CompareLaneEpoch(context.Context, int, int64) (bool, error) {
	return false, packet.ErrUnavailable
}
func (silent) ShutPoolLane(context.Context, int, int64, fence.LaneReason) (bool, error) {
	return false, packet.ErrUnavailable
}
