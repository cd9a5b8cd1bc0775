package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"hongbao/internal/failpoint"
	"hongbao/internal/payout"
	"hongbao/internal/store/mysql"
)

type providerAccountRow struct {
	Provider, Kind, ProviderAccount string
}

func (providerAccountRow) TableName() string { return "provider_accounts" }

// BindProvider binds the name of a provider to its kind and account at the first start with it. A
// name with another kind or account is held. Errors: payout.ErrWrongProvider for such a name,
// ErrUnavailable.
func (s *Store) BindProvider(ctx context.Context, kind string, a payout.Adapter) error {
	if a.Provider == "" || a.Account == "" {
		return fmt.Errorf("bind %s: %w", a, payout.ErrWrongProvider)
	}
	var other error
	err := s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		if err := tx.Exec("INSERT IGNORE INTO provider_accounts (provider, kind, provider_account, bound_at) VALUES (?, ?, ?, ?)",
			a.Provider, kind, a.Account, tx.now).Error; err != nil {
			return err
		}
		var row providerAccountRow
		if err := tx.Where("provider = ?", a.Provider).Take(&row).Error; err != nil {
			return err
		}
		if other = checkAccount(row.ProviderAccount, a); row.Kind != kind {
			other = fmt.Errorf("provider %q is of kind %s, not %s: %w", a.Provider, row.Kind, kind, payout.ErrWrongProvider)
		}
		if other == nil {
			return nil
		}
		return tx.holdOtherAccount(a.Provider, "start", other)
	})
	return cmp.Or(err, other)
}

// HoldNotified holds a provider whose notification is of another account, unless such a hold is active.
// Only one that carries the provider's signature may get here. Errors: ErrUnavailable.
func (s *Store) HoldNotified(ctx context.Context, name string, why error) error {
	return s.inTx(ctx, failpoint.Administration, func(tx tx) error { return tx.holdOtherAccount(name, "notification", why) })
}

// holdOtherAccount holds a provider whose name is used with another account, unless such a hold is
// active.
func (tx tx) holdOtherAccount(name, by string, why error) error {
	active, err := tx.activeHolds(payout.HoldProvider, name, true)
	if err != nil || slices.ContainsFunc(active, func(h payout.Hold) bool { return h.Kind == payout.HoldOtherAccount }) {
		return err
	}
	return tx.placeHold(payout.Hold{Scope: payout.HoldProvider, Name: name, Kind: payout.HoldOtherAccount,
		Cause: tx.now.UTC().Format(time.RFC3339Nano), Reason: why.Error(), By: by, Role: "system"})
}

// ProviderAccount returns the adapter that BindProvider bound to a name; zero before the first
// start. Errors: ErrUnavailable.
func (s *Store) ProviderAccount(ctx context.Context, name string) (payout.Adapter, error) {
	var row providerAccountRow
	err := s.read(ctx).Where("provider = ?", name).Limit(1).Find(&row).Error
	return payout.Adapter{Provider: row.Provider, Account: row.ProviderAccount}, mysql.Classify(err)
}

// checkAdapter refuses an adapter with another account than the one of its name.
func (tx tx) checkAdapter(a payout.Adapter) error {
	var account string
	if err := tx.Model(&providerAccountRow{}).Where("provider = ?", a.Provider).Pluck("provider_account", &account).Error; err != nil {
		return err
	}
	return checkAccount(account, a)
}

// checkAccount refuses an adapter with another account than the one of its name, "" before the
// first start.
func checkAccount(account string, a payout.Adapter) error {
	if account != "" && account != a.Account || a.Provider == "" {
		own := payout.Adapter{Provider: a.Provider, Account: account}
		return fmt.Errorf("this installation uses %s, not %s: %w", own, a, payout.ErrWrongProvider)
	}
	return nil
}
