package e2e

import (
	"testing"

	"hongbao/wire"
)

// setFaults replaces the sandbox's fault rules.
func (s *stack) setFaults(t *testing.T, rules ...map[string]any) {
	t.Helper()
	if rules == nil {
		rules = []map[string]any{}
	}
	if a := s.do(t, "PUT", s.env("HONGBAO_PROVIDER_URL")+"/_faults", "", map[string]any{"rules": rules}); a.status != 204 {
		t.Fatalf("faults: %d %s", a.status, a.raw)
	}
}

func fault(op, kind string, rate float64) map[string]any {
	return map[string]any{"op": op, "kind": kind, "rate": rate}
}

// times is a fault that ends after it has fired n times.
func times(n int, f map[string]any) map[string]any {
	f["times"] = n
	return f
}

// TestMixedFaults checks that each winner is paid exactly once while the provider misbehaves in
// every way at once. Contradictions end after some time: an order with one more of them per query
// is queried every 15 s for as long, and no deadline would hold.
func TestMixedFaults(t *testing.T) {
	s := running
	defer s.setFaults(t)
	s.setFaults(t,
		fault("charge", "error_after", 0.5), fault("charge", "pending", 0.3),
		fault("transfer", "error_before", 0.1), fault("transfer", "error_after", 0.1), fault("transfer", "timeout_before", 0.03),
		fault("transfer", "timeout_after", 0.03), fault("transfer", "rate_limit", 0.1), fault("transfer", "pending", 0.1),
		fault("transfer", "low_balance", 0.05), fault("transfer", "contradict", 0.05), fault("transfer", "notify_twice", 0.3),
		times(30, fault("query", "not_found_yet", 0.2)), times(15, fault("query", "error_before", 0.1)),
		times(8, fault("query", "contradict", 0.05)), fault("refund", "error_after", 0.5))
	const total = 40_000
	p := s.create(t, wire.CreatePacket{SenderID: "sender", TotalAmount: total, ShareCount: 60})
	won := s.crowd(t, p.ID, users("f", 50), 1)
	if len(won) != 50 {
		t.Fatalf("%d winners of 50 users", len(won))
	}
	a := s.do(t, "POST", s.api("/v1/packets/"+p.ID+"/close"), s.env("HONGBAO_APP_KEY"), nil)
	if a.status != 202 {
		t.Fatalf("close: %d %s", a.status, a.raw)
	}
	s.settled(t, p.ID, total, won)
}
