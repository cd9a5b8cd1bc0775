package report

import (
	"context"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// AppBalances returns the balance of every app, by its id; zeros for one without movements. app limits them
// to one. Errors: ErrUnavailable.
func (s *Source) AppBalances(ctx context.Context, app string) ([]payout.AppBalance, error) {
	q := s.read(ctx).Table("apps a").Joins("LEFT JOIN app_balances b ON b.app_id = a.id").
		Select("a.id, a.name, COALESCE(b.available, 0) AS available, COALESCE(b.reserved, 0) AS reserved")
	if app != "" {
		q = q.Where("a.id = ?", app)
	}
	var rows []struct {
		ID, Name            string
		Available, Reserved int64
	}
	err := q.Order("a.id").Scan(&rows).Error
	out := make([]payout.AppBalance, len(rows))
	for i, r := range rows {
		out[i] = payout.AppBalance{App: r.ID, Name: r.Name, Available: money.Fen(r.Available), Reserved: money.Fen(r.Reserved),
			Currency: packet.CurrencyCNY}
	}
	return out, mysql.Classify(err)
}

// BalanceEntries returns the history of an app's balance, newest first. Errors: ErrUnavailable.
func (s *Source) BalanceEntries(ctx context.Context, f staff.BalanceFilter) ([]staff.BalanceEntry, error) {
	q := s.read(ctx).Table("transfers t FORCE INDEX (transfers_app)").Joins("LEFT JOIN balance_movements m ON m.id = t.order_no").
		Select("t.id, t.created_at, t.kind, t.amount, t.available, t.packet_id, COALESCE(m.reference, '') AS reference").
		Where("t.app_id = ?", f.App)
	if f.Kind != "" {
		q = q.Where("t.kind = ?", string(f.Kind))
	}
	if f.AfterID != 0 {
		q = q.Where("t.id < ?", f.AfterID)
	}
	var rows []struct {
		ID                  int64
		CreatedAt           time.Time
		Kind                string
		Amount, Available   int64
		PacketID, Reference string
	}
	err := q.Order("t.id DESC").Limit(f.Limit).Scan(&rows).Error
	out := make([]staff.BalanceEntry, len(rows))
	for i, r := range rows {
		out[i] = staff.BalanceEntry{ID: r.ID, At: r.CreatedAt.UTC(), Kind: payout.TransferKind(r.Kind), Amount: money.Fen(r.Amount),
			Available: money.Fen(r.Available), PacketID: r.PacketID, Reference: r.Reference}
	}
	return out, mysql.Classify(err)
}
