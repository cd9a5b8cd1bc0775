package api

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"hongbao/wire"
)

// probeTimeout bounds one probe of a dependency.
const probeTimeout = time.Second

func getLiveness(*request) (answer, error) {
	return answer{status: http.StatusOK, body: wire.Liveness{Status: "ok"}}, nil
}

// getReadiness probes all dependencies in parallel. Only Redis is required for writes; without
// the others the API is degraded.
func getReadiness(r *request) (answer, error) {
	s := r.server
	asked, _, _ := s.probing.Do("", func() (any, error) { return s.probe(context.WithoutCancel(r.ctx)), nil })
	out := wire.Readiness{Status: "ok", Dependencies: asked.(map[string]wire.Dependency)}
	for _, d := range out.Dependencies {
		if d.Status != "ok" {
			out.Status = "degraded"
		}
	}
	switch {
	case s.draining.Load():
		out.Reason = "draining"
	case !s.dir.ready():
		out.Reason = "starting"
	case out.Dependencies["redis"].Status != "ok":
		out.Reason = "redis"
	}
	if out.Reason != "" {
		out.Status = "unavailable"
		return answer{status: http.StatusServiceUnavailable, body: out, header: map[string]string{
			fiber.HeaderRetryAfter: strconv.Itoa(retryAfterSeconds(shortPause))}}, nil
	}
	return answer{status: http.StatusOK, body: out}, nil
}

// probe probes every dependency. Concurrent requests share one result: no key is needed to
// request it, and each probe takes a connection of each dependency.
func (s *Server) probe(ctx context.Context) map[string]wire.Dependency {
	probes := map[string]func(context.Context) error{"redis": s.cfg.Pool.Durable, "mysql": s.cfg.Store.Ping}
	if s.cfg.PingTemporal != nil {
		probes["temporal"] = s.cfg.PingTemporal
	}
	if s.cfg.MySQLCurrent != nil {
		probes["books"] = s.cfg.MySQLCurrent
	}
	if s.cfg.LanesOpen != nil {
		probes["pool"] = s.cfg.LanesOpen
	}
	out := map[string]wire.Dependency{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for name, probe := range probes {
		all.Go(func() {
			d := ask(ctx, name, probe)
			mu.Lock()
			defer mu.Unlock()
			out[name] = d
		})
	}
	all.Wait()
	return out
}

// ask runs one probe for at most probeTimeout, even when the probe ignores its context.
func ask(ctx context.Context, name string, probe func(context.Context) error) wire.Dependency {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	start := time.Now()
	done := make(chan error, 1)
	go func() { done <- probe(ctx) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	d := wire.Dependency{Status: "ok", LatencyMS: float64(time.Since(start).Microseconds()) / 1000}
	if err != nil {
		d.Status = "unavailable"
		slog.DebugContext(ctx, "dependency does not answer", slog.String("dependency", name), slog.Any("error", err))
	}
	return d
}
