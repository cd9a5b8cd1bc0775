package report

import (
	"context"
	"time"

	"hongbao/internal/campaign"
	"hongbao/internal/observe"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// campaigns counts overdue campaigns and days without an open packet.
func (r *HealthReader) campaigns(ctx context.Context, v *observe.HealthSnapshot) error {
	now, err := r.source.db.Clock(ctx)
	if err != nil {
		return err
	}
	opens := campaign.OverdueOpening(now)
	var late backlogRow
	err = r.source.read(ctx).Raw(`SELECT COUNT(*) AS n, MIN(opens) AS oldest FROM (SELECT next_opens AS opens FROM campaigns
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
	err = r.source.read(ctx).Raw(`SELECT IF(p.id IS NULL, 'missed', IF(p.status = 'rejected' AND p.failure_code <> ?, 'declined',
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
	if err != nil {
		return err
	}
	return r.source.read(ctx).Raw(selectShortBalances, now.Add(shortBalanceSpan), payout.BalanceProvider, int64(r.LowBalance)).
		Scan(&v.ShortBalances).Error
}

// shortBalanceSpan is how far ahead the days of campaigns are compared with the balances of their apps.
const shortBalanceSpan = 24 * time.Hour

// selectShortBalances counts apps whose balance does not cover the next days of the campaigns that they pay for, or is
// below a limit.
const selectShortBalances = `SELECT COUNT(*) FROM (SELECT n.app_id FROM (
	SELECT app_id, SUM(CAST(JSON_VALUE(CONVERT(template USING utf8mb4), '$.packet.total_amount') AS UNSIGNED)) AS needed FROM campaigns
	WHERE status = 'active' AND next_opens < ? AND JSON_VALUE(CONVERT(template USING utf8mb4), '$.packet.charge_provider') = ?
	GROUP BY app_id) n LEFT JOIN app_balances b ON b.app_id = n.app_id WHERE COALESCE(b.available, 0) < n.needed
	UNION SELECT app_id FROM app_balances WHERE available < ?) short`

// missedDaySpan is how long days without a packet are reported.
const missedDaySpan = 24 * time.Hour
