package report

import (
	"context"

	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// breaksIndex names the index that has the rows of a filter in list order.
func breaksIndex(f staff.BreakFilter) string {
	switch {
	case f.PacketID != "":
		return " FORCE INDEX (breaks_packet_list)"
	case f.ReconciliationID != "":
		return " FORCE INDEX (breaks_reconciliation_list)"
	case f.Resolved != nil && !*f.Resolved:
		return " FORCE INDEX (breaks_open)"
	}
	return " FORCE INDEX (breaks_created)"
}

// Breaks lists breaks, newest first. Errors: ErrUnavailable.
func (s *Source) Breaks(ctx context.Context, f staff.BreakFilter) ([]staff.BreakRow, error) {
	q := s.read(ctx).Table("breaks b" + breaksIndex(f)).Select("b.*, p.amount AS payment_amount").Joins("LEFT JOIN payments p ON p.id = " +
		"b.payment_id")
	for _, eq := range []struct{ column, value string }{{"kind", string(f.Kind)}, {"packet_id", f.PacketID},
		{"reconciliation_id", f.ReconciliationID}} {
		if eq.value != "" {
			q = q.Where("b."+eq.column+" = ?", eq.value)
		}
	}
	if f.Resolved != nil && *f.Resolved {
		q = q.Where("b.resolved_at IS NOT NULL")
	} else if f.Resolved != nil {
		q = q.Where("b.resolved_at IS NULL")
	}
	if !f.CreatedTo.IsZero() {
		q = q.Where("b.created_at <= ?", f.CreatedTo.UTC())
	}
	if f.AfterID != 0 {
		q = q.Where("b.created_at <= ? AND (b.created_at < ? OR b.id < ?)", f.AfterTime.UTC(), f.AfterTime.UTC(), f.AfterID)
	}
	var rows []mysql.BreakRow
	if err := q.Order("b.created_at DESC, b.id DESC").Limit(f.Limit).Scan(&rows).Error; err != nil {
		return nil, mysql.Classify(err)
	}
	out := make([]staff.BreakRow, len(rows))
	for i, r := range rows {
		out[i] = r.Row()
	}
	return out, nil
}
