package staff

import (
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"hongbao/api/rest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// payments is the resource of charges, payouts or refunds: F is the filter of its list, I an item.
type payments[F, I any] struct {
	api    *API
	kind   payout.Kind
	path   string
	filter func(F) wire.RefundFilter
	render func(staff.PaymentRow) I
}

func (s *API) payouts() payments[wire.PayoutFilter, wire.Payout] {
	return payments[wire.PayoutFilter, wire.Payout]{s, payout.KindPayout, wire.PathPayouts,
		func(f wire.PayoutFilter) wire.RefundFilter { return wire.RefundFilter{PayoutFilter: f} }, s.renderPayout}
}

func (s *API) refunds() payments[wire.RefundFilter, wire.Refund] {
	return payments[wire.RefundFilter, wire.Refund]{s, payout.KindRefund, wire.PathRefunds,
		func(f wire.RefundFilter) wire.RefundFilter { return f }, s.renderRefund}
}

func (s *API) charges() payments[wire.PayoutFilter, wire.Payment] {
	return payments[wire.PayoutFilter, wire.Payment]{s, payout.KindCharge, wire.PathCharges,
		func(f wire.PayoutFilter) wire.RefundFilter { return wire.RefundFilter{PayoutFilter: f} }, s.renderChargePayment}
}

// list returns the list of the resource.
func (p payments[F, I]) list() rest.Listing[F, I] {
	thing := kindNames[p.kind]
	return rest.Listing[F, I]{Name: thing + "s", ID: thing, Read: func(ctx context.Context, a rest.Selection[F]) ([]I, *rest.Position, error) {
		f := listFilter(p.kind, p.filter(a.Filter), a.Now)
		f.AfterTime, f.AfterID, f.Limit = a.After.At, a.After.ID, a.Limit+1
		rows, err := p.api.cfg.Store.Payments(ctx, f)
		return rest.Cut(rows, err, a.Limit, func(r staff.PaymentRow) rest.Position { return rest.Position{At: r.CreatedAt, ID: r.ID} }, p.render)
	}}
}

// sum is the operation that sums what the list with the same filters returns.
func (p payments[F, I]) sum(ctx context.Context, in *rest.Filtered[F]) (*wire.PaymentSum, error) {
	sum, more, err := p.api.cfg.Store.PaymentSum(ctx, listFilter(p.kind, p.filter(in.Filter), in.Now()))
	return &wire.PaymentSum{Count: sum.Count, Amount: sum.Amount, More: more}, err
}

// routes returns the routes that read the resource.
func (p payments[F, I]) routes(about string) []*rest.Route {
	thing := kindNames[p.kind]
	plural, tag := thing+"s", "staff "+thing+"s"
	title := strings.ToUpper(thing[:1]) + plural[1:]
	return []*rest.Route{
		rest.Get(rest.Route{
			ID: "list" + title, Path: p.path, Tag: tag, Summary: "List " + plural,
			About: about + "Newest first. Filters are combined with AND.", Limit: rest.ListTimeout, Answers: rest.OK("A page of " + plural + "."),
		}, p.list().Page()),
		rest.Get(rest.Route{
			ID: "sum" + title, Path: p.path + "/sum", Tag: tag, Summary: "Count and sum " + plural,
			About: "Covers the " + plural + " that the list returns for the same filters; of more than 10,000, the newest 10,000.",
			Limit: rest.ListTimeout, Answers: rest.OK("Count and sum."),
		}, p.sum),
	}
}

// paymentFilter returns the filter of payments of one kind.
func paymentFilter(kind payout.Kind, f wire.PaymentFilter, now time.Time) staff.PaymentFilter {
	out := staff.PaymentFilter{Kind: kind, IncludeHonours: kind == payout.KindPayout, Status: payout.Status(f.Status), PacketID: f.PacketID,
		UserID: f.UserID, OrderNo: f.OrderNo, FailureCode: f.FailureCode, CreatedTo: rest.OlderThan(now, f.OlderThanSeconds),
		AmountMin: rest.ValueOr(f.AmountMin, 0), AmountMax: rest.ValueOr(f.AmountMax, 0)}
	if f.AmountMax != nil && *f.AmountMax == 0 {
		out.AmountMax, out.AmountMin = 1, math.MaxInt64 // nothing is that small, and 0 would mean no bound
	}
	return out
}

func listFilter(kind payout.Kind, f wire.RefundFilter, now time.Time) staff.PaymentFilter {
	out := paymentFilter(kind, f.PaymentFilter, now)
	out.ProviderRef = f.ProviderRef
	if f.Late {
		out.LateBefore = now.Add(-payout.RefundLateAfter)
	}
	return out
}

type payoutIn struct {
	rest.Asked
	ID string `path:"id" of:"payout"`
}

func (s *API) getPayout(ctx context.Context, in *payoutIn) (*wire.PayoutDetail, error) {
	d, err := s.payment(ctx, in.ID)
	if errors.Is(err, packet.ErrNotFound) {
		return s.getUnbooked(ctx, in.ID)
	}
	if err != nil {
		return nil, err
	}
	began := payout.EventClaimBooked
	if d.Kind == payout.KindHonour {
		began = payout.EventClaimConflict
	}
	out := &wire.PayoutDetail{Payout: s.renderPayout(d.PaymentRow)}
	out.PaymentHistory, err = s.history(ctx, d, began, out.Workflow.ID)
	return out, err
}

type refundIn struct {
	rest.Asked
	ID string `path:"id" of:"refund"`
}

func (s *API) getRefund(ctx context.Context, in *refundIn) (*wire.RefundDetail, error) {
	d, err := s.payment(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	out := &wire.RefundDetail{Refund: s.renderRefund(d.PaymentRow)}
	began := payout.EventBooksClosed
	if out.Kind == wire.RefundCancel {
		began = payout.EventPayoutCancelled
	}
	if out.PaymentHistory, err = s.history(ctx, d, began, out.Workflow.ID); err != nil {
		return nil, err
	}
	_, err = s.cfg.Store.PreviewDecision(ctx, in.ID, payout.DecisionRequest{Kind: payout.DecisionCancel})
	if out.Cancellable = err == nil; err != nil && !rest.RefusedByState(err) {
		return nil, err
	}
	return out, nil
}

type chargeIn struct {
	rest.Asked
	ID string `path:"id" of:"charge"`
}

func (s *API) getCharge(ctx context.Context, in *chargeIn) (*wire.ChargeDetail, error) {
	d, err := s.payment(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	out := &wire.ChargeDetail{Payment: s.renderChargePayment(d.PaymentRow)}
	out.PaymentHistory, err = s.history(ctx, d, payout.EventPacketRecorded, out.Workflow.ID)
	return out, err
}

// renderChargePayment renders a charge, which the workflow of its packet runs.
func (s *API) renderChargePayment(r staff.PaymentRow) wire.Payment {
	out := s.renderPayout(r).Payment
	out.Workflow = s.WorkflowLink("packet/" + r.PacketID)
	return out
}

// payment reads a payment with its attempts and history.
func (s *API) payment(ctx context.Context, id string) (staff.PaymentDetail, error) {
	ctx, cancel := context.WithTimeout(ctx, rest.ReadTimeout)
	defer cancel()
	return s.cfg.Store.Payment(ctx, id)
}

// history returns the attempts, events and workflow of a payment. began describes its first row.
func (s *API) history(ctx context.Context, d staff.PaymentDetail, began payout.EventCode,
	workflow string) (out wire.PaymentHistory, err error) {
	out.Attempts = renderAttempts(d)
	if out.Timeline, out.Temporal, err = s.timeline(ctx, d, began, workflow); err != nil {
		return out, err
	}
	out.Retry, err = s.previewRetry(ctx, d.ID)
	return out, err
}

type payoutStatusesIn struct {
	Query struct {
		IDs string `json:"ids" check:"payouts" doc:"1 to 100 ids of payouts, with commas between them." example:"p3q5k9v0c1m7e2u8h4r6t0003,p3q5k9v0c1m7e2u8h4r6t0004"`
	} `in:"query"`
}

func (s *API) getPayoutStatuses(ctx context.Context, in *payoutStatusesIn) (*wire.PayoutStatuses, error) {
	found, err := s.statuses(ctx, in.Query.IDs)
	return &wire.PayoutStatuses{Items: found}, err
}

type refundStatusesIn struct {
	Query struct {
		IDs string `json:"ids" check:"refunds" doc:"1 to 100 ids of refunds, with commas between them." example:"r3q5k9v0c1m7e2u8h4r6t0000,r3q5k9v0c1m7e2u8h4r6t0004"`
	} `in:"query"`
}

func (s *API) getRefundStatuses(ctx context.Context, in *refundStatusesIn) (*wire.RefundStatuses, error) {
	found, err := s.statuses(ctx, in.Query.IDs)
	out := &wire.RefundStatuses{Items: make([]wire.RefundAt, len(found))}
	for i, one := range found {
		out.Items[i] = wire.RefundAt(one)
	}
	return out, err
}

// statuses returns the statuses of ids with commas between them.
func (s *API) statuses(ctx context.Context, text string) ([]wire.PayoutAt, error) {
	ids := strings.Split(text, ",")
	found, err := s.cfg.Store.PaymentStatuses(ctx, ids)
	out := []wire.PayoutAt{}
	for _, id := range ids {
		if status, ok := found[id]; ok {
			out = append(out, wire.PayoutAt{ID: id, Status: wire.PayoutStatus(status)})
		}
	}
	return out, err
}
