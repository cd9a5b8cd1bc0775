package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"hongbao/api"
)

// TestRiskCheckIsWired: without a URL there is no check. With one, the service receives the request, with the time in UTC, and
// the key.
func TestRiskCheckIsWired(t *testing.T) {
	env := validSettings()
	c, err := read(t, cmdAPI, env)
	if err != nil {
		t.Fatal(err)
	}
	if c.text("risk-url") != "" || c.duration("risk-timeout") != 300*time.Millisecond || c.text("risk-unanswered") != riskAllow {
		t.Errorf("by default %q, %v, %s", c.text("risk-url"), c.duration("risk-timeout"), c.text("risk-unanswered"))
	}
	if none, end, err := (riskConfig{Timeout: time.Second}).open(); none != nil || err != nil {
		t.Errorf("not set: %v", err)
	} else {
		end()
	}
	var received map[string]string
	var key string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewDecoder(r.Body).Decode(&received)
		key = r.Header.Get("Authorization")
		_, _ = w.Write([]byte(`{"allow":false}`))
	}))
	defer s.Close()
	check, end, err := riskConfig{URL: s.URL, Key: Secret{"k"}, Timeout: time.Second}.open()
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	at := time.Date(2026, 2, 17, 20, 0, 0, 7_900_000, time.FixedZone("", 8*3600))
	allow, err := check(t.Context(), api.RiskQuestion{App: "mall", PacketID: "p", UserID: "u", At: at})
	if err != nil || allow || key != "Bearer k" || received["at"] != "2026-02-17T12:00:00.007Z" || received["app"] != "mall" ||
		received["user_id"] != "u" || received["packet_id"] != "p" {
		t.Errorf("%t, %v: %v with %s", allow, err, received, key)
	}
}
