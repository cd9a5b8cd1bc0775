package store

import (
	"context"
	"encoding/json"
	"fmt"

	"hongbao/internal/campaign"
	"hongbao/internal/packet"
	"hongbao/internal/store/mysql"
)

// winnersAtOnce is how many winners of a campaign are read at once.
const winnersAtOnce = 5_000

// CampaignWinnersOfLane passes the winners of a lane's campaigns with one win a user
// (packet.Packet.OneWin) to pass, in batches. Campaigns that have ended and whose last
// packet has expired are skipped. Errors: ErrUnavailable, what pass returns.
func (s *Store) CampaignWinnersOfLane(ctx context.Context, lane, lanes int, pass func(campaign string, users []string) error) error {
	now, err := s.Clock(ctx)
	if err != nil {
		return err
	}
	var rows []campaignRow
	err = s.read(ctx).Select("id, template").Where(idsOfLane+" AND (ended_at IS NULL OR ended_at > ?)", packet.LanePrefixes(lane, lanes),
		now.Add(-packet.MaxLife-campaign.CreateAhead)).Find(&rows).Error
	if err != nil {
		return mysql.Classify(err)
	}
	for _, r := range rows {
		var t campaign.Template
		if err := json.Unmarshal(r.Template, &t); err != nil {
			return fmt.Errorf("campaign %s: template: %w", r.ID, err)
		}
		if !t.Packet.OneWin {
			continue
		}
		if err := s.winners(ctx, r.ID, pass); err != nil {
			return err
		}
	}
	return nil
}

// winners reads along the primary key: packet ids of a campaign share a prefix, and no id has a
// character after v.
func (s *Store) winners(ctx context.Context, id string, pass func(campaign string, users []string) error) error {
	part := packet.CampaignPrefix(id)
	type place struct{ PacketID, UserID string }
	after := place{PacketID: part}
	for {
		var rows []place
		err := s.read(ctx).Model(&mysql.ClaimRow{}).Select("packet_id, user_id").
			Where("packet_id >= ? AND packet_id < ? AND kind = ? AND (packet_id > ? OR user_id > ?)", after.PacketID, part+"w", mysql.ClaimOfShare,
				after.PacketID, after.UserID).
			Order("packet_id, user_id").Limit(winnersAtOnce).Find(&rows).Error
		if err != nil || len(rows) == 0 {
			return mysql.Classify(err)
		}
		users := make([]string, len(rows))
		for i, r := range rows {
			users[i] = r.UserID
		}
		if err := pass(id, users); err != nil {
			return err
		}
		after = rows[len(rows)-1]
	}
}
