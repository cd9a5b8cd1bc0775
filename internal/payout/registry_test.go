package payout

import (
	"errors"
	"slices"
	"testing"
)

type namedProvider struct {
	Provider
	name string
}

func (p namedProvider) Name() string { return p.name }

func TestRegistry(t *testing.T) {
	a, b := namedProvider{name: "a"}, namedProvider{name: "b"}
	r, err := NewRegistry("b", "a", b, a)
	if err != nil || r.Charges() != b || r.Payouts() != a || !slices.Equal(r.Names(), []string{"a", "b"}) || len(r.All()) != 2 {
		t.Fatalf("%v, %v", r, err)
	}
	if p, err := r.Of("b"); err != nil || p != b {
		t.Errorf("b: %v, %v", p, err)
	}
	if p, err := r.Of("c"); !errors.Is(err, ErrProviderMissing) || p != nil {
		t.Errorf("c: %v, %v", p, err)
	}
	if _, err := NewRegistry("a", "a", a, b, a); err == nil {
		t.Error("two providers have one name")
	}
	for charges, payouts := range map[string]string{"a": "c", "c": "a"} {
		if _, err := NewRegistry(charges, payouts, a, b); !errors.Is(err, ErrProviderMissing) {
			t.Errorf("defaults %s, %s: %v", charges, payouts, err)
		}
	}
	if r := OnlyProvider(b); r.Charges() != b || r.Payouts() != b || !slices.Equal(r.Names(), []string{"b"}) {
		t.Errorf("%v", r)
	}
}
