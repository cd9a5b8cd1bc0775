package main

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"hongbao/internal/failpoint"
)

// TestFailpointsOnlyWithATestProvider: failpoints need a provider on this machine. Another one may move real money.
func TestFailpointsOnlyWithATestProvider(t *testing.T) {
	for provider, fine := range map[string]bool{
		"http://127.0.0.1:8090": true, "http://[::1]:8090": true,
		"https://api.pay.example": false, "http://10.0.0.7:8090": false, "http://localhost.pay.example": false,
		"http://127.0.0.1.pay.example": false,
	} {
		for _, command := range []string{cmdAPI, cmdWorker} {
			env := validSettings()
			env["HONGBAO_PROVIDER_URL"] = provider
			if _, err := read(t, command, env); err != nil {
				t.Errorf("%s with %s, no failpoints: %v", command, provider, err)
			}
			env["HONGBAO_CRASH_POINTS"] = "/tmp/points"
			_, err := read(t, command, env)
			if (err == nil) != fine {
				t.Errorf("%s with %s: %v", command, provider, err)
			}
			if !fine && (!errors.Is(err, errContradiction) || !strings.Contains(err.Error(), "HONGBAO_CRASH_POINTS")) {
				t.Errorf("%s with %s: %v", command, provider, err)
			}
		}
	}
}

func TestArmFailpoints(t *testing.T) {
	if err := armFailpoints(t.Context(), "", slog.New(slog.DiscardHandler)); err != nil {
		t.Errorf("without a folder: %v", err)
	}
	if err := armFailpoints(t.Context(), "no/such/folder", slog.New(slog.DiscardHandler)); !errors.Is(err, failpoint.ErrFolder) {
		t.Errorf("a missing folder: %v", err)
	}
}
