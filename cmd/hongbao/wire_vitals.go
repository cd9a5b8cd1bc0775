package main

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"hongbao/observe"
	"hongbao/pool"
	"hongbao/store"
)

// newVitals returns a registry with the figures that are read from the stores.
func newVitals(db *store.Store, redis *pool.Pool) (*prometheus.Registry, error) {
	registry := prometheus.NewRegistry()
	c := observe.NewCollector(map[string]observe.Source{"mysql": store.NewVitals(db).Read, "redis": redis.Vitals})
	return registry, c.Register(registry)
}

// withMetrics serves /metrics beside the health of a worker, its own included.
func withMetrics(health http.Handler, db *store.Store, redis *pool.Pool, own ...prometheus.Collector) (http.Handler, error) {
	registry, err := newVitals(db, redis)
	if err != nil {
		return nil, err
	}
	registry.MustRegister(own...)
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("/", health)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux, nil
}
