package main

import (
	"context"
	"errors"
	"testing"

	"hongbao/internal/money"
	"hongbao/internal/observe"
	"hongbao/internal/payout"
)

// bankless is a provider without a query of our balance.
type bankless struct {
	payout.Provider
	name string
}

func (b bankless) Name() string { return b.name }

// bank is a provider that says how much of our money it has.
type bank struct {
	bankless
	err   error
	calls *int
}

func (b bank) Funds(context.Context) ([]payout.Fund, error) {
	*b.calls++
	return []payout.Fund{{Name: "OPERATION", Available: 99, Payouts: true}, {Name: "BASIC", Available: 1000}}, b.err
}

// TestProviderBalances: an account is short when it holds less for payouts than it may have to pay. A balance that the
// provider does not say is unknown and never short. Read figures are served again; a failure of MySQL is none.
func TestProviderBalances(t *testing.T) {
	calls, away := 0, errors.New("away")
	b := &providerBalances{payable: func(context.Context) (map[string]money.Fen, error) { return nil, away }}
	for name, err := range map[string]error{"short": nil, "enough": nil, "silent": errors.New("no answer")} {
		b.providers = append(b.providers, bank{bankless{name: name}, err, &calls})
	}
	b.providers = append(b.providers, bankless{name: "bankless"})
	var v observe.HealthSnapshot
	if err := b.source(t.Context(), &v); !errors.Is(err, away) || v.FromProviders {
		t.Errorf("without MySQL: %v, %+v", err, v)
	}
	b.payable = func(context.Context) (map[string]money.Fen, error) {
		return map[string]money.Fen{"short": 100, "enough": 99, "silent": 100, "bankless": 100, "gone": 7}, nil
	}
	calls = 0
	for range 2 {
		v = observe.HealthSnapshot{}
		if err := b.source(t.Context(), &v); err != nil || !v.FromProviders || len(v.Accounts) != 4 || v.ShortAccounts() != 1 || calls != 3 {
			t.Errorf("%v, %+v, %d calls", err, v.Accounts, calls)
		}
	}
	for _, a := range v.Accounts {
		if known := a.Provider == "short" || a.Provider == "enough"; a.Known != known || known && a.Available != 99 || a.Payable < 99 ||
			a.Short() != (a.Provider == "short") {
			t.Errorf("%+v", a)
		}
	}
}
