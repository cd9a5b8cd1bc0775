package store

import (
	"context"
	"time"

	"gorm.io/gorm"

	"hongbao/internal/campaign"
	"hongbao/internal/failpoint"
	"hongbao/internal/observe"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// UnsyncedCampaigns lists campaigns with an unsynced schedule after an id, by id. Errors:
// ErrUnavailable; errors of unreadable rows, joined, beside the readable ones.
func (s *Store) UnsyncedCampaigns(ctx context.Context, after string, limit int) ([]campaign.Campaign, error) {
	return listCampaigns(s.read(ctx).Where("unsynced = TRUE"), after, limit)
}

// ScheduledCampaigns lists campaigns that need a schedule, like UnsyncedCampaigns.
func (s *Store) ScheduledCampaigns(ctx context.Context, after string, limit int) ([]campaign.Campaign, error) {
	return listCampaigns(s.read(ctx).Where("ended_at IS NULL"), after, limit)
}

// OverdueCampaigns lists campaigns with a day whose packet was due campaign.OverdueAfter ago (MySQL's
// clock), like UnsyncedCampaigns.
func (s *Store) OverdueCampaigns(ctx context.Context, after string, limit int) ([]campaign.Campaign, error) {
	opens, err := s.overdueOpening(ctx)
	if err != nil {
		return nil, err
	}
	late := s.read(ctx).Joins(`JOIN (SELECT id AS late FROM campaigns WHERE status = 'active' AND next_opens < ?
		UNION SELECT campaign_id FROM campaign_days WHERE status = 'making' AND opens_at < ?) l ON id = late`, opens, opens)
	return listCampaigns(late, after, limit)
}

// overdueOpening returns the opening time of packets that were due campaign.OverdueAfter ago.
func (s *Store) overdueOpening(ctx context.Context) (time.Time, error) {
	now, err := s.Clock(ctx)
	return now.Add(campaign.CreateAhead - campaign.OverdueAfter), err
}

// listCampaigns reads campaigns of a query after an id, by id.
func listCampaigns(q *gorm.DB, after string, limit int) ([]campaign.Campaign, error) {
	var rows []campaignRow
	if err := q.Select(campaignColumns).Where("id > ?", after).Order("id").Limit(limit).Find(&rows).Error; err != nil {
		return nil, classify(err)
	}
	return campaignsOf(rows)
}

// MarkCampaignSynced records that the schedule follows a revision of the campaign. A newer revision
// stays unsynced: concurrent schedule updates may have ended in either order. Errors:
// ErrUnavailable.
func (s *Store) MarkCampaignSynced(ctx context.Context, id string, revision int) error {
	return s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		// raw: compares the revision; gorm would also write updated_at
		return tx.Exec("UPDATE campaigns SET unsynced = IF(revision = ?, NULL, TRUE) WHERE id = ?", revision, id).Error
	})
}

// campaigns counts overdue campaigns and days without an open packet.
func (r *HealthReader) campaigns(ctx context.Context, v *observe.HealthSnapshot) error {
	opens, err := r.store.overdueOpening(ctx)
	if err != nil {
		return err
	}
	var late backlogRow
	err = r.store.read(ctx).Raw(`SELECT COUNT(*) AS n, MIN(opens) AS oldest FROM (SELECT next_opens AS opens FROM campaigns
		WHERE status = 'active' AND next_opens < ?
		UNION ALL SELECT opens_at FROM campaign_days WHERE status = 'making' AND opens_at < ?) l`, opens, opens).Scan(&late).Error
	if err != nil {
		return err
	}
	if v.Campaigns = late.backlog(); late.N > 0 {
		v.Campaigns.Oldest = v.Campaigns.Oldest.Add(-campaign.CreateAhead)
	}
	// Unopened includes packets that expired before their charge was paid. A charged packet that did
	// not open before its expiry is closed within its lifetime after the day was decided.
	var lost []backlogRow
	openedAfter := opens.Add(campaign.OverdueAfter - campaign.CreateAhead - missedDaySpan)
	err = r.store.read(ctx).Raw(`SELECT IF(p.id IS NULL, 'missed', IF(p.status = 'rejected' AND p.failure_code <> ?, 'declined',
		'unopened')) AS kind, COUNT(*) AS n, MIN(d.decided_at) AS oldest
		FROM campaign_days d LEFT JOIN packets p ON p.id = d.packet_id
		WHERE d.decided_at >= ? AND (p.id IS NULL AND d.status = 'missed' AND d.decided_at >= ?
			OR p.status = 'rejected' AND p.updated_at >= ? OR p.close_reason = ? AND (p.closed_at IS NULL OR p.closed_at >= ?)) GROUP BY kind`,
		payout.FailureExpiredBeforeCharge, openedAfter.Add(-packet.MaxLife), openedAfter, openedAfter, string(packet.CloseUnopened),
		openedAfter).Scan(&lost).Error
	for _, reason := range []string{"missed", "declined", "unopened"} {
		day := observe.KindBacklog{Kind: reason}
		for _, row := range lost {
			if row.Kind == reason {
				day.Backlog = row.backlog()
			}
		}
		v.CampaignDays = append(v.CampaignDays, day)
	}
	return err
}

// missedDaySpan is how long days without a packet are reported.
const missedDaySpan = 24 * time.Hour
