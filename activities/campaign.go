package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hongbao/campaign"
	"hongbao/packet"
)

// CampaignBook is the part of MySQL that keeps campaigns.
type CampaignBook interface {
	Campaign(ctx context.Context, id string) (campaign.Campaign, error)
	DecideDay(ctx context.Context, id string, d campaign.Day) (campaign.Campaign, error)
	Packet(ctx context.Context, id string) (packet.Record, error)
	Clock
}

// Staging is the part of Redis in which packets begin.
type Staging interface {
	Create(ctx context.Context, p packet.Packet, eligible []string, opensAt *time.Time, life, busy time.Duration) (packet.Staged, error)
}

// Campaigns are the steps of campaigns.
type Campaigns struct {
	Book    CampaignBook
	Pool    Staging
	SeedKey [32]byte
}

// maxDaysAtOnce bounds what one step decides: after a long outage the next one goes on.
const maxDaysAtOnce = 40

// MakeCampaignPackets creates the packets of a campaign that are due, each
// campaign.Lead before it opens, and notes the days whose packets would have expired by
// now as missed. The row says which day is next, so that any number of runs may do it.
// Returns the days that it decided, in order. Repeatable.
func (a *Campaigns) MakeCampaignPackets(ctx context.Context, id string) ([]campaign.Day, error) {
	defer beat(ctx)()
	c, err := a.Book.Campaign(ctx, id)
	if errors.Is(err, packet.ErrNotFound) {
		return nil, nil // the books were restored; its schedule outlived it
	}
	guests := c.Template.Eligible // DecideDay returns the campaign without them
	var decided []campaign.Day
	for err == nil && c.Status == campaign.StatusActive && len(decided) < maxDaysAtOnce {
		var now time.Time
		if now, err = a.Book.Clock(ctx); err != nil || now.Before(c.NextOpens.Add(-campaign.Lead)) {
			break
		}
		day := campaign.Day{Day: c.NextDay, Status: campaign.DayMade, PacketID: c.PacketID(c.NextDay), OpensAt: c.NextOpens}
		if err = a.create(ctx, c, day); errors.Is(err, packet.ErrPast) {
			day.Status, err = campaign.DayMissed, nil
		}
		if err != nil {
			break
		}
		if c, err = a.Book.DecideDay(ctx, id, day); err == nil {
			c.Template.Eligible = guests
			decided = append(decided, day)
		}
	}
	return decided, typed(err)
}

// rowPause and rowPatience are for the row of a packet that was staged: its own workflow
// writes it at once, unless something is away. Then the step is tried again.
const (
	rowPause    = 20 * time.Millisecond
	rowPatience = 3 * time.Second
)

// create stages the packet of a day unless it is there, and returns when MySQL has it:
// then nothing that Redis may lose is lost. Only both together know whether it is there:
// its pool may have been lost, or retired. packet.ErrPast: it is not there, and would have
// expired. packet.ErrNotFound: MySQL does not have it yet.
func (a *Campaigns) create(ctx context.Context, c campaign.Campaign, day campaign.Day) error {
	p := c.PacketOf(day.Day, a.SeedKey)
	if n := len(c.Template.Eligible); n != p.EligibleCount { // without its list it would be open to everybody
		return fmt.Errorf("campaign %s has %d of %d users who may grab: %w", c.ID, n, p.EligibleCount, packet.ErrConflict)
	}
	_, err := a.Book.Packet(ctx, p.ID)
	if !errors.Is(err, packet.ErrNotFound) {
		return err
	}
	staged, err := a.Pool.Create(ctx, p, c.Template.Eligible, &day.OpensAt, time.Duration(c.Template.Life)*time.Second, time.Second)
	switch {
	case err != nil:
		return err
	case staged.Existed && !staged.SameBody:
		return fmt.Errorf("packet %s of campaign %s, day %s: %w", p.ID, c.ID, day.Day, packet.ErrConflict)
	}
	ctx, cancel := context.WithTimeout(ctx, rowPatience)
	defer cancel()
	tick := time.NewTicker(rowPause)
	defer tick.Stop()
	for {
		if _, err := a.Book.Packet(ctx, p.ID); !errors.Is(err, packet.ErrNotFound) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("packet %s is staged, and not in the books: %w", p.ID, packet.ErrNotFound)
		case <-tick.C:
		}
	}
}
