package health

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"hongbao/wire"
)

// ProbeTimeout bounds one probe of a dependency.
const ProbeTimeout = time.Second

// Probe calls a dependency. An error means that it does not answer as it should.
type Probe func(context.Context) error

// Probes are the probes behind /readyz, by the name of the dependency.
type Probes map[string]Probe

// Readiness probes every dependency in parallel. Its status is ok or degraded.
func (p Probes) Readiness(ctx context.Context) wire.Readiness {
	out := wire.Readiness{Status: "ok", Dependencies: map[string]wire.Dependency{}}
	var mu sync.Mutex
	var all sync.WaitGroup
	for name, probe := range p {
		all.Go(func() {
			d := probe.Run(ctx, name)
			mu.Lock()
			defer mu.Unlock()
			out.Dependencies[name] = d
			if d.Status != "ok" {
				out.Status = "degraded"
			}
		})
	}
	all.Wait()
	return out
}

// Run probes the dependency name for at most ProbeTimeout, even when the probe ignores its context.
func (p Probe) Run(ctx context.Context, name string) wire.Dependency {
	ctx, cancel := context.WithTimeout(ctx, ProbeTimeout)
	defer cancel()
	start := time.Now()
	done := make(chan error, 1)
	go func() { done <- p(ctx) }()
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
