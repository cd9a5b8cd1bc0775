package worker

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// Check calls one dependency.
type Check struct {
	Name string
	Ask  func(ctx context.Context) error
}

// Health serves /livez and /readyz of a worker process. Ready means that the canary completes, or
// waits behind work that is being done. The dependencies are listed besides.
func (w *Worker) Health(checks []Check) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(rw http.ResponseWriter, _ *http.Request) {
		writeJSON(rw, http.StatusOK, map[string]any{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", func(rw http.ResponseWriter, r *http.Request) {
		status, text := http.StatusOK, "ok"
		deps := askAll(r.Context(), checks)
		for _, d := range deps {
			if d.Status != "ok" {
				text = "degraded"
			}
		}
		if !w.Ready() {
			status, text = http.StatusServiceUnavailable, "starting"
		}
		writeJSON(rw, status, map[string]any{"status": text, "dependencies": deps})
	})
	return mux
}

type dependency struct {
	Status    string `json:"status"`
	LatencyMS int64  `json:"latency_ms"`
}

func askAll(ctx context.Context, checks []Check) map[string]dependency {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	out := make(map[string]dependency, len(checks))
	for _, c := range checks {
		wg.Go(func() {
			began := time.Now()
			d := dependency{Status: "ok"}
			if err := c.Ask(ctx); err != nil {
				d.Status = "unavailable"
			}
			d.LatencyMS = time.Since(began).Milliseconds()
			mu.Lock()
			defer mu.Unlock()
			out[c.Name] = d
		})
	}
	wg.Wait()
	return out
}

func writeJSON(rw http.ResponseWriter, status int, body any) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	_ = json.NewEncoder(rw).Encode(body)
}
