package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestWorkerReportsItsVersion: /metrics of a worker holds its version, which the runbook needs when workflow code does not match
// a history.
func TestWorkerReportsItsVersion(t *testing.T) {
	h, err := withMetrics(http.NotFoundHandler(), nil)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	if text := w.Body.String(); !strings.Contains(text, "hongbao_build_info{") || !strings.Contains(text, `version="`+version+`"`) {
		t.Errorf("%d\n%s", w.Code, text)
	}
}
