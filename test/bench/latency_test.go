package bench

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"hongbao/api"
	"hongbao/internal/health"
	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/workflows"
)

const (
	steadyRate   = 50 // grabs a second, at fixed times, independent of the answers
	steadyPacket = 10 // packets that are grabbed from
	fifths       = 5
)

// measureLatency measures the whole path of the money: the time from the answer to a grab to the
// payment, and the time for a crowd's payouts.
func measureLatency(t *testing.T, p plan, say func(string, ...any)) []result {
	r := newRig(t)
	w := spawn(t, r.settings("worker"))
	length := 20 * time.Second
	if !p.full {
		length = time.Second / 2
	}
	address := r.listen(t)
	var grabs, paid []sample
	for round := range p.rounds {
		say("%d grabs a second for %v, round %d of %d", steadyRate, length, round+1, p.rounds)
		g, m := r.steady(t, address, length, fmt.Sprintf("steady%dx", round))
		grabs, paid = append(grabs, g), append(paid, m)
	}
	sizes := []int{p.sized(1000, 20), p.sized(20_000, 50)}
	drains := make([][]drain, len(sizes))
	for round := range p.rounds {
		for k := range sizes {
			i := (k + round) % len(sizes) // each comes first in every other round
			d := r.drain(t, w, sizes[i], fmt.Sprintf("d%d-%dx", i, round))
			drains[i] = append(drains[i], d)
			say("%d grabs at once, round %d of %d: all paid after %v", sizes[i], round+1, p.rounds, d.took.Round(time.Millisecond))
		}
	}
	return []result{steadyTable(grabs, paid, length), drainTable(drains)}
}

// listen serves the API on this rig.
func (r *rig) listen(t *testing.T) (address string) {
	t.Helper()
	server, err := api.New(api.Config{PublicAddr: "127.0.0.1:0", StaffAddr: "127.0.0.1:0", Pool: r.pool, Store: apiStore(r.store),
		Providers: payout.OnlyProvider(newProvider(t, r.provider.address)), Probes: health.Probes{"redis": r.pool.Durable},
		SeedKey: seedKey, Version: "bench"})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Listen(); err != nil {
		t.Fatal(err)
	}
	serve(t, server.Serve)
	address = server.PublicAddr().String()
	awaitReady(t, "http://"+address+"/readyz")
	return address
}

// steady makes a user with that name grab every 20 ms over HTTP.
func (r *rig) steady(t *testing.T, address string, length time.Duration, name string) (grab, pay sample) {
	t.Helper()
	n := int(length.Seconds() * steadyRate)
	ids := r.stage(t, steadyPacket, wanted{sender: "sender", shares: n/steadyPacket + 2, life: time.Hour})
	r.awaitOpen(t, ids)
	var (
		grabs    = make([]time.Duration, n)
		answered = make([]time.Time, n)
		failed   = make([]error, n)
		free     = make(chan *caller, n)
		group    sync.WaitGroup
		began    = time.Now()
	)
	for i := range n {
		due := began.Add(time.Duration(i) * time.Second / steadyRate)
		<-time.After(time.Until(due))
		group.Go(func() {
			var from *caller
			select {
			case from = <-free:
			default:
				from = newCaller(address, r.token)
			}
			failed[i] = from.post("http://"+address+"/v1/packets/"+ids[i%len(ids)]+"/grabs", name+strconv.Itoa(i))
			answered[i] = time.Now()
			grabs[i] = answered[i].Sub(due)
			free <- from
		})
	}
	group.Wait()
	close(free)
	for from := range free {
		from.close()
	}
	owed := make(map[string]money.Fen, n)
	for i, err := range failed {
		if err != nil {
			t.Fatal(err)
		}
		owed[name+strconv.Itoa(i)] = share
	}
	await(t, "all are paid", func() bool { return len(r.movedOf(t, "transfer", name)) >= n })
	r.paidOnce(t, "transfer", name, owed)
	var paid []time.Duration
	for _, m := range r.movedOf(t, "transfer", name) {
		i, err := strconv.Atoi(m.Account[len(name):])
		if err != nil {
			t.Fatal(err)
		}
		paid = append(paid, max(0, m.At.Sub(answered[i])))
	}
	await(t, "all runs ended", func() bool { return r.running(t, workflows.PayoutWorkflow) == 0 })
	return sampled(grabs, length), sampled(paid, length)
}

func steadyTable(grabs, paid []sample, length time.Duration) result {
	out := result{title: fmt.Sprintf("%d grabs a second for %v", steadyRate, length),
		columns: []string{"what", "p50 ms", "least", "most", "p99 ms", "least", "most", "max ms"},
		notes: []string{"Grabs are sent at fixed times over HTTP. Their time counts from the moment at which they are due; that of " +
			"the money from the 201 to the movement at the provider.",
			fmt.Sprintf("Medians of %s, with the least and the most; the maximum is that of all.", runs(len(grabs)))},
		plot: &plot{title: "Time at 50 grabs a second", unit: "ms", log: true}}
	for _, l := range []struct {
		what string
		runs []sample
	}{{"grab, until its answer", grabs}, {"answer, until the money has moved", paid}} {
		half, tail, most := spread(l.runs, p50), spread(l.runs, p99), spread(l.runs, longest).Max
		out.rows = append(out.rows, []string{l.what, figure(half.Median), figure(half.Min), figure(half.Max), figure(tail.Median),
			figure(tail.Min), figure(tail.Max), figure(most)})
		for _, b := range []struct {
			name string
			rate
		}{{"p50", half}, {"p99", tail}} {
			const least = 0.01 // of a logarithm
			out.plot.bars = append(out.plot.bars, bar{l.what, b.name, max(b.Median, least), max(b.Min, least), max(b.Max, least)})
		}
		out.numbers = append(out.numbers, map[string]any{"kind": "latency", "what": l.what, "per_second": steadyRate, "runs": len(l.runs),
			"p50_ms": half, "p99_ms": tail, "max_ms": most})
	}
	return out
}

func millis(d time.Duration) float64 { return d.Seconds() * 1e3 }

// drain is the measurement of a backlog of payouts, from the first grab until all are paid.
type drain struct {
	n       int
	grabbed time.Duration // until the last grab was answered
	took    time.Duration // from the first grab until the last money moved
	at      [fifths + 1]time.Duration
	cost    [fifths + 1]bill
	repairs int64 // by the watch, of all kinds; it also signals sold out when the relay is slower
}

// repairsMade counts all repairs of the watch.
const repairsMade = "SELECT COALESCE(SUM(made), 0) FROM repairs"

// drain makes n users grab all shares of some packets at once, and measures until all are paid.
func (r *rig) drain(t *testing.T, w *child, n int, prefix string) drain {
	t.Helper()
	const packets = 10
	n -= n % packets
	ids := r.stage(t, packets, wanted{sender: prefix, shares: n / packets, life: time.Hour})
	r.awaitOpen(t, ids)
	d := drain{n: n, repairs: -r.number(t, repairsMade)}
	d.cost[0] = r.bill(t, w)
	before, began := len(r.movements(t)), time.Now()
	var owed map[string]money.Fen
	var failed error
	grabbed := make(chan struct{})
	go func() {
		defer close(grabbed)
		owed, failed = r.grabAll(t.Context(), ids, prefix, n)
		d.grabbed = time.Since(began)
	}()
	for i := 1; i <= fifths; i++ {
		await(t, "another fifth is paid", func() bool { return len(r.movements(t))-before >= n*i/fifths })
		d.cost[i] = r.bill(t, w)
	}
	if <-grabbed; failed != nil {
		t.Fatal(failed)
	}
	r.paidOnce(t, "transfer", prefix, owed)
	moved := r.movedOf(t, "transfer", prefix)
	for i := 1; i <= fifths; i++ {
		d.at[i] = moved[n*i/fifths-1].At.Sub(began)
	}
	d.took = d.at[fifths]
	await(t, "all packets closed", func() bool {
		return r.number(t, "SELECT COUNT(*) FROM packets WHERE sender_id = ? AND status <> 'closed'", prefix) == 0
	})
	await(t, "all runs ended", func() bool { return r.running(t, workflows.PayoutWorkflow) == 0 })
	d.repairs += r.number(t, repairsMade)
	return d
}

// part returns the rate of a part of a backlog, in fifths, and the cost of one payout of it.
func (d drain) part(from, to int) (perSecond float64, cost [4]float64) {
	count := d.n*to/fifths - d.n*from/fifths
	a, b := d.cost[from], d.cost[to]
	for i, t := range []time.Duration{b.temporal - a.temporal, b.mysql - a.mysql, b.redis - a.redis, b.worker - a.worker} {
		cost[i] = millis(t) / float64(count)
	}
	return float64(count) / max((d.at[to]-d.at[from]).Seconds(), 1e-3), cost
}

// drainTable shows how the rate of payouts depends on the size of the backlog.
func drainTable(sizes [][]drain) result {
	out := result{title: "a crowd's payouts, by fifths of the backlog", columns: []string{"grabs at once", "part", "after s", "payouts/s",
		"least", "most", "Temporal ms", "MariaDB ms", "Redis ms", "worker ms"},
		notes: []string{fmt.Sprintf("Medians of %s, the sizes in turn on one installation, which keeps what was paid before.",
			runs(len(sizes[0]))),
			"The first fifth is paid while most payouts wait; its costs include the grabs themselves and the starts of later payouts.",
			"Milliseconds are processor time of that process for one payout."},
		plot: &plot{title: "Payouts a second while a backlog drains", unit: "payouts/s"}}
	for _, all := range sizes {
		n := all[0].n
		row := func(part string, from, to int) {
			speed := spread(all, func(d drain) float64 { v, _ := d.part(from, to); return v })
			after := spread(all, func(d drain) float64 { return d.at[to].Seconds() })
			line := []string{figure(float64(n)), part, figure(after.Median), figure(speed.Median), figure(speed.Min), figure(speed.Max)}
			numbers := map[string]any{"kind": "drain", "grabs": n, "part": part, "runs": len(all), "after_s": after, "per_second": speed}
			for i, of := range []string{"temporal", "mysql", "redis", "worker"} {
				cost := spread(all, func(d drain) float64 { _, c := d.part(from, to); return c[i] })
				line, numbers[of+"_cpu_ms"] = append(line, figure(cost.Median)), cost
			}
			out.rows, out.numbers = append(out.rows, line), append(out.numbers, numbers)
			out.plot.bars = append(out.plot.bars, speed.bar(figure(float64(n))+" at once", part))
		}
		row("all", 0, fifths)
		for i := range fifths {
			row(strconv.Itoa(i+1)+". fifth", i, i+1)
		}
		answered, repairs := spread(all, func(d drain) float64 { return d.grabbed.Seconds() }),
			spread(all, func(d drain) float64 { return float64(d.repairs) })
		out.notes = append(out.notes,
			fmt.Sprintf("The last of %s grabs was answered after %.2f s. The watch made %.0f to %.0f repairs, of all kinds.",
				figure(float64(n)), answered.Median, repairs.Min, repairs.Max))
	}
	return out
}
