package report

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"gorm.io/gorm"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// unfinishedStatuses are the statuses of payments that are not final.
var unfinishedStatuses = []payout.Status{payout.StatusPending, payout.StatusSending, payout.StatusUnknown, payout.StatusAwaitingRecipient,
	payout.StatusFailed, payout.StatusReturned}

// lateRefund selects refunds p in the given statuses that were due by a time, passed twice. The
// remainder has number 0 (payout.ID).
const lateRefund = `p.status IN ? AND (p.created_at <= ? OR RIGHT(p.id, 4) = '0000' AND
	EXISTS (SELECT 1 FROM packets k WHERE k.id = p.packet_id AND k.expires_at <= ?))`

// paymentsIndex names the indexes that have the rows of a filter in list order. With several of them
// the optimizer chooses the most selective; without a hint it may take another one and sort
// everything. rare: few rows have the filter's amounts.
func paymentsIndex(f staff.PaymentFilter, rare bool) string {
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

// named reports whether a filter has an order number or provider reference.
func named(f staff.PaymentFilter) bool { return f.OrderNo != "" || f.ProviderRef != "" }

// rareAmountLimit is the largest number of payments that are sorted instead of read in list order.
const rareAmountLimit = 1000

// rareAmount reports whether few payments have the filter's amounts: then they are found by amount
// and sorted. Frequent amounts are found soon in list order. They have to be counted, because the
// wrong plan reads all payments.
func (s *Source) rareAmount(ctx context.Context, f staff.PaymentFilter) (bool, error) {
	if f.AmountMin <= 1 && f.AmountMax == 0 || named(f) || f.UserID != "" || f.PacketID != "" {
		return false, nil
	}
	q := s.read(ctx).Table("payments p FORCE INDEX (payments_amount)").Select("1").Where("p.kind = ?", string(f.Kind))
	var more []int
	err := amounts(q, f).Limit(1).Offset(max(rareAmountLimit, f.Limit)).Scan(&more).Error
	return len(more) == 0, err
}

// amounts restricts a selection of payments p to the filter's amounts.
func amounts(q *gorm.DB, f staff.PaymentFilter) *gorm.DB {
	if f.AmountMin > 0 {
		q = q.Where("p.amount >= ?", int64(f.AmountMin))
	}
	if f.AmountMax > 0 {
		q = q.Where("p.amount <= ?", int64(f.AmountMax))
	}
	return q
}

// Payments lists payments of one kind, newest first; payouts include those of share conflicts when
// the filter requests it. Errors: ErrUnavailable.
func (s *Source) Payments(ctx context.Context, f staff.PaymentFilter) ([]staff.PaymentRow, error) {
	rows, err := s.paymentsOf(ctx, f)
	if err != nil || f.Kind != payout.KindPayout || !f.IncludeHonours {
		return rows, err
	}
	f.Kind = payout.KindHonour // one statement a kind: an index orders the rows of one kind only
	honours, err := s.paymentsOf(ctx, f)
	if err != nil || len(honours) == 0 {
		return rows, err
	}
	rows = append(rows, honours...)
	slices.SortFunc(rows, func(a, b staff.PaymentRow) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID))
	})
	return rows[:min(f.Limit, len(rows))], nil
}

func (s *Source) paymentsOf(ctx context.Context, f staff.PaymentFilter) ([]staff.PaymentRow, error) {
	q, fits, err := s.filtered(ctx, f)
	if err != nil || !fits {
		return nil, mysql.Classify(err)
	}
	q = q.Select("p.*, a.provider_ref").Joins("LEFT JOIN attempts a ON a.order_no = p.order_no")
	if f.AfterID != "" {
		at := f.AfterTime.UTC()
		q = q.Where("p.created_at <= ? AND (p.created_at < ? OR p.id < ?)", at, at, f.AfterID)
	}
	var rows []mysql.ListedRow
	if err := q.Order("p.created_at DESC, p.id DESC").Limit(f.Limit).Scan(&rows).Error; err != nil {
		return nil, mysql.Classify(err)
	}
	out := make([]staff.PaymentRow, len(rows))
	for i, r := range rows {
		out[i] = r.Row()
	}
	return out, nil
}

// filtered selects the payments p of one kind that match a filter; false when none can match.
func (s *Source) filtered(ctx context.Context, f staff.PaymentFilter) (q *gorm.DB, fits bool, err error) {
	if f.FailureCode != "" && f.Status != "" && f.Status != payout.StatusFailed && f.Status != payout.StatusReturned {
		return nil, false, nil // only those have a code; a scan would find nothing
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
		// An earlier attempt's order number finds its payment too: the id is the order number
		// without the attempt.
		parts, err := payout.Parse(f.OrderNo)
		if err != nil {
			return nil, false, nil //nolint:nilerr // what cannot be a number finds nothing
		}
		q = q.Where("p.id = ? AND (p.order_no = ? OR EXISTS (SELECT 1 FROM attempts x WHERE x.order_no = ?))", parts.PaymentID, f.OrderNo,
			f.OrderNo)
	}
	if f.ProviderRef != "" {
		q = q.Where("p.id IN (SELECT x.payment_id FROM attempts x WHERE x.provider_ref = ?)", mysql.ClipKey(f.ProviderRef, mysql.RefLen))
	}
	if f.Status == payout.StatusFailed && f.FailureCode == "" && f.PacketID == "" && f.UserID == "" && !named(f) {
		q = q.Where("NOT (" + notConfirmed + ")")
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
func (s *Source) Payment(ctx context.Context, id string) (staff.PaymentDetail, error) {
	row, attempts, _, err := mysql.LoadPayment(s.read(ctx), id, false)
	if err != nil {
		return staff.PaymentDetail{}, mysql.Classify(err)
	}
	d := staff.PaymentDetail{PaymentRow: row.Listed(attempts), Attempts: attempts}
	var rows []mysql.EventRow
	if err := s.read(ctx).Where("payment_id = ?", id).Order("id").Find(&rows).Error; err != nil {
		return d, mysql.Classify(err)
	}
	for _, r := range rows {
		e, err := r.AsEvent()
		if err != nil {
			return d, err
		}
		d.Events = append(d.Events, e)
	}
	return d, nil
}

// PaymentStatuses reads the statuses of payments by their ids; an id that no payment
// has is left out. Errors: ErrUnavailable.
func (s *Source) PaymentStatuses(ctx context.Context, ids []string) (map[string]payout.Status, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var rows []struct{ ID, Status string }
	if err := s.read(ctx).Model(&mysql.PaymentRow{}).Select("id", "status").Where("id IN ?", ids).Find(&rows).Error; err != nil {
		return nil, mysql.Classify(err)
	}
	out := make(map[string]payout.Status, len(rows))
	for _, r := range rows {
		out[r.ID] = payout.Status(r.Status)
	}
	return out, nil
}
