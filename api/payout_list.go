package api

import (
	"context"
	"errors"
	"maps"
	"math"
	"net/http"
	"net/url"
	"time"
	"unicode/utf8"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"

	"hongbao/wire"
)

// listTimeout bounds the read of a page of payments.
const listTimeout = 8 * time.Second

// maxAge bounds older_than_seconds: some hundred years.
const maxAge = 1 << 33

// payoutCursor is the last payout of a page, with the filters of the list and the time of its
// first page, so that all pages use the same time.
type payoutCursor struct {
	Filters map[string]string `json:"f"`
	To      time.Time         `json:"to"`
	At      time.Time         `json:"at"`
	ID      string            `json:"id"`
}

func checkStatus(s string) *fault {
	if !payout.Status(s).Valid() {
		return &fault{faultEnum, "is not a status of payouts"}
	}
	return nil
}

// checkFilter checks a text that is only compared.
func checkFilter(s string) *fault {
	if s == "" || len(s) > maxFieldName || !utf8.ValidString(s) {
		return &fault{faultFormat, "must have 1 to 128 bytes of UTF-8"}
	}
	return nil
}

// checkCode checks a text that is compared with codes, which are ASCII: MySQL refuses to
// compare them with other text.
func checkCode(s string) *fault {
	if !isVisible(s, maxFieldName) {
		return &fault{faultFormat, "must have 1 to 128 visible ASCII characters"}
	}
	return nil
}

// readFilter reads the filters of the list of payouts.
func readFilter(q *query, now time.Time) staff.PaymentFilter {
	f := staff.PaymentFilter{Kind: payout.KindPayout, IncludeHonours: true}
	f.Status = payout.Status(q.text("status", checkStatus))
	f.PacketID = q.text("packet_id", checkFilter)
	f.UserID = q.text("user_id", checkID)
	f.OrderNo = q.text("order_no", checkFilter)
	f.FailureCode = q.text("failure_code", checkCode)
	f.ProviderRef = q.text("provider_ref", checkFilter)
	if age, ok := q.integer("older_than_seconds", 0, maxAge); ok {
		f.CreatedTo = now.Add(-time.Duration(age) * time.Second)
	}
	low, _ := q.integer("amount_min", 0, int64(money.Max))
	high, capped := q.integer("amount_max", 0, int64(money.Max))
	if capped && high < low {
		q.fault("amount_max", fault{faultRange, "must not be below amount_min"})
	}
	f.AmountMin, f.AmountMax = money.Fen(low), money.Fen(high)
	if capped && high == 0 {
		f.AmountMax, f.AmountMin = 1, math.MaxInt64 // nothing is that small, and 0 would mean no bound
	}
	return f
}

// late reads the filter of overdue refunds; other payments have none.
func (q *query) late(f *staff.PaymentFilter, kind payout.Kind, now time.Time) {
	if kind != payout.KindRefund {
		return
	}
	if q.flag("late") {
		f.LateBefore = now.Add(-payout.RefundLateAfter)
	}
}

// paymentPage reads the requested page of payments of one kind.
func (r *request) paymentPage(kind payout.Kind) (rows []staff.PaymentRow, next *string, err error) {
	now := r.server.cfg.Now().UTC()
	q := readQuery(r)
	filter := readFilter(q, now)
	q.late(&filter, kind, now)
	given := q.given()
	limit, text := q.page()
	if err := q.done(); err != nil {
		return nil, next, err
	}
	if text != "" {
		more, err := continued(text, given, kind)
		if err != nil {
			return nil, next, err
		}
		filter, given = more.filter, more.given
	}
	filter.Kind, filter.Limit = kind, limit+1
	ctx, cancel := context.WithTimeout(r.ctx, listTimeout)
	defer cancel()
	rows, err = r.server.cfg.Store.Payments(ctx, filter)
	if err != nil {
		return nil, next, err
	}
	if len(rows) > limit {
		rows = rows[:limit]
		last := rows[limit-1]
		next = encodeCursor(payoutCursor{Filters: given, To: filter.CreatedTo, At: last.CreatedAt, ID: last.ID})
	}
	return rows, next, nil
}

func listPayouts(r *request) (answer, error) {
	rows, next, err := r.paymentPage(payout.KindPayout)
	if err != nil {
		return answer{}, err
	}
	page := wire.List[wire.Payout]{Items: []wire.Payout{}, NextCursor: next}
	for _, row := range rows {
		page.Items = append(page.Items, r.server.renderPayout(row))
	}
	return answer{status: http.StatusOK, body: page}, nil
}

// continuation is a parsed cursor.
type continuation struct {
	filter staff.PaymentFilter
	given  map[string]string
}

// continued parses a cursor. It keeps the filters of its list; the client may repeat but not
// change them. The id identifies the list.
func continued(text string, given map[string]string, kind payout.Kind) (continuation, error) {
	var c payoutCursor
	if decodeCursor(text, &c) != nil || !inMySQLRange(c.At) || !c.To.IsZero() && !inMySQLRange(c.To) || len(given) > 0 &&
		!maps.Equal(given, c.Filters) {
		return continuation{}, badCursor()
	}
	if last, err := payout.Parse(c.ID); err != nil || !isOf(last.Kind, kind) {
		return continuation{}, badCursor()
	}
	q := filtersOf(c.Filters)
	f := readFilter(q, c.To)
	q.late(&f, kind, time.Now().UTC())
	if q.done() != nil {
		return continuation{}, badCursor()
	}
	f.Kind, f.CreatedTo, f.AfterTime, f.AfterID = kind, c.To, c.At, c.ID
	return continuation{filter: f, given: c.Filters}, nil
}

// isOf reports whether payments of a kind belong to the list of another: share conflicts are
// listed as payouts.
func isOf(kind, among payout.Kind) bool {
	return kind == among || kind == payout.KindHonour && among == payout.KindPayout
}

// payoutID returns the payout id of the path.
func (r *request) payoutID() (string, error) {
	return r.paymentID(payout.KindPayout, wire.CodePayoutNotFound)
}

// paymentID returns the id of a payment of one kind; any other id in the path is not found.
func (r *request) paymentID(kind payout.Kind, missing wire.Code) (string, error) {
	id, err := url.PathUnescape(r.c.Params("id"))
	if err != nil {
		return "", refuse(missing)
	}
	parts, err := payout.Parse(id)
	if err != nil || !isOf(parts.Kind, kind) || parts.PaymentID != id {
		return "", refuse(missing)
	}
	return id, nil
}

func getPayout(r *request) (answer, error) {
	id, err := r.payoutID()
	if err != nil {
		return answer{}, err
	}
	d, err := r.payment(id, wire.CodePayoutNotFound)
	if refused, ok := errors.AsType[*refusal](err); ok && refused.code == wire.CodePayoutNotFound {
		return r.getUnbooked(id, err)
	}
	if err != nil {
		return answer{}, err
	}
	out := wire.PayoutDetail{Payout: r.server.renderPayout(d.PaymentRow), Attempts: renderAttempts(d)}
	began := payout.EventClaimBooked
	if d.Kind == payout.KindHonour {
		began = payout.EventClaimConflict
	}
	if out.Timeline, out.Temporal, err = r.timeline(d, began, out.Workflow.ID); err != nil {
		return answer{}, err
	}
	if out.Retry, err = r.previewRetry(id); err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: out}, nil
}

// payment reads a payment with its attempts and history.
func (r *request) payment(id string, missing wire.Code) (staff.PaymentDetail, error) {
	ctx, cancel := context.WithTimeout(r.ctx, readTimeout)
	defer cancel()
	d, err := r.server.cfg.Store.Payment(ctx, id)
	if errors.Is(err, packet.ErrNotFound) {
		return d, refuse(missing)
	}
	return d, err
}
