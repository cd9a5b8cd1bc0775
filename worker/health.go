package worker

import (
	"encoding/json"
	"net/http"

	"hongbao/internal/health"
)

// Health serves /livez and /readyz of a worker process. Ready means that the canary completes, or
// waits behind work that is being done. The dependencies are listed besides.
func (w *Worker) Health(probes health.Probes) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(rw http.ResponseWriter, _ *http.Request) {
		writeJSON(rw, http.StatusOK, map[string]any{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", func(rw http.ResponseWriter, r *http.Request) {
		status, ready := http.StatusOK, probes.Readiness(r.Context())
		if !w.Ready() {
			status, ready.Status = http.StatusServiceUnavailable, "starting"
		}
		writeJSON(rw, status, ready)
	})
	return mux
}

func writeJSON(rw http.ResponseWriter, status int, body any) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	_ = json.NewEncoder(rw).Encode(body)
}
