package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/gofiber/fiber/v2"

	"hongbao/api/rest"
	"hongbao/wire"
)

func getLiveness(*request) (rest.Answer, error) {
	return rest.Answer{Status: http.StatusOK, Body: wire.Liveness{Status: "ok"}}, nil
}

// getReadiness probes all dependencies. Only Redis is required for writes; without the others the API is
// degraded. Concurrent requests share one result: no key is needed to request it, and each probe takes a
// connection of each dependency.
func getReadiness(r *request) (rest.Answer, error) {
	s := r.server
	probed, _, _ := s.probing.Do("", func() (any, error) { return s.cfg.Probes.Readiness(context.WithoutCancel(r.Ctx)), nil })
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
		return rest.Answer{Status: http.StatusServiceUnavailable, Body: out, Header: map[string]string{
			fiber.HeaderRetryAfter: strconv.Itoa(rest.RetryAfterSeconds(rest.ShortPause))}}, nil
	}
	return rest.Answer{Status: http.StatusOK, Body: out}, nil
}
