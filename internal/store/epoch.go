package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"hongbao/internal/failpoint"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
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

func (r laneRow) row() packet.LaneRow {
	return packet.LaneRow{
		Lane: r.Lane, Epoch: r.Epoch, State: packet.LaneState(r.State), AckedSeq: r.Seen, AckedGrabs: r.SeenGrabs,
		Reason: packet.LaneReason(orEmpty(r.Reason)), ShutAt: orZero(r.ShutAt), Lost: r.Lost, RebuiltAt: orZero(r.RebuiltAt),
		Holder: orEmpty(r.Holder), LeaseUntil: orZero(r.LeaseUntil),
	}
}

// PoolLanes returns every lane that was ever in use, by number (rule R9).
// Errors: ErrUnavailable.
func (s *Store) PoolLanes(ctx context.Context) ([]packet.LaneRow, error) {
	var rows []laneRow
	if err := s.read(ctx).Raw("SELECT * FROM pool_lanes ORDER BY lane").Scan(&rows).Error; err != nil {
		return nil, classify(err)
	}
	lanes := make([]packet.LaneRow, len(rows))
	for i, r := range rows {
		lanes[i] = r.row()
	}
	return lanes, nil
}

// AddPoolLanes puts lanes into the books that are not there: with epoch, state and
// reason of the row, and as far as they were seen. Those that are there stay as they
// are. Errors: ErrUnavailable.
func (s *Store) AddPoolLanes(ctx context.Context, lanes []packet.LaneRow) error {
	if len(lanes) == 0 {
		return nil
	}
	return s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		var values []any
		for _, l := range lanes {
			var shutAt *time.Time
			if l.State != packet.LaneOpen {
				shutAt = &tx.now
			}
			values = append(values, l.Lane, l.Epoch, string(l.State), l.AckedSeq, l.AckedGrabs, optString(string(l.Reason)), shutAt, tx.now)
		}
		rows := strings.TrimSuffix(strings.Repeat("(?, ?, ?, ?, ?, ?, ?, ?), ", len(lanes)), ", ")
		return tx.Exec("INSERT IGNORE INTO pool_lanes (lane, epoch, state, seen, seen_grabs, reason, shut_at, updated_at) VALUES "+rows,
			values...).Error
	})
}

// OpenNewPoolLanes opens the gates of those lanes that were never open. A lane that was
// shut later is opened by its rebuild alone. Errors: ErrUnavailable.
func (s *Store) OpenNewPoolLanes(ctx context.Context, lanes []int) error {
	if len(lanes) == 0 {
		return nil
	}
	return s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		return tx.Exec("UPDATE pool_lanes SET state = ?, reason = NULL, shut_at = NULL, updated_at = ? WHERE lane IN ? AND state = ? AND "+
			"reason = ?",
			string(packet.LaneOpen), tx.now, lanes, string(packet.LaneShut), string(packet.LaneNew)).Error
	})
}

// ShutPoolLane shuts the gate of a lane that is open in that epoch. It reports
// whether it did: a lane that was shut before, or has another epoch by now, stays
// as it is, with its first reason. Errors: ErrUnavailable.
func (s *Store) ShutPoolLane(ctx context.Context, lane int, epoch int64, reason packet.LaneReason) (shut bool, err error) {
	err = s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		res := tx.Exec("UPDATE pool_lanes SET state = ?, reason = ?, shut_at = ?, updated_at = ? WHERE lane = ? AND epoch = ? AND state = ?",
			string(packet.LaneShut), string(reason), tx.now, tx.now, lane, epoch, string(packet.LaneOpen))
		shut = res.RowsAffected == 1
		return res.Error
	})
	return shut, err
}

// CompareLaneEpoch declares the books restored (rule R13) when a lane has an epoch in Redis,
// read before this call, that they have not come to: each one is begun here, and shown to
// Redis after that commit. A rebuild that has begun meanwhile is no proof. It reports
// whether the books are older; those that are known to be restored stay as they are.
// Errors: ErrUnavailable.
func (s *Store) CompareLaneEpoch(ctx context.Context, lane int, epoch int64) (older bool, err error) {
	err = s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		var row laneRow
		if err := tx.Raw("SELECT * FROM pool_lanes WHERE lane = ? FOR UPDATE", lane).Scan(&row).Error; err != nil {
			return err
		}
		if older = row.Epoch < epoch; !older {
			return nil
		}
		b, err := tx.lockBooks()
		if err != nil || b.State == payout.MySQLRestored {
			return err
		}
		b.State, b.Known, b.RestoredAt = payout.MySQLRestored, max(b.Heartbeat, s.highest.number.Load()), tx.now
		return tx.saveBooks(b)
	})
	return older, err
}

// RecoverPoolLane brings a lane of books that were restored up to what their recovery
// has found (rules R9 and R13): its epoch only rises, and so does how far it was seen
// within one. A lane of a later epoch, or of which the books only knew that they are
// older, becomes what l says; one that l says is shut is shut, unless it is already, or
// is being rebuilt in this epoch. Errors: ErrUnavailable.
func (s *Store) RecoverPoolLane(ctx context.Context, l packet.LaneRow) error {
	if err := s.AddPoolLanes(ctx, []packet.LaneRow{l}); err != nil {
		return err
	}
	return s.inTx(ctx, failpoint.RecoverLane, func(tx tx) error {
		var row laneRow
		if err := tx.Raw("SELECT * FROM pool_lanes WHERE lane = ? FOR UPDATE", l.Lane).Scan(&row).Error; err != nil {
			return err
		}
		to, moved := recoveredLane(row.row(), l)
		if !moved {
			return nil
		}
		var shutAt *time.Time
		if to.State != packet.LaneOpen {
			shutAt = &tx.now
		}
		return tx.Exec(`UPDATE pool_lanes SET epoch = ?, state = ?, seen = ?, seen_grabs = ?, reason = ?, shut_at = ?, holder = NULL,
			lease_until = NULL, updated_at = ?
			WHERE lane = ?`, to.Epoch, string(to.State), to.AckedSeq, to.AckedGrabs, optString(string(to.Reason)), shutAt, tx.now, l.Lane).Error
	})
}

// recoveredLane is what becomes of a lane that the books have, by what was found.
func recoveredLane(have, found packet.LaneRow) (packet.LaneRow, bool) {
	shuts := found.State == packet.LaneShut
	waits := have.State == packet.LaneShut && (have.Reason == packet.LaneMySQLOlder || have.Reason == packet.LaneNew && shuts)
	switch {
	case found.Epoch > have.Epoch:
		return found, true
	case found.Epoch < have.Epoch, !waits && (!shuts || have.State != packet.LaneOpen):
		return have, false
	}
	found.AckedSeq, found.AckedGrabs = max(found.AckedSeq, have.AckedSeq), max(found.AckedGrabs, have.AckedGrabs)
	return found, true
}

// RaiseSeenSeqs raises how far lanes were seen to have come. What is of another epoch
// than the lane's, or lower than what is known, changes nothing. One statement,
// whatever the number of lanes; each may be named once. Errors: ErrUnavailable.
func (s *Store) RaiseSeenSeqs(ctx context.Context, seen []packet.LanePosition) error {
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
		return tx.Exec(statement, append(append(append(seqs, grabs...), tx.now), ids...)...).Error
	})
}
