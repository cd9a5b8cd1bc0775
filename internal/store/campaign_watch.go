package store

import (
	"context"

	"gorm.io/gorm"

	"hongbao/internal/campaign"
	"hongbao/internal/failpoint"
	"hongbao/internal/store/mysql"
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
	now, err := s.Clock(ctx)
	if err != nil {
		return nil, err
	}
	opens := campaign.OverdueOpening(now)
	late := s.read(ctx).Joins(`JOIN (SELECT id AS late FROM campaigns WHERE status = 'active' AND next_opens < ?
		UNION SELECT campaign_id FROM campaign_days WHERE status = 'making' AND opens_at < ?) l ON id = late`, opens, opens)
	return listCampaigns(late, after, limit)
}

// listCampaigns reads campaigns of a query after an id, by id.
func listCampaigns(q *gorm.DB, after string, limit int) ([]campaign.Campaign, error) {
	var rows []campaignRow
	if err := q.Select(campaignColumns).Where("id > ?", after).Order("id").Limit(limit).Find(&rows).Error; err != nil {
		return nil, mysql.Classify(err)
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
