package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

func renderBreak(b staff.BreakRow, now time.Time) wire.Break {
	out := wire.Break{
		ID: breakPrefix + strconv.FormatInt(b.ID, 10), Kind: string(b.Kind), PacketID: textOrNull(b.PacketID), PaymentID: textOrNull(b.PaymentID),
		OrderNo: textOrNull(b.OrderNo), UserID: textOrNull(b.UserID), Detail: b.Detail, Provider: textOrNull(b.Provider),
		ReconciliationID: textOrNull(b.ReconciliationID), Seen: b.Seen, CreatedAt: wire.At(b.CreatedAt), LastSeenAt: wire.At(b.LastSeen),
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
func (s *API) breaks() listing[wire.BreakFilter, wire.Break] {
	return listing[wire.BreakFilter, wire.Break]{"breaks", "break",
		func(ctx context.Context, a selection[wire.BreakFilter]) ([]wire.Break, *position, error) {
			f := breakFilter(a.filter, a.now)
			f.AfterTime, f.AfterID, f.Limit = a.after.At, numberOf(breakPrefix, a.after.ID), a.limit+1
			rows, err := s.cfg.Store.Breaks(ctx, f)
			return cut(rows, err, a.limit, func(b staff.BreakRow) position {
				return position{b.CreatedAt, breakPrefix + strconv.FormatInt(b.ID, 10)}
			}, func(b staff.BreakRow) wire.Break { return renderBreak(b, a.now) })
		}}
}

func breakFilter(f wire.BreakFilter, now time.Time) staff.BreakFilter {
	return staff.BreakFilter{Kind: payout.BreakKind(f.Kind), PacketID: f.PacketID, ReconciliationID: f.ReconciliationID,
		Resolved: f.Resolved, CreatedTo: olderThan(now, f.OlderThanSeconds)}
}

// outcomes are the decisions that a resolution of a break can be, by outcome.
var outcomes = map[string]payout.DecisionKind{"moved": payout.DecisionMoved, "not_moved": payout.DecisionNotMoved}

type resolveBreakIn struct {
	Change
	ID   string            `path:"id" of:"break"`
	Body wire.ResolveBreak `in:"body"`
}

func (in *resolveBreakIn) Check(o *object) {
	b := &in.Body
	switch stated := b.States(); {
	case o.faulty("outcome", "evidence"):
	case stated && b.Evidence == "":
		o.fault("evidence", fault{faultRequired, "is required with this outcome"})
	case !stated && b.Evidence != "":
		o.fault("evidence", fault{faultUnknown, "is possible only with the outcomes moved and not_moved"})
	case !stated:
		b.Outcome = "" // the same request as without the member
	}
}

// renderDecidedBreak returns the answer that is stored with the decision.
func (s *API) renderDecidedBreak(r *Request) staff.DecisionAnswer {
	return func(d *staff.Decision, p staff.PaymentRow, refused error) (int, []byte) {
		if refused != nil {
			return renderRefusedDecision(r, refused)
		}
		out := wire.DecidedBreak{}
		out.Decision, out.Approval = renderDecided(*d)
		out.Payout, out.Refund = s.subject(p)
		return accept(out)
	}
}

func (s *API) resolveBreak(ctx context.Context, in *resolveBreakIn) (*stored[wire.Break], error) {
	id := numberOf(breakPrefix, in.ID)
	if kind, stated := outcomes[in.Body.Outcome]; stated {
		c := payout.DecisionRequest{Kind: kind, Evidence: in.Body.Evidence}
		return storedAs[wire.Break](s.cfg.Store.DecideBreak(ctx, in.Write, id, c, s.renderDecidedBreak(in.Request)))
	}
	return storedAs[wire.Break](s.cfg.Store.ResolveBreak(ctx, in.Write, id, func(b staff.BreakRow) (int, []byte) {
		return http.StatusOK, encodeBody(renderBreak(b, in.now()))
	}))
}

func (s *API) countBreaks(ctx context.Context, in *filtered[wire.BreakFilter]) (*wire.ListCount, error) {
	sum, err := s.sumBreaks(ctx, in)
	return &sum.ListCount, err
}

func (s *API) sumBreaks(ctx context.Context, in *filtered[wire.BreakFilter]) (*wire.BreakSum, error) {
	found, err := s.cfg.Store.BreakTotal(ctx, breakFilter(in.Filter, in.now()))
	sum, err := sumOf(found, err)
	return &wire.BreakSum{ListSum: *sum, WithoutAmount: found.WithoutAmount}, err
}
