package api

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2/middleware/adaptor"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"hongbao/api/rest"
	"hongbao/internal/observe"
	"hongbao/internal/packet"
)

// metrics are the metrics of the API. No label contains a value chosen by a client.
type metrics struct {
	registry *prometheus.Registry
	grabs    *prometheus.CounterVec
	requests *prometheus.HistogramVec
	// soldOutLocally counts the grabs answered sold_out without Redis.
	soldOutLocally prometheus.Counter
	// conns are the open connections per listener, turnedAway those refused over the limit,
	// evicted the keyless ones closed for others.
	conns      *prometheus.GaugeVec
	turnedAway *prometheus.CounterVec
	evicted    *prometheus.CounterVec
	limited    map[string]prometheus.Counter          // refused requests, by limit
	results    [packet.GrabWon + 1]prometheus.Counter // of grabs, by outcome
	risks      map[string]prometheus.Counter          // risk checks, by outcome
	riskTime   prometheus.Histogram
}

func newMetrics(registry *prometheus.Registry, version string) (*metrics, error) {
	m := &metrics{
		registry: registry,
		grabs:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: observe.MetricGrabs, Help: "Grabs by outcome."}, []string{"result"}),
		soldOutLocally: prometheus.NewCounter(prometheus.CounterOpts{Name: observe.MetricSoldOut,
			Help: "Grabs of sold-out packets that were answered without Redis; hongbao_grab_total counts them too."}),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: observe.MetricRequests,
			Help:    "Time from the request's arrival to its answer, by route.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}},
			[]string{"listener", "method", "route", "status"}),
	}
	m.conns = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: observe.MetricConns, Help: "Open connections by listener."},
		[]string{"listener"})
	m.turnedAway = prometheus.NewCounterVec(prometheus.CounterOpts{Name: observe.MetricNoRoom,
		Help: "Connections refused because of too many open connections."}, []string{"listener"})
	m.evicted = prometheus.NewCounterVec(prometheus.CounterOpts{Name: observe.MetricEvicted,
		Help: "Idle connections without a key that were closed to make room for others."}, []string{"listener"})
	limited := prometheus.NewCounterVec(prometheus.CounterOpts{Name: observe.MetricLimited,
		Help: "Requests that were refused by a rate limit, by limit."}, []string{"limit"})
	m.limited = map[string]prometheus.Counter{}
	for _, kind := range limitKinds {
		m.limited[kind] = limited.WithLabelValues(kind)
	}
	risks := prometheus.NewCounterVec(prometheus.CounterOpts{Name: observe.MetricRisk, Help: "Risk checks of grabs, by " +
		"outcome."}, []string{"outcome"})
	m.risks = map[string]prometheus.Counter{}
	for _, outcome := range []string{riskAllowed, riskRefused, riskUnanswered, riskOverflow} {
		m.risks[outcome] = risks.WithLabelValues(outcome)
	}
	m.riskTime = prometheus.NewHistogram(prometheus.HistogramOpts{Name: observe.MetricRiskTime,
		Help:    "Duration of risk checks, answered or not.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .2, .3, .5, 1, 2}})
	for r := packet.GrabUnavailable; r <= packet.GrabWon; r++ {
		m.results[r] = m.grabs.WithLabelValues(r.String()) // alerts need counters that exist from the start
	}
	for _, c := range []prometheus.Collector{m.grabs, m.soldOutLocally, m.requests, m.conns, m.turnedAway, m.evicted, limited, risks,
		m.riskTime, observe.BuildInfo(version), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		var twice prometheus.AlreadyRegisteredError
		if err := registry.Register(c); err != nil && !errors.As(err, &twice) {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) grab(r packet.GrabResult) { m.results[r].Inc() }

// risk counts a risk check.
func (m *metrics) risk(outcome string, took time.Duration) {
	m.risks[outcome].Inc()
	m.riskTime.Observe(took.Seconds())
}

// unmatchedPath is the route label of every path without a route.
const unmatchedPath = "unmatched"

// unmatched measures a request without a route.
func (m *metrics) unmatched(l rest.ListenerKind, method string, status int, took time.Duration) {
	m.requests.WithLabelValues(l.String(), method, unmatchedPath, strconv.Itoa(status)).Observe(took.Seconds())
}

// clock returns the histogram of one route and method on one listener.
func (m *metrics) clock(l rest.ListenerKind, method, route string) *clock {
	return &clock{requests: m.requests, labels: [3]string{l.String(), method, route}}
}

// clock measures requests. It keeps the series of every status: a lookup by labels costs more
// than the rest of the measurement.
type clock struct {
	requests *prometheus.HistogramVec
	labels   [3]string
	series   [maxStatus - minStatus]atomic.Pointer[prometheus.Observer]
}

// The HTTP statuses, the last one exclusive.
const (
	minStatus = http.StatusContinue
	maxStatus = 600
)

func (c *clock) observe(status int, took time.Duration) {
	known := &c.series[status-minStatus]
	o := known.Load()
	if o == nil {
		found := c.requests.WithLabelValues(c.labels[0], c.labels[1], c.labels[2], strconv.Itoa(status))
		o = &found
		known.Store(o)
	}
	(*o).Observe(took.Seconds())
}

func getMetrics(r *request) (rest.Answer, error) {
	h := promhttp.HandlerFor(r.server.metrics.registry, promhttp.HandlerOpts{})
	return rest.Answer{Written: true}, adaptor.HTTPHandler(h)(r.C)
}
