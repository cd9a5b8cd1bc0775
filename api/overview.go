package api

import (
	"context"
	"net/http"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// overviewLimit bounds the read of the overview.
const overviewLimit = 8 * time.Second

// kindNames are the names of kinds of payments.
var kindNames = map[payout.Kind]string{payout.KindCharge: "charge", payout.KindPayout: "payout", payout.KindRefund: "refund",
	payout.KindHonour: "honour"}

func getOverview(r *request) (answer, error) {
	ctx, cancel := context.WithTimeout(r.ctx, overviewLimit)
	defer cancel()
	found, err := r.server.cfg.Store.Overview(ctx)
	if err != nil {
		return answer{}, err
	}
	out := wire.Overview{Payments: []wire.Unfinished{}, Decisions: []wire.DecisionDue{}, Breaks: renderPile(found.Breaks),
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
	return answer{status: http.StatusOK, body: out}, nil
}

func renderPile(p staff.Backlog) wire.Pile {
	return wire.Pile{Count: p.Count, OldestAt: timeOrNull(p.Oldest)}
}

// fundsOf returns the figures of a proof over all packets. Share conflicts are paid with our
// own money and are left out.
func fundsOf(all payout.Balances) *wire.Funds {
	a := proofCheck{}
	a.ledger = all.Own()
	p := a.figures()
	f := &wire.Funds{Funded: p.Total, Paid: p.Paid, Owed: p.Owed, Remaining: p.Remaining,
		Refunding: p.Refunding, Refunded: p.Refunded}
	f.Ties = f.Funded == f.Paid+f.Owed+f.Remaining+f.Refunding+f.Refunded && min(f.Paid, f.Owed, f.Remaining, f.Refunding, f.Refunded) >= 0
	return f
}

func sumPayouts(r *request) (answer, error) { return r.paymentSum(payout.KindPayout) }
func sumRefunds(r *request) (answer, error) { return r.paymentSum(payout.KindRefund) }

// paymentSum sums what the list with the same filters returns.
func (r *request) paymentSum(kind payout.Kind) (answer, error) {
	q := readQuery(r)
	now := r.server.cfg.Now().UTC()
	filter := readFilter(q, now)
	q.late(&filter, kind, now)
	if err := q.done(); err != nil {
		return answer{}, err
	}
	filter.Kind = kind
	ctx, cancel := context.WithTimeout(r.ctx, listTimeout)
	defer cancel()
	sum, more, err := r.server.cfg.Store.PaymentSum(ctx, filter)
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: wire.PaymentSum{Count: sum.Count, Amount: sum.Amount, More: more}}, nil
}
