package worker_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/activities"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/fence"
	"hongbao/internal/packet"
	"hongbao/internal/pool"
	"hongbao/internal/reconcile/rebuild"
	"hongbao/test/harness"
	"hongbao/test/wait"
	"hongbao/worker"
)

// byHand is a rig whose worker rebuilds nothing by itself.
func byHand(t testing.TB) (*rig, *stacktest.Server) {
	t.Helper()
	server := stacktest.FreshRedis(t)
	temporal, ns := stacktest.TemporalNamespace(t)
	return newRigWith(t, server.Addr, stacktest.MariaDB(t), temporal, ns, func(_ *rig, cfg *worker.Config) { cfg.Rebuild = nil }), server
}

func (r *rig) flush(t testing.TB) {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: r.redis})
	defer c.Close()
	if err := c.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
}

// awaitShut waits until MySQL has a packet's lane fenced.
func (r *rig) awaitShut(t testing.TB, lane int) fence.LaneRow {
	t.Helper()
	var row fence.LaneRow
	wait.Until(t, "lane shut", func() bool {
		for _, l := range must(r.store.PoolLanes(t.Context()))(t) {
			if l.Lane == lane {
				row = l
			}
		}
		return row.State == fence.LaneShut
	})
	return row
}

// TestR9_RebuildKilled: a rebuilder may die after each of its steps; another one takes over with
// the same result.
func TestR9_RebuildKilled(t *testing.T) {
	t.Parallel()
	r, _ := byHand(t)
	ctx := t.Context()
	cfg := rebuildConfig(t, r)
	cfg.Pace = rebuildPace
	cfg.Pace.Lease, cfg.Pace.Settle = 500*time.Millisecond, 300*time.Millisecond
	p := r.create(t, spec{total: 100_000, count: 200})
	r.awaitOpen(t, p.ID)
	lane := packet.Lane(p.ID, harness.Lanes)
	c := newGrabbers(r, []packet.Packet{p})
	for i, step := range []string{"begun", "shut", "drained", "settled", "made", "opened", "ended"} {
		for range 5 {
			if err := c.grab(ctx, p.ID, c.user(false)); err != nil {
				t.Fatal(err)
			}
		}
		r.quietLanes(t)
		wait.Until(t, "claims recorded", func() bool { return r.recordedClaims(t, p.ID) == 5*(i+1) })
		r.flush(t)
		from := r.awaitShut(t, lane)
		dying, kill := context.WithCancel(ctx)
		killed := cfg
		killed.OnStep = func(_ int, done string) {
			if done == step {
				kill()
			}
		}
		first := rebuild.New(killed)
		_, did, err := rebuiltUntil(dying, first, lane, func() bool { return dying.Err() != nil })
		if did != (step == "ended") || !did && err == nil {
			t.Fatalf("killed after %s: %v %v", step, did, err)
		}
		kill()
		second := rebuild.New(cfg)
		if !did {
			r.leaseKept(t, lane)
			wait.Until(t, "taken over", func() bool {
				b, did, err := rebuilt(t, second, lane)
				if err != nil || did && (b.Lost != 0 || b.From != from.Epoch || b.Acked.Grabs != from.AckedGrabs || b.Packets != 1) {
					t.Fatalf("taken over: %+v %v", b, err)
				}
				return did
			})
		}
		if _, did, err := rebuilt(t, second, lane); did || err != nil {
			t.Errorf("rebuilt although it is open: %v %v", did, err)
		}
		wait.Until(t, "gate open", func() bool { _, open := r.pool.Fence(p.ID); return open })
	}
	r.rebuildShut(t, rebuild.New(cfg)) // the empty ones
	if err := c.grab(ctx, p.ID, c.user(false)); err != nil {
		t.Fatal(err)
	}
	for n := range c.next { // everybody asks again
		if err := c.grab(ctx, p.ID, userNamed(n+1)); err != nil {
			t.Fatal(err)
		}
	}
	r.settled(t, c.packets)
	if gone := c.judge(t); gone != 0 || c.won() != 36 {
		t.Errorf("%d grabs won, %d gone", c.won(), gone)
	}
}

// rebuildShut rebuilds all lanes that are shut, at the same time.
func (r *rig) rebuildShut(t testing.TB, rebuilder *rebuild.Rebuilder) {
	t.Helper()
	var lanes sync.WaitGroup
	for _, row := range must(r.store.PoolLanes(t.Context()))(t) {
		if row.State == fence.LaneShut {
			lanes.Go(func() {
				_, _, err := rebuilt(t, rebuilder, row.Lane)
				if err != nil {
					t.Errorf("rebuild of lane %d: %v", row.Lane, err)
				}
			})
		}
	}
	lanes.Wait()
}

// rebuilt rebuilds a lane, with retries while something does not answer, as a worker does.
func rebuilt(t testing.TB, rebuilder *rebuild.Rebuilder, lane int) (fence.Rebuild, bool, error) {
	t.Helper()
	return rebuiltUntil(t.Context(), rebuilder, lane, func() bool { return false })
}

// rebuiltUntil is rebuilt, which also ends once the rebuilder was ended on purpose.
func rebuiltUntil(ctx context.Context, rebuilder *rebuild.Rebuilder, lane int, ended func() bool) (b fence.Rebuild, did bool, err error) {
	wait.Reached(wait.Limit(), func() bool { // also in goroutines, which must not end a test
		b, did, err = rebuilder.Lane(ctx, lane)
		return ended() || !errors.Is(err, packet.ErrUnavailable) && !activities.TemporalUnavailable(err)
	})
	return b, did, err
}

// leaseKept: no rebuilder takes a lane before the lease ends, by MySQL's clock. It fails only if
// the lease was still running afterwards, because on a busy machine it may expire.
func (r *rig) leaseKept(t testing.TB, lane int) {
	t.Helper()
	before := r.laneRow(t, lane)
	_, taken, err := r.store.BeginRebuild(t.Context(), lane, "another", time.Millisecond, fence.LanePosition{Lane: lane})
	if err != nil || taken && must(r.store.Clock(t.Context()))(t).Before(before.LeaseUntil) {
		t.Errorf("taken over within the lease, which ends %v: %v %v", before.LeaseUntil, taken, err)
	}
}

// paused is a store that gets no calls of a rebuilder, as if its machine stood still.
type paused struct{ rebuild.Store }

func (paused) ExtendRebuildLease(ctx context.Context, _ fence.Rebuild, _ time.Duration) error {
	<-ctx.Done()
	return ctx.Err()
}

var errSeen = errors.New("seen before")

// TestR9_RebuildStale: a stalled rebuilder that was taken over changes nothing when it resumes.
func TestR9_RebuildStale(t *testing.T) {
	t.Parallel()
	r, server := byHand(t)
	ctx := t.Context()
	cfg := rebuildConfig(t, r)
	cfg.Pace = rebuildPace
	cfg.Pace.Lease, cfg.Pace.Settle = 500*time.Millisecond, 300*time.Millisecond
	for _, step := range []string{"begun", "settled", "made", "opened"} {
		p := r.create(t, spec{total: 1000, count: 20})
		r.awaitOpen(t, p.ID)
		lane := packet.Lane(p.ID, harness.Lanes)
		g := r.grab(t, p.ID, "first")
		wait.Until(t, "claim recorded", func() bool { return r.recordedClaims(t, p.ID) == 1 })
		r.flush(t)
		r.awaitShut(t, lane)
		slow := cfg
		slow.Store = paused{r.store}
		stands, startSpan := make(chan struct{}), make(chan struct{})
		slow.OnStep = func(_ int, done string) {
			if done == step {
				close(stands)
				<-startSpan
			}
		}
		stale := rebuild.New(slow)
		answer := make(chan error, 1)
		go func() {
			_, did, err := rebuiltUntil(ctx, stale, lane, func() bool {
				select {
				case <-stands:
					return true
				default:
					return false
				}
			})
			if did {
				err = errors.New("it says that it has rebuilt the lane")
			}
			answer <- err
		}()
		<-stands
		both := sync.OnceFunc(func() { // they are about to make the lane
			close(startSpan)
			if err := <-answer; !errors.Is(err, pool.ErrFenced) {
				t.Errorf("made by two at once: %v", err)
			}
			answer <- errSeen
		})
		beside := cfg
		beside.OnStep = func(_ int, done string) {
			if step == "settled" && done == "settled" {
				both()
			}
		}
		live := rebuild.New(beside)
		wait.Until(t, "taken over", func() bool {
			return must(func() (bool, error) { _, did, err := rebuilt(t, live, lane); return did, err }())(t)
		})
		wait.Until(t, "gate open", func() bool { _, open := r.pool.Fence(p.ID); return open })
		again := r.grab(t, p.ID, "second")
		before, books := content(t, server.Addr), must(r.store.PoolLanes(ctx))(t)[lane]
		if step != "settled" {
			close(startSpan)
		}
		if err := <-answer; err == nil || err.Error() == "it says that it has rebuilt the lane" {
			t.Errorf("after %s: %v", step, err)
		}
		after := content(t, server.Addr)
		for key := range before {
			if !strings.HasSuffix(key, "claimed") && before[key] != after[key] { // that one is the relay's
				t.Errorf("after %s: %s\n was %.300s\n is %.300s", step, key, before[key], after[key])
			}
		}
		if now := must(r.store.PoolLanes(ctx))(t)[lane]; now.Epoch != books.Epoch || now.State != fence.LaneOpen {
			t.Errorf("after %s: MySQL had %+v, has %+v", step, books, now)
		}
		if g.Claim.ShareIndex == again.Claim.ShareIndex || again.Result != packet.GrabWon {
			t.Errorf("after %s: %+v and %+v", step, g, again)
		}
		r.rebuildShut(t, rebuild.New(cfg))
		wait.Until(t, "every lane open", func() bool { return r.pool.LanesFenced() == 0 })
	}
}

// acknowledged checks that a repeated grab returns the claim; its lane may be fenced in between.
func (r *rig) acknowledged(t testing.TB, c packet.Claim) {
	t.Helper()
	again := r.grab(t, c.PacketID, c.UserID)
	if again.Result != packet.GrabReplayed || again.Claim.ShareIndex != c.ShareIndex || again.Claim.Amount != c.Amount {
		t.Errorf("acknowledged %+v, then %s %+v", c, again.Result, again.Claim)
	}
}

// TestR9_ClosingWaitsForTheFence: no packet closes while its lane is fenced: Redis may lack
// acknowledged claims.
func TestR9_ClosingWaitsForTheFence(t *testing.T) {
	t.Parallel()
	r, _ := byHand(t)
	ctx := t.Context()
	p := r.create(t, spec{total: 1000, count: 10})
	r.awaitOpen(t, p.ID)
	lane := packet.Lane(p.ID, harness.Lanes)
	if _, err := r.store.BeginClosing(ctx, p.ID, packet.CloseRecalled); err != nil {
		t.Fatal(err)
	}
	r.flush(t)
	r.awaitShut(t, lane)
	if _, err := r.store.CloseBooks(ctx, p.ID, ""); !errors.Is(err, packet.ErrUnavailable) {
		t.Errorf("packet closed behind a fence: %v", err)
	}
	if rec := must(r.store.Packet(ctx, p.ID))(t); !rec.BooksClosedAt.IsZero() {
		t.Error("packet closed behind a fence")
	}
	cfg := rebuildConfig(t, r)
	cfg.Pace = rebuildPace
	must(func() (bool, error) { _, did, err := rebuilt(t, rebuild.New(cfg), lane); return did, err }())(t)
	if remainder, err := r.store.CloseBooks(ctx, p.ID, ""); err != nil || remainder != 1000 {
		t.Errorf("behind an open one: %d, %v", remainder, err)
	}
}

// asked are rows that report when a user is looked up.
type asked struct {
	rebuild.Rows
	user  string
	onAsk func()
}

func (a asked) RecordedClaims(ctx context.Context, packetID string, claims []packet.Claim) (packet.Recorded, error) {
	if slices.ContainsFunc(claims, func(c packet.Claim) bool { return c.UserID == a.user }) {
		a.onAsk()
	}
	return a.Rows.RecordedClaims(ctx, packetID, claims)
}

// heldRow holds a packet's row: nothing is booked before it is released.
func heldRow(t *testing.T, db *sql.DB, packetID string) (release func()) {
	t.Helper()
	lock := must(db.BeginTx(t.Context(), nil))(t)
	if _, err := lock.ExecContext(t.Context(), "SELECT id FROM packets WHERE id = ? FOR UPDATE", packetID); err != nil {
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() {
		if err := lock.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
			t.Error(err)
		}
	})
	t.Cleanup(release)
	return release
}

// TestR9_RebuildWaitsForRuns: a grab that Redis lost, and that Temporal has, is recorded before
// its lane is rebuilt, so its share is not dealt again.
func TestR9_RebuildWaitsForRuns(t *testing.T) {
	t.Parallel()
	r, _ := byHand(t)
	p := r.create(t, spec{total: 1000, count: 10})
	r.awaitOpen(t, p.ID)
	lane := packet.Lane(p.ID, harness.Lanes)
	release := heldRow(t, r.sql(t), p.ID)
	g := r.grab(t, p.ID, "first")
	r.quietLanes(t) // Temporal has it
	r.flush(t)
	r.awaitShut(t, lane)
	cfg := rebuildConfig(t, r)
	cfg.Pace = rebuildPace
	looks := 0
	cfg.Rows = asked{r.store, "first", func() {
		if looks++; looks == 3 {
			release()
		}
	}}
	cfg.OnStep = func(_ int, done string) {
		if done == "settled" && looks < 3 {
			t.Error("the lane is made without waiting for a run that is under way")
			release()
		}
	}
	rebuilder := rebuild.New(cfg)
	b, did, err := rebuilt(t, rebuilder, lane)
	if !did || err != nil || b.Lost != 0 || b.Recorded != 1 {
		t.Fatalf("rebuilt: %+v, %v, %v", b, did, err)
	}
	wait.Until(t, "gate open", func() bool { _, open := r.pool.Fence(p.ID); return open })
	if again := r.grab(t, p.ID, "first"); again.Result != packet.GrabReplayed || again.Claim.ShareIndex != g.Claim.ShareIndex ||
		again.Claim.Amount != g.Claim.Amount {
		t.Errorf("acknowledged %+v, then %+v", g, again)
	}
	if second := r.grab(t, p.ID, "second"); second.Result != packet.GrabWon || second.Claim.ShareIndex == g.Claim.ShareIndex {
		t.Errorf("the second one got %+v", second)
	}
}
