package observe

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
)

// Build is the metric by which one sees which version a process runs.
func Build(version string) prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: MetricBuild, Help: "1, with the build as labels.",
		ConstLabels: prometheus.Labels{"version": version, "go_version": runtime.Version()}})
	g.Set(1)
	return g
}
