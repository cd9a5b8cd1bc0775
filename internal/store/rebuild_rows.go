package store

import (
	"context"
	"fmt"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/store/mysql"
)

// What a rebuild reads to recreate a lane's pools (rule R9): pages of one lane in index order.

// idsOfLane selects packets of a lane by the first two characters of their ids.
const idsOfLane = "SUBSTRING(id, 1, 2) IN ?"

// PoolsOfLane lists packets of a lane in one stored status that have a pool, oldest first, after a
// place (creation time and id). Errors: ErrUnavailable.
func (s *Store) PoolsOfLane(ctx context.Context, lane, lanes int, status packet.Status, after packet.Cursor,
	limit int) ([]packet.RebuildInput, error) {
	rows, err := s.laneRows(ctx, "*", lane, lanes, status, after, limit)
	if err != nil {
		return nil, err
	}
	return s.rebuildInputs(ctx, rows)
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
	if err := s.read(ctx).Where("id = ? AND status IN ('funding', 'open', 'closing')", id).Find(&rows).Error; err != nil {
		return r, false, mysql.Classify(err)
	}
	inputs, err := s.rebuildInputs(ctx, rows)
	if err != nil || len(inputs) == 0 {
		return r, false, err
	}
	return inputs[0], true, nil
}

// rebuildInputs adds to rows of packets, a page, what their pools need besides the shares.
func (s *Store) rebuildInputs(ctx context.Context, rows []mysql.PacketRow) ([]packet.RebuildInput, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	claimed, err := s.claimedShares(ctx, ids)
	if err != nil {
		return nil, err
	}
	conflicts, err := s.conflictClaims(ctx, ids)
	if err != nil {
		return nil, err
	}
	held, err := s.heldByRecovery(ctx, ids)
	if err != nil {
		return nil, err
	}
	out := make([]packet.RebuildInput, len(rows))
	for i, row := range rows {
		rec, err := row.Record()
		if err != nil {
			return nil, err
		}
		rec.Counts, rec.BestShare = packet.Counts{ClaimedCount: claimed[row.ID]}, nil
		if held[row.ID] && rec.Stored == packet.StatusOpen {
			rec.Stored, rec.Reason = packet.StatusClosing, packet.CloseRecalled
		}
		out[i] = packet.RebuildInput{Record: rec, ShareConflicts: conflicts[row.ID]}
	}
	return out, nil
}

// claimedShares counts the recorded claims with a share of each packet.
func (s *Store) claimedShares(ctx context.Context, ids []string) (map[string]int, error) {
	var rows []struct {
		PacketID string
		N        int
	}
	err := s.read(ctx).Model(&mysql.ClaimRow{}).Select("packet_id, COUNT(*) AS n").
		Where("packet_id IN ? AND kind = ?", ids, mysql.ClaimOfShare).Group("packet_id").Scan(&rows).Error
	out := map[string]int{}
	for _, r := range rows {
		out[r.PacketID] = r.N
	}
	return out, mysql.Classify(err)
}

// conflictClaims returns, by packet, the share conflicts of users without a share of it. A share counts
// before a conflict, as in every list.
func (s *Store) conflictClaims(ctx context.Context, ids []string) (map[string][]packet.Claim, error) {
	var rows []mysql.ClaimRow
	// raw: subquery
	err := s.read(ctx).Raw("SELECT * FROM claims c WHERE c.packet_id IN ? AND c.kind = 'conflict' AND"+mysql.ShownClaim,
		ids).Scan(&rows).Error
	out := map[string][]packet.Claim{}
	for _, r := range rows {
		out[r.PacketID] = append(out[r.PacketID], r.Claim())
	}
	return out, mysql.Classify(err)
}

// Shares lists the shares of packets from one index up to another one, in order, claimed or not. A share's index
// is its place in the packet, from 0 without gaps. Errors: ErrUnavailable.
func (s *Store) Shares(ctx context.Context, ids []string, from, to int) (map[string][]packet.Share, error) {
	var rows []struct {
		PacketID                       string
		ShareIndex                     int
		Amount                         int64
		UserID                         *string // of the claim; nil: none
		ClaimedAt                      *time.Time
		Nickname, AvatarURL, Recipient *string
	}
	err := s.read(ctx).Raw(`SELECT s.packet_id, s.share_index, s.amount, c.user_id, c.claimed_at, c.nickname, c.avatar_url, c.recipient
		FROM shares s LEFT JOIN claims c ON c.packet_id = s.packet_id AND c.kind = 'share' AND c.user_id = s.user_id
		WHERE s.packet_id IN ? AND s.share_index >= ? AND s.share_index < ? ORDER BY s.packet_id, s.share_index`, ids, from, to).
		Scan(&rows).Error
	out := map[string][]packet.Share{}
	for _, r := range rows {
		share := packet.Share{Index: r.ShareIndex, Amount: money.Fen(r.Amount)}
		if r.UserID != nil {
			share.Claim = &packet.Claim{PacketID: r.PacketID, UserID: *r.UserID, ShareIndex: r.ShareIndex, Amount: share.Amount,
				ClaimedAt: mysql.OrZero(r.ClaimedAt),
				Profile:   packet.Profile{Nickname: r.Nickname, AvatarURL: r.AvatarURL, Recipient: mysql.OrEmpty(r.Recipient)}}
		}
		out[r.PacketID] = append(out[r.PacketID], share)
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
