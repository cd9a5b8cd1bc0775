package staff

import (
	"context"
	"time"

	"hongbao/api/rest"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// paymentsOf returns the number of payments in a balance, for accounts that have it.
func paymentsOf(a payout.Account, balance staff.Sum) *int64 {
	if a != payout.AccountOwed && a != payout.AccountRefunding {
		return nil
	}
	return &balance.Count
}

func renderBalances(t staff.Totals) []wire.AccountBalance {
	out := make([]wire.AccountBalance, 0, len(payout.Accounts))
	for _, a := range payout.Accounts {
		balance := t.Balance(a)
		out = append(out, wire.AccountBalance{Account: string(a), Balance: balance.Amount, Payments: paymentsOf(a, balance)})
	}
	return out
}

type balancesIn struct {
	Query struct {
		At time.Time `json:"at,omitempty" doc:"The moment: ledger entries before it are included. By default it is now." example:"2026-02-17T16:00:00.000Z"`
	} `in:"query"`
}

func (in *balancesIn) Check(o *rest.Object) {
	if in.Query.At.After(time.Now().Add(time.Minute)) {
		o.Fault("at", rest.Fault{Code: rest.FaultRange, Message: "must not be in the future"})
	}
}

// getBalances returns the balances now, or at the moment of the query.
func (s *API) getBalances(ctx context.Context, in *balancesIn) (*wire.Balances, error) {
	found, err := s.cfg.Store.LedgerBalances(ctx, in.Query.At)
	if err != nil {
		return nil, err
	}
	out := &wire.Balances{At: wire.At(found.At), Settled: found.Settled, Entries: found.Totals.Entries(), Sound: found.Totals.Sound(),
		Accounts: renderBalances(found.Totals), Apps: []wire.AppBalances{}}
	for _, app := range found.Totals.Apps() {
		out.Apps = append(out.Apps, wire.AppBalances{AppID: app, Accounts: renderBalances(found.Totals.OfApp(app))})
	}
	out.Items, err = s.renderAppBalances(ctx)
	return out, err
}
