package api

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2/middleware/adaptor"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"hongbao/packet"
)

// Names of metrics.
const (
	metricGrabs    = "hongbao_grab_total"
	metricRequests = "hongbao_http_request_duration_seconds"
	metricBuild    = "hongbao_build_info"
)

// metrics are what the API counts. No label holds what a client chose.
type metrics struct {
	registry *prometheus.Registry
	grabs    *prometheus.CounterVec
	requests *prometheus.HistogramVec
}

func newMetrics(registry *prometheus.Registry, version string) (*metrics, error) {
	m := &metrics{
		registry: registry,
		grabs:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: metricGrabs, Help: "Grabs by outcome."}, []string{"result"}),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: metricRequests, Help: "Time from the request's arrival to its answer, by route.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}}, []string{"listener", "method", "route", "status"}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: metricBuild, Help: "1, with the build as labels.",
		ConstLabels: prometheus.Labels{"version": version, "go_version": runtime.Version()}})
	build.Set(1)
	for r := packet.GrabUnavailable; r <= packet.GrabWon; r++ {
		m.grabs.WithLabelValues(r.String()) // a counter that is there from the start can be alarmed on
	}
	for _, c := range []prometheus.Collector{m.grabs, m.requests, build, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		var twice prometheus.AlreadyRegisteredError
		if err := registry.Register(c); err != nil && !errors.As(err, &twice) {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) grab(r packet.GrabResult) { m.grabs.WithLabelValues(r.String()).Inc() }

func (m *metrics) request(l listenerKind, method, route string, status int, took time.Duration) {
	m.requests.WithLabelValues(l.String(), method, route, strconv.Itoa(status)).Observe(took.Seconds())
}

func getMetrics(r *request) (answer, error) {
	h := promhttp.HandlerFor(r.server.metrics.registry, promhttp.HandlerOpts{})
	return answer{written: true}, adaptor.HTTPHandler(h)(r.c)
}
