package store

import (
	"context"
	"encoding/json"
	"fmt"

	"hongbao/internal/campaign"
	"hongbao/internal/packet"
)

// winnersAtOnce is how many winners of a campaign are read together.
const winnersAtOnce = 5_000

// CampaignWinnersOfLane tells who has won in packets of the campaigns of a lane in which a user wins
// once (packet.Packet.OneWin), some users at a time. Campaigns are left out whose packets
// are all over: they ended, and the last one has expired. Errors: ErrUnavailable, and what
// tell returns.
func (s *Store) CampaignWinnersOfLane(ctx context.Context, lane, lanes int, tell func(campaign string, users []string) error) error {
	now, err := s.Clock(ctx)
	if err != nil {
		return err
	}
	var rows []campaignRow
	err = s.read(ctx).Raw("SELECT id, template FROM campaigns WHERE "+idsOfLane+" AND (ended_at IS NULL OR ended_at > ?)",
		packet.LanePrefixes(lane, lanes), now.Add(-packet.MaxLife-campaign.CreateAhead)).Scan(&rows).Error
	if err != nil {
		return classify(err)
	}
	for _, r := range rows {
		var t campaign.Template
		if err := json.Unmarshal(r.Template, &t); err != nil {
			return fmt.Errorf("campaign %s: template: %w", r.ID, err)
		}
		if !t.Packet.OneWin {
			continue
		}
		if err := s.winners(ctx, r.ID, tell); err != nil {
			return err
		}
	}
	return nil
}

// winners reads along the primary key: ids of the packets of a campaign begin alike, and no
// id has a character behind v.
func (s *Store) winners(ctx context.Context, id string, tell func(campaign string, users []string) error) error {
	part := packet.CampaignPrefix(id)
	type place struct{ PacketID, UserID string }
	after := place{PacketID: part}
	for {
		var rows []place
		err := s.read(ctx).Raw(`SELECT packet_id, user_id FROM claims
			WHERE packet_id >= ? AND packet_id < ? AND (packet_id > ? OR user_id > ?) ORDER BY packet_id, user_id LIMIT ?`,
			after.PacketID, part+"w", after.PacketID, after.UserID, winnersAtOnce).Scan(&rows).Error
		if err != nil || len(rows) == 0 {
			return classify(err)
		}
		users := make([]string, len(rows))
		for i, r := range rows {
			users[i] = r.UserID
		}
		if err := tell(id, users); err != nil {
			return err
		}
		after = rows[len(rows)-1]
	}
}
