package bench

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"hongbao/api"
	"hongbao/money"
	"hongbao/workflows"
)

const (
	steadyRate   = 50 // grabs a second, at fixed times, whatever the answers do
	steadyPacket = 10 // packets that are grabbed from meanwhile
	fifths       = 5
)

// measureLatency is the way of the money through all of it: how long after the
// answer to a grab it is with the winner, and how long a crowd's payouts take.
func measureLatency(t *testing.T, p plan, say func(string, ...any)) []result {
	r := newRig(t)
	w := spawn(t, r.settings("worker"))
	length := 20 * time.Second
	if !p.full {
		length = time.Second / 2
	}
	say("%d grabs a second for %v", steadyRate, length)
	out := []result{r.steady(t, length)}
	var drains []drain
	for i, n := range []int{p.sized(1000, 20), p.sized(20_000, 50)} {
		d := r.drain(t, w, n, fmt.Sprintf("d%dx", i))
		drains = append(drains, d)
		say("%d grabs at once: all paid after %v", n, d.took.Round(time.Millisecond))
	}
	return append(out, drainTable(drains))
}

// listen serves the API on this rig.
func (r *rig) listen(t *testing.T) (address string) {
	t.Helper()
	server, err := api.New(api.Config{PublicAddr: "127.0.0.1:0", StaffAddr: "127.0.0.1:0", Pool: r.pool, Store: r.store, Provider: newProvider(t, r.provider.address), SeedKey: seedKey, Version: "bench"})
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

// steady lets somebody grab every 20 ms over HTTP.
func (r *rig) steady(t *testing.T, length time.Duration) result {
	t.Helper()
	address := r.listen(t)
	n := int(length.Seconds() * steadyRate)
	ids := r.stage(t, steadyPacket, wanted{sender: "sender", shares: n/steadyPacket + 2, life: time.Hour})
	r.awaitOpen(t, ids)
	var (
		grabs    = make([]time.Duration, n)
		answered = make([]time.Time, n)
		failed   = make([]error, n)
		free     = make(chan *asker, n)
		group    sync.WaitGroup
		began    = time.Now()
	)
	for i := range n {
		due := began.Add(time.Duration(i) * time.Second / steadyRate)
		<-time.After(time.Until(due))
		group.Go(func() {
			var from *asker
			select {
			case from = <-free:
			default:
				from = newAsker(address, r.token)
			}
			failed[i] = from.post("http://"+address+"/v1/packets/"+ids[i%len(ids)]+"/grabs", "steady"+strconv.Itoa(i))
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
		owed["steady"+strconv.Itoa(i)] = share
	}
	await(t, "all are paid", func() bool { return len(r.movedOf(t, "transfer", "steady")) >= n })
	r.paidOnce(t, "transfer", "steady", owed)
	var paid []time.Duration
	for _, m := range r.movedOf(t, "transfer", "steady") {
		i, err := strconv.Atoi(m.Account[len("steady"):])
		if err != nil {
			t.Fatal(err)
		}
		paid = append(paid, max(0, m.At.Sub(answered[i])))
	}
	await(t, "all runs ended", func() bool { return r.running(t, workflows.PayoutWorkflow) == 0 })
	out := result{title: fmt.Sprintf("%d grabs a second for %v", steadyRate, length), columns: []string{"what", "p50 ms", "p99 ms", "max ms"},
		notes: []string{"Grabs are asked for at fixed times over HTTP; their time counts from when they were due, and the money's from the 201 to the movement at the provider."},
		plot:  &plot{title: "Time at 50 grabs a second", unit: "ms", log: true}}
	for _, l := range []struct {
		what string
		all  []time.Duration
	}{{"grab, until its answer", grabs}, {"answer, until the money has moved", paid}} {
		p50, p99, most := millis(quantile(l.all, 0.5)), millis(quantile(l.all, 0.99)), millis(quantile(l.all, 1))
		out.rows = append(out.rows, []string{l.what, figure(p50), figure(p99), figure(most)})
		for _, b := range []struct {
			name string
			v    float64
		}{{"p50", p50}, {"p99", p99}} {
			v := max(b.v, 0.01) // of a logarithm
			out.plot.bars = append(out.plot.bars, bar{l.what, b.name, v, v, v})
		}
		out.numbers = append(out.numbers, map[string]any{"kind": "latency", "what": l.what, "per_second": steadyRate, "count": n, "p50_ms": p50, "p99_ms": p99, "max_ms": most})
	}
	return out
}

func millis(d time.Duration) float64 { return d.Seconds() * 1e3 }

// drain is a backlog that was paid.
type drain struct {
	n       int
	grabbed time.Duration // until the last grab was answered
	took    time.Duration // from the first grab until the last money moved
	at      [fifths + 1]time.Duration
	cost    [fifths + 1]bill
	repairs int64 // by the watch, of all kinds: it tells a packet that it is sold out when the relay has not come to that yet
}

// repairsMade counts what the watch has ever put right.
const repairsMade = "SELECT COALESCE(SUM(made), 0) FROM repairs"

// drain lets n users empty some packets at once and looks on while they are paid.
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

// drainTable shows whether it gets slower as the backlog grows.
func drainTable(drains []drain) result {
	out := result{title: "a crowd's payouts, by fifths of the backlog", columns: []string{"grabs at once", "part", "after s", "payouts/s", "Temporal ms", "MariaDB ms", "Redis ms", "worker ms"},
		notes: []string{"The first fifth is paid while the most are waiting; its costs include the grabs themselves and the starts of later payouts.", "Milliseconds are processor time of that process for one payout."},
		plot:  &plot{title: "Payouts a second while a backlog drains", unit: "payouts/s"}}
	for _, d := range drains {
		row := func(part string, from, to int) {
			count := d.n*to/fifths - d.n*from/fifths
			perSecond := float64(count) / max((d.at[to]-d.at[from]).Seconds(), 1e-3)
			each := func(of func(bill) time.Duration) float64 {
				return millis(of(d.cost[to])-of(d.cost[from])) / float64(count)
			}
			costs := []float64{each(func(b bill) time.Duration { return b.temporal }), each(func(b bill) time.Duration { return b.mysql }),
				each(func(b bill) time.Duration { return b.redis }), each(func(b bill) time.Duration { return b.worker })}
			line := []string{figure(float64(d.n)), part, figure(d.at[to].Seconds()), figure(perSecond)}
			for _, c := range costs {
				line = append(line, figure(c))
			}
			out.rows = append(out.rows, line)
			out.plot.bars = append(out.plot.bars, bar{figure(float64(d.n)) + " at once", part, perSecond, perSecond, perSecond})
			out.numbers = append(out.numbers, map[string]any{"kind": "drain", "grabs": d.n, "part": part, "after_s": d.at[to].Seconds(), "per_second": perSecond,
				"repairs": d.repairs, "temporal_cpu_ms": costs[0], "mysql_cpu_ms": costs[1], "redis_cpu_ms": costs[2], "worker_cpu_ms": costs[3]})
		}
		row("all", 0, fifths)
		for i := range fifths {
			row(strconv.Itoa(i+1)+". fifth", i, i+1)
		}
		out.notes = append(out.notes, fmt.Sprintf("The last of %s grabs was answered after %.2f s. The watch put %d things right, of whatever kind.", figure(float64(d.n)), d.grabbed.Seconds(), d.repairs))
	}
	return out
}
