package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"hongbao/campaign"
	"hongbao/crash"
	"hongbao/observe"
	"hongbao/packet"
	"hongbao/payout"
)

type campaignRow struct {
	ID          string `gorm:"primaryKey"`
	AppID       string
	Name        string
	Salt        []byte
	Zone        string
	OpensMinute int
	StartsOn    string
	EndsOn      *string
	Template    []byte
	Eligible    []byte
	BodyHash    string
	Status      string
	NextDay     *string
	NextOpens   *time.Time
	Revision    int
	Unsynced    *bool
	CreatedAt   time.Time
	UpdatedAt   time.Time
	EndedAt     *time.Time
}

func (campaignRow) TableName() string { return "campaigns" }

func (r campaignRow) campaign() (campaign.Campaign, error) {
	c := campaign.Campaign{
		ID: r.ID, App: r.AppID, Name: r.Name, Salt: r.Salt, Zone: r.Zone, Minute: r.OpensMinute,
		StartsOn: payout.Day(r.StartsOn), EndsOn: payout.Day(orEmpty(r.EndsOn)), BodyHash: r.BodyHash,
		Status: campaign.Status(r.Status), NextDay: payout.Day(orEmpty(r.NextDay)), NextOpens: orZero(r.NextOpens),
		CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(), EndedAt: orZero(r.EndedAt), Revision: r.Revision,
	}
	if err := json.Unmarshal(r.Template, &c.Template); err != nil {
		return c, fmt.Errorf("campaign %s: template: %w", r.ID, err)
	}
	if r.Eligible != nil {
		if err := json.Unmarshal(r.Eligible, &c.Template.Eligible); err != nil {
			return c, fmt.Errorf("campaign %s: eligible list: %w", r.ID, err)
		}
	}
	return c, nil
}

// campaignColumns are those of every list: not the users who may grab, who may be many.
const campaignColumns = `id, app_id, name, salt, zone, opens_minute, starts_on, ends_on, template, body_hash, status, next_day, next_opens, revision, unsynced,
	created_at, updated_at, ended_at`

func campaignsOf(rows []campaignRow) ([]campaign.Campaign, error) {
	out := make([]campaign.Campaign, len(rows))
	for i, r := range rows {
		var err error
		if out[i], err = r.campaign(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// CreateCampaign writes an active campaign whose first packet opens after now, by
// MySQL's clock. StartsOn is filled in when it is empty: with the first day. A repeat
// with the same body hash changes nothing. Returns the row, and whether it was there.
// Errors: ErrConflict when the id is taken by another body; ErrNoDay when no day is
// left; ErrUnavailable.
func (s *Store) CreateCampaign(ctx context.Context, c campaign.Campaign) (made campaign.Campaign, existed bool, err error) {
	template, err := json.Marshal(c.Template)
	if err != nil {
		return c, false, fmt.Errorf("encode template: %w", err)
	}
	var eligible []byte
	if c.Template.Eligible != nil {
		if eligible, err = json.Marshal(c.Template.Eligible); err != nil {
			return c, false, fmt.Errorf("encode eligible list: %w", err)
		}
	}
	err = s.inTx(ctx, crash.Administration, func(tx tx) error {
		made, existed = c, false
		var rows []campaignRow
		if err := tx.Raw("SELECT * FROM campaigns WHERE id = ?", c.ID).Scan(&rows).Error; err != nil {
			return err
		}
		if len(rows) > 0 {
			existed = true
			if rows[0].BodyHash != c.BodyHash {
				return fmt.Errorf("campaign %s: %w", c.ID, ErrConflict)
			}
			var err error
			made, err = rows[0].campaign()
			return err
		}
		day, opens, err := c.Next(tx.now)
		if err != nil {
			return err
		}
		if day == "" {
			return fmt.Errorf("campaign %s: %w", c.ID, campaign.ErrNoDay)
		}
		if made.StartsOn == "" {
			made.StartsOn = day
		}
		made.Status, made.NextDay, made.NextOpens = campaign.StatusActive, day, opens
		made.CreatedAt, made.UpdatedAt, made.Revision = tx.now, tx.now, 1
		return tx.Exec(`INSERT INTO campaigns (id, app_id, name, salt, zone, opens_minute, starts_on, ends_on, template, eligible, body_hash, status, next_day, next_opens, unsynced, created_at, updated_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'active', ?, ?, TRUE, ?, ?)`, c.ID, c.App, c.Name, c.Salt, c.Zone, c.Minute, string(made.StartsOn),
			optString(string(c.EndsOn)), template, eligible, c.BodyHash, string(day), opens, tx.now, tx.now).Error
	})
	if duplicate(err) { // two requests at once: the other one wrote it
		return s.CreateCampaign(ctx, c)
	}
	return made, existed, err
}

// Campaign reads one. Errors: ErrNotFound, ErrUnavailable.
func (s *Store) Campaign(ctx context.Context, id string) (campaign.Campaign, error) {
	var rows []campaignRow
	if err := s.read(ctx).Raw("SELECT * FROM campaigns WHERE id = ?", id).Scan(&rows).Error; err != nil {
		return campaign.Campaign{}, classify(err)
	}
	if len(rows) == 0 {
		return campaign.Campaign{}, fmt.Errorf("campaign %s: %w", id, ErrNotFound)
	}
	return rows[0].campaign()
}

// Campaigns lists those of an app after a place, newest first; status "": of any.
// Errors: ErrUnavailable.
func (s *Store) Campaigns(ctx context.Context, app string, status campaign.Status, after packet.Place, limit int) ([]campaign.Campaign, error) {
	q := s.read(ctx).Table("campaigns FORCE INDEX (campaigns_app)").Select(campaignColumns).Where("app_id = ?", app)
	if status != "" {
		q = q.Where("status = ?", string(status))
	}
	if after.ID != "" {
		at := after.At.UTC()
		q = q.Where("created_at <= ? AND (created_at < ? OR id < ?)", at, at, after.ID)
	}
	var rows []campaignRow
	if err := q.Order("created_at DESC, id DESC").Limit(limit).Find(&rows).Error; err != nil {
		return nil, classify(err)
	}
	return campaignsOf(rows)
}

// afterDays sorts behind every day.
const afterDays = "A"

// CampaignDays lists days that were decided, newest first, before a day; "": from the
// newest on. Errors: ErrUnavailable.
func (s *Store) CampaignDays(ctx context.Context, id string, before payout.Day, limit int) ([]campaign.Day, error) {
	var rows []struct {
		Day, Status, PacketID string
		OpensAt, DecidedAt    time.Time
	}
	err := s.read(ctx).Raw("SELECT day, status, packet_id, opens_at, decided_at FROM campaign_days WHERE campaign_id = ? AND day < ? ORDER BY day DESC LIMIT ?",
		id, cmp.Or(string(before), afterDays), limit).Scan(&rows).Error
	out := make([]campaign.Day, len(rows))
	for i, r := range rows {
		out[i] = campaign.Day{Day: payout.Day(r.Day), Status: campaign.DayStatus(r.Status), PacketID: r.PacketID, OpensAt: r.OpensAt.UTC(), DecidedAt: r.DecidedAt.UTC()}
	}
	return out, classify(err)
}

// SetCampaign pauses a campaign, goes on with it, or ends it, and returns it as it is
// then. One that has the status already stays as it is; whoever goes on begins with the
// first day whose packet opens from now on, and a campaign without such a day ends.
// Errors: ErrNotFound; campaign.ErrEnded; ErrUnavailable.
func (s *Store) SetCampaign(ctx context.Context, id string, to campaign.Status) (c campaign.Campaign, err error) {
	err = s.inTx(ctx, crash.Administration, func(tx tx) error {
		if c, err = tx.campaign(id); err != nil || c.Status == to {
			return err
		}
		if c.Status == campaign.StatusEnded {
			return fmt.Errorf("campaign %s: %w", id, campaign.ErrEnded)
		}
		day, opens, err := tx.resumed(c, to)
		if err != nil {
			return err
		}
		if to == campaign.StatusActive && day == "" {
			to = campaign.StatusEnded
		}
		c, err = tx.casCampaign(c, to, day, opens)
		return err
	})
	return c, err
}

// resumed is the day with which a campaign goes on that was paused; "" for every other
// status. A day that was decided before the pause stays so.
func (tx tx) resumed(c campaign.Campaign, to campaign.Status) (day payout.Day, opens time.Time, err error) {
	if to != campaign.StatusActive {
		return "", time.Time{}, nil
	}
	if day, opens, err = c.Next(tx.now); err != nil || day == "" {
		return day, opens, err
	}
	var decided int64
	if err := tx.Raw("SELECT COUNT(*) FROM campaign_days WHERE campaign_id = ? AND day = ?", c.ID, string(day)).Scan(&decided).Error; err != nil || decided == 0 {
		return day, opens, err
	}
	return c.After(day)
}

// DecideDay notes what became of a day of a campaign and, if it was the next one, goes on
// to the one after it; after the last one the campaign ends. That a packet was made is
// noted also when the campaign was paused or ended meanwhile. Repeatable. Returns the
// campaign as it is then. Errors: ErrMoved when a day that was missed is not the next one;
// ErrNotFound; ErrUnavailable.
func (s *Store) DecideDay(ctx context.Context, id string, d campaign.Day) (c campaign.Campaign, err error) {
	err = s.inTx(ctx, crash.Administration, func(tx tx) error {
		if c, err = tx.campaign(id); err != nil {
			return err
		}
		if c.NextDay != d.Day && d.Status != campaign.DayMade {
			return fmt.Errorf("campaign %s, day %s: %w", id, d.Day, ErrMoved)
		}
		if err := tx.Exec("INSERT INTO campaign_days (campaign_id, day, status, packet_id, opens_at, decided_at) VALUES (?, ?, ?, ?, ?, ?) ON DUPLICATE KEY UPDATE day = day",
			id, string(d.Day), string(d.Status), d.PacketID, d.OpensAt.UTC(), tx.now).Error; err != nil || c.NextDay != d.Day {
			return err
		}
		day, opens, err := c.After(d.Day)
		if err != nil {
			return err
		}
		to := c.Status
		if day == "" {
			to = campaign.StatusEnded
		}
		c, err = tx.casCampaign(c, to, day, opens)
		return err
	})
	return c, err
}

// campaign reads a campaign for a change of it.
func (tx tx) campaign(id string) (campaign.Campaign, error) {
	var rows []campaignRow
	if err := tx.Raw("SELECT "+campaignColumns+" FROM campaigns WHERE id = ? FOR UPDATE", id).Scan(&rows).Error; err != nil {
		return campaign.Campaign{}, err
	}
	if len(rows) == 0 {
		return campaign.Campaign{}, fmt.Errorf("campaign %s: %w", id, ErrNotFound)
	}
	return rows[0].campaign()
}

// casCampaign moves a campaign on to a status and a next day ("": none). A change of
// status is told to its schedule. ErrMoved: it has changed since it was read.
func (tx tx) casCampaign(c campaign.Campaign, to campaign.Status, day payout.Day, opens time.Time) (campaign.Campaign, error) {
	next := c
	next.Status, next.NextDay, next.NextOpens, next.UpdatedAt = to, day, opens, tx.now
	unsynced := ""
	if to != c.Status {
		next.Revision++
		unsynced = ", unsynced = TRUE"
	}
	if to == campaign.StatusEnded {
		next.EndedAt = tx.now
	}
	r := tx.Exec("UPDATE campaigns SET status = ?, next_day = ?, next_opens = ?, ended_at = ?, updated_at = ?, revision = ?"+unsynced+
		" WHERE id = ? AND status = ? AND revision = ?",
		string(to), optString(string(day)), optTime(opens), optTime(next.EndedAt), tx.now, next.Revision, c.ID, string(c.Status), c.Revision)
	if r.Error == nil && r.RowsAffected == 0 {
		return c, fmt.Errorf("campaign %s: %w", c.ID, ErrMoved)
	}
	return next, r.Error
}

// UnsyncedCampaigns lists campaigns whose schedules do not follow their status yet.
// Errors: ErrUnavailable.
func (s *Store) UnsyncedCampaigns(ctx context.Context, limit int) ([]campaign.Campaign, error) {
	return s.someCampaigns(ctx, "unsynced = TRUE ORDER BY id LIMIT ?", limit)
}

// ScheduledCampaigns lists campaigns that are to have a schedule, after an id.
// Errors: ErrUnavailable.
func (s *Store) ScheduledCampaigns(ctx context.Context, after string, limit int) ([]campaign.Campaign, error) {
	return s.someCampaigns(ctx, "id > ? AND status <> 'ended' ORDER BY id LIMIT ?", after, limit)
}

// LateCampaigns lists active campaigns whose next packet should have been made
// campaign.Late ago, by MySQL's clock. Errors: ErrUnavailable.
func (s *Store) LateCampaigns(ctx context.Context, limit int) ([]campaign.Campaign, error) {
	now, err := s.Clock(ctx)
	if err != nil {
		return nil, err
	}
	return s.someCampaigns(ctx, "status = 'active' AND next_opens < ? ORDER BY next_opens LIMIT ?", now.Add(campaign.Lead-campaign.Late), limit)
}

func (s *Store) someCampaigns(ctx context.Context, where string, args ...any) ([]campaign.Campaign, error) {
	var rows []campaignRow
	if err := s.read(ctx).Raw("SELECT "+campaignColumns+" FROM campaigns WHERE "+where, args...).Scan(&rows).Error; err != nil {
		return nil, classify(err)
	}
	return campaignsOf(rows)
}

// CampaignSynced notes that the schedule of a campaign follows it as it was at a
// revision. One that has changed since stays unsynced. Errors: ErrUnavailable.
func (s *Store) CampaignSynced(ctx context.Context, id string, revision int) error {
	return s.inTx(ctx, crash.Administration, func(tx tx) error {
		return tx.Exec("UPDATE campaigns SET unsynced = NULL WHERE id = ? AND revision = ?", id, revision).Error
	})
}

// campaigns reads which campaigns are late, and which of their days came to nothing.
func (r *Vitals) campaigns(ctx context.Context, v *observe.Vitals) error {
	now, err := r.store.Clock(ctx)
	if err != nil {
		return err
	}
	var late, lost backlogRow
	err = r.store.read(ctx).Raw("SELECT COUNT(*) AS n, MIN(next_opens) AS oldest FROM campaigns WHERE status = 'active' AND next_opens < ?", now.Add(campaign.Lead-campaign.Late)).Scan(&late).Error
	if err != nil {
		return err
	}
	if v.Campaigns = late.backlog(); late.N > 0 {
		v.Campaigns.Oldest = v.Campaigns.Oldest.Add(-campaign.Lead)
	}
	err = r.store.read(ctx).Raw(`SELECT COUNT(*) AS n, MIN(d.decided_at) AS oldest FROM campaign_days d LEFT JOIN packets p ON p.id = d.packet_id
		WHERE d.decided_at >= ? AND (d.status = 'missed' OR p.status = 'rejected')`, now.Add(-24*time.Hour)).Scan(&lost).Error
	v.CampaignDays = lost.backlog()
	return err
}
