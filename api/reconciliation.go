package api

import (
	"cmp"
	"context"
	"fmt"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

var reconciliationStatuses = []staff.ReconciliationStatus{staff.ReconciliationRequested, staff.ReconciliationRunning,
	staff.ReconciliationDone, staff.ReconciliationFailed}

func (s *Server) renderReconciliation(r staff.Reconciliation) wire.Reconciliation {
	out := wire.Reconciliation{
		ID: r.ID, Provider: r.Provider, Date: wire.Date(r.Day), Status: wire.ReconciliationStatus(r.Status), Provisional: r.Provisional,
		RequestedBy: r.RequestedBy, Reason: textOrNull(r.Reason), CreatedAt: wire.At(r.CreatedAt), StartedAt: timeOrNull(r.StartedAt),
		EndedAt: timeOrNull(r.EndedAt), Lines: r.Lines, Matched: r.Matched, InFlight: r.InFlight, Repaired: r.Repaired, Breaks: r.Breaks,
		Amounts: []wire.OpSums{}, Error: textOrNull(r.Error), Workflow: s.workflowLink("reconcile/" + r.Provider + "/" + string(r.Day)),
	}
	for _, sum := range r.Sums {
		out.Amounts = append(out.Amounts, wire.OpSums{Op: string(sum.Op),
			Provider: wire.Sums{Count: sum.Provider.Count, Amount: sum.Provider.Amount}, Books: wire.Sums{Count: sum.Books.Count,
				Amount: sum.Books.Amount}})
	}
	return out
}

func checkDay(s string) *fault {
	if _, err := payout.ParseDay(s); err != nil {
		return &fault{faultFormat, fmt.Sprintf("must be a day, YYYY-MM-DD, of the years %d to %d", payout.FirstYear, payout.LastYear)}
	}
	return nil
}

type reconcileIn struct {
	write
	Body wire.ReconcileRequest `in:"body"`
}

func (in *reconcileIn) check(o *object) {
	p, now := in.server.cfg.Provider, in.now()
	if payout.Day(in.Body.Date) > payout.DayOf(now, p.Zone()) {
		o.fault("date", fault{faultRange, "must not be after today in the time zone of the provider's statement"})
	}
	if in.Body.Provider = cmp.Or(in.Body.Provider, p.Name()); in.Body.Provider != p.Name() {
		o.fault("provider", fault{faultEnum, "is not a provider"})
	}
}

// startReconciliation records the request; the worker carries it out.
func (s *Server) startReconciliation(ctx context.Context, in *reconcileIn) (*stored[wire.Reconciliation], error) {
	day := payout.Day(in.Body.Date)
	if day == "" { // not stored with the key: the default changes every day
		day = payout.DayOf(in.now(), s.cfg.Provider.Zone())
	}
	return storedAs[wire.Reconciliation](s.cfg.Store.RequestReconciliation(ctx, in.Write, in.Body.Provider, day,
		func(one staff.Reconciliation) (int, []byte) { return accepted(s.renderReconciliation(one)) }))
}

// reconciliations is the list of reconciliations.
var reconciliations = listing[wire.ReconciliationFilter, wire.Reconciliation]{"reconciliations", "reconciliation",
	func(s *Server, ctx context.Context, a selection[wire.ReconciliationFilter]) ([]wire.Reconciliation, *position, error) {
		rows, err := s.cfg.Store.Reconciliations(ctx, staff.ReconciliationFilter{Provider: a.filter.Provider, Day: payout.Day(a.filter.Date),
			Status: staff.ReconciliationStatus(a.filter.Status), AfterTime: a.after.At, AfterID: a.after.ID, Limit: a.limit + 1})
		return cut(rows, err, a.limit, func(k staff.Reconciliation) position { return position{k.CreatedAt, k.ID} },
			s.renderReconciliation)
	}}

type reconciliationIn struct {
	ID string `path:"id" of:"reconciliation"`
}

func (s *Server) getReconciliation(ctx context.Context, in *reconciliationIn) (*wire.Reconciliation, error) {
	one, err := s.cfg.Store.Reconciliation(ctx, in.ID)
	out := s.renderReconciliation(one)
	return &out, err
}
