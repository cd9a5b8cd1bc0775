package activities

import (
	"github.com/prometheus/client_golang/prometheus"

	"hongbao/internal/observe"
	"hongbao/internal/payout"
)

var (
	breakerOpen = prometheus.NewDesc(observe.MetricBreaker,
		"1 while the breaker of the operation is open in this process.", []string{"provider", "op", "why"}, nil)
	breakerOpened = prometheus.NewDesc(observe.MetricBreakerOpened,
		"Number of times the breaker of the operation opened in this process.", []string{"provider", "op", "why"}, nil)
	paymentsDeferred = prometheus.NewDesc(observe.MetricDeferred,
		"Payments deferred by this process: due, not sent, no order number used.", []string{"provider", "why"}, nil)
)

// Admissions are the admissions of all providers, by name.
type Admissions map[string]*Admission

// Describe implements prometheus.Collector.
func (Admissions) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{breakerOpen, breakerOpened, paymentsDeferred} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (a Admissions) Collect(out chan<- prometheus.Metric) {
	for _, g := range a {
		g.collect(out)
	}
}

// collect: every series exists from the start, because an alert cannot see a counter rise that
// appears with its first value.
func (g *Admission) collect(out chan<- prometheus.Metric) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forgetOverdue(g.Now())
	count := map[payout.Deferral]int{payout.DeferredHeld: 0, payout.DeferredLowBalance: 0, payout.DeferredOutage: 0,
		payout.DeferredRefundSpacing: 0}
	for _, p := range g.deferred {
		count[p.why]++
	}
	for why, n := range count {
		out <- prometheus.MustNewConstMetric(paymentsDeferred, prometheus.GaugeValue, float64(n), g.provider, string(why))
	}
	for op, b := range g.breakers {
		for _, why := range []payout.Trouble{payout.TroubleLowBalance, payout.TroubleOutage} {
			open := 0.0
			if b.Cause() == why {
				open = 1
			}
			out <- prometheus.MustNewConstMetric(breakerOpen, prometheus.GaugeValue, open, g.provider, string(op), string(why))
			out <- prometheus.MustNewConstMetric(breakerOpened, prometheus.CounterValue, float64(g.opened[opened{op, why}]), g.provider, string(op),
				string(why))
		}
	}
}
