package client

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"hongbao/wire"
)

// ReconciliationFilter filters the list of reconciliations; zero members do not filter.
type ReconciliationFilter struct {
	Provider string
	Date     string
	Status   string
}

func (f ReconciliationFilter) values() url.Values {
	v := url.Values{}
	put(v, "provider", f.Provider)
	put(v, "date", f.Date)
	put(v, "status", f.Status)
	return v
}

// Reconcile requests the comparison of a day with the provider's statement. It runs
// afterwards: poll it until EndedAt is set. While a reconciliation of the same day is
// requested or running, that one is returned.
func (s *Staff) Reconcile(ctx context.Context, r wire.ReconcileRequest, key ...Key) (*wire.Reconciliation, error) {
	return decide[wire.Reconciliation](ctx, s, wire.PathReconciliations, r, key)
}

// Reconciliation returns a reconciliation. An unknown id is a problem with CodeNotFound.
func (s *Staff) Reconciliation(ctx context.Context, id string) (*wire.Reconciliation, error) {
	one := new(wire.Reconciliation)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: wire.PathReconciliations + "/" + segment(id)}, one); err != nil {
		return nil, err
	}
	return one, nil
}

// ListReconciliations returns one page of reconciliations.
func (s *Staff) ListReconciliations(ctx context.Context, f ReconciliationFilter, p Page) (*wire.List[wire.Reconciliation], error) {
	return page[wire.Reconciliation](ctx, s.caller, wire.PathReconciliations, f.values(), p)
}

// Reconciliations iterates over reconciliations, newest first.
func (s *Staff) Reconciliations(ctx context.Context, f ReconciliationFilter) iter.Seq2[*wire.Reconciliation, error] {
	return each[wire.Reconciliation](ctx, s.caller, wire.PathReconciliations, f.values())
}

// BreakFilter filters the list of breaks; zero members do not filter.
type BreakFilter struct {
	Kind             string
	PacketID         string
	ReconciliationID string
	Resolved         *bool
	OlderThan        time.Duration // truncated to seconds
}

func (f BreakFilter) values() url.Values {
	v := url.Values{}
	put(v, "kind", f.Kind)
	put(v, "packet_id", f.PacketID)
	put(v, "reconciliation_id", f.ReconciliationID)
	if f.Resolved != nil {
		v.Set("resolved", strconv.FormatBool(*f.Resolved))
	}
	if f.OlderThan != 0 {
		v.Set("older_than_seconds", strconv.FormatInt(int64(f.OlderThan/time.Second), 10))
	}
	return v
}

// ListBreaks returns one page of breaks.
func (s *Staff) ListBreaks(ctx context.Context, f BreakFilter, p Page) (*wire.List[wire.Break], error) {
	return page[wire.Break](ctx, s.caller, wire.PathBreaks, f.values(), p)
}

// Breaks iterates over breaks, newest first.
func (s *Staff) Breaks(ctx context.Context, f BreakFilter) iter.Seq2[*wire.Break, error] {
	return each[wire.Break](ctx, s.caller, wire.PathBreaks, f.values())
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
