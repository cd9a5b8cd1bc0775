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
)

// Break is a difference that staff has to look into.
type Break struct {
	ID               string               `json:"id" doc:"The id." example:"b4711"`
	Kind             string               `json:"kind" doc:"The kind of difference; docs/reconciliation.md lists the kinds." example:"not_in_statement"`
	PacketID         Nullable[string]     `json:"packet_id" doc:"The packet that the break is about; null if none of ours."`
	PaymentID        Nullable[string]     `json:"payment_id" doc:"The payout, refund or charge that the break is about."`
	OrderNo          Nullable[string]     `json:"order_no" doc:"The order number that the break is about; it may be unknown to us."`
	UserID           Nullable[string]     `json:"user_id" doc:"Of a share conflict: the user of the claim."`
	Detail           string               `json:"detail" doc:"What was found, as text for people."`
	Provider         Nullable[string]     `json:"provider" doc:"Of breaks found by reconciliation: the provider of the statement."`
	Amount           Nullable[Fen]        `json:"amount" doc:"Of breaks found by reconciliation: the amount that moved or was booked; for several lines of the order number, their sum."`
	PaymentAmount    Nullable[Fen]        `json:"payment_amount" doc:"The amount of the payment that the break is about; null if none of ours."`
	ReconciliationID Nullable[string]     `json:"reconciliation_id" doc:"The last reconciliation that saw it."`
	Seen             int                  `json:"seen" minimum:"1" doc:"How many times it was seen."`
	CreatedAt        Stamp                `json:"created_at" doc:"When it was first seen."`
	LastSeenAt       Stamp                `json:"last_seen_at" doc:"When it was last seen."`
	AgeSeconds       int64                `json:"age_seconds" minimum:"0" doc:"Seconds since it was first seen, until now or until it was resolved. A break that was opened again also counts from the first time."`
	Resolved         Nullable[Resolution] `json:"resolved" doc:"The resolution; null while the break is open."`
}

// Resolution is how a break was resolved, by which person.
type Resolution struct {
	At     Stamp  `json:"at" doc:"When it was resolved."`
	By     string `json:"by" doc:"The member of staff; reconciliation when both sides agreed later." example:"li.na"`
	Reason string `json:"reason" doc:"How it was resolved."`
}

// Breaks is a page of breaks.
type Breaks struct {
	Items      []Break          `json:"items" nullable:"false" doc:"Newest first."`
	NextCursor Nullable[string] `json:"next_cursor" doc:"The cursor of the next page; null on the last page."`
}

const breakPrefix = "b"

func renderBreak(b staff.BreakRow, now time.Time) Break {
	out := Break{
		ID: breakPrefix + strconv.FormatInt(b.ID, 10), Kind: string(b.Kind), PacketID: textOrNull(b.PacketID), PaymentID: textOrNull(b.PaymentID),
		OrderNo: textOrNull(b.OrderNo), UserID: textOrNull(b.UserID), Detail: b.Detail, Provider: textOrNull(b.Provider),
		ReconciliationID: textOrNull(b.ReconciliationID), Seen: b.Seen, CreatedAt: Stamp(b.CreatedAt), LastSeenAt: Stamp(b.LastSeen),
	}
	for _, one := range []struct {
		amount money.Fen
		to     *Nullable[Fen]
	}{{b.Amount, &out.Amount}, {b.PaymentAmount, &out.PaymentAmount}} {
		if amount := Fen(one.amount); amount > 0 {
			*one.to = orNull(&amount)
		}
	}
	until := now
	if !b.ResolvedAt.IsZero() {
		until = b.ResolvedAt
		out.Resolved = orNull(&Resolution{At: Stamp(b.ResolvedAt), By: b.ResolvedBy, Reason: b.Reason})
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
	var page Breaks
	show := func(b staff.BreakRow) Break { return renderBreak(b, now) }
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

// ResolveBreak is the body of the resolution of a break.
type ResolveBreak struct {
	Reason   string `json:"reason" minLength:"1" maxLength:"500" doc:"The reason, for the audit: 1 to 500 characters." example:"the recipient confirms it, see ticket 4711"`
	Outcome  string `json:"outcome,omitempty" enum:"none,moved,not_moved" doc:"What became of the money of the break's order number; none, the default, states nothing. moved: a statement line or the provider's last answer has to show it, and it is booked as the provider's success. not_moved: of a payout or refund whose outcome is open, and of a charge after the provider's memory of its order number; it fails. Both are decisions about the payment by two persons, and the break is resolved when they have taken effect." example:"not_moved"`
	Evidence string `json:"evidence,omitempty" minLength:"1" maxLength:"500" doc:"The evidence of the outcome: 1 to 500 characters. Required with moved and not_moved, refused otherwise." example:"letter of the provider, 2026-04-02"`
}

// DecidedBreak is the answer to a resolution with an outcome: a decision about the break's payment.
type DecidedBreak struct {
	Decision Decision           `json:"decision" doc:"The decision."`
	Payout   Nullable[Payout]   `json:"payout" doc:"The payout, or charge, of the break; null for a refund."`
	Refund   Nullable[Refund]   `json:"refund" doc:"The refund of the break; null for another payment."`
	Approval Nullable[Approval] `json:"approval" doc:"Set while a second person has to approve; nothing has moved yet."`
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

func readResolveBreak(body []byte) (ResolveBreak, error) {
	o, err := readObject(body)
	if err != nil {
		return ResolveBreak{}, err
	}
	reason, outcome := o.text("reason", true, checkReason), o.text("outcome", false, checkOutcome)
	evidence := o.text("evidence", false, checkReason)
	out := ResolveBreak{Reason: valueOr(reason, ""), Outcome: valueOr(outcome, outcomeNone), Evidence: valueOr(evidence, "")}
	if err := o.done(); err != nil {
		return out, err
	}
	_, stated := outcomes[out.Outcome]
	switch {
	case stated && out.Evidence == "":
		return out, invalid(FieldError{"evidence", faultRequired, "is required with this outcome"})
	case !stated && out.Evidence != "":
		return out, invalid(FieldError{"evidence", faultUnknown, "is possible only with the outcomes moved and not_moved"})
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
	out := DecidedBreak{}
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
