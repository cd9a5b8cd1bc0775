package observe

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Names of the metrics that are read from the stores.
const (
	MetricVitalsUp    = "hongbao_vitals_up"
	MetricVitalsAge   = "hongbao_vitals_age_seconds"
	MetricHandoffs    = "hongbao_handoffs"
	MetricHandoffAge  = "hongbao_handoff_oldest_seconds"
	MetricPayments    = "hongbao_payments"
	MetricPaymentAge  = "hongbao_payment_oldest_seconds"
	MetricUnknown     = "hongbao_payments_unknown"
	MetricOverdue     = "hongbao_packets_overdue"
	MetricRefundLag   = "hongbao_refund_lag_seconds"
	MetricBreaks      = "hongbao_breaks_open"
	MetricBreakAge    = "hongbao_break_oldest_seconds"
	MetricApprovals   = "hongbao_approvals_waiting"
	MetricApprovalAge = "hongbao_approval_oldest_seconds"
	MetricOutbox      = "hongbao_outbox"
	MetricOutboxAge   = "hongbao_outbox_oldest_seconds"
	MetricQuarantined = "hongbao_quarantined"
	MetricRepairs     = "hongbao_repairs_total"
	MetricImbalance   = "hongbao_ledger_imbalanced_packets"
	MetricSuspense    = "hongbao_ledger_suspense_fen"
)

const (
	// vitalsFresh is for how long a reading is served again: scrapes cost the
	// stores nothing in between, however many there are.
	vitalsFresh = 5 * time.Second
	// vitalsTimeout bounds one reading.
	vitalsTimeout = 3 * time.Second
)

// Source reads part of the vitals into v. What it cannot read it leaves and says so.
type Source func(ctx context.Context, v *Vitals) error

// Collector shows vitals as metrics. When a source is away, the others are shown
// all the same, and hongbao_vitals_up tells which.
type Collector struct {
	sources map[string]Source
	now     func() time.Time

	mu     sync.Mutex
	read   time.Time
	vitals Vitals
	failed map[string]bool
	descs  map[string]*prometheus.Desc
}

// NewCollector returns a collector of what the named sources read.
func NewCollector(sources map[string]Source) *Collector {
	c := &Collector{sources: sources, now: time.Now, failed: map[string]bool{}, descs: map[string]*prometheus.Desc{}}
	for _, d := range []struct {
		name, help string
		labels     []string
	}{
		{MetricVitalsUp, "1: the source answered at the last reading of the figures below; 0: they are missing.", []string{"source"}},
		{MetricVitalsAge, "Age of that reading in seconds.", nil},
		{MetricHandoffs, "Hand-offs in Redis that no workflow has taken over.", nil},
		{MetricHandoffAge, "Age of the oldest of them in seconds; of all lanes the largest.", nil},
		{MetricPayments, "Payments that are not at their end, or wait for a person.", []string{"kind", "status"}},
		{MetricPaymentAge, "Age of the oldest of them in seconds.", []string{"kind", "status"}},
		{MetricUnknown, "Payments of every kind whose outcome is unknown.", nil},
		{MetricOverdue, "Packets past their expiry that are not closed.", []string{"status"}},
		{MetricRefundLag, "For how many seconds the oldest packet is past its expiry and not closed.", nil},
		{MetricBreaks, "Disagreements that wait for a person.", []string{"kind"}},
		{MetricBreakAge, "Age of the oldest of them in seconds.", []string{"kind"}},
		{MetricApprovals, "Decisions that wait for a second person.", nil},
		{MetricApprovalAge, "Age of the oldest of them in seconds.", nil},
		{MetricOutbox, "Runs that are to be started or woken.", nil},
		{MetricOutboxAge, "Age of the oldest of them in seconds.", nil},
		{MetricQuarantined, "Hand-offs that could not be decoded.", nil},
		{MetricRepairs, "What the watch has put right, by kind.", []string{"kind"}},
		{MetricImbalance, "Packets posted to lately whose ledger does not add up, or has an account below zero.", nil},
		{MetricSuspense, "Money in fen that moved twice in packets posted to lately.", nil},
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
	if now := c.now(); c.read.IsZero() || now.Sub(c.read) >= vitalsFresh {
		c.refresh(now)
	}
	now := c.now()
	gauge := func(name string, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(c.descs[name], prometheus.GaugeValue, value, labels...)
	}
	for source := range c.sources {
		up := 1.0
		if c.failed[source] {
			up = 0
		}
		gauge(MetricVitalsUp, up, source)
	}
	gauge(MetricVitalsAge, now.Sub(c.read).Seconds())
	c.show(now, gauge)
	for kind, made := range c.vitals.Repairs { // none unless they were read
		out <- prometheus.MustNewConstMetric(c.descs[MetricRepairs], prometheus.CounterValue, float64(made), kind)
	}
}

func (c *Collector) refresh(now time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), vitalsTimeout) //nolint:forbidigo // a scrape has no context, and others may share what it reads
	defer cancel()
	v := Vitals{Repairs: map[string]int64{}}
	for name, source := range c.sources {
		c.failed[name] = source(ctx, &v) != nil
	}
	c.vitals, c.read = v, now
}

// show tells what was read; of a source that is away nothing was.
func (c *Collector) show(now time.Time, gauge func(name string, value float64, labels ...string)) {
	v := c.vitals
	backlog := func(count, age string, b Backlog, labels ...string) {
		gauge(count, float64(b.Waiting), labels...)
		gauge(age, b.age(now), labels...)
	}
	if v.FromRedis {
		backlog(MetricHandoffs, MetricHandoffAge, v.Handoffs)
	}
	if !v.FromMySQL {
		return
	}
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
	backlog(MetricApprovals, MetricApprovalAge, v.Approvals)
	backlog(MetricOutbox, MetricOutboxAge, v.Outbox)
	gauge(MetricQuarantined, float64(v.Quarantined))
	gauge(MetricImbalance, float64(v.Imbalanced))
	gauge(MetricSuspense, float64(v.Suspense))
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
