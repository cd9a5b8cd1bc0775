package store

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"hongbao/internal/campaign"
	"hongbao/internal/failpoint"
	"hongbao/internal/payout"
	"hongbao/internal/store/mysql"
)

type campaignDayRow struct {
	Day, Status, PacketID string
	OpensAt, DecidedAt    time.Time
}

func (campaignDayRow) TableName() string { return "campaign_days" }

func campaignDaysOf(rows []campaignDayRow) []campaign.Day {
	out := make([]campaign.Day, len(rows))
	for i, r := range rows {
		out[i] = campaign.Day{Day: payout.Day(r.Day), Status: campaign.DayStatus(r.Status), PacketID: r.PacketID, OpensAt: r.OpensAt.UTC(),
			DecidedAt: r.DecidedAt.UTC()}
	}
	return out
}

// afterDays sorts after every day.
const afterDays = "A"

// CampaignDays lists days before a day, newest first; "": from the newest on. A day whose packet has
// a row counts as made, whatever its stored status. Errors: ErrUnavailable.
func (s *Store) CampaignDays(ctx context.Context, id string, before payout.Day, limit int) ([]campaign.Day, error) {
	var rows []campaignDayRow
	err := s.read(ctx).Raw(`SELECT d.day, IF(p.id IS NULL, d.status, 'made') AS status, d.packet_id, d.opens_at, d.decided_at
		FROM campaign_days d LEFT JOIN packets p ON p.id = d.packet_id WHERE d.campaign_id = ? AND d.day < ? ORDER BY d.day DESC LIMIT ?`,
		id, cmp.Or(string(before), afterDays), limit).Scan(&rows).Error
	return campaignDaysOf(rows), mysql.Classify(err)
}

// ReservedDays lists the days of a campaign that are reserved and not decided yet, oldest first.
// Errors: ErrUnavailable.
func (s *Store) ReservedDays(ctx context.Context, id string, limit int) ([]campaign.Day, error) {
	var rows []campaignDayRow
	err := s.read(ctx).Raw("SELECT day, status, packet_id, opens_at, decided_at FROM campaign_days FORCE INDEX (campaign_days_making) "+
		"WHERE status = 'making' AND campaign_id = ? ORDER BY day LIMIT ?",
		id, limit).Scan(&rows).Error
	return campaignDaysOf(rows), mysql.Classify(err)
}

// ReserveDay reserves the next day of an active campaign when its packet is due, and moves on to the
// following day; after the last one the campaign ends. A reserved day's packet is made even when the
// campaign is paused or ended. ok is false when nothing is due. Errors: ErrNotFound;
// payout.ErrMySQLRestored; ErrUnavailable.
func (s *Store) ReserveDay(ctx context.Context, id string) (d campaign.Day, ok bool, err error) {
	err = s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		ok = false
		if err := tx.allow(payout.ActionMaintain, holdNames{}); err != nil {
			return err
		}
		c, err := tx.campaign(id)
		if err != nil || c.Status != campaign.StatusActive || tx.now.Before(c.NextOpens.Add(-campaign.CreateAhead-campaign.ClockSkew)) {
			return err
		}
		d = campaign.Day{Day: c.NextDay, Status: campaign.DayCreating, PacketID: c.PacketID(c.NextDay), OpensAt: c.NextOpens, DecidedAt: tx.now}
		if err := tx.Exec("INSERT INTO campaign_days (campaign_id, day, status, packet_id, opens_at, decided_at) VALUES (?, ?, 'making', ?, "+
			"?, ?) ON DUPLICATE KEY UPDATE day = day",
			id, string(d.Day), d.PacketID, d.OpensAt.UTC(), tx.now).Error; err != nil {
			return err
		}
		day, opens, err := c.DayAfter(d.Day)
		if err != nil {
			return err
		}
		to := c.Status
		if day == "" {
			to = campaign.StatusEnded
		}
		ok = true
		_, err = tx.casCampaign(c, to, day, opens)
		return err
	})
	return d, ok && err == nil, err
}

// DecideDay stores the outcome of a reserved day. Made always wins over missed. A restored MySQL,
// which may lack the packet, never records missed. Repeatable. Errors: ErrMoved when the day was not
// reserved; payout.ErrMySQLRestored; ErrUnavailable.
func (s *Store) DecideDay(ctx context.Context, id string, day payout.Day, status campaign.DayStatus) error {
	return s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		if status == campaign.DayMissed {
			if err := tx.allow(payout.ActionMaintain, holdNames{}); err != nil {
				return err
			}
		}
		var rows []campaignDayRow
		if err := tx.Raw("SELECT status FROM campaign_days WHERE campaign_id = ? AND day = ? FOR UPDATE", id,
			string(day)).Scan(&rows).Error; err != nil {
			return err
		}
		if len(rows) == 0 {
			return fmt.Errorf("campaign %s, day %s is not reserved: %w", id, day, ErrMoved)
		}
		was := campaign.DayStatus(rows[0].Status)
		if was == status || was == campaign.DayCreated {
			return nil
		}
		r := tx.Exec("UPDATE campaign_days SET status = ?, decided_at = ? WHERE campaign_id = ? AND day = ? AND status = ?",
			string(status), tx.now, id, string(day), string(was))
		if r.Error == nil && r.RowsAffected == 0 {
			return fmt.Errorf("campaign %s, day %s was decided otherwise: %w", id, day, ErrMoved)
		}
		return r.Error
	})
}
