package store

import (
	"context"
	"fmt"
	"time"

	"hongbao/internal/failpoint"
	"hongbao/internal/fence"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/store/mysql"
)

type rebuildRow struct {
	ID         int64
	Lane       int
	FromEpoch  int64
	Epoch      int64
	Reason     string
	Holder     string
	Seen       int64
	SeenGrabs  int64
	Found      int64
	FoundGrabs int64
	Recorded   *int64
	Lost       *int64
	Packets    *int
	Unknown    *int
	StartedAt  time.Time
	EndedAt    *time.Time
}

func (rebuildRow) TableName() string { return "pool_rebuilds" }

func (r rebuildRow) rebuild() fence.Rebuild {
	b := fence.Rebuild{
		ID: r.ID, Lane: r.Lane, From: r.FromEpoch, Epoch: r.Epoch, Reason: fence.LaneReason(r.Reason), Holder: r.Holder,
		Acked:     fence.LanePosition{Lane: r.Lane, Epoch: r.FromEpoch, Seq: r.Seen, Grabs: r.SeenGrabs},
		Found:     fence.LanePosition{Lane: r.Lane, Epoch: r.FromEpoch, Seq: r.Found, Grabs: r.FoundGrabs},
		StartedAt: r.StartedAt.UTC(), EndedAt: mysql.OrZero(r.EndedAt),
	}
	if r.EndedAt != nil {
		b.Recorded, b.Lost = *r.Recorded, *r.Lost
		if r.Packets != nil && r.Unknown != nil {
			b.Packets, b.Unknown = *r.Packets, *r.Unknown
		}
	}
	return b
}

// BeginRebuild takes over a shut lane, or one whose rebuild's lease ended, until the lease ends. It
// starts the next epoch, so Redis refuses writes of an earlier rebuild. found is what Redis reports
// of the lane; found of an unfinished rebuild is kept. It reports whether the lane was taken: not
// when it is open, was never open, is of an older MySQL, or is leased by another holder.
// Errors: payout.ErrMySQLRestored, ErrUnavailable.
func (s *Store) BeginRebuild(ctx context.Context, lane int, holder string, lease time.Duration,
	found fence.LanePosition) (b fence.Rebuild,
	taken bool, err error) {
	err = s.inTx(ctx, failpoint.RebuildBegin, func(tx tx) error {
		taken = false
		if err := tx.allow(payout.ActionChangePool, holdNames{}); err != nil {
			return err
		}
		var row laneRow
		if err := tx.Raw("SELECT * FROM pool_lanes WHERE lane = ? FOR UPDATE", lane).Scan(&row).Error; err != nil || row.Epoch == 0 {
			return err
		}
		l := row.row()
		began := rebuildRow{Lane: lane, FromEpoch: l.Epoch, Reason: string(l.Reason), Seen: l.AckedSeq, SeenGrabs: l.AckedGrabs,
			StartedAt: tx.now}
		if found.Epoch == l.Epoch {
			began.Found, began.FoundGrabs = found.Seq, found.Grabs
		}
		if !l.MayTake(holder, tx.now, lease) {
			return nil
		}
		if l.State == fence.LaneRebuilding {
			err := tx.Where("lane = ? AND epoch = ? AND ended_at IS NULL", lane, l.Epoch).Limit(1).Find(&began).Error
			if err != nil {
				return err
			}
		}
		began.Epoch, began.Holder = l.Epoch+1, holder
		if began.ID == 0 {
			err = tx.Create(&began).Error
		} else {
			// raw: compares ended_at
			err = tx.Exec("UPDATE pool_rebuilds SET epoch = ?, holder = ? WHERE id = ? AND ended_at IS NULL", began.Epoch, holder, began.ID).Error
		}
		if err != nil {
			return err
		}
		b, taken = began.rebuild(), true
		return tx.Model(&laneRow{}).Where("lane = ?", lane).Updates(map[string]any{"state": string(fence.LaneRebuilding),
			"epoch": began.Epoch, "seen": 0, "seen_grabs": 0, "holder": holder, "lease_until": tx.now.Add(lease), "updated_at": tx.now}).Error
	})
	return b, taken, err
}

// ExtendRebuildLease extends the lease of a rebuild. Errors: ErrMoved when another holder has taken
// it over, ErrUnavailable.
func (s *Store) ExtendRebuildLease(ctx context.Context, b fence.Rebuild, lease time.Duration) error {
	return s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		return tx.moveLane(b, "lease_until = ?", tx.now.Add(lease))
	})
}

// EndRebuild opens the fence of a rebuilt lane in MySQL and stores the rebuild's result. Possibly
// lost grabs become a break. Redis must be open already, with at least fence.RebuiltSeq: readers of
// the row continue at once. Errors: ErrMoved when another holder has taken it over,
// payout.ErrMySQLRestored when it was rebuilt from a restored MySQL, ErrUnavailable.
func (s *Store) EndRebuild(ctx context.Context, b fence.Rebuild) error {
	return s.inTx(ctx, failpoint.RebuildEnd, func(tx tx) error {
		if err := tx.allow(payout.ActionChangePool, holdNames{}); err != nil {
			return err
		}
		err := tx.moveLane(b, "state = ?, reason = NULL, shut_at = NULL, holder = NULL, lease_until = NULL, lost = ?, rebuilt_at = ?, seen = "+
			"GREATEST(seen, ?)",
			string(fence.LaneOpen), b.Lost, tx.now, fence.RebuiltSeq)
		if err != nil {
			return err
		}
		err = tx.Exec("UPDATE pool_rebuilds SET recorded = ?, lost = ?, packets = ?, unknown = ?, ended_at = ? WHERE id = ? AND ended_at IS NULL",
			b.Recorded, b.Lost, b.Packets, b.Unknown, tx.now, b.ID).Error
		if err != nil || b.Lost == 0 {
			return err
		}
		return tx.addBreak("", fmt.Sprintf("lane/%d", b.Lane), payout.Break{Kind: payout.BreakPoolLost, OrderNo: fmt.Sprintf("epoch/%d", b.From),
			Detail: fmt.Sprintf("Redis lost lane %d (%s): up to %d acknowledged grabs are lost and cannot be paid", b.Lane, b.Reason,
				b.Lost)})
	})
}

// moveLane updates the row of a lane that the rebuild still holds.
func (tx tx) moveLane(b fence.Rebuild, set string, values ...any) error {
	args := append(values, tx.now, b.Lane, b.Epoch, string(fence.LaneRebuilding), b.Holder)
	// raw: compares epoch, state and holder
	res := tx.Exec("UPDATE pool_lanes SET "+set+", updated_at = ? WHERE lane = ? AND epoch = ? AND state = ? AND holder = ?", args...)
	if res.Error == nil && res.RowsAffected != 1 {
		return fmt.Errorf("rebuild of lane %d in epoch %d: %w", b.Lane, b.Epoch, ErrMoved)
	}
	return res.Error
}

// Rebuilds lists the last rebuilds, newest first. Errors: ErrUnavailable.
func (s *Store) Rebuilds(ctx context.Context, limit int) ([]fence.Rebuild, error) {
	var rows []rebuildRow
	err := s.read(ctx).Order("id DESC").Limit(limit).Find(&rows).Error
	out := make([]fence.Rebuild, len(rows))
	for i, r := range rows {
		out[i] = r.rebuild()
	}
	return out, mysql.Classify(err)
}

// laneOpen returns ErrUnavailable while the fence of a packet's lane is not open (rule R9): Redis
// may lack acknowledged claims. A lane without a row was never used.
func (tx tx) laneOpen(packetID string, lanes int) error {
	if lanes == 0 {
		return nil
	}
	var state string
	err := tx.Model(&laneRow{}).Select("state").Where("lane = ?", packet.Lane(packetID, lanes)).Scan(&state).Error
	if err != nil {
		return err
	}
	if state != "" && state != string(fence.LaneOpen) {
		return fmt.Errorf("packet %s: its lane is %s: %w", packetID, state, ErrUnavailable)
	}
	return nil
}
