package api

import (
	"context"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// kindNames are the names of kinds of payments.
var kindNames = map[payout.Kind]string{payout.KindCharge: "charge", payout.KindPayout: "payout", payout.KindRefund: "refund",
	payout.KindHonour: "honour"}

func (s *API) getOverview(ctx context.Context, _ *struct{}) (*wire.Overview, error) {
	found, err := s.cfg.Store.Overview(ctx)
	if err != nil {
		return nil, err
	}
	out := &wire.Overview{Payments: []wire.Unfinished{}, Decisions: []wire.DecisionDue{}, Breaks: renderPile(found.Breaks),
		Approvals:   renderPile(found.Approvals),
		LateRefunds: renderPile(found.LateRefunds)}
	if found.Summed == found.Posted {
		out.Money = fundsOf(found.Ledger)
	}
	for _, p := range found.Payments {
		out.Payments = append(out.Payments, wire.Unfinished{Kind: kindNames[p.Kind], Status: wire.PayoutStatus(p.Status), Count: p.Count,
			Amount: p.Amount, OldestAt: wire.At(p.Oldest)})
	}
	for _, d := range found.Decisions {
		if d.Count > 0 {
			out.Decisions = append(out.Decisions, wire.DecisionDue{Reason: string(d.Reason), Kind: textOrNull(string(d.Break)), Count: d.Count,
				Amount: d.Amount, More: d.AtLeast, OldestAt: wire.At(d.Oldest)})
		}
	}
	return out, nil
}

func renderPile(p staff.Backlog) wire.Pile {
	return wire.Pile{Count: p.Count, OldestAt: timeOrNull(p.Oldest)}
}

// fundsOf returns where the money of all packets is. Share conflicts are paid with our own money and are left out.
func fundsOf(all payout.Balances) *wire.Funds {
	own := all.Own()
	f := &wire.Funds{Funded: own.Charged(), Paid: own.Paid(), Owed: own.ByAccount[payout.AccountOwed],
		Remaining: own.ByAccount[payout.AccountHolding], Refunding: own.ByAccount[payout.AccountRefunding], Refunded: own.Refunded()}
	f.Ties = f.Funded == f.Paid+f.Owed+f.Remaining+f.Refunding+f.Refunded && min(f.Paid, f.Owed, f.Remaining, f.Refunding, f.Refunded) >= 0
	return f
}
