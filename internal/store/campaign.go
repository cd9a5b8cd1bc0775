package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"hongbao/internal/campaign"
	"hongbao/internal/failpoint"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
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
		StartsOn: payout.Day(r.StartsOn), EndsOn: payout.Day(mysql.OrEmpty(r.EndsOn)), BodyHash: r.BodyHash,
		Status: campaign.Status(r.Status), NextDay: payout.Day(mysql.OrEmpty(r.NextDay)), NextOpens: mysql.OrZero(r.NextOpens),
		CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(), EndedAt: mysql.OrZero(r.EndedAt), Revision: r.Revision,
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

// campaignColumns are the columns of lists. The eligible users are left out: there may be many.
const campaignColumns = `id, app_id, name, salt, zone, opens_minute, starts_on, ends_on, template, body_hash, status,
	next_day, next_opens, revision, unsynced,
	created_at, updated_at, ended_at`

// campaignsOf returns the readable campaigns and the joined errors of the others.
func campaignsOf(rows []campaignRow) (out []campaign.Campaign, err error) {
	for _, r := range rows {
		c, unreadable := r.campaign()
		if err = errors.Join(err, unreadable); unreadable == nil {
			out = append(out, c)
		}
	}
	return out, err
}

// CreateCampaign stores an active campaign whose first packet opens after now (MySQL's clock). An
// empty StartsOn becomes the first day. A repeat with the same body hash changes nothing. It returns
// the row and whether it existed. Errors: ErrConflict when the id exists with another body;
// campaign.ErrNoDay when no day is left; campaign.ErrTooMany when the app has campaign.MaxRunning
// campaigns (concurrent creates may exceed it); ErrUnavailable.
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
	err = s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		made, existed = c, false
		var rows []campaignRow
		if err := tx.Where("id = ?", c.ID).Find(&rows).Error; err != nil {
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
		var running int64
		if err := tx.Model(&campaignRow{}).Where("app_id = ? AND status <> 'ended'", c.App).Count(&running).Error; err != nil {
			return err
		}
		if running >= campaign.MaxRunning {
			return fmt.Errorf("app %s has %d campaigns: %w", c.App, running, campaign.ErrTooMany)
		}
		if made.StartsOn == "" {
			made.StartsOn = day
		}
		made.Status, made.NextDay, made.NextOpens = campaign.StatusActive, day, opens
		made.CreatedAt, made.UpdatedAt, made.Revision = tx.now, tx.now, 1
		return tx.addCampaign(made, template, eligible)
	})
	if mysql.Duplicate(err) { // a concurrent request wrote it
		return s.CreateCampaign(ctx, c)
	}
	return made, existed, err
}

// addCampaign stores an active campaign with an unsynced schedule.
func (tx tx) addCampaign(c campaign.Campaign, template, eligible []byte) error {
	unsynced := true
	return tx.Create(&campaignRow{ID: c.ID, AppID: c.App, Name: c.Name, Salt: c.Salt, Zone: c.Zone, OpensMinute: c.Minute,
		StartsOn: string(c.StartsOn), EndsOn: mysql.OptString(string(c.EndsOn)), Template: template, Eligible: eligible, BodyHash: c.BodyHash,
		Status: string(c.Status), NextDay: mysql.OptString(string(c.NextDay)), NextOpens: mysql.OptTime(c.NextOpens), Revision: c.Revision,
		Unsynced: &unsynced, CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt}).Error
}

// Campaign reads a campaign. Errors: ErrNotFound, ErrUnavailable.
func (s *Store) Campaign(ctx context.Context, id string) (campaign.Campaign, error) {
	var rows []campaignRow
	if err := s.read(ctx).Where("id = ?", id).Find(&rows).Error; err != nil {
		return campaign.Campaign{}, mysql.Classify(err)
	}
	if len(rows) == 0 {
		return campaign.Campaign{}, fmt.Errorf("campaign %s: %w", id, ErrNotFound)
	}
	return rows[0].campaign()
}

// Campaigns lists campaigns after a place, newest first. An empty app or status means all. Errors:
// ErrUnavailable.
func (s *Store) Campaigns(ctx context.Context, app string, status campaign.Status, after packet.Cursor, limit int) ([]campaign.Campaign,
	error) {
	index := "campaigns_created"
	switch {
	case app != "":
		index = "campaigns_app"
	case status != "":
		index = "campaigns_status"
	}
	q := s.read(ctx).Table("campaigns FORCE INDEX (" + index + ")").Select(campaignColumns)
	if app != "" {
		q = q.Where("app_id = ?", app)
	}
	if status != "" {
		q = q.Where("status = ?", string(status))
	}
	if after.ID != "" {
		at := after.At.UTC()
		q = q.Where("created_at <= ? AND (created_at < ? OR id < ?)", at, at, after.ID)
	}
	var rows []campaignRow
	if err := q.Order("created_at DESC, id DESC").Limit(limit).Find(&rows).Error; err != nil {
		return nil, mysql.Classify(err)
	}
	return campaignsOf(rows)
}

// SetCampaignStatus pauses, resumes or ends a campaign and returns it. A campaign with that status
// stays as it is. A resumed one continues with the first day whose packet opens from now on; without
// such a day it ends. A reserved day's packet is still made. Errors: ErrNotFound; campaign.ErrEnded;
// ErrUnavailable.
func (s *Store) SetCampaignStatus(ctx context.Context, id string, to campaign.Status) (c campaign.Campaign, err error) {
	err = s.inTx(ctx, failpoint.Administration, func(tx tx) error {
		if c, err = tx.campaign(id); err != nil {
			return err
		}
		c, err = tx.setCampaign(c, to)
		return err
	})
	return c, err
}

// StopCampaign is SetCampaignStatus by staff, with an audit entry: it pauses or ends a campaign of
// any app. An ended campaign is an answer and stored; render makes the answers. Errors: ErrNotFound,
// staff.ErrKeyReused, ErrUnavailable.
func (s *Store) StopCampaign(ctx context.Context, w staff.Write, id string, to campaign.Status,
	render func(c campaign.Campaign, ended bool) (status int, body []byte)) (staff.Answer, error) {
	return s.staffWrite(ctx, failpoint.Administration, w, func(tx tx) (out staff.Answer, err error) {
		before, err := tx.campaign(id)
		if err != nil {
			return out, err
		}
		after, err := tx.setCampaign(before, to)
		if errors.Is(err, campaign.ErrEnded) {
			out.Status, out.Body = render(before, true)
			return out, nil
		}
		if err != nil {
			return out, err
		}
		action := map[campaign.Status]string{campaign.StatusPaused: "pause_campaign", campaign.StatusEnded: "end_campaign"}[to]
		note := func(c campaign.Campaign) map[string]string {
			return map[string]string{"status": string(c.Status), "app": c.App, "name": c.Name}
		}
		if err := tx.audit(w, action, "campaign/"+id, note(before), note(after)); err != nil {
			return out, err
		}
		out.Status, out.Body = render(after, false)
		return out, nil
	})
}

func (tx tx) setCampaign(c campaign.Campaign, to campaign.Status) (campaign.Campaign, error) {
	if c.Status == to {
		return c, nil
	}
	day, opens, err := tx.nextDayOnResume(c, to)
	switch {
	case err != nil:
		return c, err
	case c.Status == campaign.StatusEnded && to == campaign.StatusActive && c.RanOut(): // after its last day, or by the same request
		return c, nil
	case c.Status == campaign.StatusEnded:
		return c, fmt.Errorf("campaign %s: %w", c.ID, campaign.ErrEnded)
	}
	if to == campaign.StatusActive && day == "" {
		to = campaign.StatusEnded
	}
	return tx.casCampaign(c, to, day, opens)
}

// nextDayOnResume returns the day with which a paused campaign continues; "" for every other status.
// A day decided before the pause is skipped.
func (tx tx) nextDayOnResume(c campaign.Campaign, to campaign.Status) (day payout.Day, opens time.Time, err error) {
	if to != campaign.StatusActive {
		return "", time.Time{}, nil
	}
	if day, opens, err = c.Next(tx.now); err != nil || day == "" {
		return day, opens, err
	}
	var decided int64
	err = tx.Model(&campaignDayRow{}).Where("campaign_id = ? AND day = ?", c.ID, string(day)).Count(&decided).Error
	if err != nil || decided == 0 {
		return day, opens, err
	}
	return c.DayAfter(day)
}

// campaign reads and locks a campaign.
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

// casCampaign sets status and next day ("": none) of a campaign. A change of status marks its
// schedule as unsynced. ErrMoved: the campaign has changed since it was read.
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
		string(to), mysql.OptString(string(day)), mysql.OptTime(opens), mysql.OptTime(next.EndedAt), tx.now, next.Revision, c.ID,
		string(c.Status), c.Revision)
	if r.Error == nil && r.RowsAffected == 0 {
		return c, fmt.Errorf("campaign %s: %w", c.ID, ErrMoved)
	}
	return next, r.Error
}
