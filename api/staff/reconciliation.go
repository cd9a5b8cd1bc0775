package staff

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"hongbao/api/rest"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

func (s *API) renderReconciliation(r staff.Reconciliation) wire.Reconciliation {
	out := wire.Reconciliation{
		ID: r.ID, Provider: r.Provider, Date: wire.Date(r.Day), Status: wire.ReconciliationStatus(r.Status), Provisional: r.Provisional,
		RequestedBy: r.RequestedBy, Reason: rest.TextOrNull(r.Reason), CreatedAt: wire.At(r.CreatedAt), StartedAt: rest.TimeOrNull(r.StartedAt),
		EndedAt: rest.TimeOrNull(r.EndedAt), Lines: r.Lines, Matched: r.Matched, InFlight: r.InFlight, Repaired: r.Repaired, Breaks: r.Breaks,
		Amounts: []wire.OpSums{}, Error: rest.TextOrNull(r.Error), Workflow: s.WorkflowLink("reconcile/" + r.Provider + "/" + string(r.Day)),
	}
	for _, sum := range r.Sums {
		out.Amounts = append(out.Amounts, wire.OpSums{Op: string(sum.Op),
			Provider: wire.Sums{Count: sum.Provider.Count, Amount: sum.Provider.Amount}, Books: wire.Sums{Count: sum.Books.Count,
				Amount: sum.Books.Amount}})
	}
	return out
}

type reconcileIn struct {
	rest.Change
	Body wire.ReconcileRequest `in:"body"`
}

func (in *reconcileIn) Check(o *rest.Object) {
	name, _ := statement(in.Host.Providers)
	in.Body.Provider = cmp.Or(in.Body.Provider, name)
	zone, err := zoneOf(in.Host.Providers, in.Body.Provider)
	if err != nil {
		o.Fault("provider", rest.Fault{Code: rest.FaultEnum, Message: "is not a provider with statements"})
		return
	}
	if payout.Day(in.Body.Date) > payout.DayOf(in.Now(), zone) {
		o.Fault("date", rest.Fault{Code: rest.FaultRange, Message: "must not be after today in the time zone of the provider's statement"})
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
func (s *API) startReconciliation(ctx context.Context, in *reconcileIn) (*rest.Stored[wire.Reconciliation], error) {
	day := payout.Day(in.Body.Date)
	if day == "" { // not stored with the key: the default changes every day
		zone, err := zoneOf(s.cfg.Providers, in.Body.Provider)
		if err != nil {
			return nil, err
		}
		day = payout.DayOf(in.Now(), zone)
	}
	return rest.StoredAs[wire.Reconciliation](s.cfg.Store.RequestReconciliation(ctx, in.Write, in.Body.Provider, day,
		func(one staff.Reconciliation) (int, []byte) { return rest.Accept(s.renderReconciliation(one)) }))
}

// reconciliations is the list of reconciliations.
func (s *API) reconciliations() rest.Listing[wire.ReconciliationFilter, wire.Reconciliation] {
	return rest.Listing[wire.ReconciliationFilter, wire.Reconciliation]{Name: "reconciliations", ID: "reconciliation",
		Read: func(ctx context.Context, a rest.Selection[wire.ReconciliationFilter]) ([]wire.Reconciliation, *rest.Position, error) {
			rows, err := s.cfg.Store.Reconciliations(ctx, staff.ReconciliationFilter{Provider: a.Filter.Provider, Day: payout.Day(a.Filter.Date),
				Status: staff.ReconciliationStatus(a.Filter.Status), AfterTime: a.After.At, AfterID: a.After.ID, Limit: a.Limit + 1})
			return rest.Cut(rows, err, a.Limit, func(k staff.Reconciliation) rest.Position {
				return rest.Position{At: k.CreatedAt, ID: k.ID}
			}, s.renderReconciliation)
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

func (s *API) reconciliationRoutes() []*rest.Route {
	const tag = "staff reconciliation"
	return []*rest.Route{
		rest.Get(rest.Route{
			ID: "listReconciliations", Path: wire.PathReconciliations, Tag: tag, Summary: "List reconciliations",
			About:   "Newest first. Filters are combined with AND.",
			Answers: rest.OK("A page of reconciliations."),
		}, s.reconciliations().Page()),
		rest.Post(rest.Route{
			ID: "startReconciliation", Path: wire.PathReconciliations, Roles: rest.Finance, Tag: tag,
			Summary: "Compare a day of the provider's statement with our records",
			About: "Requests a reconciliation. The previous day is reconciled every day without a request. It moves no money: " +
				"differences that a query can settle are queried for up to a minute, the others become breaks. While a " +
				"reconciliation of the same day is requested or running, that one is returned. For the current day the result is " +
				"provisional, and movements of the last minute count as in flight. The body is optional: by default it is today, " +
				"the only provider, no reason.",
			Optional: true, Answers: rest.Accepted("The reconciliation is requested."),
		}, s.startReconciliation),
		rest.Get(rest.Route{
			ID: "getReconciliation", Path: wire.PathReconciliations + "/{id}", Tag: tag, Summary: "Get a reconciliation",
			About:   "`GET /v1/staff/breaks?reconciliation_id=` lists its breaks.",
			Answers: rest.OK("The reconciliation."),
		}, s.getReconciliation),
		rest.Get(rest.Route{
			ID: "listBreaks", Path: wire.PathBreaks, Tag: tag, Summary: "List breaks",
			About:   "A break is a difference that staff has to look into. Newest first. Filters are combined with AND.",
			Answers: rest.OK("A page of breaks."),
		}, s.breaks().Page()),
		rest.Get(rest.Route{
			ID: "countBreaks", Path: wire.PathBreaks + "/count", Tag: tag, Summary: "Count breaks",
			About: "Counts the breaks that the list returns for the same filters, up to 10,000.",
			Limit: rest.ListTimeout, Answers: rest.OK("The count."),
		}, s.countBreaks),
		rest.Get(rest.Route{
			ID: "sumBreaks", Path: wire.PathBreaks + "/sum", Tag: tag, Summary: "Count and sum breaks",
			About: "Covers the breaks that the list returns for the same filters, up to 10,000. A break counts with its amount, " +
				"without one with its payment_amount. The sum is not what is missing or surplus: a payment with several breaks " +
				"counts in each. Breaks without any amount, such as grabs that Redis lost, are counted in without_amount.",
			Limit: rest.ListTimeout, Answers: rest.OK("Count and sum."),
		}, s.sumBreaks),
		rest.Post(rest.Route{
			ID: "resolveBreak", Path: wire.PathBreaks + "/{id}/resolve", Roles: rest.Finance, Tag: tag, Summary: "Resolve a break",
			About: "Records that the break was dealt with. Without an outcome it moves no money. A break that is resolved keeps its first " +
				"reason. It is opened again when the difference is seen again; a break found by reconciliation only when something new " +
				"is seen, such as a second movement of the same money. With another outcome than none two persons state, with " +
				"evidence, what became of the money of an open break's order number: a decision about its payment with its own approval. " +
				"not_moved queries every order number first; after another answer than the one that was shown it ends, and the break stays " +
				"open. written_off takes what the order number has in suspense to our own account. " +
				"409 not_retryable: the state does not permit the outcome, or nothing of the provider shows that the money has moved; " +
				"mark-paid records a payment by other means.",
			Answers: append(rest.OK("The break."), rest.Reply{Status: 202, About: "The outcome waits for a second person.",
				Body: wire.DecidedBreak{}}),
			Problems: []wire.Code{wire.CodeNotRetryable, wire.CodeDecisionPending, wire.CodeHeld},
		}, s.resolveBreak),
	}
}
