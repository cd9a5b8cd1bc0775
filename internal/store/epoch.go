package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"hongbao/internal/failpoint"
	"hongbao/internal/fence"
	"hongbao/internal/payout"
	"hongbao/internal/store/mysql"
)

type laneRow struct {
	Lane       int
	Epoch      int64
	State      string
	Seen       int64
	SeenGrabs  int64
	Reason     *string
	ShutAt     *time.Time
	Lost       int64
	RebuiltAt  *time.Time
	Holder     *string
	LeaseUntil *time.Time
}

func (laneRow) TableName() string { return "pool_lanes" }

func (r laneRow) row() fence.LaneRow {
	return fence.LaneRow{
		Lane: r.Lane, Epoch: r.Epoch, State: fence.LaneState(r.State), AckedSeq: r.Seen, AckedGrabs: r.SeenGrabs,
		Reason: fence.LaneReason(mysql.OrEmpty(r.Reason)), ShutAt: mysql.OrZero(r.ShutAt), Lost: r.Lost, RebuiltAt: mysql.OrZero(r.RebuiltAt),
		Holder: mysql.OrEmpty(r.Holder), LeaseUntil: mysql.OrZero(r.LeaseUntil),
	}
}

// PoolLanes returns every lane that was ever used, by lane (rule R9). Errors: ErrUnavailable.
func (s *Store) PoolLanes(ctx context.Context) ([]fence.LaneRow, error) {
	var rows []laneRow
	if err := s.read(ctx).Order("lane").Find(&rows).Error; err != nil {
		return nil, mysql.Classify(err)
	}
	lanes := make([]fence.LaneRow, len(rows))
	for i, r := range rows {
		lanes[i] = r.row()
	}
	return lanes, nil
}

// AddPoolLanes inserts missing lanes with epoch, state, reason and seen positions. Existing lanes
// stay as they are. Errors: ErrUnavailable.
func (s *Store) AddPoolLanes(ctx context.Context, lanes []fence.LaneRow) error {
	if len(lanes) == 0 {
		return nil
	}
	return s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		var values []any
		for _, l := range lanes {
			var shutAt *time.Time
			if l.State != fence.LaneOpen {
				shutAt = &tx.now
			}
			values = append(values, l.Lane, l.Epoch, string(l.State), l.AckedSeq, l.AckedGrabs, mysql.OptString(string(l.Reason)), shutAt, tx.now)
		}
		rows := strings.TrimSuffix(strings.Repeat("(?, ?, ?, ?, ?, ?, ?, ?), ", len(lanes)), ", ")
		return tx.Exec("INSERT IGNORE INTO pool_lanes (lane, epoch, state, seen, seen_grabs, reason, shut_at, updated_at) VALUES "+rows,
			values...).Error
	})
}

// OpenNewPoolLanes opens the fences of lanes that were never open. A lane shut later is opened by
// its rebuild only. Errors: ErrUnavailable.
func (s *Store) OpenNewPoolLanes(ctx context.Context, lanes []int) error {
	if len(lanes) == 0 {
		return nil
	}
	return s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		return tx.Exec("UPDATE pool_lanes SET state = ?, reason = NULL, shut_at = NULL, updated_at = ? WHERE lane IN ? AND state = ? AND "+
			"reason = ?",
			string(fence.LaneOpen), tx.now, lanes, string(fence.LaneShut), string(fence.LaneNew)).Error
	})
}

// ShutPoolLane shuts the fence of a lane that is open in that epoch, and reports whether it did. A
// lane that is shut or has another epoch keeps its state and reason. Errors: ErrUnavailable.
func (s *Store) ShutPoolLane(ctx context.Context, lane int, epoch int64, reason fence.LaneReason) (shut bool, err error) {
	err = s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		res := tx.Exec("UPDATE pool_lanes SET state = ?, reason = ?, shut_at = ?, updated_at = ? WHERE lane = ? AND epoch = ? AND state = ?",
			string(fence.LaneShut), string(reason), tx.now, tx.now, lane, epoch, string(fence.LaneOpen))
		shut = res.RowsAffected == 1
		return res.Error
	})
	return shut, err
}

// CompareLaneEpoch marks MySQL as restored when the lane's epoch in Redis, read before
// this call, is above MySQL's: an epoch is committed here before Redis gets it. The lane row is
// locked, so a rebuild that began since is not mistaken for one. It reports whether MySQL is older.
// An existing mark stays unchanged. Errors: ErrUnavailable.
func (s *Store) CompareLaneEpoch(ctx context.Context, lane int, epoch int64) (older bool, err error) {
	err = s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		var row laneRow
		if err := tx.Raw("SELECT * FROM pool_lanes WHERE lane = ? FOR UPDATE", lane).Scan(&row).Error; err != nil {
			return err
		}
		if older = row.Epoch < epoch; !older {
			return nil
		}
		b, err := tx.lockMySQLState()
		if err != nil || b.State == payout.MySQLRestored {
			return err
		}
		b.State, b.Known, b.RestoredAt = payout.MySQLRestored, max(b.Heartbeat, s.highest.number.Load()), tx.now
		return tx.saveMySQLState(b)
	})
	return older, err
}

// RecoverPoolLane raises a lane of a restored MySQL to what the recovery found (rule R9).
// Epoch, and the seen positions within an epoch, only rise. A lane of a later epoch, or one shut
// only because MySQL is older, becomes what l says. A lane that l reports as shut is shut, unless it
// is shut or rebuilding in this epoch. Errors: ErrUnavailable.
func (s *Store) RecoverPoolLane(ctx context.Context, l fence.LaneRow) error {
	if err := s.AddPoolLanes(ctx, []fence.LaneRow{l}); err != nil {
		return err
	}
	return s.inTx(ctx, failpoint.RecoverLane, func(tx tx) error {
		var row laneRow
		if err := tx.Raw("SELECT * FROM pool_lanes WHERE lane = ? FOR UPDATE", l.Lane).Scan(&row).Error; err != nil {
			return err
		}
		to, moved := fence.Recovered(row.row(), l)
		if !moved {
			return nil
		}
		var shutAt *time.Time
		if to.State != fence.LaneOpen {
			shutAt = &tx.now
		}
		return tx.Model(&laneRow{}).Where("lane = ?", l.Lane).Updates(map[string]any{"epoch": to.Epoch, "state": string(to.State),
			"seen": to.AckedSeq, "seen_grabs": to.AckedGrabs, "reason": mysql.OptString(string(to.Reason)), "shut_at": shutAt, "holder": nil,
			"lease_until": nil, "updated_at": tx.now}).Error
	})
}

// RaiseSeenSeqs raises the highest seen positions of lanes in one statement. Entries of another
// epoch or with lower values change nothing. Each lane may occur once. Errors: ErrUnavailable.
func (s *Store) RaiseSeenSeqs(ctx context.Context, seen []fence.LanePosition) error {
	if len(seen) == 0 {
		return nil
	}
	var seqs, grabs, ids []any
	for _, l := range seen {
		seqs, grabs, ids = append(seqs, l.Lane, l.Seq), append(grabs, l.Lane, l.Grabs), append(ids, l.Lane, l.Epoch)
	}
	cases := strings.Repeat("WHEN ? THEN ? ", len(seen))
	pairs := strings.TrimSuffix(strings.Repeat("(?, ?), ", len(seen)), ", ")
	statement := fmt.Sprintf(`UPDATE pool_lanes SET seen = GREATEST(seen, CASE lane %sEND), seen_grabs = GREATEST(seen_grabs, CASE lane %sEND),
		updated_at = ?
		WHERE (lane, epoch) IN (%s)`, cases, cases, pairs)
	return s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		// raw: different values in one statement
		return tx.Exec(statement, append(append(append(seqs, grabs...), tx.now), ids...)...).Error
	})
}
