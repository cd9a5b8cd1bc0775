package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/fence"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/pool"
	"hongbao/internal/reconcile/rebuild"
	"hongbao/test/harness"
	"hongbao/test/wait"
)

// newR9Rig is a rig whose Redis may be emptied.
func newR9Rig(t testing.TB) (*rig, *stacktest.Server) {
	t.Helper()
	server := stacktest.FreshRedis(t)
	temporal, ns := stacktest.TemporalNamespace(t)
	return newRig(t, server.Addr, stacktest.MariaDB(t), temporal, ns), server
}

func rebuildConfig(t testing.TB, r *rig) rebuild.Config {
	t.Helper()
	handoffs := must(pool.NewHandoffs(t.Context(), r.pool))(t)
	t.Cleanup(func() { _ = handoffs.Close() })
	return rebuild.Config{Store: r.store, Rows: r.store, Fences: r.pool, Pools: r.pool, Backlog: handoffs,
		Runs: r.starter, Lanes: harness.Lanes, Logger: r.logger}
}

// quietLanes waits until no hand-off is left.
func (r *rig) quietLanes(t testing.TB) {
	t.Helper()
	handoffs := must(pool.NewHandoffs(t.Context(), r.pool))(t)
	defer func() { _ = handoffs.Close() }()
	for lane := range harness.Lanes {
		wait.Until(t, "no hand-offs", func() bool {
			n, _, err := handoffs.Depth(t.Context(), lane)
			return err == nil && n == 0
		})
	}
}

// laneRow is a lane's row in MySQL.
func (r *rig) laneRow(t testing.TB, lane int) fence.LaneRow {
	t.Helper()
	for _, l := range must(r.store.PoolLanes(t.Context()))(t) {
		if l.Lane == lane {
			return l
		}
	}
	return fence.LaneRow{}
}

// content is the contents of Redis, except hand-offs, fences, leases and unused keys: text by
// key.
func content(t testing.TB, addr string) map[string]string {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr})
	defer c.Close()
	ctx := t.Context()
	fail := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	keys, err := c.Keys(ctx, "hb:*").Result()
	fail(err)
	out := map[string]string{}
	for _, key := range keys {
		if _, rest, _ := strings.Cut(key, "}:"); !strings.HasPrefix(rest, "packet:") && rest != "live" && rest != "claimed" && rest != "staged" {
			continue
		}
		kind, err := c.Type(ctx, key).Result()
		fail(err)
		var v any
		switch kind {
		case "hash":
			h, err := c.HGetAll(ctx, key).Result()
			fail(err)
			for _, field := range []string{"busy_until", "busy_before", "holder"} { // of requests that are over
				delete(h, field)
			}
			if strings.HasSuffix(key, ":winners") {
				for user, record := range h {
					claim, err := packet.DecodeClaim(key[len(key)-len(":winners")-packet.IDLen:len(key)-len(":winners")], user, record)
					fail(err)
					h[user] = string(must(json.Marshal(claim))(t))
				}
			}
			if h["retired"] != "" {
				ttl, err := c.PTTL(ctx, key).Result()
				fail(err)
				h["ttl"] = fmt.Sprint(ttl.Round(time.Hour))
			}
			v = h
		case "string":
			if strings.HasSuffix(key, ":shares") { // the claimed ones may be zero bytes
				field, _, _ := strings.Cut(must(c.HGet(ctx, strings.TrimSuffix(key, ":shares"), "claimed").Result())(t), ":")
				claimed := must(strconv.ParseInt(field, 10, 64))(t)
				v = must(c.GetRange(ctx, key, packet.ShareLen*claimed, -1).Result())(t)
			}
		case "list":
			l, err := c.LRange(ctx, key, 0, -1).Result()
			fail(err)
			v = l
		case "set":
			s, err := c.SMembers(ctx, key).Result()
			fail(err)
			slices.Sort(s)
			v = s
		case "zset":
			v = must(c.ZRangeWithScores(ctx, key, 0, -1).Result())(t)
		}
		out[key] = fmt.Sprint(v)
	}
	return out
}

// TestR9_PoolsFromRows: pools rebuilt from rows equal those that the scripts wrote, in every
// state of a packet.
func TestR9_PoolsFromRows(t *testing.T) {
	t.Parallel()
	r, server := newR9Rig(t)
	ctx := t.Context()
	name := "甲"
	grab := func(id string, from, to int) {
		for n := from; n < to; n++ {
			profile := packet.Profile{}
			if n%2 == 0 {
				profile = packet.Profile{Nickname: &name, Recipient: fmt.Sprintf("account-%d", n)}
			}
			if g := must(r.pool.Grab(ctx, id, fmt.Sprintf("u%03d", n), profile))(t); g.Result != packet.GrabWon {
				t.Fatalf("grab: %v", g.Result)
			}
		}
	}
	answered := func(id string, status int) {
		must(r.pool.StoreFirstAnswer(ctx, id, packet.FirstAnswer{HTTPStatus: status}))(t)
	}
	r.call(t, http.MethodPut, "/_faults", map[string]any{"rules": []any{
		map[string]any{"op": "charge", "kind": "pending_forever", "account_prefix": "slow"},
		map[string]any{"op": "refund", "kind": "pending_forever", "account_prefix": "held"},
	}}, nil)

	untouched := r.create(t, spec{total: 5000, count: 50})
	some := r.create(t, spec{total: 777_777, count: 333})
	large := r.create(t, spec{total: money.Fen(1)<<53 - 1, count: 3})
	closing := r.create(t, spec{total: 9999, count: 30, sender: "held"})
	closed := r.create(t, spec{total: 100, count: 10})
	soldOut := r.create(t, spec{total: 100, count: 4})
	funding := r.create(t, spec{total: 100, count: 4, sender: "slow"})
	late := r.create(t, spec{total: 100, count: 4, sender: "late~pending"})
	rejected := r.create(t, spec{total: 100, count: 4, sender: "x~broke"})
	guests := r.createFor(t, []string{"u001", "u002", "u003", "guest"}, nil, spec{total: 1000, count: 4})
	at := time.Now().Add(time.Hour)
	scheduled := r.createFor(t, nil, &at, spec{total: 1000, count: 4})
	answered(funding.ID, http.StatusAccepted)
	answered(late.ID, http.StatusAccepted) // and it opens later
	for _, p := range []packet.Packet{untouched, some, large, closing, closed, soldOut, late, guests, scheduled} {
		r.awaitOpen(t, p.ID)
		if p.ID != late.ID {
			answered(p.ID, http.StatusCreated)
		}
	}
	grab(some.ID, 0, 120)
	grab(large.ID, 1, 2)
	grab(closing.ID, 0, 7)
	grab(closed.ID, 0, 3)
	grab(soldOut.ID, 0, 4)
	grab(guests.ID, 1, 3)
	for _, p := range []packet.Packet{closing, closed} {
		r.recall(t, p.ID)
	}
	wait.Until(t, "packet closing recorded", func() bool { return !must(r.store.Packet(ctx, closing.ID))(t).BooksClosedAt.IsZero() })
	r.awaitStatus(t, closed.ID, packet.StatusClosed)
	r.awaitStatus(t, soldOut.ID, packet.StatusClosed)
	r.awaitStatus(t, rejected.ID, packet.StatusRejected)
	answered(rejected.ID, http.StatusPaymentRequired)
	wait.Until(t, "row of the packet that is being funded", func() bool { _, err := r.store.Packet(ctx, funding.ID); return err == nil })
	for _, id := range []string{closed.ID, soldOut.ID} {
		wait.Until(t, "retired", func() bool { return must(r.pool.View(ctx, id))(t).Retired })
	}
	for id, n := range map[string]int{some.ID: 120, closing.ID: 7, guests.ID: 2, large.ID: 1} {
		wait.Until(t, "claims recorded", func() bool { return r.recordedClaims(t, id) == n })
	}
	// Only then it is certain that the request was answered 202 or timed out.
	wait.Until(t, "the packet has been funding for a while", func() bool { return time.Since(funding.CreatedAt) > 5*time.Second })
	r.quietLanes(t)
	must(r.pool.Claims(ctx, some.ID))(t)
	// A rejected packet is made as the tombstone that it is about to become.
	if err := r.pool.Retire(ctx, rejected.ID); err != nil {
		t.Fatal(err)
	}
	r.stop()

	before := content(t, server.Addr)
	delete(before, keyOf(before, closing.ID)+":shares") // nobody takes them any more
	page := must(listed(r, some.ID))(t)
	admin := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = admin.Close() })
	for _, older := range []bool{false, true} {
		if older { // what an older copy holds is replaced, never merged
			for _, p := range []packet.Packet{untouched, some, scheduled} {
				must(admin.Del(ctx, keyOf(before, p.ID)+":shares").Result())(t)
				must(admin.HSet(ctx, keyOf(before, p.ID)+":winners", "stranger", "1:1:1:m:").Result())(t)
				must(admin.HSet(ctx, keyOf(before, p.ID), "claimed", "1:1:0:1:1", "unknown", 1).Result())(t)
			}
		} else {
			must(admin.FlushAll(ctx).Result())(t)
		}
		cfg := rebuildConfig(t, r)
		cfg.Pace = rebuildPace
		var rebuilder *rebuild.Rebuilder
		cfg.OnStep = func(lane int, done string) {
			if done == "settled" { // once more than needed: a repeat changes nothing
				if err := rebuilder.FromRows(ctx, &fence.Rebuild{Lane: lane, Epoch: r.laneRow(t, lane).Epoch}); err != nil {
					t.Error(err)
				}
			}
		}
		rebuilder = rebuild.New(cfg)
		var lanes sync.WaitGroup
		for lane := range harness.Lanes {
			must(r.store.ShutPoolLane(ctx, lane, r.laneRow(t, lane).Epoch, fence.LaneRequested))(t)
			lanes.Go(func() {
				if _, did, err := rebuilt(t, rebuilder, lane); !did || err != nil {
					t.Errorf("rebuild of lane %d: %v %v", lane, did, err)
				}
			})
		}
		lanes.Wait()
		wait.Until(t, "every lane open", func() bool { return r.pool.LanesFenced() == 0 })
		same(t, before, content(t, server.Addr))
	}
	if again := must(listed(r, some.ID))(t); !reflect.DeepEqual(page, again) {
		t.Errorf("the list of claims was %v, is %v", page, again)
	}
	first := map[string]int{untouched.ID: 201, late.ID: 202, funding.ID: 202, closed.ID: 201}
	for id, want := range first {
		if v := must(r.pool.View(ctx, id))(t); v.First == nil || v.First.HTTPStatus != want {
			t.Errorf("the first answer is %v, want %d", v.First, want)
		}
	}
}

// listed are the claims of a packet as they are listed.
func listed(r *rig, id string) ([]packet.Claim, error) {
	var all []packet.Claim
	for upTo := -1; ; {
		some, made, err := r.pool.ClaimsPage(context.Background(), id, upTo, 37)
		all = append(all, some...)
		if upTo = made - len(some); err != nil || upTo <= 0 || len(some) == 0 {
			return all, err
		}
	}
}

func keyOf(content map[string]string, id string) string {
	for key := range content {
		if strings.HasSuffix(key, ":packet:"+id) {
			return key
		}
	}
	return "none"
}

func same(t testing.TB, before, after map[string]string) {
	t.Helper()
	keys := slices.Sorted(maps.Keys(before))
	for key := range after {
		if _, ok := before[key]; !ok {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		if before[key] != after[key] {
			t.Errorf("%s\n was %.600q\n  is %.600q", key, before[key], after[key])
		}
	}
}
