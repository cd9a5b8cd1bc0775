package observe

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// snapshotFresh is how long a snapshot is served again, so that the rate of scrapes does not
	// load the stores.
	snapshotFresh = 5 * time.Second
	// snapshotTimeout bounds the time to read a snapshot.
	snapshotTimeout = 3 * time.Second
)

// Source reads its part of the snapshot into v; other sources fill theirs concurrently. It leaves
// unreadable parts unset and returns an error.
type Source func(ctx context.Context, v *HealthSnapshot) error

// Collector exports the health snapshot as metrics. When a source fails, the others are still
// exported, and hongbao_vitals_up names the failed one.
type Collector struct {
	sources map[string]Source
	now     func() time.Time

	mu       sync.Mutex
	read     time.Time
	snapshot HealthSnapshot
	failed   map[string]bool
	descs    map[string]*prometheus.Desc
}

// NewCollector returns a collector of the named sources.
func NewCollector(sources map[string]Source) *Collector {
	c := &Collector{sources: sources, now: time.Now, failed: map[string]bool{}, descs: map[string]*prometheus.Desc{}}
	for _, d := range []struct {
		name, help string
		labels     []string
	}{
		{MetricHealthUp, "Whether the source answered when the health metrics were last read: 1 yes, 0 no, and its metrics are missing.",
			[]string{"source"}},
		{MetricHealthAge, "Age of the health metrics in seconds, since they were last read.", nil},
		{MetricHandoffs, "Number of hand-offs in Redis whose workflow is not started yet.", nil},
		{MetricHandoffAge, "Age in seconds of the oldest hand-off in Redis, over all lanes.", nil},
		{MetricLanesRefused, "Number of lanes that this process refuses because their fence is shut.", nil},
		{MetricLaneState, "Number of lanes by the state of their fence in MySQL.", []string{"state"}},
		{MetricLaneShutAge, "Time in seconds since the first fence that is not open was shut; 0: all are open.", nil},
		{MetricPoolLost, "Number of acknowledged grabs that may be lost, from unresolved breaks.", nil},
		{MetricPayments, "Number of payments that are not final or wait for a decision of staff, by kind and status.",
			[]string{"kind", "status"}},
		{MetricPaymentAge, "Age in seconds of the oldest payment that is not final or waits for a decision, by kind and status.",
			[]string{"kind", "status"}},
		{MetricUnknown, "Number of payments of every kind whose outcome is unknown.", nil},
		{MetricProviderMissing, "Number of open payments whose provider is not configured.", nil},
		{MetricOverdue, "Number of packets past their expiry that are not closed, by status.", []string{"status"}},
		{MetricRefundLag, "Time in seconds since the expiry of the oldest packet that is not closed.", nil},
		{MetricBreaks, "Number of open breaks, by kind.", []string{"kind"}},
		{MetricBreakAge, "Age in seconds of the oldest open break, by kind.", []string{"kind"}},
		{MetricUnreconciled, "Number of days that are not reconciled because their statement could not be read.", nil},
		{MetricReconciled, "Time in seconds since the last completed reconciliation.", nil},
		{MetricReturnsSearched, "Time in seconds since returned payments were last searched in a provider's statement.", nil},
		{MetricCampaigns, "Number of campaign days whose packet is overdue.", nil},
		{MetricCampaignAge, "Time in seconds since the oldest overdue campaign packet was due.", nil},
		{MetricDaysLost, "Number of campaign days of the last 24 h without a grabbable packet, by reason: missed, declined, unopened.",
			[]string{"reason"}},
		{MetricShortBalances, "Number of apps whose balance is below the limit, or does not cover their campaign days of the next 24 h.", nil},
		{MetricPayable, "Money in fen that a provider may still have to pay out: claimed and not paid, and unclaimed in open packets.",
			[]string{"provider"}},
		{MetricAvailable, "Money in fen that our account at a provider holds for payouts; missing: the provider has not said.",
			[]string{"provider"}},
		{MetricShortAccounts, "Number of accounts at providers that hold less than they may still have to pay out.", nil},
		{MetricApprovals, "Number of decisions that wait for the approval by a second person.", nil},
		{MetricApprovalAge, "Age in seconds of the oldest decision that waits for approval.", nil},
		{MetricDecisionsDue, "Number of items that wait for a decision of staff, by reason.", []string{"reason"}},
		{MetricDecisionsDueFen, "Amount in fen of the items that wait for a decision of staff, by reason.", []string{"reason"}},
		{MetricOutbox, "Number of due outbox entries: workflow runs to be started or woken.", nil},
		{MetricOutboxAge, "Age in seconds of the oldest due outbox entry.", nil},
		{MetricQuarantined, "Number of quarantined hand-offs, which cannot be decoded.", nil},
		{MetricRepairs, "Total number of repairs by the watch, by kind.", []string{"kind"}},
		{MetricRemoved, "Total number of old rows removed by retention, by table.", []string{"table"}},
		{MetricOldest, "Age in seconds of the oldest row of a table with retention; 0: the table is empty.", []string{"table"}},
		{MetricDurable, "Whether Redis is configured to keep every acknowledged write: 1 yes, 0 no, and grabs may be lost.", nil},
		{MetricHeld, "Time in seconds since the current hold on the provider was placed; 0: not held.", []string{"provider"}},
		{MetricHolds, "Number of active holds, by scope and kind.", []string{"scope", "kind"}},
		{MetricHoldAge, "Age in seconds of the oldest active hold, by scope and kind.", []string{"scope", "kind"}},
		{MetricHeldFen, "Money in fen that the oldest thousand active holds of packets and payments stop.", nil},
		{MetricReleases, "Number of releases of holds that wait for a second person.", nil},
		{MetricReleaseAge, "Age in seconds of the oldest release of a hold that waits for a second person.", nil},
		{MetricConflicts, "Number of share conflicts that are neither honoured nor voided.", nil},
		{MetricConflictsFen, "Their sum in fen, which the house pays if all are honoured.", nil},
		{MetricQueue, "Approximate number of tasks in a Temporal task queue that no worker has taken.", []string{"queue", "kind"}},
		{MetricQueueAge, "Age in seconds of the oldest task in a Temporal task queue that no worker has taken.", []string{"queue", "kind"}},
		{MetricImbalance, "Number of recently active packets whose ledger does not balance, or has an account below zero.", nil},
		{MetricSuspense, "Money in fen that moved twice and was neither returned nor written off, from unresolved breaks.", nil},
		{MetricRestored,
			"Whether MySQL was restored from an older backup: 1 yes, and nothing is sent, closed or decided until hongbao recover has run.", nil},
	} {
		c.descs[d.name] = prometheus.NewDesc(d.name, d.help, d.labels, nil)
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		out <- d
	}
}

// Collect implements prometheus.Collector. It reads the stores at most once in five seconds, one
// caller at a time.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keepFresh()
	now := c.now()
	gauge := func(name string, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(c.descs[name], prometheus.GaugeValue, value, labels...)
	}
	for source := range c.sources {
		gauge(MetricHealthUp, oneIf(!c.failed[source]), source)
	}
	gauge(MetricHealthAge, now.Sub(c.read).Seconds())
	c.show(now, gauge)
	if !c.snapshot.FromMySQL {
		return
	}
	for kind, made := range c.snapshot.Repairs { // without MySQL a zero would look like a reset of the counter
		out <- prometheus.MustNewConstMetric(c.descs[MetricRepairs], prometheus.CounterValue, float64(made), kind)
	}
	for _, r := range c.snapshot.Retention {
		out <- prometheus.MustNewConstMetric(c.descs[MetricRemoved], prometheus.CounterValue, float64(r.Removed), r.Table)
		gauge(MetricOldest, Backlog{Oldest: r.Oldest}.age(now), r.Table)
	}
}

// HealthSnapshot returns the figures behind the metrics, at most five seconds old. Its slices and
// maps are shared: do not change them.
func (c *Collector) HealthSnapshot() HealthSnapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keepFresh()
	return c.snapshot
}

func (c *Collector) keepFresh() {
	if now := c.now(); c.read.IsZero() || now.Sub(c.read) >= snapshotFresh {
		c.refresh(now)
	}
}

func (c *Collector) refresh(now time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), snapshotTimeout) //nolint:forbidigo // others may share what a scrape reads
	defer cancel()
	v := HealthSnapshot{Repairs: map[string]int64{}, HeldProviders: map[string]time.Time{}}
	var mu sync.Mutex
	var all sync.WaitGroup
	for name, source := range c.sources { // concurrently, so that a slow source does not delay the others
		all.Go(func() {
			err := source(ctx, &v)
			mu.Lock()
			defer mu.Unlock()
			c.failed[name] = err != nil
		})
	}
	all.Wait()
	c.snapshot, c.read = v, now
}

// show exports the snapshot; parts of failed sources are left out.
func (c *Collector) show(now time.Time, gauge func(name string, value float64, labels ...string)) {
	v := c.snapshot
	backlog := func(count, age string, b Backlog, labels ...string) {
		gauge(count, float64(b.Waiting), labels...)
		gauge(age, b.age(now), labels...)
	}
	if v.FromRedis {
		backlog(MetricHandoffs, MetricHandoffAge, v.Handoffs)
		gauge(MetricDurable, oneIf(v.Durable))
		gauge(MetricLanesRefused, float64(v.LanesFenced))
	}
	if v.FromTemporal {
		for _, q := range v.Queues {
			backlog(MetricQueue, MetricQueueAge, q.Backlog, q.Queue, q.Kind)
		}
	}
	if v.FromProviders {
		for _, a := range v.Accounts {
			gauge(MetricPayable, float64(a.Payable), a.Provider)
			if a.Known {
				gauge(MetricAvailable, float64(a.Available), a.Provider)
			}
		}
		gauge(MetricShortAccounts, float64(v.ShortAccounts()))
	}
	if !v.FromMySQL {
		return
	}
	shut := 0.0
	for _, g := range v.Lanes {
		gauge(MetricLaneState, float64(g.Waiting), g.State)
		shut = max(shut, g.age(now))
	}
	gauge(MetricLaneShutAge, shut)
	gauge(MetricPoolLost, float64(v.LostGrabs))
	unknown, lag := int64(0), 0.0
	for _, p := range v.Payments {
		backlog(MetricPayments, MetricPaymentAge, p.Backlog, p.Kind, p.Status)
		if p.Status == "unknown" {
			unknown += p.Waiting
		}
	}
	gauge(MetricUnknown, float64(unknown))
	for _, p := range v.Overdue {
		gauge(MetricOverdue, float64(p.Waiting), p.Status)
		lag = max(lag, p.age(now))
	}
	gauge(MetricRefundLag, lag)
	gauge(MetricProviderMissing, float64(v.ProviderMissing.Waiting))
	for _, b := range v.Breaks {
		backlog(MetricBreaks, MetricBreakAge, b.Backlog, b.Kind)
	}
	gauge(MetricUnreconciled, float64(v.Unreconciled.Waiting))
	gauge(MetricReconciled, Backlog{Oldest: latest(v.Reconciled, v.Installed)}.age(now))
	gauge(MetricReturnsSearched, Backlog{Oldest: v.ReturnsSearched}.age(now))
	backlog(MetricCampaigns, MetricCampaignAge, v.Campaigns)
	for _, d := range v.CampaignDays {
		gauge(MetricDaysLost, float64(d.Waiting), d.Kind)
	}
	gauge(MetricShortBalances, float64(v.ShortBalances))
	backlog(MetricOutbox, MetricOutboxAge, v.Outbox)
	gauge(MetricQuarantined, float64(v.Quarantined))
	gauge(MetricImbalance, float64(v.Imbalanced))
	gauge(MetricSuspense, float64(v.Suspense))
	gauge(MetricRestored, oneIf(v.MySQLRestored))
	showStaff(v, now, gauge, backlog)
}

// showStaff exports what waits for staff: approvals, decisions and holds.
func showStaff(v HealthSnapshot, now time.Time, gauge func(name string, value float64, labels ...string),
	backlog func(count, age string, b Backlog, labels ...string)) {
	backlog(MetricApprovals, MetricApprovalAge, v.Approvals)
	due, fen := map[string]int64{}, map[string]int64{}
	for _, d := range v.Decisions {
		due[d.Reason] += d.Waiting
		fen[d.Reason] += d.Fen
	}
	for reason := range due {
		gauge(MetricDecisionsDue, float64(due[reason]), reason)
		gauge(MetricDecisionsDueFen, float64(fen[reason]), reason)
	}
	for provider, since := range v.HeldProviders {
		gauge(MetricHeld, Backlog{Oldest: since}.age(now), provider)
	}
	for _, h := range v.Holds {
		backlog(MetricHolds, MetricHoldAge, h.Backlog, h.Scope, h.Kind)
	}
	gauge(MetricHeldFen, float64(v.HeldFen))
	backlog(MetricReleases, MetricReleaseAge, v.Releases)
	gauge(MetricConflicts, float64(v.ShareConflicts))
	gauge(MetricConflictsFen, float64(v.ShareConflictsFen))
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func (b Backlog) age(now time.Time) float64 {
	if b.Oldest.IsZero() {
		return 0
	}
	return max(now.Sub(b.Oldest).Seconds(), 0)
}

// latest returns the later time.
func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Register registers the collector. Registering it twice is no error.
func (c *Collector) Register(registry *prometheus.Registry) error {
	var twice prometheus.AlreadyRegisteredError
	if err := registry.Register(c); err != nil && !errors.As(err, &twice) {
		return fmt.Errorf("register health metrics: %w", err)
	}
	return nil
}

// BuildInfo is the metric with the version of the process.
func BuildInfo(version string) prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: MetricBuild, Help: "1, with the build as labels.",
		ConstLabels: prometheus.Labels{"version": version, "go_version": runtime.Version()}})
	g.Set(1)
	return g
}
