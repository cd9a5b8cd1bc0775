package api

import (
	"context"
	"net/http"
	"time"

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

// getBalances returns the balances now, or at the moment of the query.
func getBalances(r *request) (answer, error) {
	q := readQuery(r)
	at := q.instant("at")
	if at.After(time.Now().Add(time.Minute)) {
		q.fault("at", fault{faultRange, "must not be in the future"})
	}
	if err := q.done(); err != nil {
		return answer{}, err
	}
	ctx, cancel := context.WithTimeout(r.ctx, listTimeout)
	defer cancel()
	found, err := r.server.cfg.Store.LedgerBalances(ctx, at)
	if err != nil {
		return answer{}, err
	}
	out := wire.Balances{At: wire.At(found.At), Settled: found.Settled, Entries: found.Totals.Entries(), Sound: found.Totals.Sound(),
		Accounts: renderBalances(found.Totals), Apps: []wire.AppBalances{}}
	for _, app := range found.Totals.Apps() {
		out.Apps = append(out.Apps, wire.AppBalances{AppID: app, Accounts: renderBalances(found.Totals.OfApp(app))})
	}
	return answer{status: http.StatusOK, body: out}, nil
}
