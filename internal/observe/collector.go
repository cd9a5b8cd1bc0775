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
	// snapshotFresh is for how long a reading is served again: scrapes cost the
	// stores nothing in between, however many there are.
	snapshotFresh = 5 * time.Second
	// snapshotTimeout bounds one reading.
	snapshotTimeout = 3 * time.Second
)

// Source reads part of the vitals into v, which others fill in at the same time. What it
// cannot read it leaves and says so.
type Source func(ctx context.Context, v *HealthSnapshot) error

// Collector shows vitals as metrics. When a source is away, the others are shown
// all the same, and hongbao_vitals_up tells which.
type Collector struct {
	sources map[string]Source
	now     func() time.Time

	mu       sync.Mutex
	read     time.Time
	snapshot HealthSnapshot
	failed   map[string]bool
	descs    map[string]*prometheus.Desc
}

// NewCollector returns a collector of what the named sources read.
func NewCollector(sources map[string]Source) *Collector {
	c := &Collector{sources: sources, now: time.Now, failed: map[string]bool{}, descs: map[string]*prometheus.Desc{}}
	for _, d := range []struct {
		name, help string
		labels     []string
	}{
		{MetricHealthUp, "1: the source answered at the last reading of the figures below; 0: they are missing.", []string{"source"}},
		{MetricHealthAge, "Age of that reading in seconds.", nil},
		{MetricHandoffs, "Hand-offs in Redis that no workflow has taken over.", nil},
		{MetricHandoffAge, "Age of the oldest of them in seconds; of all lanes the largest.", nil},
		{MetricLanesRefused, "Lanes of the pool that this process refuses: their gate is shut.", nil},
		{MetricLaneState, "Lanes of the pool by the state of their gate in the books.", []string{"state"}},
		{MetricLaneShutAge, "For how many seconds the first of those gates that are not open has been shut.", nil},
		{MetricPoolLost, "Grabs that were told and may be lost, by breaks that nobody has dealt with.", nil},
		{MetricPayments, "Payments that are not at their end, or wait for a person.", []string{"kind", "status"}},
		{MetricPaymentAge, "Age of the oldest of them in seconds.", []string{"kind", "status"}},
		{MetricUnknown, "Payments of every kind whose outcome is unknown.", nil},
		{MetricOverdue, "Packets past their expiry that are not closed.", []string{"status"}},
		{MetricRefundLag, "For how many seconds the oldest packet is past its expiry and not closed.", nil},
		{MetricBreaks, "Disagreements that wait for a person.", []string{"kind"}},
		{MetricBreakAge, "Age of the oldest of them in seconds.", []string{"kind"}},
		{MetricUncompared, "Days that were not compared with the provider: their statement could not be read.", nil},
		{MetricReconciled, "For how many seconds no reconciliation has been carried out.", nil},
		{MetricReturnsSeen, "Seconds since returned payments were last searched in a provider's statement.", nil},
		{MetricCampaigns, "Days of campaigns whose packet should have been made already.", nil},
		{MetricCampaignAge, "For how many seconds the oldest of those packets should have been made.", nil},
		{MetricDaysLost, "Days of campaigns, of the last 24 h, on which nobody could grab anything, by why: missed, declined, unopened.",
			[]string{"reason"}},
		{MetricApprovals, "Decisions that wait for a second person.", nil},
		{MetricApprovalAge, "Age of the oldest of them in seconds.", nil},
		{MetricDecisionsDue, "What waits for staff to decide, by reason.", []string{"reason"}},
		{MetricDecisionsDueFen, "What they come to, in fen.", []string{"reason"}},
		{MetricOutbox, "Runs that are to be started or woken; not those that know.", nil},
		{MetricOutboxAge, "Age of the oldest of them in seconds.", nil},
		{MetricQuarantined, "Hand-offs that could not be decoded.", nil},
		{MetricRepairs, "What the watch has put right, by kind.", []string{"kind"}},
		{MetricRemoved, "Old rows that were removed, by table.", []string{"table"}},
		{MetricOldest, "Age of the oldest row of that table in seconds; 0: there is none.", []string{"table"}},
		{MetricDurable, "1: Redis keeps every write that it has acknowledged; 0: it may lose grabs.", nil},
		{MetricHeld, "For how many seconds a person has been holding the provider; 0: not held.", []string{"provider"}},
		{MetricQueue, "Tasks in a task queue of Temporal that no worker has taken, about.", []string{"queue", "kind"}},
		{MetricQueueAge, "Age of the oldest of them in seconds.", []string{"queue", "kind"}},
		{MetricImbalance, "Packets posted to lately whose ledger does not add up, or has an account below zero.", nil},
		{MetricSuspense, "Money in fen that moved twice and has not come back, by breaks that nobody has dealt with.", nil},
		{MetricRestored, "1: MySQL was restored from an older backup; nothing is sent, closed or decided until hongbao recover has run.", nil},
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

// Collect implements prometheus.Collector. It reads the stores at most once in
// five seconds, one caller at a time.
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
	for kind, made := range c.snapshot.Repairs { // zeros in place of them would be a counter that began anew
		out <- prometheus.MustNewConstMetric(c.descs[MetricRepairs], prometheus.CounterValue, float64(made), kind)
	}
	for _, r := range c.snapshot.Retention {
		out <- prometheus.MustNewConstMetric(c.descs[MetricRemoved], prometheus.CounterValue, float64(r.Removed), r.Table)
		gauge(MetricOldest, Backlog{Oldest: r.Oldest}.age(now), r.Table)
	}
}

// Vitals returns the figures that the metrics are made of, not older than five
// seconds, for who judges them. Slices and maps in them are shared: do not change them.
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
	for name, source := range c.sources { // at the same time: one that hangs takes none of the others' time
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

// show tells what was read; of a source that is away nothing was.
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
	for _, b := range v.Breaks {
		backlog(MetricBreaks, MetricBreakAge, b.Backlog, b.Kind)
	}
	gauge(MetricUncompared, float64(v.Unreconciled.Waiting))
	gauge(MetricReconciled, Backlog{Oldest: v.Reconciled}.age(now))
	gauge(MetricReturnsSeen, Backlog{Oldest: v.ReturnsSeen}.age(now))
	backlog(MetricCampaigns, MetricCampaignAge, v.Campaigns)
	for _, d := range v.CampaignDays {
		gauge(MetricDaysLost, float64(d.Waiting), d.Kind)
	}
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
	backlog(MetricOutbox, MetricOutboxAge, v.Outbox)
	for provider, since := range v.HeldProviders {
		gauge(MetricHeld, Backlog{Oldest: since}.age(now), provider)
	}
	gauge(MetricQuarantined, float64(v.Quarantined))
	gauge(MetricImbalance, float64(v.Imbalanced))
	gauge(MetricSuspense, float64(v.Suspense))
	gauge(MetricRestored, oneIf(v.BooksRestored))
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

// Register registers the collector. Registering it twice is no error.
func (c *Collector) Register(registry *prometheus.Registry) error {
	var twice prometheus.AlreadyRegisteredError
	if err := registry.Register(c); err != nil && !errors.As(err, &twice) {
		return fmt.Errorf("register vitals: %w", err)
	}
	return nil
}

// Build is the metric by which one sees which version a process runs.
func BuildInfo(version string) prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: MetricBuild, Help: "1, with the build as labels.",
		ConstLabels: prometheus.Labels{"version": version, "go_version": runtime.Version()}})
	g.Set(1)
	return g
}
