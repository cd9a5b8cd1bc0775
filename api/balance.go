package api

import (
	"context"
	"net/http"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// Balances are the balances of every ledger account at a moment.
type Balances struct {
	At       Stamp            `json:"at" doc:"The moment; ledger entries before it are included."`
	Settled  bool             `json:"settled" doc:"false within five minutes of the moment: a running transaction may still add an earlier entry."`
	Entries  int64            `json:"entries" minimum:"0" doc:"Sum of the ledger entries."`
	Sound    bool             `json:"sound" doc:"true: all balances add up to 0, and holding, owed and refunding are not negative."`
	Accounts []AccountBalance `json:"accounts" nullable:"false" doc:"Every account."`
	Apps     []AppBalances    `json:"apps" nullable:"false" doc:"The balances by app; their sums are accounts."`
}

// AccountBalance is the balance of one account.
type AccountBalance struct {
	Account  string          `json:"account" enum:"provider,holding,owed,refunding,outside,suspense,house" doc:"provider: held by the provider, negative for our money. holding: in packets, not claimed. owed: claimed, not paid. refunding: being refunded to senders. outside: paid by other means. suspense: moved twice. house: our own money."`
	Balance  NetFen          `json:"balance" doc:"Credits minus debits; a negative value is a debit balance."`
	Payments Nullable[int64] `json:"payments" doc:"How many payments the balance of owed or refunding consists of; null for other accounts."`
}

// AppBalances are the balances of one app.
type AppBalances struct {
	AppID    string           `json:"app_id" doc:"The app of the packets."`
	Accounts []AccountBalance `json:"accounts" nullable:"false" doc:"Every account."`
}

// paymentsOf returns the number of payments in a balance, for accounts that have it.
func paymentsOf(a payout.Account, balance staff.Sum) Nullable[int64] {
	if a != payout.AccountOwed && a != payout.AccountRefunding {
		return Nullable[int64]{}
	}
	return orNull(&balance.Count)
}

func renderBalances(t staff.Totals) []AccountBalance {
	out := make([]AccountBalance, 0, len(payout.Accounts))
	for _, a := range payout.Accounts {
		balance := t.Balance(a)
		out = append(out, AccountBalance{Account: string(a), Balance: NetFen(balance.Amount), Payments: paymentsOf(a, balance)})
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
	out := Balances{At: Stamp(found.At), Settled: found.Settled, Entries: found.Totals.Entries(), Sound: found.Totals.Sound(),
		Accounts: renderBalances(found.Totals), Apps: []AppBalances{}}
	for _, app := range found.Totals.Apps() {
		out.Apps = append(out.Apps, AppBalances{AppID: app, Accounts: renderBalances(found.Totals.OfApp(app))})
	}
	return answer{status: http.StatusOK, body: out}, nil
}
