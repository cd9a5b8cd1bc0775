package client

import (
	"context"
	"errors"
	"iter"

	"hongbao/wire"
)

// Reconcile requests the comparison of a day with the provider's statement. It runs
// afterwards: poll it until EndedAt is set. While a reconciliation of the same day is
// requested or running, that one is returned.
func (s *Staff) Reconcile(ctx context.Context, r wire.ReconcileRequest, key ...Key) (*wire.Reconciliation, error) {
	return decide[wire.Reconciliation](ctx, s, wire.PathReconciliations, r, key)
}

// Reconciliation returns a reconciliation. An unknown id is a problem with CodeNotFound.
func (s *Staff) Reconciliation(ctx context.Context, id string) (*wire.Reconciliation, error) {
	return get[wire.Reconciliation](ctx, s.caller, wire.PathReconciliations+"/"+segment(id), nil)
}

// ListReconciliations returns one page of reconciliations.
func (s *Staff) ListReconciliations(ctx context.Context, f wire.ReconciliationFilter, p Page) (*wire.List[wire.Reconciliation], error) {
	return page[wire.Reconciliation](ctx, s.caller, wire.PathReconciliations, f, p)
}

// Reconciliations iterates over reconciliations, newest first.
func (s *Staff) Reconciliations(ctx context.Context, f wire.ReconciliationFilter) iter.Seq2[*wire.Reconciliation, error] {
	return each[wire.Reconciliation](ctx, s.caller, wire.PathReconciliations, f)
}

// ListBreaks returns one page of breaks.
func (s *Staff) ListBreaks(ctx context.Context, f wire.BreakFilter, p Page) (*wire.List[wire.Break], error) {
	return page[wire.Break](ctx, s.caller, wire.PathBreaks, f, p)
}

// Breaks iterates over breaks, newest first.
func (s *Staff) Breaks(ctx context.Context, f wire.BreakFilter) iter.Seq2[*wire.Break, error] {
	return each[wire.Break](ctx, s.caller, wire.PathBreaks, f)
}

var errOutcome = errors.New("resolve a break: with an outcome use DecideBreak, otherwise ResolveBreak")

// ResolveBreak records that a break was dealt with; it states no outcome and moves no money. A resolved
// break keeps its first reason. An unknown id is a problem with CodeNotFound.
func (s *Staff) ResolveBreak(ctx context.Context, id string, r wire.ResolveBreak, key ...Key) (*wire.Break, error) {
	if r.States() {
		return nil, errOutcome
	}
	return decide[wire.Break](ctx, s, wire.PathBreaks+"/"+segment(id)+"/resolve", r, key)
}

// DecideBreak states, with evidence, what became of the money of a break's order number; a second person
// has to approve. The break is resolved when the decision has taken effect. Refusals are problems with
// CodeNotRetryable, CodeDecisionPending or CodeNotFound.
func (s *Staff) DecideBreak(ctx context.Context, id string, r wire.ResolveBreak, key ...Key) (*wire.DecidedBreak, error) {
	if !r.States() {
		return nil, errOutcome
	}
	return decide[wire.DecidedBreak](ctx, s, wire.PathBreaks+"/"+segment(id)+"/resolve", r, key)
}
