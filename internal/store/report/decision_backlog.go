package report

import (
	"context"
	"slices"

	"hongbao/internal/money"
	"hongbao/internal/observe"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// DecisionBacklogs counts what waits for a staff decision, each as its list shows it: failed or returned
// payments, approvals, and open breaks by kind. Overview, health, metrics and `hongbao doctor`
// report it. Payment reasons are included with zero; kinds of breaks are not. Errors:
// ErrUnavailable.
func (s *Source) DecisionBacklogs(ctx context.Context) ([]staff.DecisionBacklog, error) {
	out, err := s.paymentsDue(ctx)
	if err != nil {
		return nil, mysql.Classify(err)
	}
	waiting, err := s.waitingDecisions(ctx)
	if err != nil {
		return nil, err
	}
	approvals := staff.DecisionBacklog{Reason: staff.ReasonApproval, Oldest: mysql.OrZero(waiting.Oldest), Sum: staff.Sum{Count: waiting.N}}
	if waiting.N > 0 {
		total, err := s.ApprovalTotal(ctx, staff.ApprovalFilter{Status: payout.DecisionWaiting})
		if err != nil {
			return nil, err
		}
		approvals.Amount, approvals.AtLeast = total.Amount, total.AtLeast
	}
	breaks, err := s.breaksDue(ctx)
	return append(append(out, approvals), breaks...), err
}

// paymentsDue counts failed and returned payments. Share conflicts count as payouts, as in their
// list. The index covers the amounts.
func (s *Source) paymentsDue(ctx context.Context) ([]staff.DecisionBacklog, error) {
	var rows []struct {
		Kind, Status string
		N, Sum       int64
	}
	err := s.read(ctx).Raw("SELECT kind, status, COUNT(*) AS n, LEAST(SUM(amount), ?) AS sum FROM payments p FORCE INDEX (payments_status) "+
		"WHERE kind IN ('p', 'r', 'h') AND status IN ('failed', 'returned') AND NOT ("+notConfirmed+") GROUP BY "+
		"kind, status", int64(money.Saturated)).Scan(&rows).Error
	if err != nil {
		return nil, err
	}
	out := slices.Clone(staff.PaymentDecisions)
	for _, r := range rows {
		reason := staff.DecisionReason("payout_" + r.Status)
		if payout.Kind(r.Kind[0]) == payout.KindRefund {
			reason = staff.DecisionReason("refund_" + r.Status)
		}
		i := slices.IndexFunc(out, func(d staff.DecisionBacklog) bool { return d.Reason == reason })
		since, err := NewHealthReader(s).statusSince(ctx, r.Kind, r.Status)
		if err != nil {
			return nil, err
		}
		all := observe.Backlog{Oldest: out[i].Oldest}.Add(observe.Backlog{Oldest: mysql.OrZero(since)})
		out[i].Oldest, out[i].Count = all.Oldest, out[i].Count+r.N
		out[i].Amount = out[i].Amount.Plus(money.Fen(r.Sum))
	}
	return out, nil
}

// breaksDue counts the open breaks by kind. The amounts are bounded as in their list.
func (s *Source) breaksDue(ctx context.Context) (out []staff.DecisionBacklog, err error) {
	var rows []backlogRow
	err = s.read(ctx).Raw("SELECT kind, COUNT(*) AS n, MIN(created_at) AS oldest FROM breaks WHERE resolved_at IS NULL GROUP BY kind " +
		"ORDER BY kind").Scan(&rows).Error
	if err != nil {
		return nil, mysql.Classify(err)
	}
	open := false
	for _, r := range rows {
		due := staff.DecisionBacklog{Reason: staff.ReasonBreak, Break: payout.BreakKind(r.Kind), Oldest: mysql.OrZero(r.Oldest)}
		total, err := s.BreakTotal(ctx, staff.BreakFilter{Kind: due.Break, Resolved: &open})
		if err != nil {
			return nil, err
		}
		due.Sum, due.AtLeast = staff.Sum{Count: r.N, Amount: total.Amount}, total.AtLeast
		out = append(out, due)
	}
	return out, nil
}

// decisions reads what waits for a staff decision.
func (r *HealthReader) decisions(ctx context.Context, v *observe.HealthSnapshot) error {
	due, err := r.source.DecisionBacklogs(ctx)
	for _, d := range due {
		v.Decisions = append(v.Decisions, observe.DecisionBacklog{Reason: string(d.Reason), Kind: string(d.Break), Fen: int64(d.Amount),
			Backlog: observe.Backlog{Waiting: d.Count, Oldest: d.Oldest}})
	}
	return err
}
