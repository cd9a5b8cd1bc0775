package payout

import (
	"errors"
	"slices"
	"testing"
	"time"
)

type namedProvider struct {
	Provider
	name string
}

func (p namedProvider) Name() string { return p.name }

func TestRegistry(t *testing.T) {
	a, b := namedProvider{name: "a"}, namedProvider{name: "b"}
	r, err := NewRegistry("b", "a", b, a)
	if err != nil || r.Charges() != b || r.Payouts() != a || !slices.Equal(r.Names(), []string{"a", "b", BalanceProvider}) || len(r.All()) != 2 {
		t.Fatalf("%v, %v", r, err)
	}
	if p, err := r.Of("b"); err != nil || p != b {
		t.Errorf("b: %v, %v", p, err)
	}
	if p, err := r.Of("c"); !errors.Is(err, ErrProviderMissing) || p != nil {
		t.Errorf("c: %v, %v", p, err)
	}
	if p, err := r.Of(BalanceProvider); err != nil || p.Limits().MaxOpensAhead(time.Hour) < 366*24*time.Hour ||
		p.Query(t.Context(), OpCharge, "o").Kind != ObsNeverReceived || p.Send(t.Context(), Order{}).Kind != ObsNotSent {
		t.Errorf("balance: %v, %v", p, err)
	}
	if _, err := NewRegistry("a", "a", a, b, a); err == nil {
		t.Error("two providers have one name")
	}
	if _, err := NewRegistry("a", "a", a, namedProvider{name: BalanceProvider}); err == nil {
		t.Error("a reserved name")
	}
	for charges, payouts := range map[string]string{"a": "c", "c": "a"} {
		if _, err := NewRegistry(charges, payouts, a, b); !errors.Is(err, ErrProviderMissing) {
			t.Errorf("defaults %s, %s: %v", charges, payouts, err)
		}
	}
	if r := OnlyProvider(b); r.Charges() != b || r.Payouts() != b || !slices.Equal(r.Names(), []string{"b", BalanceProvider}) {
		t.Errorf("%v", r)
	}
}
