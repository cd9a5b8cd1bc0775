package api

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

func (s *API) renderReconciliation(r staff.Reconciliation) wire.Reconciliation {
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

type reconcileIn struct {
	Change
	Body wire.ReconcileRequest `in:"body"`
}

func (in *reconcileIn) Check(o *object) {
	name, _ := statement(in.host.providers)
	in.Body.Provider = cmp.Or(in.Body.Provider, name)
	zone, err := zoneOf(in.host.providers, in.Body.Provider)
	if err != nil {
		o.fault("provider", fault{faultEnum, "is not a provider with statements"})
		return
	}
	if payout.Day(in.Body.Date) > payout.DayOf(in.now(), zone) {
		o.fault("date", fault{faultRange, "must not be after today in the time zone of the provider's statement"})
	}
}

// zoneOf returns the time zone of a provider's statement. Errors: payout.ErrProviderMissing.
func zoneOf(providers *payout.Registry, name string) (*time.Location, error) {
	p, err := providers.Of(name)
	if err != nil {
		return nil, err
	}
	if stated, is := p.(payout.Stated); is {
		return stated.Zone(), nil
	}
	return nil, fmt.Errorf("statements of %q: %w", name, payout.ErrProviderMissing)
}

// startReconciliation records the request; the worker carries it out.
func (s *API) startReconciliation(ctx context.Context, in *reconcileIn) (*stored[wire.Reconciliation], error) {
	day := payout.Day(in.Body.Date)
	if day == "" { // not stored with the key: the default changes every day
		zone, err := zoneOf(s.cfg.Providers, in.Body.Provider)
		if err != nil {
			return nil, err
		}
		day = payout.DayOf(in.now(), zone)
	}
	return storedAs[wire.Reconciliation](s.cfg.Store.RequestReconciliation(ctx, in.Write, in.Body.Provider, day,
		func(one staff.Reconciliation) (int, []byte) { return accept(s.renderReconciliation(one)) }))
}

// reconciliations is the list of reconciliations.
func (s *API) reconciliations() listing[wire.ReconciliationFilter, wire.Reconciliation] {
	return listing[wire.ReconciliationFilter, wire.Reconciliation]{"reconciliations", "reconciliation",
		func(ctx context.Context, a selection[wire.ReconciliationFilter]) ([]wire.Reconciliation, *position, error) {
			rows, err := s.cfg.Store.Reconciliations(ctx, staff.ReconciliationFilter{Provider: a.filter.Provider, Day: payout.Day(a.filter.Date),
				Status: staff.ReconciliationStatus(a.filter.Status), AfterTime: a.after.At, AfterID: a.after.ID, Limit: a.limit + 1})
			return cut(rows, err, a.limit, func(k staff.Reconciliation) position { return position{k.CreatedAt, k.ID} },
				s.renderReconciliation)
		}}
}

type reconciliationIn struct {
	ID string `path:"id" of:"reconciliation"`
}

func (s *API) getReconciliation(ctx context.Context, in *reconciliationIn) (*wire.Reconciliation, error) {
	one, err := s.cfg.Store.Reconciliation(ctx, in.ID)
	out := s.renderReconciliation(one)
	return &out, err
}
