package store

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/store/mysql"
)

// What a rebuild reads to recreate a lane's pools (rule R9): pages of one lane in index order.

// idsOfLane selects packets of a lane by the first two characters of their ids.
const idsOfLane = "SUBSTRING(id, 1, 2) IN ?"

// restoredAtOnce is the number of packets whose claims are read at once.
const restoredAtOnce = 8

// PoolsOfLane lists packets of a lane in one stored status that have a pool, oldest first, after a
// place (creation time and id). Claimed sums are filled in. Errors: ErrUnavailable.
func (s *Store) PoolsOfLane(ctx context.Context, lane, lanes int, status packet.Status, after packet.Cursor,
	limit int) ([]packet.RebuildInput,
	error) {
	rows, err := s.laneRows(ctx, "*", lane, lanes, status, after, limit)
	if err != nil {
		return nil, err
	}
	out := make([]packet.RebuildInput, len(rows))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(restoredAtOnce)
	for i, r := range rows {
		group.Go(func() (err error) {
			out[i], err = s.restored(ctx, r)
			return err
		})
	}
	return out, group.Wait()
}

func (s *Store) laneRows(ctx context.Context, columns string, lane, lanes int, status packet.Status, after packet.Cursor,
	limit int) ([]mysql.PacketRow, error) {
	var rows []mysql.PacketRow
	err := s.read(ctx).Raw("SELECT "+columns+" FROM packets FORCE INDEX (packets_any_status) WHERE status = ? AND created_at >= ? AND "+
		"(created_at > ? OR id > ?) AND "+idsOfLane+
		" ORDER BY created_at, id LIMIT ?", string(status), orEarliest(after.At), orEarliest(after.At), after.ID,
		packet.LanePrefixes(lane, lanes),
		limit).Scan(&rows).Error
	return rows, mysql.Classify(err)
}

// PoolOf reads one packet like PoolsOfLane; found is false when it has no pool. Errors:
// ErrUnavailable.
func (s *Store) PoolOf(ctx context.Context, id string) (r packet.RebuildInput, found bool, err error) {
	var rows []mysql.PacketRow
	err = s.read(ctx).Where("id = ? AND status IN ('funding', 'open', 'closing')", id).Find(&rows).Error
	if err != nil || len(rows) == 0 {
		return r, false, mysql.Classify(err)
	}
	r, err = s.restored(ctx, rows[0])
	return r, err == nil, err
}

func (s *Store) restored(ctx context.Context, row mysql.PacketRow) (packet.RebuildInput, error) {
	rec, err := row.Record()
	r := packet.RebuildInput{Record: rec}
	if err != nil {
		return r, err
	}
	var claimed struct {
		N    int
		Sum  int64
		Last *time.Time
	}
	// Shares after the last claimed one are free and need not be read.
	err = s.read(ctx).Raw(`SELECT COUNT(*) AS n, COALESCE(SUM(amount), 0) AS sum, MAX(claimed_at) AS last FROM shares
		WHERE packet_id = ? AND share_index <= (SELECT MAX(share_index) FROM claims WHERE packet_id = ? AND kind = 'share')
		AND user_id IS NOT NULL`, r.ID, r.ID).Scan(&claimed).Error
	if err != nil {
		return r, mysql.Classify(err)
	}
	r.ClaimedCount, r.ClaimedAmount, r.LastClaimedAt, r.BestShare = claimed.N, money.Fen(claimed.Sum), mysql.OrZero(claimed.Last), nil
	if claimed.N > 0 {
		if r.BestShare, err = bestShare(s.read(ctx), r.ID); err != nil || r.BestShare == nil {
			return r, mysql.Classify(err)
		}
		var amount int64
		if err := s.read(ctx).Model(&shareRow{}).Where("packet_id = ? AND share_index = ?", r.ID, *r.BestShare).
			Pluck("amount", &amount).Error; err != nil {
			return r, mysql.Classify(err)
		}
		r.BestAmount = money.Fen(amount)
	}
	if r.ShareConflicts, err = s.conflictClaims(ctx, r.ID); err != nil {
		return r, err
	}
	if held, err := s.heldByRecovery(ctx, r.ID); err != nil || !held || r.Stored != packet.StatusOpen {
		return r, err
	}
	r.Stored, r.Reason = packet.StatusClosing, packet.CloseRecalled
	return r, nil
}

// conflictClaims returns the share conflicts of users without a share of the packet. A share counts
// before a conflict, as in every list.
func (s *Store) conflictClaims(ctx context.Context, packetID string) ([]packet.Claim, error) {
	var rows []mysql.ClaimRow
	// raw: subquery
	err := s.read(ctx).Raw("SELECT * FROM claims c WHERE c.packet_id = ? AND c.kind = 'conflict' AND"+mysql.ShownClaim,
		packetID).Scan(&rows).Error
	var out []packet.Claim
	for _, r := range rows {
		out = append(out, r.Claim())
	}
	return out, mysql.Classify(err)
}

// SharesAfter lists shares of a packet after an index, in order, claimed or not. Errors:
// ErrUnavailable.
func (s *Store) SharesAfter(ctx context.Context, packetID string, index, limit int) ([]packet.Share, error) {
	var rows []struct {
		Place int
		Size  int64
		Claim mysql.ClaimRow `gorm:"embedded"`
	}
	err := s.read(ctx).Raw(`SELECT s.share_index AS place, s.amount AS size, c.* FROM shares s
		LEFT JOIN claims c ON c.packet_id = s.packet_id AND c.kind = 'share' AND c.user_id = s.user_id
		WHERE s.packet_id = ? AND s.share_index > ? ORDER BY s.share_index LIMIT ?`, packetID, index, limit).Scan(&rows).Error
	out := make([]packet.Share, len(rows))
	for i, r := range rows {
		out[i] = packet.Share{Index: r.Place, Amount: money.Fen(r.Size)}
		if r.Claim.PacketID != "" {
			claim := r.Claim.Claim()
			out[i].Claim = &claim
		}
	}
	return out, mysql.Classify(err)
}

// TombstonesOfLane lists the tombstones of a lane's packets that were closed or rejected after
// ended, oldest first, after a place. A packet created more than two months before its end may be
// missing: its row answers a late repeat of the create request. Errors: ErrUnavailable.
func (s *Store) TombstonesOfLane(ctx context.Context, lane, lanes int, status packet.Status, ended time.Time, life time.Duration,
	after packet.Cursor, limit int) (stones []packet.Tombstone, last packet.Cursor, err error) {
	states := map[packet.Status]packet.PoolState{packet.StatusClosed: packet.PoolClosed, packet.StatusRejected: packet.PoolRejected}
	state, ok := states[status]
	if !ok {
		return nil, last, fmt.Errorf("list tombstones: a packet in status %s has none", status)
	}
	if after.At.IsZero() {
		after.At = ended.Add(-60 * 24 * time.Hour)
	}
	rows, err := s.laneRows(ctx, "id, app_id, body_hash, first_status, first_request_id, created_at, closed_at, updated_at", lane, lanes,
		status, after, limit)
	for _, r := range rows {
		last = r.Place()
		at := r.UpdatedAt
		if r.ClosedAt != nil {
			at = *r.ClosedAt
		}
		if at.Before(ended) {
			continue
		}
		t := packet.Tombstone{ID: r.ID, App: r.AppID, BodyHash: r.BodyHash, State: state, Until: at.Add(life).UTC()}
		if r.FirstStatus != nil {
			t.First = &packet.FirstAnswer{HTTPStatus: *r.FirstStatus, RequestID: mysql.OrEmpty(r.FirstRequestID)}
		}
		stones = append(stones, t)
	}
	return stones, last, err
}

// countPage is how many claims one statement of CountClaimsAfterSeq reads, larger packets apart:
// some hundredths of a second.
const countPage = 50_000

// CountClaimsAfterSeq counts the claims of a lane won in an epoch after a seq. It reads every claim
// of the lane, in pages of whole packets. Errors: ErrUnavailable.
func (s *Store) CountClaimsAfterSeq(ctx context.Context, lane, lanes int, epoch, seq int64) (int64, error) {
	var n int64
	for _, prefix := range packet.LanePrefixes(lane, lanes) {
		end := prefix + "~"
		for from := prefix; from != end; {
			next, err := s.nextClaimsPage(ctx, from, end)
			if err != nil {
				return 0, err
			}
			var some int64
			err = s.read(ctx).Model(&mysql.ClaimRow{}).
				Where("packet_id >= ? AND packet_id < ? AND kind = ? AND epoch = ? AND seq > ?", from, next, mysql.ClaimOfShare, epoch, seq).
				Count(&some).Error
			if err != nil {
				return 0, mysql.Classify(err)
			}
			from, n = next, n+some
		}
	}
	return n, nil
}

// nextClaimsPage returns the packet id with which the next page begins, or end.
func (s *Store) nextClaimsPage(ctx context.Context, from, end string) (string, error) {
	for _, page := range []struct {
		after  string
		offset int
	}{{">=", countPage}, {">", 0}} { // second try: one packet has more claims than a page
		var ids []string
		err := s.read(ctx).Model(&mysql.ClaimRow{}).Where("packet_id "+page.after+" ? AND packet_id < ? AND kind = ?", from, end,
			mysql.ClaimOfShare).
			Order("packet_id").
			Limit(1).Offset(page.offset).Pluck("packet_id", &ids).Error
		switch {
		case err != nil:
			return "", mysql.Classify(err)
		case len(ids) == 0:
			return end, nil
		case ids[0] > from:
			return ids[0], nil
		}
	}
	return end, nil
}
