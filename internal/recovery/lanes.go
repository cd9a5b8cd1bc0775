package recovery

import (
	"context"
	"slices"

	"hongbao/internal/fence"
	"hongbao/internal/packet"
	"hongbao/internal/reconcile"
)

// restoreLanes brings the lanes in MySQL up to date with Redis (rule R13). If Redis has a later
// epoch, MySQL takes the lane from Redis, unless its pools lack something that MySQL has. Then
// the lane is fenced, and rebuilt once MySQL is normal.
func (r *Recovery) restoreLanes(ctx context.Context) error {
	rows, err := r.Store.PoolLanes(ctx)
	if err != nil {
		return err
	}
	known := map[int]fence.LaneRow{}
	for _, row := range rows {
		known[row.Lane] = row
	}
	lacking, err := r.lacking(ctx)
	if err != nil {
		return err
	}
	for lane := range r.Lanes {
		found, err := r.Pools.ReadEpoch(ctx, lane)
		if err != nil {
			return err
		}
		if err := r.restoreLane(ctx, known[lane], found, fence.Found(lane, known[lane], found, r.Rebuild, lacking[lane])); err != nil {
			return err
		}
	}
	return nil
}

func (r *Recovery) restoreLane(ctx context.Context, row fence.LaneRow, found fence.Epoch, l fence.LaneRow) error {
	if l.Epoch == 0 {
		if l.State == fence.LaneOpen {
			return nil // unknown to both and without packets: it is new
		}
		l.Epoch = 1
	}
	if l.State == fence.LaneShut && found.Number > 0 {
		if err := r.Pools.HaltFence(ctx, l.Lane, found.Number, l.Reason); err != nil {
			return err
		}
	}
	if found.Number > row.Epoch {
		r.updateReport(func(v *Report) { v.Raised++ })
	}
	if l.State == fence.LaneShut {
		r.updateReport(func(v *Report) { v.Shut++ })
	}
	return r.Store.RecoverPoolLane(ctx, l)
}

// lacking returns the lanes in which Redis lacks something that MySQL has. That is an unfinished
// packet, claims of one, with or without a share, or the end of one that can still be grabbed. MySQL is read first, so
// that nothing it returns can be newer than Redis.
func (r *Recovery) lacking(ctx context.Context) (map[int]bool, error) {
	lacking, seen := map[int]bool{}, map[string]bool{}
	books := map[string]bool{}
	if err := r.addUnfinished(ctx, books); err != nil {
		return nil, err
	}
	for lane := range r.Lanes {
		err := r.eachRemaining(ctx, lane, func(ids []string) error {
			lacks, err := r.lacks(ctx, ids)
			lacking[lane] = lacking[lane] || lacks
			for _, id := range ids {
				seen[id] = true
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	var gone []string
	for id := range books {
		if !seen[id] {
			gone = append(gone, id)
		}
	}
	for some := range slices.Chunk(gone, recoverPage) {
		views, err := r.Pools.ViewsUnfenced(ctx, some)
		if err != nil {
			return nil, err
		}
		for _, id := range some {
			if _, retired := views[id]; !retired { // a packet that is not live has ended
				lacking[packet.Lane(id, r.Lanes)] = true
			}
		}
	}
	return lacking, nil
}

// lacks reports whether the pool of one of these packets lacks what MySQL has. MySQL is read first.
func (r *Recovery) lacks(ctx context.Context, ids []string) (bool, error) {
	rows, err := r.Store.PacketStates(ctx, ids)
	if err != nil {
		return false, err
	}
	counts, users := make(map[string]reconcile.Counts, len(rows)), map[string][]string{}
	for id, row := range rows {
		if ended(row) {
			continue
		}
		of := reconcile.Counts{First: reconcile.RecordedFirst}
		of.Shares, of.Conflicts, err = r.Store.CountClaims(ctx, id)
		if err == nil && of.Conflicts > 0 {
			users[id], err = r.Store.ClaimUsers(ctx, id)
		}
		if err != nil {
			return false, err
		}
		counts[id] = of
	}
	views, err := r.Pools.ViewsUnfenced(ctx, ids)
	if err != nil {
		return false, err
	}
	for id, row := range rows {
		lacks, err := r.poolLacks(ctx, id, row, views, counts[id], users[id])
		if err != nil || lacks {
			return lacks, err
		}
	}
	return false, nil
}

func (r *Recovery) poolLacks(ctx context.Context, id string, row packet.RowState, views map[string]packet.PoolView,
	counts reconcile.Counts, users []string) (bool, error) {
	view, found := views[id]
	goesOn := view.State == packet.PoolOpening || view.State == packet.PoolOpen
	switch {
	case view.Retired, ended(row) && !goesOn:
		return false, nil
	case !found, ended(row):
		return true, nil
	}
	counts.Pool = view.ClaimedCount
	switch counts.Compare() {
	case reconcile.Lacks:
		return true, nil
	case reconcile.Agree:
		return false, nil
	}
	lacks, err := reconcile.Lacking(ctx, reconcile.Unfenced{Pools: r.Pools}, reconcile.Recovering, id, users)
	return len(lacks) > 0, err
}

func ended(row packet.RowState) bool {
	return row.Stored == packet.StatusClosed || row.Stored == packet.StatusRejected
}

// eachRemaining calls do with the packets of a lane in Redis, page by page.
func (r *Recovery) eachRemaining(ctx context.Context, lane int, do func(ids []string) error) error {
	return reconcile.LivePackets(r.Pools.LivePageUnfenced, lane, recoverPage).Each(ctx, func(live []packet.LivePacket) error {
		return do(reconcile.ValidIDs(live))
	})
}
