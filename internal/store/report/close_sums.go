package report

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"gorm.io/gorm"

	"hongbao/internal/failpoint"
	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

const (
	// sumsInterval is the largest distance of stored ledger sums while transfers are posted: a
	// balance adds up the transfers since the last sums.
	sumsInterval = 10 * time.Minute
	// sumWindow is the time span that one statement adds up.
	sumWindow = time.Minute
)

// ledgerBegin is before every transfer and valid for MySQL's comparison.
var ledgerBegin = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

type sumsRow struct {
	ClosedTo  time.Time
	Totals    []byte
	CreatedAt time.Time
}

func (sumsRow) TableName() string { return "ledger_closes" }

func (r sumsRow) totals() (staff.Totals, error) {
	var t staff.Totals
	if err := json.Unmarshal(r.Totals, &t); err != nil {
		return nil, fmt.Errorf("decode ledger sums at %s: %w", r.ClosedTo.UTC().Format(time.RFC3339), err)
	}
	return t, nil
}

// LedgerSumsAt adds up all transfers made before a moment, starting from the last stored sums. Sums
// of the last minutes may still change (staff.LedgerSettled). Errors: ErrUnavailable.
func (s *Source) LedgerSumsAt(ctx context.Context, at time.Time) (staff.Totals, error) {
	totals, from, err := s.latestSums(ctx, at)
	if err != nil {
		return nil, err
	}
	since, err := s.sumBetween(ctx, from, at)
	return totals.Plus(since), err
}

// latestSums returns the last stored sums at or before a moment; without any, zero sums at
// ledgerBegin.
func (s *Source) latestSums(ctx context.Context, at time.Time) (staff.Totals, time.Time, error) {
	var row sumsRow
	err := s.read(ctx).Select("closed_to", "totals").Where("closed_to <= ?", at.UTC()).Order("closed_to DESC").Limit(1).Find(&row).Error
	if err != nil || row.Totals == nil {
		return staff.Totals{}, ledgerBegin, mysql.Classify(err)
	}
	totals, err := row.totals()
	return totals, row.ClosedTo.UTC(), err
}

// nextTransfer returns the time of the first transfer in [from, to); zero without one.
func (s *Source) nextTransfer(ctx context.Context, from, to time.Time) (time.Time, error) {
	var at *time.Time
	err := s.read(ctx).Raw(`SELECT created_at FROM transfers FORCE INDEX (transfers_created) WHERE created_at >= ? AND created_at < ?
		ORDER BY created_at, id LIMIT 1`, from.UTC(), to.UTC()).Scan(&at).Error
	return mysql.OrZero(at), mysql.Classify(err)
}

const sumTransfersByApp = `SELECT COALESCE(k.app_id, t.app_id, '') AS app, t.kind, SUBSTRING(t.order_no, 1, 1) AS payment,
	COALESCE(t.provider, '') AS at, COUNT(*) AS n, SUM(t.amount) AS sum
	FROM transfers t FORCE INDEX (transfers_created) LEFT JOIN packets k ON k.id = t.packet_id
	WHERE t.created_at >= ? AND t.created_at < ? GROUP BY app, t.kind, payment, at`

// sumBetween adds up the transfers in [from, to), one sumWindow a statement. Spans without transfers
// are skipped.
func (s *Source) sumBetween(ctx context.Context, from, to time.Time) (staff.Totals, error) {
	out := staff.Totals{}
	for {
		first, err := s.nextTransfer(ctx, from, to)
		if err != nil || first.IsZero() {
			return out, err
		}
		end := first.Add(sumWindow)
		if to.Before(end) {
			end = to
		}
		var rows []struct {
			App, Kind, Payment, At string
			N, Sum                 int64
		}
		if err := s.read(ctx).Raw(sumTransfersByApp, first.UTC(), end.UTC()).Scan(&rows).Error; err != nil {
			return out, mysql.Classify(err)
		}
		for _, r := range rows {
			key := staff.TotalsKey{App: r.App, Kind: payout.TransferKind(r.Kind), Payment: payout.Kind(r.Payment[0]), Provider: r.At}
			out[key] = out[key].Plus(staff.Sum{Count: r.N, Amount: money.Fen(r.Sum)})
		}
		from = end
	}
}

// SaveLedgerSums stores the ledger's sums at the next settled moment that needs them: ten minutes
// after a transfer, and at the end of every day in zone. It returns false when there is none yet.
// Concurrent processes compute the same sums; the first ones stay. Errors: ErrUnavailable.
func (s *Source) SaveLedgerSums(ctx context.Context, zone *time.Location) (bool, error) {
	now, err := s.db.Clock(ctx)
	if err != nil {
		return false, err
	}
	settled := now.Add(-staff.LedgerSettled)
	if err := s.deleteFutureSums(ctx, settled); err != nil {
		return false, err
	}
	totals, from, err := s.latestSums(ctx, settled)
	if err != nil {
		return false, err
	}
	first, err := s.nextTransfer(ctx, from, settled)
	if err != nil || first.IsZero() && from.Equal(ledgerBegin) {
		return false, err
	}
	if from.Equal(ledgerBegin) {
		from = first
	}
	_, next := payout.DayOf(from, zone).Span(zone)
	if !first.IsZero() {
		if soon := first.Truncate(sumsInterval).Add(sumsInterval); soon.Before(next) {
			next = soon
		}
	}
	if next.After(settled) {
		return false, nil
	}
	since, err := s.sumBetween(ctx, from, next)
	if err != nil {
		return false, err
	}
	text, err := json.Marshal(totals.Plus(since))
	if err != nil {
		return false, fmt.Errorf("encode ledger sums: %w", err)
	}
	err = s.db.Transact(ctx, failpoint.Administration, func(db *gorm.DB, now time.Time) error {
		return db.Create(&sumsRow{ClosedTo: next.UTC(), Totals: text, CreatedAt: now}).Error
	})
	if mysql.Duplicate(err) {
		err = nil
	}
	return err == nil, err
}

// deleteFutureSums deletes sums of unsettled moments: MySQL's clock was ahead when they were stored
// and was set back since. New transfers may belong before them and would be missing in all later
// sums. Sums of a final day stay.
func (s *Source) deleteFutureSums(ctx context.Context, settled time.Time) error {
	const ahead = "closed_to > ? AND final_at IS NULL"
	var n int64
	if err := s.read(ctx).Model(&sumsRow{}).Where(ahead, settled.UTC()).Count(&n).Error; err != nil || n == 0 {
		return mysql.Classify(err)
	}
	slog.WarnContext(ctx, "Ledger sums are from the future: MySQL's clock was set back. They are computed again.",
		slog.Int64("sums", n))
	return s.db.Transact(ctx, failpoint.Administration, func(db *gorm.DB, _ time.Time) error {
		return db.Where(ahead, settled.UTC()).Delete(&sumsRow{}).Error
	})
}
