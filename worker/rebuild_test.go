package worker_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/fence"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/pool"
	"hongbao/internal/staff"
	"hongbao/test/harness"
	"hongbao/test/wait"
)

// grabbers grab and repeat grabs, and store the answers.
type grabbers struct {
	r       *rig
	packets []packet.Packet
	stop    context.CancelFunc
	done    sync.WaitGroup

	mu      sync.Mutex
	answers map[string][]packet.Claim // by packet and user, in order; each claim once
	n       int                       // grabs that were won
	next    int                       // number of the last user
	// unanswered counts the grabs that Redis may have made without an answer.
	unanswered int
	// asked counts the repeated grabs.
	asked int
	// most bounds the grabs that may be won so far; beyond it all grabs are repeats. Each win is
	// a payout, and thousands of them would only load the machine.
	most int
}

// beside is how many grabs may be won beside those that are waited for.
const beside = 20

func newGrabbers(r *rig, packets []packet.Packet) *grabbers {
	return &grabbers{r: r, packets: packets, answers: map[string][]packet.Claim{}}
}

// start makes users grab until halt; one of three grabs is repeated.
func (c *grabbers) start(ctx context.Context) {
	ctx, c.stop = context.WithCancel(ctx)
	for worker := range 4 {
		c.done.Go(func() {
			for i := worker; ctx.Err() == nil; i++ {
				user := c.user(i%3 == 0 || c.enough())
				// No grab is cancelled at the end: its answer would be lost.
				_ = c.grab(context.WithoutCancel(ctx), c.packets[i%len(c.packets)].ID, user)
				select {
				case <-ctx.Done():
				case <-time.After(10 * time.Millisecond):
				}
			}
		})
	}
}

func (c *grabbers) halt() { c.stop(); c.done.Wait() }

func (c *grabbers) user(again bool) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if again && c.next > 0 {
		c.asked++
		return userNamed(1 + c.asked*7%c.next)
	}
	c.next++
	return userNamed(c.next)
}

func userNamed(n int) string { return fmt.Sprintf("u%05d", n) }

// grab grabs once and remembers the answer.
func (c *grabbers) grab(ctx context.Context, id, user string) error {
	g, err := c.r.pool.Grab(ctx, id, user, packet.Profile{})
	if dial, is := errors.AsType[*net.OpError](err); err != nil && !errors.Is(err, pool.ErrFenced) && !(is && dial.Op == "dial") {
		c.mu.Lock()
		c.unanswered++
		c.mu.Unlock()
	}
	if err != nil || g.Result != packet.GrabWon && g.Result != packet.GrabReplayed {
		return err
	}
	g.Claim.Epoch, g.Claim.Seq = 0, 0
	c.mu.Lock()
	defer c.mu.Unlock()
	key := id + "/" + user
	if all := c.answers[key]; len(all) == 0 || !sameClaim(all[len(all)-1], g.Claim) {
		c.answers[key] = append(all, g.Claim)
	}
	if g.Result == packet.GrabWon {
		c.n++
	}
	return nil
}

func (c *grabbers) enough() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next > 0 && c.n >= c.most
}

func (c *grabbers) won() int { c.mu.Lock(); defer c.mu.Unlock(); return c.n }

// awaitWon waits until so many more grabs were won.
func (c *grabbers) awaitWon(t testing.TB, more int) {
	t.Helper()
	from := c.won()
	c.mu.Lock()
	c.most = from + more + beside
	c.mu.Unlock()
	wait.Until(t, fmt.Sprintf("%d more grabs", more), func() bool { return c.won() >= from+more })
}

// judge compares the answers with MySQL and the provider, and returns how many acknowledged
// claims are lost.
func (c *grabbers) judge(t testing.TB) (gone int) {
	t.Helper()
	for _, p := range c.packets {
		booked := map[string]packet.ClaimWithPayout{}
		for _, paid := range must(c.r.reports().ClaimsBefore(t.Context(), p.ID, -1, p.ShareCount))(t) {
			booked[paid.UserID] = paid
		}
		for _, user := range must(c.r.store.ShareConflictUsers(t.Context(), p.ID))(t) {
			if _, too := booked[user]; too {
				t.Errorf("user %s of packet %s has a share, and another claim acknowledged", user, p.ID)
			}
		}
		paid := map[string]money.Fen{}
		for _, m := range c.r.movements(t, p.ID) {
			if m.Op != "transfer" {
				continue
			}
			if _, twice := paid[m.Account]; twice {
				t.Errorf("user %s of packet %s was paid twice", m.Account, p.ID)
			}
			paid[m.Account] = m.Amount
		}
		for user, b := range booked {
			if paid[user] != b.Amount {
				t.Errorf("user %s of packet %s was paid %d, is owed %d", user, p.ID, paid[user], b.Amount)
			}
			answers := c.answers[p.ID+"/"+user]
			if len(answers) == 0 {
				continue // the answer was lost; the user may repeat
			}
			last := answers[len(answers)-1]
			if last.ShareIndex != b.ShareIndex || last.Amount != b.Amount {
				t.Errorf("user %s of packet %s: last answer share %d of %d, recorded %d of %d", user, p.ID, last.ShareIndex, last.Amount, b.ShareIndex,
					b.Amount)
			}
		}
		for key, answers := range c.answers {
			if id, user, _ := strings.Cut(key, "/"); id == p.ID {
				for _, claim := range answers {
					kept := must(c.kept(t, claim))(t)
					if !kept {
						gone++
					} else if len(answers) > 1 && !sameClaim(claim, answers[len(answers)-1]) {
						t.Errorf("user %s of packet %s got a claim that is kept, and another one after it: %v", user, id, answers)
					}
				}
			}
		}
	}
	return gone
}

// kept reports whether MySQL has an acknowledged claim.
func (c *grabbers) kept(t testing.TB, claim packet.Claim) (bool, error) {
	paid, err := c.r.store.Claim(t.Context(), claim.PacketID, claim.UserID)
	if err != nil {
		return false, nil //nolint:nilerr // not found; others fail elsewhere
	}
	return sameClaim(paid.Claim, claim), nil
}

// sameClaim compares two claims; a user who lost a share may win it again later.
func sameClaim(a, b packet.Claim) bool {
	return a.ShareIndex == b.ShareIndex && a.Amount == b.Amount && a.ClaimedAt.Equal(b.ClaimedAt)
}

// awaitRebuilt waits until more than so many lanes were rebuilt, and all are open.
func (r *rig) awaitRebuilt(t testing.TB, before int) {
	t.Helper()
	wait.Until(t, "lanes rebuilt, and all open", func() bool {
		lanes, err := r.store.PoolLanes(t.Context())
		if err != nil || len(lanes) != harness.Lanes || r.pool.LanesFenced() > 0 {
			return false
		}
		for _, l := range lanes {
			if l.State != fence.LaneOpen {
				return false
			}
		}
		return len(must(r.store.Rebuilds(t.Context(), 1000))(t)) > before
	})
}

// lost adds up the losses that rebuilds have reported.
func (r *rig) lost(t testing.TB) (n int64) {
	t.Helper()
	for _, b := range must(r.store.Rebuilds(t.Context(), 1000))(t) {
		n += b.Lost
	}
	return n
}

// dirOf is the data folder of a Redis that runs.
func dirOf(t testing.TB, addr string) string {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr})
	defer c.Close()
	return must(c.ConfigGet(t.Context(), "dir").Result())(t)["dir"]
}

// copyDir copies the data folder of a Redis, which may be running. A copy counts only when the
// manifest is the same before and after, because a rewrite replaces the files it names.
func copyDir(t testing.TB, from, to string) {
	t.Helper()
	manifest := func() string {
		b, err := os.ReadFile(filepath.Join(from, "appendonlydir", "appendonly.aof.manifest"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	wait.Until(t, "no rewrite during the copy", func() bool {
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
		before := manifest()
		err := os.CopyFS(to, os.DirFS(from))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return err == nil && manifest() == before
	})
}

// aof is the append-only file that a Redis writes to.
func aof(t testing.TB, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "appendonlydir", "*.incr.aof"))
	if err != nil || len(found) != 1 {
		t.Fatalf("append-only files in %s: %v %v", dir, found, err)
	}
	return found[0]
}

// TestR9_RebuildHeals: whatever Redis loses under load, the lanes are rebuilt by themselves. No
// payment is made twice, recorded claims are paid and answered as before, and the number of lost
// grabs is reported.
func TestR9_RebuildHeals(t *testing.T) {
	t.Parallel()
	r, server := newR9Rig(t)
	ctx := t.Context()
	dir := dirOf(t, server.Addr)
	older := filepath.Join(t.TempDir(), "older")
	whole := t // the worker outlives the part of the test that starts it
	for _, fault := range []struct {
		name string
		at   func() // halfway: while the worker runs
		lose func()
	}{
		{"emptied", nil, func() {
			c := redis.NewClient(&redis.Options{Addr: server.Addr})
			defer c.Close()
			must(c.FlushAll(ctx).Result())(t)
		}},
		{"append-only file deleted", nil, func() {
			server.Kill()
			if err := os.RemoveAll(filepath.Join(dir, "appendonlydir")); err != nil {
				t.Fatal(err)
			}
			server.Restart(t)
		}},
		{"append-only file cut off", nil, func() {
			server.Kill()
			path := aof(t, dir)
			if err := os.Truncate(path, must(os.Stat(path))(t).Size()*9/10); err != nil {
				t.Fatal(err)
			}
			server.Restart(t)
		}},
		{"older copy", func() { copyDir(t, dir, older) }, func() {
			server.Kill()
			copyDir(t, older, dir)
			server.Restart(t)
		}},
	} {
		t.Run(fault.name, func(t *testing.T) {
			var packets []packet.Packet
			for n := range 4 {
				packets = append(packets, r.create(t, spec{total: money.Fen(1_000_000 + n), count: 1000}))
			}
			for _, p := range packets {
				r.awaitOpen(t, p.ID)
			}
			before, rebuilds := r.lost(t), len(must(r.store.Rebuilds(ctx, 1000))(t))
			c := newGrabbers(r, packets)
			c.start(ctx)
			c.awaitWon(t, 30)
			if fault.at != nil {
				fault.at()
			}
			r.stop() // what is won from now on reaches neither Temporal nor MySQL
			c.awaitWon(t, 20)
			fault.lose()
			wait.Until(t, "Redis answers again", func() bool { return r.pool.Ping(ctx) == nil })
			_, r.stop = r.startWorker(whole)
			r.awaitRebuilt(t, rebuilds)
			c.awaitWon(t, 20)
			c.halt()
			r.settled(t, packets)
			gone := c.judge(t)
			if lost := int(r.lost(t) - before); lost < gone || lost > gone+c.unanswered {
				t.Errorf("%d grabs are gone and %d had no answer; %d were reported", gone, c.unanswered, lost)
			}
			t.Logf("%d grabs won, %d gone, %d without an answer", c.won(), gone, c.unanswered)
		})
	}
}

// settled ends packets and compares their ledgers.
func (r *rig) settled(t testing.TB, packets []packet.Packet) {
	t.Helper()
	for _, p := range packets {
		r.recall(t, p.ID)
	}
	for _, p := range packets {
		r.awaitStatus(t, p.ID, packet.StatusClosed)
		for _, paid := range must(r.reports().ClaimsBefore(t.Context(), p.ID, -1, p.ShareCount))(t) {
			r.awaitPayout(t, paid.Claim, payout.StatusPaid)
		}
		r.balanced(t, p)
	}
	found := must(r.reports().VerifyLedger(t.Context(), func(v staff.Violation) error { t.Errorf("ledger: %+v", v); return nil }))(t)
	if found.ViolationCount() > 0 {
		t.Errorf("%d violations in the ledger", found.ViolationCount())
	}
}

// recordedClaims counts the claims of a packet that MySQL has, with or without a share.
func (r *rig) recordedClaims(t testing.TB, id string) int {
	t.Helper()
	shares, conflicts, err := r.store.CountClaims(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return shares + conflicts
}
