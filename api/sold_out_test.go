package api_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"hongbao/api"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/test/wait"
)

// soldOutLocally is how many grabs the process has answered without asking Redis.
func (h *fixture) soldOutLocally() int {
	h.t.Helper()
	found := regexp.MustCompile(`(?m)^hongbao_grab_sold_out_local_total (\d+)$`).FindSubmatch(h.get("/metrics").body)
	if found == nil {
		h.t.Fatal("no metric of grabs that were answered locally")
	}
	n, err := strconv.Atoi(string(found[1]))
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

// another starts another process of the API, which is asked from now on; first is
// the address of the one before, which goes on.
func (h *fixture) another() (first string) {
	first, stop := h.public, h.stop
	h.t.Cleanup(func() { h.check(stop()) })
	h.start()
	return first
}

// sellOut lets n winners take all shares of a packet and returns their claims.
func (h *fixture) sellOut(id string, n int) map[string]claimBody {
	h.t.Helper()
	won := map[string]claimBody{}
	for i := range n {
		r := h.grab(h.app, id, fmt.Sprint("winner", i))
		var c claimBody
		r.json(h.t, &c)
		if r.status != http.StatusCreated {
			h.t.Fatalf("%s", r)
		}
		won[c.UserID] = c
	}
	return won
}

// tooLate grabs for people who have not won until the process answers by itself.
func (h *fixture) tooLate(id string) {
	h.t.Helper()
	before, n := h.soldOutLocally(), 0
	wait.Until(h.t, "the process knows the winners", func() bool {
		n++
		if r := h.grab(h.app, id, fmt.Sprint("late", n)); r.code() != "sold_out" {
			h.t.Fatalf("%s", r)
		}
		return h.soldOutLocally() > before
	})
}

// keepTheirs checks that every winner still gets the claim.
func (h *fixture) keepTheirs(id string, won map[string]claimBody) {
	h.t.Helper()
	for user, first := range won {
		var again claimBody
		r := h.grab(h.app, id, user)
		r.json(h.t, &again)
		if r.status != http.StatusOK || !again.Replayed || again.Amount != first.Amount || again.ShareIndex != first.ShareIndex {
			h.t.Errorf("%s won %+v: %s", user, first, r)
		}
	}
}

// TestSoldOutLocally: once the last share is gone and the winners are known,
// nobody but them costs Redis anything, in every later state of the packet.
func TestSoldOutLocally(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	h := newFixture(t, parts{redis: server.Addr})
	id := h.open(h.app, with("share_count", "7"))
	won := h.sellOut(id, 6)
	first := h.another()
	last := h.grab(h.app, id, "Winner0") // not winner0: users are compared byte by byte
	var c claimBody
	last.json(t, &c)
	if last.status != http.StatusCreated {
		t.Fatalf("%s", last)
	}
	won["Winner0"] = c
	h.tooLate(id)

	crowd := func(when string) {
		t.Helper()
		before, commands := h.soldOutLocally(), commandsOf(t, server.Addr)
		for i := range 50 {
			if r := h.grab(h.app, id, fmt.Sprint("crowd", i)); r.code() != "sold_out" || r.status != http.StatusConflict {
				t.Errorf("%s: %s", when, r)
			}
		}
		if n := h.soldOutLocally() - before; n != 50 {
			t.Errorf("%s: %d of 50 were answered by the process", when, n)
		}
		if now := commandsOf(t, server.Addr); commands != now {
			t.Errorf("%s: Redis was asked:\n%s\n%s", when, commands, now)
		}
		if r := h.grab(h.app2, id, "crowd1"); r.code() != "packet_not_found" {
			t.Errorf("%s: another app: %s", when, r)
		}
		if r := h.as(h.app, "POST", "/v1/packets/"+id+"/grabs", `{"user_id":"crowd1","x":1}`); r.code() != "invalid_request" {
			t.Errorf("%s: %s", when, r)
		}
		h.keepTheirs(id, won)
	}
	crowd("sold out")
	second := h.public
	h.public = first
	h.keepTheirs(id, won)
	h.public = second
	h.finish(id, packet.CloseSoldOut)
	crowd("retired")

	h.another() // a process that has never seen the pool learns from MySQL
	h.tooLate(id)
	crowd("learned from mysql")
	third := h.another()
	fourth := h.public
	h.public = third
	server.Kill()
	if r := h.grab(h.app, id, "crowd1"); r.code() != "sold_out" {
		t.Errorf("without redis: %s", r)
	}
	h.keepTheirs(id, won) // each has grabbed at this process before
	h.public = fourth
	if r := h.grab(h.app, id, "winner1"); r.status != http.StatusServiceUnavailable {
		t.Errorf("a winner without redis, at a process without the claim: %s", r)
	}
}

// TestRepeatedClaims: repeated grabs of a winner of a sold-out packet cost Redis one call.
// The progress of the payout is the current one.
func TestRepeatedClaims(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	var epoch atomic.Int64
	var shut atomic.Bool
	h := newFixture(t, parts{redis: server.Addr, change: func(c *api.Config) {
		gate := c.Fence
		c.Fence = func(id string) (int64, bool) { at, open := gate(id); return at + epoch.Load(), open && !shut.Load() }
	}})
	id := h.open(h.app, with("share_count", "5"))
	won := h.sellOut(id, 5)
	h.tooLate(id)
	asked := func(when string, want bool) {
		t.Helper()
		before := commandsOf(t, server.Addr)
		h.keepTheirs(id, won)
		if got := commandsOf(t, server.Addr) != before; got != want {
			t.Errorf("%s: Redis was asked: %t", when, got)
		}
	}
	asked("the first time", true)
	asked("again", false)
	if r := h.grab(h.app2, id, "winner0"); r.code() != "packet_not_found" {
		t.Errorf("another app: %s", r)
	}
	if r := h.grab(h.app, id, "winner"); r.code() != "sold_out" {
		t.Errorf("a user whose id begins like a winner's: %s", r)
	}
	if r := h.as(h.app, "POST", "/v1/packets/"+id+"/grabs", `{"user_id":"winner0","recipient":1}`); r.code() != "invalid_request" {
		t.Errorf("a bad request: %s", r)
	}
	for user, c := range won {
		if c.Payout.Status != "pending" {
			t.Fatalf("%s: %+v", user, c.Payout)
		}
	}
	h.finish(id, packet.CloseSoldOut) // each is paid
	wait.Until(h.t, "the statuses of the payouts are returned", func() bool {
		for user := range won {
			var c claimBody
			h.grab(h.app, id, user).json(t, &c)
			if c.Payout.Status != "paid" {
				return false
			}
		}
		return true
	})
	asked("when the pool is retired", false)
	shut.Store(true)
	if r := h.grab(h.app, id, "winner0"); r.code() != "unavailable" {
		t.Errorf("while the gate is shut: %s", r)
	}
	shut.Store(false)
	epoch.Add(1)
	h.tooLate(id) // the winners are learned again
	asked("rebuilt", true)
}

// byTheWay are commands that no grab needs alone: of asking this, of the process' look at its
// gates once a second (HMGET), and of its look at the copy of the keys (GET).
var byTheWay = []string{"cmdstat_info", "cmdstat_hello", "cmdstat_hmget", "cmdstat_get", "cmdstat_config|get"}

// commandsOf is how often each other command was sent to Redis; a grab is an EVALSHA.
func commandsOf(t *testing.T, addr string) string {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true, Protocol: 2})
	defer func() { _ = rdb.Close() }()
	info, err := rdb.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(info) {
		if name, rest, ok := strings.Cut(line, ":calls="); ok && !slices.Contains(byTheWay, name) {
			calls, _, _ := strings.Cut(rest, ",")
			out = append(out, name+"="+calls)
		}
	}
	return strings.Join(out, " ")
}

// TestSoldOutGuests: of a packet with a guest list a stranger is not eligible,
// sold out or not; the process leaves that to the pool.
func TestSoldOutGuests(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	guests := h.open(h.app, with("share_count", "1", "eligible_user_ids", `["winner0","b"]`))
	open := h.open(h.app, with("share_count", "1"))
	won := h.sellOut(guests, 1)
	h.sellOut(open, 1)
	check := func(when string) {
		t.Helper()
		before := h.soldOutLocally()
		for range 5 {
			if r := h.grab(h.app, guests, "b"); r.code() != "sold_out" {
				t.Errorf("%s: %s", when, r)
			}
			if r := h.grab(h.app, guests, "x"); r.code() != "not_eligible" {
				t.Errorf("%s: %s", when, r)
			}
		}
		h.tooLate(open) // what was to be learned has been learned
		if r := h.grab(h.app, guests, "x"); r.code() != "not_eligible" {
			t.Errorf("%s: %s", when, r)
		}
		at := h.soldOutLocally()
		if r := h.grab(h.app, guests, "b"); r.code() != "sold_out" || h.soldOutLocally() != at || at < before {
			t.Errorf("%s: %s, answered by the process", when, r)
		}
		h.keepTheirs(guests, won)
	}
	check("sold out")
	h.finish(guests, packet.CloseSoldOut)
	check("retired")
}

// hasty calls a packet sold out to one user, and counts who asks for its winners.
type hasty struct {
	api.Pool
	victim string
	read   atomic.Int32
}

func (p *hasty) Grab(ctx context.Context, id, user string, profile packet.Profile) (packet.GrabAnswer, error) {
	if user == p.victim {
		return packet.GrabAnswer{Result: packet.GrabSoldOut}, nil
	}
	return p.Pool.Grab(ctx, id, user, profile)
}

func (p *hasty) ClaimsPage(ctx context.Context, id string, upTo, limit int) ([]packet.Claim, int, error) {
	defer p.read.Add(1)
	return p.Pool.ClaimsPage(ctx, id, upTo, limit)
}

// TestSoldOutOnlyWhenFinal: with a share left a process refuses no one from memory.
func TestSoldOutOnlyWhenFinal(t *testing.T) {
	t.Parallel()
	pool := &hasty{victim: "victim"}
	h := newFixture(t, parts{change: func(c *api.Config) { pool.Pool, c.Pool = c.Pool, pool }})
	for shares := range 3 {
		id := h.open(h.app, with("share_count", strconv.Itoa(shares+1)))
		won := h.sellOut(id, shares)
		at := pool.read.Load()
		// A second look at one packet shows that the first has ended, and with nothing.
		wait.Until(h.t, "the process has looked for the winners twice", func() bool {
			if r := h.grab(h.app, id, "victim"); r.code() != "sold_out" {
				t.Fatalf("%s", r)
			}
			return pool.read.Load() > at+1 || h.soldOutLocally() > 0
		})
		if r := h.grab(h.app, id, "last"); r.status != http.StatusCreated {
			t.Errorf("%d of %d shares were taken: %s", shares, shares+1, r)
		}
		h.keepTheirs(id, won)
	}
	if n := h.soldOutLocally(); n != 0 {
		t.Errorf("%d were refused by the process", n)
	}
}

// TestSoldOutCrowd: through two processes at once, every share finds its winner,
// nobody is both refused and a winner, and who was refused stays refused.
func TestSoldOutCrowd(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	first := h.another()
	doors := []string{first, h.public}
	const shares, users = 30, 90
	id := h.open(h.app, with("share_count", strconv.Itoa(shares), "total_amount", "3000"))
	var mu sync.Mutex
	var all sync.WaitGroup
	amounts, refused := map[string]int64{}, map[string]bool{}
	for u := range users {
		for try := range 4 {
			all.Go(func() {
				user := fmt.Sprint("u", u)
				r := h.grabPatiently(doors[try%2], id, user)
				mu.Lock()
				defer mu.Unlock()
				if r.code() == "sold_out" {
					refused[user] = true
					return
				}
				var c claimBody
				r.json(t, &c)
				if was, ok := amounts[user]; r.status >= 300 || ok && was != c.Amount {
					t.Errorf("%s has %d: %s", user, was, r)
				}
				amounts[user] = c.Amount
			})
		}
	}
	all.Wait()
	if len(amounts) != shares || len(refused) != users-shares {
		t.Errorf("%d winners and %d refused of %d", len(amounts), len(refused), users)
	}
	for user := range refused {
		if _, ok := amounts[user]; ok {
			t.Errorf("%s was refused, and has won", user)
		}
	}
	h.tooLate(id)
}

// TestSoldOutBehindFence: while the pool is checked or rebuilt, and when it has been
// rebuilt, what the process remembers is worth nothing.
func TestSoldOutBehindFence(t *testing.T) {
	t.Parallel()
	var epoch atomic.Int64
	var shut atomic.Bool
	h := newFixture(t, parts{change: func(c *api.Config) { c.Fence = func(string) (int64, bool) { return epoch.Load(), !shut.Load() } }})
	id := h.open(h.app, with("share_count", "2"))
	won := h.sellOut(id, 2)
	h.tooLate(id)
	asks := func(when string, alone bool) {
		t.Helper()
		before := h.soldOutLocally()
		if r := h.grab(h.app, id, "x"); r.code() != "sold_out" {
			t.Errorf("%s: %s", when, r)
		}
		if local := h.soldOutLocally() > before; local != alone {
			t.Errorf("%s: answered by the process: %t", when, local)
		}
		h.keepTheirs(id, won)
	}
	refuses := func(user string) {
		t.Helper()
		if r := h.grab(h.app, id, user); r.code() != "unavailable" {
			t.Errorf("shut: %s", r)
		}
	}
	asks("open", true)
	shut.Store(true)
	refuses("x")
	refuses("winner0")
	shut.Store(false)
	asks("open again", true)
	epoch.Store(1)
	asks("rebuilt", false)
	h.tooLate(id)
	asks("learned again", true)
}

// TestR9_SoldOutKnowsStaleClaims: a user whose stale claim is kept in the pool gets it also from a process
// that knew all winners of the sold-out packet before.
func TestR9_SoldOutKnowsStaleClaims(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	p := proofFixture{h, h.open(h.app, with("share_count", "1", "total_amount", "250"))}
	if r := h.grab(h.app, p.id, "winner"); r.status != http.StatusCreated {
		t.Fatalf("%s", r)
	}
	h.tooLate(p.id)
	c, _, err := h.pool.Claim(t.Context(), p.id, "winner")
	h.check(err)
	c.UserID = "lost"
	_, result, err := h.pool.KeepStaleClaim(t.Context(), c)
	if h.check(err); result != packet.StaleKept {
		t.Fatal(result)
	}
	_, err = h.store.RecordShareConflict(t.Context(), c, "stale")
	h.check(err)
	wait.Until(t, "the process knows the claim", func() bool { return h.grab(h.app, p.id, "lost").status == http.StatusOK })
	h.tooLate(p.id)
	var again claimBody
	if h.grab(h.app, p.id, "lost").json(t, &again); again.Amount != 250 || again.ShareIndex != 0 {
		t.Errorf("%+v", again)
	}
}
