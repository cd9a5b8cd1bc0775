package bench

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/pool"
)

// bigLane is the lane of all packets whose grabs are compared, so that the batches have the same
// size.
const bigLane = 7

// bigGrabs is the number of grabs of each size in a round, bigCallers the number of callers.
const (
	bigGrabs   = 50_000
	bigCallers = 128
)

// measureGrabsBySize compares grabs of packets of different sizes: the same number of grabs, by the
// same callers, who continue with the next packet when one is sold out.
func measureGrabsBySize(t *testing.T, p plan, say func(string, ...any)) result {
	sizes, grabs, callers := []int{10, 1_000, 100_000, packet.MaxShares}, bigGrabs, bigCallers
	if !p.full {
		sizes, grabs, callers = []int{2, 40, 400}, 80, 8
	}
	rates, cost := make([][]float64, len(sizes)), make([][]float64, len(sizes))
	for round := range p.rounds {
		t.Run(fmt.Sprintf("grabs by size, round %d", round+1), func(t *testing.T) {
			server := stacktest.FreshRedis(t, noRewrite...)
			for i, size := range sizes {
				say("grabs of packets of %s shares, round %d of %d", figure(float64(size)), round+1, p.rounds)
				perSecond, each := grabsOfSize(t, server, size, grabs, callers)
				rates[i], cost[i] = append(rates[i], perSecond), append(cost[i], each)
			}
		})
	}
	if t.Failed() {
		return result{}
	}
	r := result{title: "grabs by the size of the packet", columns: []string{"shares of a packet", "Redis µs a grab", "least", "most",
		"of the smallest", "grabs/s", "least", "most"},
		plot: &plot{title: "Processor time of Redis a grab", unit: "µs"},
		notes: []string{
			fmt.Sprintf("%s grabs of each size in %s, the sizes in turn on the same Redis, by %d callers, who continue with the next packet "+
				"when one is sold out. All packets are in one lane.", figure(float64(grabs)), runs(p.rounds), callers),
			"Redis' time is that of its main thread, which decides grabs and writes the log. It does not depend on other load of the " +
				"machine; the rate does.",
		}}
	for i, size := range sizes {
		c, s, name := rateOf(cost[i]), rateOf(rates[i]), figure(float64(size))
		r.rows = append(r.rows, []string{name, figure(c.Median), figure(c.Min), figure(c.Max),
			fmt.Sprintf("%.2f", c.Median/rateOf(cost[0]).Median), figure(s.Median), figure(s.Min), figure(s.Max)})
		r.plot.bars = append(r.plot.bars, c.bar("", name+" shares"))
		r.numbers = append(r.numbers, map[string]any{"kind": "grabs by size", "shares": size, "redis_microseconds": c, "per_second": s})
	}
	return r
}

// grabsOfSize opens enough packets, lets all callers grab, and compares the claims in Redis with the answers.
func grabsOfSize(t *testing.T, server *stacktest.Server, size, grabs, callers int) (perSecond, microseconds float64) {
	t.Helper()
	p := openPool(t, server.Addr)
	f := &packetGroup{pool: p, got: make([][]receipt, callers)}
	for range (grabs + size - 1) / size {
		f.add(t, size, bigLane)
	}
	ended := meter(t, server)
	grabInTurn(t, f, size, grabs)
	used := ended()
	answered := collectClaims(len(f.ids), f.got)
	answered.total(t, grabs)
	f.settle(t)
	return float64(grabs) / used.wall.Seconds(), used.main.Seconds() * 1e6 / float64(grabs)
}

// grabInTurn lets the callers of the group grab a number of shares: all of the first packet, then those of the next.
func grabInTurn(tb testing.TB, f *packetGroup, size, grabs int) {
	tb.Helper()
	ctx, cancel := context.WithCancelCause(tb.Context())
	defer cancel(nil)
	var next atomic.Int64
	var group sync.WaitGroup
	for caller := range f.got {
		group.Go(func() {
			for ctx.Err() == nil {
				n := int(next.Add(1)) - 1
				if n >= grabs {
					return
				}
				user := "u" + strconv.Itoa(n)
				got, err := f.pool.Grab(ctx, f.ids[n/size], user, packet.Profile{})
				if err == nil && got.Result != packet.GrabWon {
					err = fmt.Errorf("%v", got.Result)
				}
				if err != nil {
					cancel(fmt.Errorf("grab %d: %w", n, err))
					return
				}
				f.got[caller] = append(f.got[caller], receipt{n / size, user, got.Claim.ShareIndex})
			}
		})
	}
	group.Wait()
	if err := context.Cause(ctx); err != nil {
		tb.Fatal(err)
	}
}

func openPool(tb testing.TB, addr string) *pool.Pool {
	tb.Helper()
	p, err := pool.Open(tb.Context(), pool.Config{Addr: addr, Timeout: patience})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = p.Close() })
	return p
}

// shareMemory is the memory of a big packet in Redis, in bytes per share.
type shareMemory struct{ loaded, claimed, drained float64 }

// measureMemory loads one packet into Redis, claims every share, and reads the hand-offs out, as
// workers do once payouts have been started.
func measureMemory(t *testing.T, shares int, say func(string, ...any)) shareMemory {
	server := stacktest.FreshRedis(t, noRewrite...)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer func() { _ = rdb.Close() }()
	f := &packetGroup{pool: openPool(t, server.Addr), got: make([][]receipt, 4*bigCallers)}
	drain := newHandOffReader(t, f.pool)
	before := usedMemory(t, rdb)
	each := func() float64 { return float64(usedMemory(t, rdb)-before) / float64(shares) }
	var s shareMemory
	say("memory of Redis: loading %s shares", figure(float64(shares)))
	f.add(t, shares, bigLane)
	s.loaded = each()
	say("memory of Redis: claiming all of them")
	grabInTurn(t, f, shares, shares)
	s.claimed = each()
	if got := drain.claims(t, bigLane, shares); got != shares {
		t.Fatalf("%d claims handed off, %d answered", got, shares)
	}
	s.drained = each()
	f.settle(t)
	return s
}

func usedMemory(tb testing.TB, rdb *redis.Client) int64 {
	tb.Helper()
	info, err := rdb.InfoMap(tb.Context(), "memory").Result()
	if err != nil {
		tb.Fatal(err)
	}
	n, err := strconv.ParseInt(info["Memory"]["used_memory"], 10, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// handOffReader reads and acknowledges hand-offs without starting workflows.
type handOffReader struct{ handoffs *pool.Handoffs }

func newHandOffReader(tb testing.TB, p *pool.Pool) *handOffReader {
	tb.Helper()
	h, err := pool.NewHandoffs(tb.Context(), p)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = h.Close() })
	return &handOffReader{h}
}

// atOnce is the number of hand-offs that one call reads or acknowledges.
const atOnce = 100

// each reads and acknowledges the hand-offs of a lane, and passes them to take, until done returns true.
func (e *handOffReader) each(ctx context.Context, lane int, done func() bool, take func(packet.HandOff)) error {
	for !done() {
		b, err := e.handoffs.Read(ctx, lane, "bench", atOnce, 20*time.Millisecond)
		if err != nil {
			return err
		}
		if len(b.Undecodable) > 0 {
			return fmt.Errorf("lane %d: %w", lane, b.Undecodable[0].Err)
		}
		var ids []string
		for _, h := range b.HandOffs {
			take(h)
			ids = append(ids, h.EntryID)
		}
		if err := e.handoffs.Ack(ctx, lane, ids...); err != nil {
			return err
		}
	}
	return nil
}

// claims reads hand-offs of a lane until it has seen this number of different claims, and returns that number.
func (e *handOffReader) claims(tb testing.TB, lane, want int) int {
	tb.Helper()
	seen := make(map[int]bool, want)
	err := e.each(tb.Context(), lane, func() bool { return len(seen) >= want }, func(h packet.HandOff) {
		for _, c := range h.Claims {
			seen[c.ShareIndex] = true
		}
	})
	if err != nil {
		tb.Fatal(err)
	}
	return len(seen)
}

// stagedRun is one run of measureStaging.
type stagedRun struct{ staged, drained, microseconds, p99 float64 }

// measureStaging stages many packets at once, as many API processes would, and reads their
// hand-offs out.
func measureStaging(t *testing.T, p plan, say func(string, ...any)) result {
	packets, callers := 10_000, 256
	if !p.full {
		packets, callers = 100, 8
	}
	var all []stagedRun
	for round := range p.rounds {
		t.Run(fmt.Sprintf("staging, round %d", round+1), func(t *testing.T) {
			say("%s packets at once, round %d of %d", figure(float64(packets)), round+1, p.rounds)
			all = append(all, stageAll(t, packets, callers))
		})
	}
	if t.Failed() {
		return result{}
	}
	of := func(pick func(stagedRun) float64) rate {
		var values []float64
		for _, r := range all {
			values = append(values, pick(r))
		}
		return rateOf(values)
	}
	staged, drained := of(func(r stagedRun) float64 { return r.staged }), of(func(r stagedRun) float64 { return r.drained })
	cost, p99 := of(func(r stagedRun) float64 { return r.microseconds }), of(func(r stagedRun) float64 { return r.p99 })
	row := func(what string, s rate) []string {
		return []string{what, figure(s.Median), figure(s.Min), figure(s.Max), figure(float64(packets) / s.Median)}
	}
	return result{title: fmt.Sprintf("%s packets at once, in Redis", figure(float64(packets))),
		columns: []string{"what", "per second", "least", "most", "seconds for all"},
		rows:    [][]string{row("staged", staged), row("hand-offs read and acknowledged", drained)},
		notes: []string{
			fmt.Sprintf("%d callers stage packets over all %d lanes: packet, guest list and hand-off in one call each, on disk before the "+
				"answer. p99 %s ms, %s µs of Redis each; medians of %s.",
				callers, pool.DefaultLanes, figure(p99.Median), figure(cost.Median), runs(p.rounds)),
			"Afterwards every packet has been handed off once, with its contents.",
		},
		plot: &plot{title: fmt.Sprintf("%s packets at once", figure(float64(packets))), unit: "a second",
			bars: []bar{staged.bar("", "staged"), drained.bar("", "hand-offs drained")}},
		numbers: []any{map[string]any{"kind": "staging", "packets": packets, "staged_per_second": staged, "drained_per_second": drained,
			"redis_microseconds": cost, "p99_ms": p99}}}
}

func stageAll(t *testing.T, packets, callers int) stagedRun {
	t.Helper()
	server := stacktest.FreshRedis(t, noRewrite...)
	p := openPool(t, server.Addr)
	drain := newHandOffReader(t, p)
	ids := make([]string, packets)
	for i := range ids {
		ids[i] = packet.NewID([]byte(t.Name()), strconv.Itoa(i))
	}
	took, errs := make([]time.Duration, packets), make([]error, callers)
	var next atomic.Int64
	var group sync.WaitGroup
	ended, began := meter(t, server), time.Now()
	for c := range callers {
		group.Go(func() {
			for n := int(next.Add(1)) - 1; n < packets && errs[c] == nil; n = int(next.Add(1)) - 1 {
				last := time.Now()
				_, errs[c] = p.Create(t.Context(), bigPacket(ids[n], 10), nil, nil, time.Hour, time.Second)
				took[n] = time.Since(last)
			}
		})
	}
	group.Wait()
	s := sampled(took, time.Since(began))
	used := ended()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	began = time.Now()
	drain.all(t, ids)
	return stagedRun{staged: s.perSecond, drained: float64(packets) / time.Since(began).Seconds(),
		microseconds: used.main.Seconds() * 1e6 / float64(packets), p99: p99(s)}
}

// all reads the hand-offs of these packets out, all lanes concurrently, and fails unless each is
// there once.
func (e *handOffReader) all(t *testing.T, ids []string) {
	t.Helper()
	lanes := make([]int, pool.DefaultLanes)
	for _, id := range ids {
		lanes[packet.Lane(id, pool.DefaultLanes)]++
	}
	seen, errs := make([]map[string]int, len(lanes)), make([]error, len(lanes))
	var group sync.WaitGroup
	for lane, want := range lanes {
		seen[lane] = map[string]int{}
		group.Go(func() {
			errs[lane] = e.each(t.Context(), lane, func() bool { return len(seen[lane]) >= want }, func(h packet.HandOff) {
				if h.Created != nil && h.Created.ShareCount == 10 {
					seen[lane][h.Created.ID]++
				}
			})
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range ids {
		if n := seen[packet.Lane(id, pool.DefaultLanes)][id]; n != 1 {
			t.Fatalf("packet %s was handed off %d times", id, n)
		}
	}
}

func bigPacket(id string, shares int) packet.Packet {
	return packet.Packet{ID: id, App: "bench", SenderID: "sender", Currency: packet.CurrencyCNY,
		ChargeProvider: "sandbox", PayoutProvider: "sandbox",
		TotalAmount: share * money.Fen(shares),
		ShareCount:  shares,
		Split:       packet.SplitEqual, MinShare: 1, BodyHash: "body"}
}
