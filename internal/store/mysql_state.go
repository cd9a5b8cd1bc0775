package store

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"hongbao/internal/failpoint"
	"hongbao/internal/payout"
	"hongbao/internal/store/mysql"
)

// highestHeartbeat is the highest heartbeat number that this process has seen (rule R13).
type highestHeartbeat struct {
	// number was seen in MySQL or in Redis. A MySQL below it was restored from a backup.
	number atomic.Int64
	// uncompared: no comparison was made yet. Everything that needs one is refused.
	uncompared atomic.Bool
}

func (s *highestHeartbeat) raise(n int64) {
	for {
		have := s.number.Load()
		if n <= have || s.number.CompareAndSwap(have, n) {
			return
		}
	}
}

func (tx tx) saveMySQLState(b payout.MySQLState) error {
	return tx.Model(&mysql.StateRow{}).Where("id = 1").Updates(map[string]any{"number": b.Heartbeat, "state": string(b.State),
		"beat_at": b.HeartbeatAt, "known": b.Known, "restored_at": mysql.OptTime(b.RestoredAt),
		"recovered_at": mysql.OptTime(b.RecoveredAt)}).Error
}

// lockMySQLState locks the single row.
func (tx tx) lockMySQLState() (payout.MySQLState, error) {
	var row mysql.StateRow
	err := tx.Raw("SELECT * FROM books WHERE id = 1 FOR UPDATE").Scan(&row).Error
	return row.AsState(), err
}

// MySQLState reads the heartbeat and recovery state of MySQL (rule R13). It changes nothing. Errors:
// ErrUnavailable.
func (s *Store) MySQLState(ctx context.Context) (payout.MySQLState, error) {
	var row mysql.StateRow
	err := s.read(ctx).Where("id = 1").Limit(1).Find(&row).Error
	return row.AsState(), mysql.Classify(err)
}

// CheckNotRestored returns nil while MySQL's state is normal. Errors: payout.ErrMySQLRestored,
// ErrUnavailable.
func (s *Store) CheckNotRestored(ctx context.Context) error {
	// The time does not matter here.
	return mysql.Classify(tx{DB: s.read(ctx), highest: s.highest}.allow(payout.ActionMaintain, holdNames{}))
}

// CompareHeartbeat compares MySQL's heartbeat number with known and with the highest one that this
// process has seen. known is the number in Redis, read before this call. A lower number marks MySQL
// as restored, for every process. Errors: ErrUnavailable.
func (s *Store) CompareHeartbeat(ctx context.Context, known int64) (payout.MySQLState, error) {
	return s.compareHeartbeat(ctx, known, false)
}

// AdvanceHeartbeat does what CompareHeartbeat does and raises the number by one while the state is
// normal.
func (s *Store) AdvanceHeartbeat(ctx context.Context, known int64) (payout.MySQLState, error) {
	return s.compareHeartbeat(ctx, known, true)
}

func (s *Store) compareHeartbeat(ctx context.Context, known int64, rise bool) (payout.MySQLState, error) {
	var out payout.MySQLState
	err := s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		seen := max(known, s.highest.number.Load()) // read before the row, which was at least this
		before, err := tx.lockMySQLState()
		if err != nil {
			return err
		}
		if out = before.CheckRestored(seen, rise, tx.now); out == before {
			return nil
		}
		if payout.TooFarAhead(before.HeartbeatAt, tx.now) && out.HeartbeatAt != before.HeartbeatAt {
			by := before.HeartbeatAt.Sub(tx.now)
			slog.WarnContext(ctx, "MySQL's clock was set back; times stored while it was ahead count as now.", slog.Duration("by", by))
			if err := tx.noteRepair(payout.ClockSetBack, "books"); err != nil {
				return err
			}
			if err := tx.setKeysBack(by); err != nil {
				return err
			}
		}
		return tx.saveMySQLState(out)
	})
	if err != nil {
		return out, err
	}
	s.highest.raise(max(known, out.Heartbeat))
	s.highest.uncompared.Store(false)
	return out, nil
}

// compareRow compares a row with seen, the highest number known before the row was read.
func (tx tx) compareRow(row mysql.StateRow, seen int64) (payout.MySQLState, error) {
	if tx.highest != nil && tx.highest.uncompared.Load() {
		return payout.MySQLState{}, fmt.Errorf("%w: MySQL was not compared with Redis yet, wait for the first heartbeat", ErrUnavailable)
	}
	return row.AsState().CheckRestored(seen, false, tx.now), nil
}

func (tx tx) seen() int64 {
	if tx.highest == nil {
		return 0
	}
	return tx.highest.number.Load()
}
