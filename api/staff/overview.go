package staff

import (
	"context"

	"hongbao/api/rest"
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
			out.Decisions = append(out.Decisions, wire.DecisionDue{Reason: string(d.Reason), Kind: rest.TextOrNull(string(d.Break)), Count: d.Count,
				Amount: d.Amount, More: d.AtLeast, OldestAt: wire.At(d.Oldest)})
		}
	}
	return out, nil
}

func renderPile(p staff.Backlog) wire.Pile {
	return wire.Pile{Count: p.Count, OldestAt: rest.TimeOrNull(p.Oldest)}
}

// fundsOf returns where the money of all packets is. Share conflicts are paid with our own money and are left out.
func fundsOf(all payout.Balances) *wire.Funds {
	own := all.Own()
	f := &wire.Funds{Funded: own.Charged(), Paid: own.Paid(), Owed: own.ByAccount[payout.AccountOwed],
		Remaining: own.ByAccount[payout.AccountHolding], Refunding: own.ByAccount[payout.AccountRefunding], Refunded: own.Refunded()}
	f.Ties = f.Funded == f.Paid+f.Owed+f.Remaining+f.Refunding+f.Refunded && min(f.Paid, f.Owed, f.Remaining, f.Refunding, f.Refunded) >= 0
	return f
}

func (s *API) getActivity(ctx context.Context, _ *struct{}) (*wire.Activity, error) {
	minutes, err := s.cfg.Store.Activity(ctx)
	out := &wire.Activity{Minutes: make([]wire.ActiveMinute, len(minutes))}
	for i, m := range minutes {
		out.Minutes[i] = wire.ActiveMinute{At: wire.At(m.At)}
		if m.Counted {
			out.Minutes[i].Grabs, out.Minutes[i].Paid = renderBooked(m.Grabs), renderBooked(m.Paid)
		}
	}
	return out, err
}

func renderBooked(s staff.Sum) *wire.Booked {
	return &wire.Booked{Count: s.Count, Amount: s.Amount}
}

func (s *API) overviewRoutes() []*rest.Route {
	const tag = "staff overview"
	return []*rest.Route{
		rest.Get(rest.Route{
			ID: "getOverview", Path: wire.PathOverview, Tag: tag, Summary: "Get the balances and the open work",
			About: "Returns the ledger over all packets, unfinished payments by kind and status, open breaks, and decisions " +
				"that wait for a second person.",
			Limit: rest.ListTimeout, Answers: rest.OK("The overview."),
		}, s.getOverview),
		rest.Get(rest.Route{
			ID: "getActivity", Path: wire.PathActivity, Tag: tag, Summary: "Get grabs and payouts per minute",
			About: "Counts what was recorded in each of the last 60 minutes, by MySQL's clock. A worker records a grab right " +
				"after it was won.",
			Limit: rest.ListTimeout, Answers: rest.OK("The last hour."),
		}, s.getActivity),
		rest.Get(rest.Route{
			ID: "getHealth", Path: wire.PathHealth, Tag: tag, Summary: "Get the health of every part",
			About: "Applies the limits of /readyz, the metrics and `hongbao doctor` and returns one status per part. It answers " +
				"also while MySQL, Redis or Temporal is unavailable; figures are up to five seconds old. The audit chain is " +
				"verified in steps, completely about once an hour.",
			Limit: rest.RequestTimeout, Answers: rest.OK("Each part."),
		}, s.getHealth),
	}
}
