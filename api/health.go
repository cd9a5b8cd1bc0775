package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/gofiber/fiber/v2"

	"hongbao/wire"
)

func getLiveness(*request) (answer, error) {
	return answer{status: http.StatusOK, body: wire.Liveness{Status: "ok"}}, nil
}

// getReadiness probes all dependencies. Only Redis is required for writes; without the others the API is
// degraded. Concurrent requests share one result: no key is needed to request it, and each probe takes a
// connection of each dependency.
func getReadiness(r *request) (answer, error) {
	s := r.server
	probed, _, _ := s.probing.Do("", func() (any, error) { return s.cfg.Probes.Readiness(context.WithoutCancel(r.ctx)), nil })
	out := probed.(wire.Readiness)
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
