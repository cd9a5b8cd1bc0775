package main

import (
	"context"
	"sync"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/observe"
	"hongbao/internal/payout"
)

// balancesFresh is how long read balances are served again, so that scrapes neither use up a provider's rate limit nor
// load MySQL.
const balancesFresh = time.Minute

// providerBalances reads what our accounts at the providers hold, and what they may still have to pay out. It is safe
// for concurrent use.
type providerBalances struct {
	providers []payout.Provider
	payable   func(context.Context) (map[string]money.Fen, error)

	mu       sync.Mutex
	read     time.Time
	accounts []observe.ProviderAccount
}

// source is the observe.Source of these figures. A provider that says no balance is no error: its balance is unknown.
func (b *providerBalances) source(ctx context.Context, v *observe.HealthSnapshot) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.read.IsZero() || time.Since(b.read) >= balancesFresh {
		accounts := make([]observe.ProviderAccount, len(b.providers))
		var all sync.WaitGroup
		for i, p := range b.providers {
			all.Go(func() { accounts[i] = readAccount(ctx, p) })
		}
		payable, err := b.payable(ctx)
		all.Wait()
		if err != nil {
			return err
		}
		for i := range accounts {
			accounts[i].Payable = int64(payable[accounts[i].Provider])
		}
		b.accounts, b.read = accounts, time.Now()
	}
	v.Accounts, v.FromProviders = b.accounts, true
	return nil
}

// readAccount reads what the account at a provider holds for payouts.
func readAccount(ctx context.Context, p payout.Provider) observe.ProviderAccount {
	a := observe.ProviderAccount{Provider: p.Name()}
	if funded, is := p.(payout.Funded); is {
		funds, err := funded.Funds(ctx)
		for _, f := range funds {
			if f.Payouts && err == nil {
				a.Available, a.Known = a.Available+int64(f.Available), true
			}
		}
	}
	return a
}
