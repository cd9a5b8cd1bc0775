package bench

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"hongbao/internal/money"
	"hongbao/workflows"
)

// payoutPackets is the number of packets over which the payouts of a run spread.
const payoutPackets = 4

// payoutRun is one run: a number of payouts, from the first grab, or start, until all are settled. The costs include the work after
// that.
type payoutRun struct {
	n    int
	took time.Duration
	cost bill
}

func (r payoutRun) perSecond() float64 { return float64(r.n) / r.took.Seconds() }

func (r payoutRun) millis(d time.Duration) float64 { return d.Seconds() * 1e3 / float64(r.n) }

func (r payoutRun) each(n int64) float64 { return float64(n) / float64(r.n) }

// measurePayouts compares ours with a workflow of three regular activities and one of local ones, on one Temporal server,
// one MariaDB and one provider, in turn; and ours with itself through WeChat Pay.
func measurePayouts(t *testing.T, p plan, say func(string, ...any)) []result {
	r := newRig(t)
	r.addWechat(t)
	for _, table := range baseTables {
		r.exec(t, table)
	}
	n := p.sized(2000, 20)
	var base, local, ours, tapped []payoutRun
	file := filepath.Join(t.TempDir(), "worker.pprof")
	for i := range p.rounds {
		base = append(base, r.basePayouts(t, basePayout, n, fmt.Sprintf("b%dx", i)))
		local = append(local, r.basePayouts(t, localPayout, n, fmt.Sprintf("l%dx", i)))
		ours = append(ours, r.ourPayouts(t, "sandbox", n, fmt.Sprintf("o%dx", i), file))
		tapped = append(tapped, r.ourPayouts(t, "wechat", n, fmt.Sprintf("w%dx", i), file+".wechat"))
		say("payouts, round %d: %.0f/s as three activities, %.0f/s as three local ones, %.0f/s as ours, %.0f/s through WeChat Pay", i+1,
			base[i].perSecond(), local[i].perSecond(), ours[i].perSecond(), tapped[i].perSecond())
	}
	return []result{payoutTable(n, base, local, ours, tapped), workerTable(t, file)}
}

// payAll begins the work, waits until so many rows are settled, then until
// the runs have ended, and checks that each account was paid once.
func (r *rig) payAll(t *testing.T, w *child, n int, prefix, settled, workflowType string, begin func() map[string]money.Fen) payoutRun {
	t.Helper()
	before, rows := r.bill(t, w), r.number(t, settled)
	began := time.Now()
	owed := begin()
	// The provider is queried first, because that costs MariaDB nothing.
	await(t, "all money moved", func() bool {
		return len(r.movedOf(t, "transfer", prefix))+int(r.wechat.number(t, "moved "+prefix)) >= n
	})
	await(t, "all payouts settled", func() bool { return r.number(t, settled)-rows >= int64(n) })
	run := payoutRun{n: n, took: time.Since(began)}
	await(t, "all runs ended", func() bool { return r.running(t, workflowType) == 0 })
	after := r.bill(t, w)
	run.cost = bill{temporal: after.temporal - before.temporal, mysql: after.mysql - before.mysql, redis: after.redis - before.redis,
		worker: after.worker - before.worker, statements: after.statements - before.statements, calls: after.calls - before.calls}
	if len(owed) != n {
		t.Fatalf("%d payouts were started, want %d", len(owed), n)
	}
	if err := movedOnce(append(r.movedOf(t, "transfer", prefix), r.transfers(t, prefix)...), owed); err != nil {
		t.Fatal(err)
	}
	return run
}

func (r *rig) basePayouts(t *testing.T, flow string, n int, prefix string) payoutRun {
	t.Helper()
	w := spawn(t, r.settings("baseline"))
	defer w.end()
	return r.payAll(t, w, n, prefix, "SELECT COUNT(*) FROM baseline_payouts WHERE status = 'paid'", flow, func() map[string]money.Fen {
		if reply := w.command(t, "start %s %d %s", flow, n, prefix); reply != "started" {
			t.Fatal(reply)
		}
		owed := make(map[string]money.Fen, n)
		for i := range n {
			owed[fmt.Sprint(prefix, i)] = share
		}
		return owed
	})
}

// ourPayouts grabs all but one share of each packet, so that no packet closes during the run. pays is the provider of
// the payouts.
func (r *rig) ourPayouts(t *testing.T, pays string, n int, prefix, profileTo string) payoutRun {
	t.Helper()
	settings := r.settings("worker")
	settings.Profile = profileTo
	w := spawn(t, settings)
	defer w.end()
	ids := r.stage(t, payoutPackets, wanted{sender: "sender", payouts: pays, shares: n/payoutPackets + 2, life: time.Hour})
	r.awaitOpen(t, ids)
	if reply := w.command(t, "profile"); reply != "<nil>" {
		t.Fatal(reply)
	}
	run := r.payAll(t, w, n, prefix, "SELECT COUNT(*) FROM payments WHERE kind = 'p' AND status = 'paid'", workflows.PayoutWorkflow,
		func() map[string]money.Fen {
			owed, err := r.grabAll(t.Context(), ids, prefix, n)
			if err != nil {
				t.Fatal(err)
			}
			return owed
		})
	w.command(t, "profiled")
	for _, id := range ids {
		if _, err := r.pool.Recall(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "packets closed", func() bool { return r.number(t, "SELECT COUNT(*) FROM packets WHERE status <> 'closed'") == 0 })
	return run
}

// workOf returns the group of a sample of our worker, by its functions.
var workOf = []struct{ prefix, group string }{
	{"gorm.io/", "MariaDB: gorm, driver, sockets"},
	{"github.com/go-sql-driver/", "MariaDB: gorm, driver, sockets"},
	{"database/sql", "MariaDB: gorm, driver, sockets"},
	{"google.golang.org/grpc", "Temporal: gRPC, protobuf, sockets"},
	{"google.golang.org/protobuf", "Temporal: gRPC, protobuf, sockets"},
	{"go.temporal.io/api", "Temporal: gRPC, protobuf, sockets"},
	{"golang.org/x/net/http2", "Temporal: gRPC, protobuf, sockets"},
	{"go.temporal.io/sdk", "Temporal: SDK"},
	{"github.com/redis/", "Redis"},
	{"hongbao/internal/provider", "the provider: HTTP"},
	{"net/http", "the provider: HTTP"},
	{"hongbao/test/bench", "measuring"},
	{"hongbao/", "our own code"},
}

// workGroup returns the group of a stack, the innermost function first.
func workGroup(stack []string) string {
	for _, f := range stack {
		switch f {
		case "runtime.gcBgMarkWorker", "runtime.gcAssistAlloc", "runtime.bgsweep", "runtime.bgscavenge", "runtime.gcStart":
			return groupGC
		}
	}
	for _, f := range stack {
		for _, o := range workOf {
			if strings.HasPrefix(f, o.prefix) {
				return o.group
			}
		}
	}
	return groupSchedule
}

// workerTable shows where the processor time of our worker went in the last run.
func workerTable(t *testing.T, file string) result {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.ParseData(raw)
	if err != nil {
		t.Fatal(err)
	}
	parts, all := map[string]float64{}, 0.0
	for _, s := range p.Sample {
		var stack []string
		for _, l := range s.Location {
			for _, n := range l.Line {
				stack = append(stack, n.Function.Name)
			}
		}
		parts[workGroup(stack)] += float64(s.Value[1])
		all += float64(s.Value[1])
	}
	out := result{title: "where the processor time of our worker goes", columns: []string{"part", "of its time"}, numbers: []any{parts},
		notes: []string{"A profile of the last run above; work of the standard library counts for its caller."}}
	for _, group := range slices.SortedFunc(maps.Keys(parts), func(a, b string) int { return cmp.Compare(parts[b], parts[a]) }) {
		out.rows = append(out.rows, []string{group, percent(parts[group] / all)})
	}
	if len(out.rows) == 0 { // a tiny run may end between two samples
		out.rows = [][]string{{"too short to measure", ""}}
	}
	return out
}

// payoutLine is one row of the table for programs.
type payoutLine struct {
	Kind       string  `json:"kind"`
	Who        string  `json:"who"`
	Payouts    int     `json:"payouts"`
	PerSecond  rate    `json:"per_second"`
	Temporal   rate    `json:"temporal_cpu_ms"`
	MySQL      rate    `json:"mysql_cpu_ms"`
	Redis      rate    `json:"redis_cpu_ms"`
	Worker     rate    `json:"worker_cpu_ms"`
	Statements rate    `json:"sql_statements"`
	Calls      rate    `json:"provider_calls"`
	Ratio      float64 `json:"ratio"`
}

func newPayoutLine(who string, runs []payoutRun) payoutLine {
	of := func(value func(payoutRun) float64) rate {
		all := make([]float64, len(runs))
		for i, r := range runs {
			all[i] = value(r)
		}
		return rateOf(all)
	}
	return payoutLine{Kind: "payouts", Who: who, Payouts: runs[0].n, PerSecond: of(payoutRun.perSecond),
		Temporal:   of(func(r payoutRun) float64 { return r.millis(r.cost.temporal) }),
		MySQL:      of(func(r payoutRun) float64 { return r.millis(r.cost.mysql) }),
		Redis:      of(func(r payoutRun) float64 { return r.millis(r.cost.redis) }),
		Worker:     of(func(r payoutRun) float64 { return r.millis(r.cost.worker) }),
		Statements: of(func(r payoutRun) float64 { return r.each(r.cost.statements) }),
		Calls:      of(func(r payoutRun) float64 { return r.each(r.cost.calls) }),
	}
}

func payoutTable(n int, base, local, ours, tapped []payoutRun) result {
	lines := []payoutLine{newPayoutLine("three regular activities", base), newPayoutLine("three local activities", local),
		newPayoutLine("ours", ours), newPayoutLine("ours, through WeChat Pay", tapped)}
	out := result{title: fmt.Sprintf("%d payouts at once", n),
		columns: []string{"who", "payouts/s", "min", "max", "ratio", "Temporal ms", "ratio", "MariaDB ms", "Redis ms", "worker ms",
			"SQL statements", "provider calls"},
		notes: []string{
			"Each run from the first grab (the first start) until every payout is settled in MariaDB; each moved money once.",
			"Milliseconds are processor time of that process for one payout; MariaDB and Redis write to disk before they answer.",
			"The baselines are one workflow, with regular and with local activities. Each writes one row and one ledger line and has " +
				"no search attributes, no shares, no decisions.",
			"Through WeChat Pay (its simulator) each recipient confirms at once; a notification and a query follow. Both sides sign and verify " +
				"every call with RSA.",
		},
		plot: &plot{title: "Payouts a second", unit: "payouts/s"}}
	for i, l := range lines {
		l.Ratio = l.PerSecond.Median / lines[0].PerSecond.Median
		lines[i] = l
		temporal := l.Temporal.Median / max(lines[0].Temporal.Median, 1e-9)
		out.rows = append(out.rows, []string{l.Who, fmt.Sprintf("%.0f", l.PerSecond.Median), fmt.Sprintf("%.0f", l.PerSecond.Min),
			fmt.Sprintf("%.0f", l.PerSecond.Max),
			fmt.Sprintf("%.2f", l.Ratio), fmt.Sprintf("%.1f", l.Temporal.Median), fmt.Sprintf("%.2f", temporal), fmt.Sprintf("%.1f", l.MySQL.Median),
			fmt.Sprintf("%.2f", l.Redis.Median), fmt.Sprintf("%.1f", l.Worker.Median), fmt.Sprintf("%.1f", l.Statements.Median),
			fmt.Sprintf("%.2f", l.Calls.Median)})
		out.plot.bars = append(out.plot.bars, bar{name: l.Who, median: l.PerSecond.Median, min: l.PerSecond.Min, max: l.PerSecond.Max})
		out.numbers = append(out.numbers, l)
	}
	return out
}
