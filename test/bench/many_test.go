package bench

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/pool"
)

// measureMany measures many packets at once: the cost of grabs that spread over a thousand of them,
// and whether a giant delays the others, for the grab or for the money.
func measureMany(t *testing.T, p plan, say func(string, ...any)) []result {
	out := append(measureSpread(t, p, say), measureGiant(t, p, say)...)
	return append(out, measureGiantPayouts(t, p, say)...)
}

// measureSpread compares grabs of a thousand packets with the script, and with
// as many grabs of one packet.
func measureSpread(t *testing.T, p plan, say func(string, ...any)) []result {
	packets, callers := 1000, p.callers[len(p.callers)-1]
	if !p.full {
		packets = 50
	}
	c := &comparison{title: packetCount(packets), callers: callers}
	one := &comparison{title: "one packet", callers: callers}
	for round := range p.rounds {
		t.Run(fmt.Sprintf("%s, round %d", c.title, round+1), func(t *testing.T) {
			say("%s, round %d of %d", c.title, round+1, p.rounds)
			addr := stacktest.FreshRedis(t, noRewrite...).Addr
			c.baseline, c.ours = s0(addr, packets), engine(addr, packets)
			one.baseline, one.ours = s0(addr, 1), engine(addr, 1)
			c.compare(t, p.length, 1)
			one.compare(t, p.length, 1)
		})
	}
	if t.Failed() {
		return nil
	}
	return compared("grabs a second over many packets at once", []*comparison{one, c}, p)
}

// crowd is a number of callers. With every, each starts its operations at fixed times, so that durations and not rates are
// measured.
type crowd struct {
	callers []operation
	every   time.Duration // between two operations of a caller; 0: no pause
	took    [][]time.Duration
}

// together runs the callers of all crowds at the same time, for this length.
func together(tb testing.TB, length time.Duration, crowds ...*crowd) (elapsed time.Duration) {
	tb.Helper()
	var ended sync.WaitGroup
	errs := make(chan error, 1)
	began := time.Now()
	deadline := began.Add(length)
	for _, c := range crowds {
		c.took = make([][]time.Duration, len(c.callers))
		for i, once := range c.callers {
			ended.Go(func() {
				if err := c.call(i, once, began, deadline); err != nil {
					select {
					case errs <- err:
					default: // another error is reported
					}
				}
			})
		}
	}
	ended.Wait()
	elapsed = time.Since(began)
	select {
	case err := <-errs:
		tb.Fatal(err)
	default:
	}
	return elapsed
}

// call repeats the operation of one caller of the crowd until the deadline.
func (c *crowd) call(i int, once operation, began, deadline time.Time) error {
	due := began.Add(c.every * time.Duration(i) / time.Duration(len(c.callers)))
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	for {
		if c.every > 0 {
			<-timer.C
		}
		last := time.Now()
		if !last.Before(deadline) {
			return nil
		}
		if err := once(); errors.Is(err, errSoldOut) {
			return nil
		} else if err != nil {
			return err
		}
		c.took[i] = append(c.took[i], time.Since(last))
		for due = due.Add(c.every); c.every > 0 && due.Before(time.Now()); {
			due = due.Add(c.every)
		}
		timer.Reset(time.Until(due))
	}
}

// total returns the sample of all operations of a crowd.
func (c *crowd) total(elapsed time.Duration) sample {
	var all []time.Duration
	for _, took := range c.took {
		all = append(all, took...)
	}
	return sampled(all, elapsed)
}

// packetGroup holds packets of one pool and the answers to their grabs.
type packetGroup struct {
	pool *pool.Pool
	ids  []string
	got  [][]receipt // by caller
}

// add opens one more packet, in that lane unless it is negative, and returns its number.
func (f *packetGroup) add(tb testing.TB, shares, lane int) int {
	tb.Helper()
	id := ""
	for id == "" || lane >= 0 && packet.Lane(id, pool.DefaultLanes) != lane {
		id = packet.NewID([]byte(tb.Name()), fmt.Sprint(packetSerial.Add(1)))
	}
	pk := packet.Packet{ID: id, App: "bench", SenderID: "sender", Currency: packet.CurrencyCNY,
		ChargeProvider: "sandbox", PayoutProvider: "sandbox",
		TotalAmount: share * money.Fen(shares),
		ShareCount:  shares, Split: packet.SplitEqual, MinShare: 1, BodyHash: "body"}
	amounts := make([]money.Fen, shares)
	for i := range amounts {
		amounts[i] = share
	}
	if _, err := f.pool.Create(tb.Context(), pk, nil, nil, time.Hour, time.Second); err != nil {
		tb.Fatal(err)
	}
	if err := f.pool.OpenPool(tb.Context(), id, amounts, nil); err != nil {
		tb.Fatal(err)
	}
	f.ids = append(f.ids, id)
	return len(f.ids) - 1
}

// caller grabs from packet n, each time as a new user.
func (f *packetGroup) caller(tb testing.TB, n int) operation {
	users, id, caller := newUser(len(f.got)), f.ids[n], len(f.got)
	f.got = append(f.got, nil)
	return func() error {
		name := users.next()
		got, err := f.pool.Grab(tb.Context(), id, name, packet.Profile{})
		switch {
		case err != nil:
			return err
		case got.Result == packet.GrabSoldOut:
			return errSoldOut
		case got.Result != packet.GrabWon:
			return fmt.Errorf("%s: %v", name, got.Result)
		}
		f.got[caller] = append(f.got[caller], receipt{n, name, got.Claim.ShareIndex})
		return nil
	}
}

// settle compares every packet's claims with the answers.
func (f *packetGroup) settle(tb testing.TB) {
	tb.Helper()
	settle(tb, f.pool, f.ids, collectClaims(len(f.ids), f.got))
}

// sideLoad is the load during the grabs of small packets.
type sideLoad struct {
	name    string
	packets int // over which its callers spread
	shares  int // of each
}

// probes holds the grabs of small packets with one caller each: packets in the giant's lane, and in others.
type probes struct{ same, other []sample }

// measureGiant measures grabs of small packets alone, beside a crowd that grabs from many packets,
// and beside the same crowd on one giant packet. The second case separates the effect of the giant
// from that of the load.
func measureGiant(t *testing.T, p plan, say func(string, ...any)) []result {
	const lane = 7
	crowdSize, each, giant := 400, 32, packet.MaxShares
	if !p.full {
		crowdSize, each, giant = 16, 4, 20_000
	}
	sides := []sideLoad{{name: "alone"}, {"beside a crowd on " + packetCount(crowdSize), crowdSize, giant / crowdSize},
		{"beside the same crowd on one giant packet", 1, giant}}
	small, loads := make([]probes, len(sides)), make([][]sample, len(sides))
	for round := range p.rounds {
		t.Run(fmt.Sprintf("giant, round %d", round+1), func(t *testing.T) {
			addr := stacktest.FreshRedis(t, noRewrite...).Addr
			for i, side := range sides {
				say("small packets %s, round %d of %d", side.name, round+1, p.rounds)
				same, other, load := giantRun(t, addr, p.length, lane, each, crowdSize, side)
				small[i].same, small[i].other = append(small[i].same, same), append(small[i].other, other)
				loads[i] = append(loads[i], load)
			}
		})
	}
	if t.Failed() {
		return nil
	}
	r := result{title: "a grab of a small packet, with and without a giant", columns: []string{"small packets", "where", "p50 ms", "p99 ms",
		"least p99", "most p99", "the crowd's grabs/s"},
		plot: &plot{title: "A grab of a small packet, p99", unit: "ms", log: true},
		notes: []string{
			fmt.Sprintf("%d small packets, half of them in the lane of the giant; each is grabbed from every %v. The crowd is %d callers who "+
				"never pause.", 2*each, watchEvery, crowdSize),
			"The same crowd on many packets separates the effect of the giant from that of the load.",
			fmt.Sprintf("Medians of %s of %v, the three in turn on the same Redis.", runs(p.rounds), p.length),
		}}
	for i, side := range sides {
		crowdRate := "0"
		if side.packets > 0 {
			crowdRate = figure(spread(loads[i], perSecond).Median)
		}
		for _, where := range []struct {
			name string
			runs []sample
		}{{"in the giant's lane", small[i].same}, {"in other lanes", small[i].other}} {
			m := measured("small packets "+side.name, each, where.name, where.runs, 1)
			r.rows = append(r.rows, []string{side.name, where.name, fmt.Sprintf("%.2f", m.P50Millis.Median), fmt.Sprintf("%.2f", m.P99Millis.Median),
				fmt.Sprintf("%.2f", m.P99Millis.Min), fmt.Sprintf("%.2f", m.P99Millis.Max), crowdRate})
			r.plot.bars = append(r.plot.bars, m.P99Millis.bar(side.name, where.name))
			r.numbers = append(r.numbers, m)
		}
	}
	return []result{r}
}

// watchEvery is the interval of the grabs of each small packet.
const watchEvery = 20 * time.Millisecond

func giantRun(t *testing.T, addr string, length time.Duration, lane, each, crowdSize int, side sideLoad) (same, other, load sample) {
	t.Helper()
	p, err := pool.Open(t.Context(), pool.Config{Addr: addr, Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	f := &packetGroup{pool: p}
	small := int(length/watchEvery) + 10
	near, far, crowded := &crowd{every: watchEvery}, &crowd{every: watchEvery}, &crowd{}
	for i := range each {
		near.callers = append(near.callers, f.caller(t, f.add(t, small, lane)))
		far.callers = append(far.callers, f.caller(t, f.add(t, small, (lane+1+i%(pool.DefaultLanes-1))%pool.DefaultLanes)))
	}
	first := len(f.ids)
	for range side.packets {
		where := -1
		if side.packets == 1 {
			where = lane
		}
		f.add(t, side.shares, where)
	}
	for i := 0; i < crowdSize && side.packets > 0; i++ {
		crowded.callers = append(crowded.callers, f.caller(t, first+i%side.packets))
	}
	elapsed := together(t, length, near, far, crowded)
	f.settle(t)
	return near.total(elapsed), far.total(elapsed), crowded.total(elapsed)
}
