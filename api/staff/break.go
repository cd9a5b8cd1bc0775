package staff

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"hongbao/api/rest"
	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

func renderBreak(b staff.BreakRow, now time.Time) wire.Break {
	out := wire.Break{
		ID: rest.BreakPrefix + strconv.FormatInt(b.ID, 10), Kind: string(b.Kind), PacketID: rest.TextOrNull(b.PacketID),
		PaymentID: rest.TextOrNull(b.PaymentID),
		OrderNo:   rest.TextOrNull(b.OrderNo), UserID: rest.TextOrNull(b.UserID), Detail: b.Detail, Provider: rest.TextOrNull(b.Provider),
		ReconciliationID: rest.TextOrNull(b.ReconciliationID), Seen: b.Seen, CreatedAt: wire.At(b.CreatedAt), LastSeenAt: wire.At(b.LastSeen),
	}
	for _, one := range []struct {
		amount money.Fen
		to     **money.Fen
	}{{b.Amount, &out.Amount}, {b.PaymentAmount, &out.PaymentAmount}} {
		if amount := one.amount; amount > 0 {
			*one.to = &amount
		}
	}
	until := now
	if !b.ResolvedAt.IsZero() {
		until = b.ResolvedAt
		out.Resolved = &wire.Resolution{At: wire.At(b.ResolvedAt), By: b.ResolvedBy, Reason: b.Reason}
	}
	out.AgeSeconds = max(0, int64(until.Sub(b.CreatedAt)/time.Second))
	return out
}

// breaks is the list of breaks.
func (s *API) breaks() rest.Listing[wire.BreakFilter, wire.Break] {
	return rest.Listing[wire.BreakFilter, wire.Break]{Name: "breaks", ID: "break",
		Read: func(ctx context.Context, a rest.Selection[wire.BreakFilter]) ([]wire.Break, *rest.Position, error) {
			f := breakFilter(a.Filter, a.Now)
			f.AfterTime, f.AfterID, f.Limit = a.After.At, rest.NumberOf(rest.BreakPrefix, a.After.ID), a.Limit+1
			rows, err := s.cfg.Store.Breaks(ctx, f)
			return rest.Cut(rows, err, a.Limit, func(b staff.BreakRow) rest.Position {
				return rest.Position{At: b.CreatedAt, ID: rest.BreakPrefix + strconv.FormatInt(b.ID, 10)}
			}, func(b staff.BreakRow) wire.Break { return renderBreak(b, a.Now) })
		}}
}

func breakFilter(f wire.BreakFilter, now time.Time) staff.BreakFilter {
	return staff.BreakFilter{Kind: payout.BreakKind(f.Kind), PacketID: f.PacketID, ReconciliationID: f.ReconciliationID,
		Resolved: f.Resolved, CreatedTo: rest.OlderThan(now, f.OlderThanSeconds)}
}

// outcomes are the decisions that a resolution of a break can be, by outcome.
var outcomes = map[string]payout.DecisionKind{"moved": payout.DecisionMoved, "not_moved": payout.DecisionNotMoved,
	"written_off": payout.DecisionWrittenOff}

type resolveBreakIn struct {
	rest.Change
	ID   string            `path:"id" of:"break"`
	Body wire.ResolveBreak `in:"body"`
}

func (in *resolveBreakIn) Check(o *rest.Object) {
	b := &in.Body
	switch stated := b.States(); {
	case o.Faulty("outcome", "evidence"):
	case stated && b.Evidence == "":
		o.Fault("evidence", rest.Fault{Code: rest.FaultRequired, Message: "is required with this outcome"})
	case !stated && b.Evidence != "":
		o.Fault("evidence", rest.Fault{Code: rest.FaultUnknown, Message: "is possible only with an outcome other than none"})
	case !stated:
		b.Outcome = "" // the same request as without the member
	}
}

// renderDecidedBreak returns the answer that is stored with the decision.
func (s *API) renderDecidedBreak(r *rest.Request) staff.DecisionAnswer {
	return func(d *staff.Decision, p staff.PaymentRow, refused error) (int, []byte) {
		if refused != nil {
			return renderRefusedDecision(r, refused)
		}
		out := wire.DecidedBreak{}
		out.Decision, out.Approval = renderDecided(*d)
		out.Payout, out.Refund = s.subject(p)
		return rest.Accept(out)
	}
}

func (s *API) resolveBreak(ctx context.Context, in *resolveBreakIn) (*rest.Stored[wire.Break], error) {
	id := rest.NumberOf(rest.BreakPrefix, in.ID)
	if kind, stated := outcomes[in.Body.Outcome]; stated {
		c := payout.DecisionRequest{Kind: kind, Evidence: in.Body.Evidence}
		return rest.StoredAs[wire.Break](s.cfg.Store.DecideBreak(ctx, in.Write, id, c, s.renderDecidedBreak(in.Request)))
	}
	return rest.StoredAs[wire.Break](s.cfg.Store.ResolveBreak(ctx, in.Write, id, func(b staff.BreakRow) (int, []byte) {
		return http.StatusOK, rest.EncodeBody(renderBreak(b, in.Now()))
	}))
}

func (s *API) countBreaks(ctx context.Context, in *rest.Filtered[wire.BreakFilter]) (*wire.ListCount, error) {
	sum, err := s.sumBreaks(ctx, in)
	return &sum.ListCount, err
}

func (s *API) sumBreaks(ctx context.Context, in *rest.Filtered[wire.BreakFilter]) (*wire.BreakSum, error) {
	found, err := s.cfg.Store.BreakTotal(ctx, breakFilter(in.Filter, in.Now()))
	sum, err := rest.SumOf(found, err)
	return &wire.BreakSum{ListSum: *sum, WithoutAmount: found.WithoutAmount}, err
}
