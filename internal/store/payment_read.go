package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"hongbao/internal/payout"
)

// listedRow names its embedded row: gorm skips unexported embedded fields.
type listedRow struct {
	Payment     paymentRow `gorm:"embedded"`
	ProviderRef *string
}

func (r listedRow) row() payout.Row {
	return payout.Row{Payment: r.Payment.payment(), OrderNo: orEmpty(r.Payment.OrderNo), ProviderRef: orEmpty(r.ProviderRef),
		AttemptCount: r.Payment.Attempt}
}

// listed is the row as lists show it, with the reference of the current attempt.
func (r paymentRow) listed(attempts []payout.Attempt) payout.Row {
	l := listedRow{Payment: r}
	if r.Attempt > 0 && r.Attempt <= len(attempts) {
		l.ProviderRef = &attempts[r.Attempt-1].ProviderRef
	}
	return l.row()
}

// unfinishedStatuses are those of payments that are not at their end.
var unfinishedStatuses = []payout.Status{payout.StatusPending, payout.StatusSending, payout.StatusUnknown, payout.StatusAwaitingRecipient,
	payout.StatusFailed, payout.StatusReturned}

// lateRefund is true of refunds p in one of these statuses that were due by a time,
// which is given twice. A remainder's number is 0 (payout.ID).
const lateRefund = `p.status IN ? AND (p.created_at <= ? OR RIGHT(p.id, 4) = '0000' AND
	EXISTS (SELECT 1 FROM packets k WHERE k.id = p.packet_id AND k.expires_at <= ?))`

// paymentsIndex names the indexes that have the rows of a filter in their order.
// With several filters the optimizer knows best which of them leaves the fewest;
// left alone, it may take another index and sort everything it finds. rare tells
// that few rows have the amounts of the filter.
func paymentsIndex(f payout.Filter, rare bool) string {
	if named(f) {
		return ""
	}
	var names []string
	for _, by := range []struct{ value, index string }{{f.UserID, "payments_user"}, {f.PacketID, "payments_packet_list"},
		{f.FailureCode, "payments_failure"}, {string(f.Status), "payments_status"}} {
		if by.value != "" {
			names = append(names, by.index)
		}
	}
	if names == nil && !f.LateBefore.IsZero() {
		names = []string{"payments_status"}
	}
	if rare {
		names = append(names, "payments_amount")
	}
	if names == nil {
		names = []string{"payments_created"}
	}
	return " FORCE INDEX (" + strings.Join(names, ", ") + ")"
}

// named reports whether a filter names a payment by a number of its own.
func named(f payout.Filter) bool { return f.OrderNo != "" || f.ProviderRef != "" }

// fewOfAmount is how many payments of a list are sorted rather than looked for.
const fewOfAmount = 1000

// rareAmount reports whether few payments have the amounts of a filter: then they
// are found by amount and sorted. What many have is found soon on the way from the
// newest to the oldest. Which of the two it is has to be counted: the wrong way
// goes through all of a million payments.
func (s *Store) rareAmount(ctx context.Context, f payout.Filter) (bool, error) {
	if f.AmountMin <= 1 && f.AmountMax == 0 || named(f) || f.UserID != "" || f.PacketID != "" {
		return false, nil
	}
	q := s.read(ctx).Table("payments p FORCE INDEX (payments_amount)").Select("1").Where("p.kind = ?", string(f.Kind))
	var more []int
	err := amounts(q, f).Limit(1).Offset(max(fewOfAmount, f.Limit)).Scan(&more).Error
	return len(more) == 0, err
}

// amounts narrows a selection of payments, as p, to those of the amounts of a filter.
func amounts(q *gorm.DB, f payout.Filter) *gorm.DB {
	if f.AmountMin > 0 {
		q = q.Where("p.amount >= ?", int64(f.AmountMin))
	}
	if f.AmountMax > 0 {
		q = q.Where("p.amount <= ?", int64(f.AmountMax))
	}
	return q
}

// Payments lists payments of one kind, newest first; with payouts also those of
// promises, when the filter says so. Errors: ErrUnavailable.
func (s *Store) Payments(ctx context.Context, f payout.Filter) ([]payout.Row, error) {
	rows, err := s.paymentsOf(ctx, f)
	if err != nil || f.Kind != payout.KindPayout || !f.IncludeHonours {
		return rows, err
	}
	f.Kind = payout.KindHonour // each kind by itself: an index can order the rows of one only
	promises, err := s.paymentsOf(ctx, f)
	if err != nil || len(promises) == 0 {
		return rows, err
	}
	rows = append(rows, promises...)
	slices.SortFunc(rows, func(a, b payout.Row) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID))
	})
	return rows[:min(f.Limit, len(rows))], nil
}

func (s *Store) paymentsOf(ctx context.Context, f payout.Filter) ([]payout.Row, error) {
	q, fits, err := s.filtered(ctx, f)
	if err != nil || !fits {
		return nil, classify(err)
	}
	q = q.Select("p.*, a.provider_ref").Joins("LEFT JOIN attempts a ON a.order_no = p.order_no")
	if f.AfterID != "" {
		at := f.AfterTime.UTC()
		q = q.Where("p.created_at <= ? AND (p.created_at < ? OR p.id < ?)", at, at, f.AfterID)
	}
	var rows []listedRow
	if err := q.Order("p.created_at DESC, p.id DESC").Limit(f.Limit).Scan(&rows).Error; err != nil {
		return nil, classify(err)
	}
	out := make([]payout.Row, len(rows))
	for i, r := range rows {
		out[i] = r.row()
	}
	return out, nil
}

// filtered selects the payments of one kind that a filter names, as p; false:
// there can be none.
func (s *Store) filtered(ctx context.Context, f payout.Filter) (q *gorm.DB, fits bool, err error) {
	if f.FailureCode != "" && f.Status != "" && f.Status != payout.StatusFailed && f.Status != payout.StatusReturned {
		return nil, false, nil // only those have a code; nobody has to look through all of them
	}
	rare, err := s.rareAmount(ctx, f)
	if err != nil {
		return nil, false, err
	}
	q = s.read(ctx).Table("payments p"+paymentsIndex(f, rare)).Where("p.kind = ?", string(f.Kind))
	for _, eq := range []struct{ column, value string }{{"packet_id", f.PacketID}, {"user_id", f.UserID}, {"status", string(f.Status)},
		{"failure_code", f.FailureCode}} {
		if eq.value != "" {
			q = q.Where("p."+eq.column+" = ?", eq.value)
		}
	}
	if f.OrderNo != "" {
		// An earlier attempt's number finds its payment too: the id is the number without the attempt.
		parts, err := payout.Parse(f.OrderNo)
		if err != nil {
			return nil, false, nil //nolint:nilerr // what cannot be a number finds nothing
		}
		q = q.Where("p.id = ? AND (p.order_no = ? OR EXISTS (SELECT 1 FROM attempts x WHERE x.order_no = ?))", parts.PaymentID, f.OrderNo,
			f.OrderNo)
	}
	if f.ProviderRef != "" {
		q = q.Where("p.id IN (SELECT x.payment_id FROM attempts x WHERE x.provider_ref = ?)", clipKey(f.ProviderRef, refLen))
	}
	if !f.CreatedTo.IsZero() {
		q = q.Where("p.created_at <= ?", f.CreatedTo.UTC())
	}
	if !f.LateBefore.IsZero() {
		q = q.Where(lateRefund, unfinishedStatuses, f.LateBefore.UTC(), f.LateBefore.UTC())
	}
	return amounts(q, f), true, nil
}

// Payment reads one payment with attempts and timeline. Errors: ErrNotFound, ErrUnavailable.
func (s *Store) Payment(ctx context.Context, id string) (payout.Detail, error) {
	t := tx{DB: s.read(ctx)}
	row, attempts, err := t.loadStored(id, false)
	if err != nil {
		return payout.Detail{}, classify(err)
	}
	d := payout.Detail{Row: row.listed(attempts), Attempts: attempts}
	var rows []eventRow
	if err := t.Raw("SELECT * FROM payment_events WHERE payment_id = ? ORDER BY id", id).Scan(&rows).Error; err != nil {
		return d, classify(err)
	}
	for _, r := range rows {
		d.Events = append(d.Events, payout.Event{At: r.At.UTC(), Source: r.Source, Op: r.Op, OrderNo: r.OrderNo, Outcome: r.Outcome, Code: r.Code,
			What:      r.What,
			StartedAt: orZero(r.StartedAt), EndedAt: orZero(r.EndedAt)})
	}
	return d, nil
}

// PaymentStatuses reads the statuses of payments by their ids; an id that no payment
// has is left out. Errors: ErrUnavailable.
func (s *Store) PaymentStatuses(ctx context.Context, ids []string) (map[string]payout.Status, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var rows []struct{ ID, Status string }
	if err := s.read(ctx).Raw("SELECT id, status FROM payments WHERE id IN ?", ids).Scan(&rows).Error; err != nil {
		return nil, classify(err)
	}
	out := make(map[string]payout.Status, len(rows))
	for _, r := range rows {
		out[r.ID] = payout.Status(r.Status)
	}
	return out, nil
}

// PaymentRow reads the payment row alone. Errors: ErrNotFound, ErrUnavailable.
func (s *Store) PaymentRow(ctx context.Context, id string) (payout.Payment, error) {
	var row paymentRow
	if err := s.read(ctx).Raw("SELECT * FROM payments WHERE id = ?", id).Scan(&row).Error; err != nil {
		return payout.Payment{}, classify(err)
	}
	if row.ID == "" {
		return payout.Payment{}, fmt.Errorf("payment %s: %w", id, ErrNotFound)
	}
	return row.payment(), nil
}
