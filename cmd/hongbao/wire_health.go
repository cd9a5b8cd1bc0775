package main

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.temporal.io/sdk/client"

	"hongbao/internal/health"
	"hongbao/internal/money"
	"hongbao/internal/observe"
	"hongbao/internal/pool"
	"hongbao/internal/reconcile/watch"
	"hongbao/internal/store"
	"hongbao/internal/store/report"
	"hongbao/worker"
)

// healthSources returns the sources of the metrics that API and worker read from Redis and MySQL.
func healthSources(c config, db *store.Store, redis *pool.Pool, providers []string) map[string]observe.Source {
	mysql := report.NewHealthReader(report.New(db.MySQL()))
	mysql.LowBalance, mysql.Providers = money.Fen(c.number("low-balance")), providers
	return map[string]observe.Source{"redis": redis.HealthSnapshot, "mysql": func(ctx context.Context, v *observe.HealthSnapshot) error {
		for _, name := range providers {
			v.HeldProviders[name] = time.Time{}
		}
		for _, kind := range watch.Repairs { // an alert on an increase needs the series from the start
			v.Repairs[string(kind)] = 0
		}
		return mysql.Read(ctx, v)
	}}
}

// probes returns the probes behind /readyz of API and worker.
func probes(db *store.Store, redis *pool.Pool, temporal client.Client, cfg temporalConfig) health.Probes {
	return health.Probes{"redis": redis.Durable, "pool": redis.CheckFences, "mysql": db.Ping, "books": db.CheckNotRestored,
		"temporal": func(ctx context.Context) error { return worker.Ping(ctx, temporal, cfg.Namespace) }}
}

// newRegistry returns a registry with the metrics of the sources, and the collector that reads them.
func newRegistry(sources map[string]observe.Source) (*prometheus.Registry, *observe.Collector, error) {
	registry, collector := prometheus.NewRegistry(), observe.NewCollector(sources)
	return registry, collector, collector.Register(registry)
}

// withMetrics returns a handler that serves /metrics, with the worker's own collectors, and otherwise ready.
func withMetrics(ready http.Handler, sources map[string]observe.Source, own ...prometheus.Collector) (http.Handler, error) {
	registry, _, err := newRegistry(sources)
	if err != nil {
		return nil, err
	}
	registry.MustRegister(own...)
	registry.MustRegister(observe.BuildInfo(version), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("/", ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux, nil
}
