package api_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/api"
	"hongbao/internal/access"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/test/wait"
)

// limit starts the API again with limits, on the same stores.
func (h *fixture) limit(l api.Limits) {
	h.t.Helper()
	h.check(h.stop())
	h.cfg.Limits, h.cfg.Limiter, h.cfg.Metrics = l, h.pool, nil
	h.start()
}

// overLimit checks a refusal by a limit of an hour.
func (h *fixture) overLimit(what string, r result) {
	h.t.Helper()
	after, err := strconv.Atoi(r.header.Get("Retry-After"))
	if r.status != http.StatusTooManyRequests || r.code() != "rate_limited" || err != nil || after < 1 || after > 3600 {
		h.t.Errorf("%s: want 429 rate_limited, got %s, Retry-After %q", what, r, r.header.Get("Retry-After"))
	}
}

// same checks that a grab gets the claim of an earlier one.
func (h *fixture) same(what string, first, r result) {
	h.t.Helper()
	var was, is claimBody
	first.json(h.t, &was)
	if r.status != http.StatusOK {
		h.t.Errorf("%s: want 200, got %s", what, r)
		return
	}
	if r.json(h.t, &is); !is.Replayed || is.Amount != was.Amount || is.ShareIndex != was.ShareIndex || is.Amount < 1 {
		h.t.Errorf("%s: %s, first %s", what, r, first)
	}
}

const limitedBy = `hongbao_rate_limited_total{limit="%s"}`

// TestLimitUser: a user over the limit is refused and takes nothing, unless the user has a
// claim in the packet, in either store; other users are not affected.
func TestLimitUser(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	one, two, three := h.open(h.app, with()), h.open(h.app, with()), h.open(h.app, with())
	missed := h.open(h.app, with())
	early := h.open(h.app, with("opens_at", strconv.Quote(time.Now().Add(time.Hour).UTC().Format(time.RFC3339))))
	guests := h.open(h.app, with("eligible_user_ids", `["b"]`))
	other := h.open(h.app2, with())
	h.grab(h.app, missed, "b")
	h.finish(missed, packet.CloseRecalled)
	h.limit(api.Limits{User: access.Limit{N: 2, Span: time.Hour}})
	first, second := h.grab(h.app, one, "a"), h.grab(h.app, two, "a")
	if first.status != 201 || second.status != 201 {
		t.Fatalf("%s, %s", first, second)
	}
	refused := 0
	for what, id := range map[string]string{"another packet": three, "one that is not open": early, "one for others": guests,
		"one that has ended": missed} {
		h.overLimit(what, h.grab(h.app, id, "a"))
		refused++
	}
	if claims := h.claims(h.app, three, ""); len(claims.Items) != 0 {
		t.Errorf("taken: %+v", claims)
	}
	h.same("the first claim", first, h.grab(h.app, one, "a"))
	h.same("the second claim", second, h.grab(h.app, two, "a"))
	h.finish(one, packet.CloseRecalled)
	h.same("the first claim from mysql", first, h.grab(h.app, one, "a"))
	for what, r := range map[string]result{"of another app": h.grab(h.app, other, "a"), "of nobody": h.grab(h.app, anonymous, "a")} {
		if r.code() != "packet_not_found" {
			t.Errorf("packet %s: %s", what, r)
		}
	}
	for what, r := range map[string]result{"another user": h.grab(h.app, three, "b"), "the user of another app": h.grab(h.app2, other, "a")} {
		if r.status != 201 {
			t.Errorf("%s: %s", what, r)
		}
	}
	for kind, want := range map[string]int{"user": refused, "address": 0, "key": 0} {
		if n := h.metric(fmt.Sprintf(limitedBy, kind)); n != want {
			t.Errorf("%d refused by the limit of the %s, want %d", n, kind, want)
		}
	}
}

// TestLimitKey: every request of a key counts, and a repeated grab still returns its claim.
func TestLimitKey(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	id := h.open(h.app, with())
	path := "/v1/packets/" + id
	h.limit(api.Limits{Key: access.Limit{N: 2, Span: time.Hour}})
	won := h.grab(h.app, id, "a")
	if r := h.as(h.app, "GET", path, ""); won.status != 201 || r.status != 200 {
		t.Fatalf("%s, %s", won, r)
	}
	h.overLimit("a read", h.as(h.app, "GET", path, ""))
	h.overLimit("a create", h.post(h.app, "k", with()))
	h.overLimit("a close", h.as(h.app, "POST", path+"/close", ""))
	h.overLimit("a grab", h.grab(h.app, id, "b"))
	h.same("the winner", won, h.grab(h.app, id, "a"))
	for what, c := range map[string]struct {
		who    owner
		path   string
		status int
	}{
		"another app":   {h.app2, path, 404},
		"staff":         {h.ops, "/v1/staff/packets/" + id, 200},
		"a wrong key":   {owner{token: "nonsense"}, path, 401},
		"another realm": {h.app, "/v1/staff/packets", 403},
		"no such route": {h.app, "/v1/nothing", 404},
	} {
		if r := h.as(c.who, "GET", c.path, ""); r.status != c.status {
			t.Errorf("%s: want %d, got %s", what, c.status, r)
		}
	}
	if n := h.metric(fmt.Sprintf(limitedBy, "key")); n != 4 {
		t.Errorf("%d refused", n)
	}
	if view, err := h.pool.View(t.Context(), id); err != nil || view.ClaimedCount != 1 || view.State != packet.PoolOpen {
		t.Errorf("%+v, %v", view, err)
	}
}

// TestLimitAddress: grabs from one address count together, of whatever user and app.
func TestLimitAddress(t *testing.T) {
	t.Parallel()
	redis := stacktest.FreshRedis(t) // everybody here has the same address
	h := newFixture(t, parts{redis: redis.Addr})
	id, other := h.open(h.app, with()), h.open(h.app2, with())
	h.limit(api.Limits{Address: access.Limit{N: 2, Span: time.Hour}})
	won := h.grab(h.app, id, "a")
	if r := h.grab(h.app2, other, "a"); won.status != 201 || r.status != 201 {
		t.Fatalf("%s, %s", won, r)
	}
	forwarded := h.do(call{method: "POST", path: "/v1/packets/" + id + "/grabs", key: h.app.token, body: `{"user_id":"b"}`,
		header: map[string]string{"X-Forwarded-For": "192.0.2.1", "Forwarded": "for=192.0.2.1", "X-Real-IP": "192.0.2.1"}})
	h.overLimit("a header says another address", forwarded)
	h.same("the winner", won, h.grab(h.app, id, "a"))
	if r := h.as(h.app, "GET", "/v1/packets/"+id, ""); r.status != 200 {
		t.Errorf("a read: %s", r)
	}
	if n := h.metric(fmt.Sprintf(limitedBy, "address")); n != 1 {
		t.Errorf("%d refused", n)
	}
}

// TestLimitPasses: a request over a limit is permitted again after the wait.
func TestLimitPasses(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	one, two := h.open(h.app, with()), h.open(h.app, with())
	h.limit(api.Limits{User: access.Limit{N: 1, Span: time.Second}})
	if r := h.grab(h.app, one, "a"); r.status != 201 {
		t.Fatalf("%s", r)
	}
	wait.Until(h.t, "the user is permitted", func() bool {
		r := h.grab(h.app, two, "a")
		if r.status != 201 {
			h.overLimit("asked at once", r)
		}
		return r.status == 201
	})
}

// TestLimitsOff: without limits nothing is counted, and Redis hears nothing of it.
func TestLimitsOff(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	h := newFixture(t, parts{redis: server.Addr})
	h.cfg.Limiter = h.pool
	h.limit(api.Limits{})
	counted := func() []string {
		t.Helper()
		c := redis.NewClient(&redis.Options{Addr: server.Addr})
		defer c.Close()
		keys, err := c.Keys(t.Context(), "hb:{limit:*").Result()
		if err != nil {
			t.Fatal(err)
		}
		return keys
	}
	id := h.open(h.app, with("share_count", "100"))
	for i := range 50 {
		if r := h.grab(h.app, id, "u"+strconv.Itoa(i)); r.status != 201 {
			t.Fatalf("%s", r)
		}
	}
	if keys := counted(); len(keys) != 0 {
		t.Errorf("counted: %q", keys)
	}
	h.limit(api.Limits{User: access.Limit{N: 2, Span: time.Hour}, Address: access.Limit{N: 2, Span: time.Hour},
		Key: access.Limit{N: 2, Span: time.Hour}})
	if r := h.grab(h.app, id, "last"); r.status != 201 {
		t.Fatalf("%s", r)
	}
	if keys := counted(); len(keys) != 3 {
		t.Errorf("counted: %q", keys)
	}
}

// TestLimitWithoutRedis: what cannot be counted is let through, as far as it can be
// answered without Redis.
func TestLimitWithoutRedis(t *testing.T) {
	t.Parallel()
	redis := stacktest.FreshRedis(t)
	h := newFixture(t, parts{redis: redis.Addr})
	open, closed := h.open(h.app, with()), h.open(h.app, with("share_count", "2"))
	other := h.open(h.app2, with())
	h.finish(other, packet.CloseRecalled)
	h.grab(h.app, closed, "a")
	h.finish(closed, packet.CloseRecalled)
	h.limit(api.Limits{User: access.Limit{N: 1, Span: time.Hour}, Key: access.Limit{N: 1, Span: time.Hour}})
	ours, others := h.as(h.app, "GET", "/v1/packets/"+closed, ""), h.as(h.app2, "GET", "/v1/packets/"+other, "")
	if ours.status != 200 || others.status != 200 {
		t.Fatalf("%s, %s", ours, others)
	}
	h.overLimit("the second read", h.as(h.app, "GET", "/v1/packets/"+closed, ""))
	redis.Kill()
	h.overLimit("what the process remembers", h.as(h.app, "GET", "/v1/packets/"+closed, ""))
	if r := h.as(h.app2, "GET", "/v1/packets/"+other, ""); r.status != 200 {
		t.Errorf("the second read of another key: %s", r)
	}
	wait.Until(t, "the refusal is forgotten", func() bool { return h.as(h.app, "GET", "/v1/packets/"+closed, "").status == 200 })
	for range 2 {
		if r := h.grab(h.app, open, "a"); r.code() != "unavailable" {
			t.Errorf("%s", r)
		}
	}
}

// TestLimitConfig: a limit that nobody counts, or that cannot be one, does not start.
func TestLimitConfig(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	for what, change := range map[string]func(*api.Config){
		"nobody counts": func(c *api.Config) { c.Limits.User = access.Limit{N: 1, Span: time.Second} },
		"no number":     func(c *api.Config) { c.Limiter, c.Limits.Key = h.pool, access.Limit{Span: time.Second} },
		"no span":       func(c *api.Config) { c.Limiter, c.Limits.Address = h.pool, access.Limit{N: 1} },
		"below zero":    func(c *api.Config) { c.Limiter, c.Limits.User = h.pool, access.Limit{N: -1, Span: time.Second} },
		"far too many": func(c *api.Config) {
			c.Limiter, c.Limits.User = h.pool, access.Limit{N: math.MaxInt64, Span: time.Second}
		},
		"far too seldom": func(c *api.Config) { c.Limiter, c.Limits.User = h.pool, access.Limit{N: 1, Span: math.MaxInt64} },
	} {
		cfg := h.cfg
		cfg.Metrics = nil
		change(&cfg)
		if _, err := api.New(cfg); err == nil {
			t.Errorf("%s: it starts", what)
		}
	}
}

// TestLimitCountsRealAttempts: a grab of a sold-out packet and a repeated grab do not count.
func TestLimitCountsRealAttempts(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	one, two := h.open(h.app, with()), h.open(h.app, with())
	empty := h.open(h.app, with("share_count", "1"))
	recalled := h.open(h.app, with())
	closed := h.open(h.app, with("share_count", "2"))
	early := h.open(h.app, with("opens_at", strconv.Quote(time.Now().Add(time.Hour).UTC().Format(time.RFC3339))))
	h.grab(h.app, empty, "b")
	h.as(h.app, "POST", "/v1/packets/"+recalled+"/close", "")
	h.grab(h.app, closed, "b")
	h.finish(closed, packet.CloseRecalled)
	h.limit(api.Limits{User: access.Limit{N: 3, Span: time.Hour}})
	won := h.grab(h.app, one, "a")
	for range 4 {
		h.same("a repeat", won, h.grab(h.app, one, "a"))
		for code, id := range map[string]string{"sold_out": empty, "expired": recalled} {
			if r := h.grab(h.app, id, "a"); r.code() != code {
				t.Errorf("want %s: %s", code, r)
			}
		}
		if r := h.grab(h.app, closed, "a"); r.code() != "expired" {
			t.Errorf("of a packet that is closed: %s", r)
		}
	}
	if r := h.grab(h.app, early, "a"); r.code() != "not_open_yet" {
		t.Errorf("too early: %s", r)
	}
	if r := h.grab(h.app, two, "a"); r.status != 201 {
		t.Errorf("the third attempt: %s", r)
	}
	h.overLimit("the fourth", h.grab(h.app, early, "a"))
}

// tallied notes what is counted against limits, and what is given back.
type tallied struct {
	api.Limiter
	mu            sync.Mutex
	counted, back []string
}

func (l *tallied) WithinLimits(ctx context.Context, limits []access.AppliedLimit) (int, time.Duration, error) {
	l.note(&l.counted, limits)
	return l.Limiter.WithinLimits(ctx, limits)
}

func (l *tallied) GiveBack(ctx context.Context, limits []access.AppliedLimit) error {
	l.note(&l.back, limits)
	return l.Limiter.GiveBack(ctx, limits)
}

func (l *tallied) note(to *[]string, limits []access.AppliedLimit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var kinds []string
	for _, c := range limits {
		kinds = append(kinds, c.Kind)
	}
	*to = append(*to, strings.Join(kinds, " "))
}

func (l *tallied) take() (counted, back []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	counted, back, l.counted, l.back = l.counted, l.back, nil, nil
	return counted, back
}

// tally is limit with a limiter that notes what is counted.
func (h *fixture) tally(l api.Limits) *tallied {
	h.t.Helper()
	h.check(h.stop())
	noted := &tallied{Limiter: h.pool}
	h.cfg.Limits, h.cfg.Limiter, h.cfg.Metrics = l, noted, nil
	h.start()
	return noted
}

// TestLimitCountsNothingRefused: a grab that one of its limits refuses consumes none of the
// others, whichever it is.
func TestLimitCountsNothingRefused(t *testing.T) {
	t.Parallel()
	once := access.Limit{N: 1, Span: time.Hour}
	for kind, limits := range map[string]api.Limits{
		"address": {User: once, Address: once, Key: access.Limit{N: 2, Span: time.Hour}},
		"key":     {User: once, Address: access.Limit{N: 2, Span: time.Hour}, Key: once},
		"user":    {User: once, Address: access.Limit{N: 2, Span: time.Hour}, Key: access.Limit{N: 2, Span: time.Hour}},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			redis := stacktest.FreshRedis(t) // everybody here has the same address
			h := newFixture(t, parts{redis: redis.Addr})
			one, two := h.open(h.app, with()), h.open(h.app, with())
			next := "b"
			if kind == "user" {
				next = "a"
			}
			h.limit(limits)
			if r := h.grab(h.app, one, "a"); r.status != 201 {
				t.Fatalf("%s", r)
			}
			for range 5 {
				h.overLimit(kind, h.grab(h.app, two, next))
			}
			if n := h.metric(fmt.Sprintf(limitedBy, kind)); n != 5 {
				t.Errorf("%d refused by the limit of the %s", n, kind)
			}
			switch kind { // without the limit that has refused, the others allow one more
			case "address":
				limits.Address = access.Limit{}
			case "key":
				limits.Key = access.Limit{}
			case "user":
				next = "b"
			}
			h.limit(limits)
			if r := h.grab(h.app, two, next); r.status != 201 {
				t.Errorf("the first try that was not refused: %s", r)
			}
		})
	}
}

// TestLimitOrder: a grab is counted in one call, for its user only with a valid ticket, and
// what is known to be over a limit is not counted at all.
func TestLimitOrder(t *testing.T) {
	t.Parallel()
	redis := stacktest.FreshRedis(t)
	h := newFixture(t, parts{redis: redis.Addr})
	ours := h.signs(h.administrator(), h.app)
	open, ticketed := h.open(h.app, with()), h.open(h.app, with("tickets", byTicket))
	noted := h.tally(api.Limits{User: access.Limit{N: 1, Span: time.Hour}, Address: access.Limit{N: 4, Span: time.Hour},
		Key: access.Limit{N: 5, Span: time.Hour}})
	counted := func(what string, want ...string) {
		t.Helper()
		if got, back := noted.take(); !slices.Equal(got, want) || len(back) != 0 {
			t.Errorf("%s: counted %q, want %q; given back %q", what, got, want, back)
		}
	}
	h.grab(h.app, open, "a")
	counted("a grab", "address key user")
	h.refusedTicket("none", h.grab(h.app, ticketed, "b"), "has none", "")
	h.refusedTicket("for another", h.grabWith(h.app, ticketed, "b", ours.ticket(t, ticketed, "c")), "another user", "")
	counted("grabs without a valid ticket", "address key", "address key")
	if r := h.grabWith(h.app, ticketed, "b", ours.ticket(t, ticketed, "b")); r.status != 201 {
		t.Errorf("the user named by others: %s", r)
	}
	counted("with a ticket", "address key user")
	h.overLimit("without a ticket", h.grab(h.app, ticketed, "c"))
	counted("the first that is over", "address key")
	for range 5 {
		h.overLimit("without a ticket", h.grab(h.app, ticketed, "c"))
		h.overLimit("with one", h.grabWith(h.app, ticketed, "c", ours.ticket(t, ticketed, "c")))
		h.overLimit("where none is wanted", h.grab(h.app, open, "c"))
	}
	counted("repeated requests over the limit")
}

// TestLimitWins: a user wins no more than the limit, in whatever packets of the app; tries
// that win nothing do not count, and a claim is repeated whatever the limit says.
func TestLimitWins(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	var ids []string
	for range 3 {
		ids = append(ids, h.open(h.app, with()))
	}
	empty := h.open(h.app, with("share_count", "1"))
	guests := h.open(h.app, with("eligible_user_ids", `["b"]`))
	early := h.open(h.app, with("opens_at", strconv.Quote(time.Now().Add(time.Hour).UTC().Format(time.RFC3339))))
	other := h.open(h.app2, with())
	h.grab(h.app, empty, "b")
	h.limit(api.Limits{Wins: access.Limit{N: 2, Span: time.Hour}})
	tries := func() {
		t.Helper()
		for code, id := range map[string]string{"sold_out": empty, "not_eligible": guests, "not_open_yet": early} {
			if r := h.grab(h.app, id, "a"); r.code() != code {
				t.Errorf("want %s: %s", code, r)
			}
		}
	}
	var won []result
	for _, id := range ids[:2] {
		tries()
		won = append(won, h.grab(h.app, id, "a"))
		if r := won[len(won)-1]; r.status != 201 {
			t.Fatalf("%s", r)
		}
		h.same("a repeat", won[len(won)-1], h.grab(h.app, id, "a"))
	}
	h.overLimit("a third win", h.grab(h.app, ids[2], "a"))
	h.same("a repeat over the limit", won[0], h.grab(h.app, ids[0], "a"))
	if claims := h.claims(h.app, ids[2], ""); len(claims.Items) != 0 {
		t.Errorf("taken: %+v", claims)
	}
	if n := h.metric(fmt.Sprintf(limitedBy, "wins")); n != 1 {
		t.Errorf("%d refused", n)
	}
	for what, r := range map[string]result{"another user": h.grab(h.app, ids[2], "c"), "in another app": h.grab(h.app2, other, "a")} {
		if r.status != 201 {
			t.Errorf("%s: %s", what, r)
		}
	}
}

// TestLimitRefusedCostsLess: a grab that is over a limit costs Redis less than one that is
// not: three reads, and no script after the first.
func TestLimitRefusedCostsLess(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	h := newFixture(t, parts{redis: server.Addr})
	id := h.open(h.app, with("share_count", "100"))
	h.limit(api.Limits{Key: access.Limit{N: 21, Span: time.Hour}})
	c := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer c.Close()
	const many = 20
	crowd := func(prefix, code string) (calls map[string]int, usec int) {
		t.Helper()
		h.check(c.ConfigResetStat(t.Context()).Err())
		for i := range many {
			if r := h.grab(h.app, id, prefix+strconv.Itoa(i)); r.code() != code {
				t.Fatalf("%s", r)
			}
		}
		return commandStats(t, c)
	}
	granted, grantedUsec := crowd("won", "")
	h.grab(h.app, id, "last")
	h.overLimit("the first that is over", h.grab(h.app, id, "over"))
	refused, refusedUsec := crowd("over", "rate_limited")
	t.Logf("granted: %v, %d us; refused: %v, %d us", granted, grantedUsec/many, refused, refusedUsec/many)
	if granted["evalsha"] < 2*many {
		t.Errorf("granted: %v", granted)
	}
	// A few hmget are the server's own.
	if refused["evalsha"] != 0 || refused["hget"] != many || refused["hmget"] < 2*many || refused["hmget"] >= 3*many {
		t.Errorf("refused: %v", refused)
	}
}

// commandStats returns how often each command was called, those that scripts call too, and
// how many us Redis worked on scripts and on what a refused grab reads.
func commandStats(t *testing.T, c *redis.Client) (calls map[string]int, usec int) {
	t.Helper()
	info, err := c.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	calls = map[string]int{}
	spent := map[string]int{}
	for _, m := range regexp.MustCompile(`cmdstat_(\w+):calls=(\d+),usec=(\d+)`).FindAllStringSubmatch(info, -1) {
		calls[m[1]], _ = strconv.Atoi(m[2])
		spent[m[1]], _ = strconv.Atoi(m[3])
	}
	if calls["evalsha"] > 0 { // its time has what its script calls
		return calls, spent["evalsha"]
	}
	return calls, spent["hget"] + spent["hmget"]
}
