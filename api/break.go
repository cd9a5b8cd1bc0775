package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

const breakPrefix = "b"

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

func readBreakFilter(q *query, now time.Time) staff.BreakFilter {
	f := staff.BreakFilter{Kind: payout.BreakKind(q.text("kind", checkCode)), PacketID: q.text("packet_id", checkFilter),
		ReconciliationID: q.text("reconciliation_id", checkFilter)}
	resolved := q.text("resolved", checkBool)
	if resolved != "" {
		yes := resolved == "true"
		f.Resolved = &yes
	}
	if age, ok := q.integer("older_than_seconds", 0, maxAge); ok {
		f.CreatedTo = now.Add(-time.Duration(age) * time.Second)
	}
	return f
}

func listBreaks(r *request) (answer, error) {
	now := r.server.cfg.Now().UTC()
	q := readQuery(r)
	filter := readBreakFilter(q, now)
	given := q.given()
	limit, text := q.page()
	if err := q.done(); err != nil {
		return answer{}, err
	}
	if text != "" {
		c, err := continueList(text, given, func(q *query) { filter = readBreakFilter(q, now) })
		id, ok := breakID(c.ID)
		if err != nil || !ok {
			return answer{}, badCursor()
		}
		filter.CreatedTo, filter.AfterTime, filter.AfterID, given = c.To, c.At, id, c.Filters
	}
	filter.Limit = limit + 1
	ctx, cancel := context.WithTimeout(r.ctx, readTimeout)
	defer cancel()
	rows, err := r.server.cfg.Store.Breaks(ctx, filter)
	if err != nil {
		return answer{}, err
	}
	var page wire.List[wire.Break]
	show := func(b staff.BreakRow) wire.Break { return renderBreak(b, now) }
	page.Items, page.NextCursor = pageOf(rows, limit, func(b staff.BreakRow) listCursor {
		return listCursor{Filters: given, To: filter.CreatedTo, At: b.CreatedAt, ID: show(b).ID}
	}, show)
	return answer{status: http.StatusOK, body: page}, nil
}

// breakID parses the id of a break.
func breakID(text string) (int64, bool) {
	digits, ok := strings.CutPrefix(text, breakPrefix)
	id, err := strconv.ParseInt(digits, 10, 64)
	return id, ok && err == nil && id > 0 && strconv.FormatInt(id, 10) == digits
}

// outcomeNone states nothing about the money.
const outcomeNone = "none"

// outcomes are the decisions that a resolution of a break can be, by outcome.
var outcomes = map[string]payout.DecisionKind{"moved": payout.DecisionMoved, "not_moved": payout.DecisionNotMoved}

func checkOutcome(s string) *fault {
	if _, known := outcomes[s]; !known && s != outcomeNone {
		return &fault{faultEnum, "must be none, moved or not_moved"}
	}
	return nil
}

func readResolveBreak(body []byte) (wire.ResolveBreak, error) {
	o, err := readObject(body)
	if err != nil {
		return wire.ResolveBreak{}, err
	}
	reason, outcome := o.text("reason", true, checkReason), o.text("outcome", false, checkOutcome)
	evidence := o.text("evidence", false, checkReason)
	out := wire.ResolveBreak{Reason: valueOr(reason, ""), Outcome: valueOr(outcome, outcomeNone), Evidence: valueOr(evidence, "")}
	if err := o.done(); err != nil {
		return out, err
	}
	_, stated := outcomes[out.Outcome]
	switch {
	case stated && out.Evidence == "":
		return out, invalidField("evidence", faultRequired, "is required with this outcome")
	case !stated && out.Evidence != "":
		return out, invalidField("evidence", faultUnknown, "is possible only with the outcomes moved and not_moved")
	}
	if !stated {
		out.Outcome = "" // the same request as without the member
	}
	return out, nil
}

// renderDecidedBreak returns the answer that is stored with the decision.
func (r *request) renderDecidedBreak(d *staff.Decision, p staff.PaymentRow, refused error) (int, []byte) {
	if refused != nil {
		return r.renderRefusedDecision(refused)
	}
	out := wire.DecidedBreak{}
	out.Decision, out.Approval = renderDecided(*d)
	out.Payout, out.Refund = r.server.subject(p)
	return accepted(out)
}

func resolveBreak(r *request) (answer, error) {
	body, err := readResolveBreak(r.payload)
	if err != nil {
		return answer{}, err
	}
	w, err := r.staffWrite(body, body.Reason)
	if err != nil {
		return answer{}, err
	}
	// A malformed id in the path is answered like an unknown id.
	text, _ := url.PathUnescape(r.c.Params("id"))
	id, ok := breakID(text)
	if !ok {
		return answer{}, noSuch("break")
	}
	w.Route = r.c.Method() + " " + r.route.on(strings.Clone(text))
	if kind, stated := outcomes[body.Outcome]; stated {
		c := payout.DecisionRequest{Kind: kind, Evidence: body.Evidence}
		stored, err := r.server.cfg.Store.DecideBreak(r.ctx, w, id, c, r.renderDecidedBreak)
		return staffAnswer(stored, err, noSuch("break"))
	}
	stored, err := r.server.cfg.Store.ResolveBreak(r.ctx, w, id, func(b staff.BreakRow) (int, []byte) {
		raw := encodeBody(renderBreak(b, r.server.cfg.Now()))
		return http.StatusOK, raw
	})
	return staffAnswer(stored, err, noSuch("break"))
}
