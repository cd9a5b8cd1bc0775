package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/money"
)

const (
	// giveUp is the timeout of a stall; the known stalls end after a minute.
	giveUp = 3 * time.Minute
	// knownBad is the fixed number of pollers that is known to stall: as many as ours begin with.
	knownBad   = 4
	openShares = 2
)

// measureTimers measures packets that wait for their end: the cost of each while it waits, and what
// happens when many end in the same second.
func measureTimers(t *testing.T, p plan, say func(string, ...any)) []result {
	open, ends := newRig(t).measurePackets(t, p, say) // first: a new server, so that the footprint is that of the packets
	bare := newRig(t).measureBare(t, p, say)
	return []result{open, dueTable("packets that expire in the same second, until all are refunded and closed", ends),
		dueTable("bare timers due in the same instant", bare)}
}

// dueRun is the progress of work that was due at one instant.
type dueRun struct {
	pollers string
	n       int
	started float64 // a second, before
	stacktest.Progress
	stalled bool // for good
}

func pollersOf(fixed int) string {
	if fixed == 0 {
		return "autoscaling (ours)"
	}
	return strconv.Itoa(fixed) + ", fixed"
}

// measureBare compares our pollers with fixed ones, in turn, on runs that only wait and do one
// step.
func (r *rig) measureBare(t *testing.T, p plan, say func(string, ...any)) (all []dueRun) {
	n := p.sized(2000, 20)
	ahead := time.Second
	if p.full {
		ahead = 30 * time.Second
	}
	for i := range p.rounds {
		for _, fixed := range []int{knownBad, 0} {
			run := r.bareTimers(t, n, fixed, fmt.Sprintf("due%d-%d-", i, fixed), ahead)
			all = append(all, run)
			say("%d bare timers, pollers %s, round %d: %v, longest time without any %v", n, run.pollers, i+1, run.Took.Round(time.Millisecond),
				run.Longest.Round(time.Millisecond))
		}
	}
	return all
}

// bareTimers starts n runs that wait for the same instant, and measures their progress.
func (r *rig) bareTimers(t *testing.T, n, fixed int, prefix string, ahead time.Duration) dueRun {
	t.Helper()
	settings := r.settings("timers")
	settings.Fixed = fixed
	w := spawn(t, settings)
	defer w.end()
	began := time.Now()
	at := began.Add(ahead)
	if reply := w.command(t, "start %d %s %d", n, prefix, at.UnixMilli()); reply != "started" {
		t.Fatal(reply)
	}
	run := dueRun{pollers: pollersOf(fixed), n: n, started: float64(n) / time.Since(began).Seconds()}
	<-time.After(time.Until(at)) // on a slow machine the last are started when the first are through
	run.await(t, int64(n), func() int64 { return w.number(t, "count") })
	await(t, "all runs ended", func() bool { return run.stalled || r.running(t, timersAtOnce) == 0 })
	return run
}

func (run *dueRun) await(t *testing.T, due int64, done func() int64) {
	t.Helper()
	var err error
	run.Progress, err = stacktest.AwaitWork(t.Context(), due, giveUp, done)
	if run.stalled = errors.Is(err, stacktest.ErrStalled); err != nil && !run.stalled {
		t.Fatal(err)
	}
}

// footprint is the memory and disk of everything, in bytes.
type footprint struct {
	worker, heap, temporal, temporalDisk, redis, mysql int64
}

func (r *rig) footprint(t *testing.T, w *child) footprint {
	t.Helper()
	f := footprint{heap: w.number(t, "heap"), worker: resident(t, w.proc.PID()), temporal: resident(t, r.temporal.PID()),
		temporalDisk: temporalFiles(t, r.temporal.PID())}
	info, err := r.rdb.InfoMap(t.Context(), "memory").Result()
	if err != nil {
		t.Fatal(err)
	}
	if f.redis, err = strconv.ParseInt(info["Memory"]["used_memory"], 10, 64); err != nil {
		t.Fatal(err)
	}
	r.analyze(t)
	f.mysql = r.number(t, "SELECT COALESCE(SUM(data_length + index_length), 0) FROM information_schema.tables WHERE table_schema = DATABASE()")
	return f
}

// analyze updates MariaDB's statistics of table sizes.
func (r *rig) analyze(t *testing.T) {
	t.Helper()
	var tables string
	r.own++
	if err := r.db.QueryRowContext(t.Context(), "SELECT GROUP_CONCAT(table_name) FROM information_schema.tables WHERE table_schema = "+
		"DATABASE()").Scan(&tables); err != nil {
		t.Fatal(err)
	}
	r.exec(t, "ANALYZE TABLE "+tables)
}

// temporalFiles is the size of the development server's database, which lies in
// the folder in which it was started.
func temporalFiles(t *testing.T, pid int) (size int64) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "cwd", "temporal.db*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the database of Temporal: %v", err)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err == nil {
			size += info.Size()
		}
	}
	return size
}

// measurePackets opens many packets and, beside them, lets some expire in the same
// second, with our pollers and with fixed ones.
func (r *rig) measurePackets(t *testing.T, p plan, say func(string, ...any)) (result, []dueRun) {
	n, ending := p.sized(10_000, 10), p.sized(2000, 8)
	w := spawn(t, r.settings("worker"))
	before, cost := r.footprint(t, w), r.bill(t, w)
	began := time.Now()
	r.awaitOpen(t, r.stage(t, n, wanted{sender: "waits", shares: openShares, life: 7 * 24 * time.Hour}))
	took := time.Since(began)
	say("%d packets opened in %v", n, took.Round(time.Millisecond))
	after, costs := r.footprint(t, w), r.bill(t, w)
	out := openTable(n, took, before, after, cost, costs)
	perSecond := float64(n) / took.Seconds()
	var ends []dueRun
	pollers := []int{0}
	if p.full {
		pollers = append(pollers, knownBad)
	}
	for i, fixed := range pollers {
		if i > 0 { // the worker that opened the packets goes on with ours
			w.end()
			settings := r.settings("worker")
			settings.Fixed = fixed
			w = spawn(t, settings)
		}
		run := r.expire(t, ending, perSecond, "ends"+strconv.Itoa(fixed)+"-")
		run.pollers = pollersOf(fixed)
		ends = append(ends, run)
		say("%d packets expired, pollers %s: all closed after %v, longest time without any step %v", ending, run.pollers,
			run.Took.Round(time.Millisecond), run.Longest.Round(time.Millisecond))
	}
	w.end()
	return out, ends
}

// progressOfEnds counts the progress of the ends of a sender's packets, in steps that MySQL has:
// closing, remainder fixed, refund recorded, sent and paid, closed.
const progressOfEnds = `SELECT COALESCE(SUM((status IN ('closing', 'closed')) + (books_closed_at IS NOT NULL) + (status = 'closed')), 0) +
	(SELECT COALESCE(SUM(1 + (f.status <> 'pending') + (f.status = 'paid')), 0) FROM payments f JOIN packets k ON k.id = f.packet_id
	WHERE f.kind = 'r' AND k.sender_id = ?)
	FROM packets WHERE sender_id = ?`

const stepsOfEnd = 6

// expire opens packets that all expire in the same second, and measures their progress until each is refunded and closed.
func (r *rig) expire(t *testing.T, n int, perSecond float64, sender string) dueRun {
	t.Helper()
	// Twice the time that the others took: all are to be open before.
	ahead := max(time.Duration(2*float64(n)/perSecond*float64(time.Second)), 12*time.Second)
	began := time.Now()
	at := began.Add(ahead).Truncate(time.Second)
	ids := r.stage(t, n, wanted{sender: sender, shares: openShares, expires: at})
	run := dueRun{n: n}
	await(t, "packets are open, or their time is over", func() bool {
		run.started = float64(n) / time.Since(began).Seconds()
		return time.Now().After(at) || r.allOpen(t, ids)
	}) // on a slow machine some end unopened: their senders get the money back, too
	<-time.After(time.Until(at))
	run.await(t, int64(n)*stepsOfEnd, func() int64 { return r.number(t, progressOfEnds, sender, sender) })
	if run.stalled {
		return run
	}
	refunds := make(map[string]money.Fen, n)
	for _, id := range ids {
		refunds[id] = share * openShares
	}
	var moved []movement
	for _, m := range r.movedOf(t, "refund", sender) {
		m.Account = m.OrderNo[1 : 1+len(ids[0])] // each packet once, not each sender
		moved = append(moved, m)
	}
	if err := movedOnce(moved, refunds); err != nil {
		t.Fatal(err)
	}
	return run
}

func openTable(n int, took time.Duration, before, after footprint, cost, costs bill) result {
	each := func(b, a int64) string { return figure(float64(a-b) / float64(n)) }
	mega := func(v int64) string { return figure(float64(v) / (1 << 20)) }
	out := result{title: fmt.Sprintf("%s open packets, each waiting for its end", figure(float64(n))),
		columns: []string{"what", "before", "with them", "for each"},
		notes: []string{fmt.Sprintf("Opened in %.1f s, %s a second: from the request's script to a pool that can be grabbed from, charge "+
			"included. Processor time for each: Temporal %s ms, MariaDB %s ms, worker %s ms.",
			took.Seconds(), figure(float64(n)/took.Seconds()), figure(millis(costs.temporal-cost.temporal)/float64(n)),
			figure(millis(costs.mysql-cost.mysql)/float64(n)), figure(millis(costs.worker-cost.worker)/float64(n))),
			"Before and with them in MiB, for each in bytes. The worker caches up to 10,000 runs; it reads evicted ones again from " +
				"Temporal."},
		numbers: []any{map[string]any{"kind": "open_packets", "packets": n, "per_second": float64(n) / took.Seconds(), "before": before.numbers(),
			"after": after.numbers()}}}
	for _, l := range []struct {
		what          string
		before, after int64
	}{
		{"worker, resident", before.worker, after.worker},
		{"worker, heap in use", before.heap, after.heap},
		{"Temporal, resident", before.temporal, after.temporal},
		{"Temporal, files", before.temporalDisk, after.temporalDisk},
		{"Redis", before.redis, after.redis},
		{"MariaDB, tables and indexes", before.mysql, after.mysql},
	} {
		out.rows = append(out.rows, []string{l.what, mega(l.before), mega(l.after), each(l.before, l.after)})
	}
	return out
}

func (f footprint) numbers() map[string]int64 {
	return map[string]int64{"worker": f.worker, "worker_heap": f.heap, "temporal": f.temporal, "temporal_files": f.temporalDisk,
		"redis": f.redis, "mysql": f.mysql}
}

func dueTable(title string, runs []dueRun) result {
	out := result{title: title, columns: []string{"pollers", "due at once", "opened/s", "all done after s", "longest pause s", "stalled"},
		notes: []string{"The longest pause is the longest time without any step although work was due; 20 s are a stall."},
		plot:  &plot{title: "Longest pause while work was due", unit: "s"}}
	for i, run := range runs {
		stalled := "no"
		switch {
		case run.stalled:
			stalled = "for good"
		case run.Longest >= 20*time.Second:
			stalled = "yes"
		}
		out.rows = append(out.rows, []string{run.pollers, figure(float64(run.n)), figure(run.started), figure(run.Took.Seconds()),
			figure(run.Longest.Seconds()), stalled})
		v := run.Longest.Seconds()
		out.plot.bars = append(out.plot.bars, bar{run.pollers, fmt.Sprintf("run %d", i+1), v, v, v})
		out.numbers = append(out.numbers, map[string]any{"kind": "due", "title": title, "pollers": run.pollers, "runs": run.n,
			"opened_per_second": run.started, "took_s": run.Took.Seconds(), "longest_pause_s": v, "stalled": stalled != "no"})
	}
	return out
}
