package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hongbao/internal/campaign"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// CampaignStore is the part of MySQL that keeps campaigns.
type CampaignStore interface {
	Campaign(ctx context.Context, id string) (campaign.Campaign, error)
	ReserveDay(ctx context.Context, id string) (campaign.Day, bool, error)
	ReservedDays(ctx context.Context, id string, limit int) ([]campaign.Day, error)
	DecideDay(ctx context.Context, id string, day payout.Day, status campaign.DayStatus) error
	Packet(ctx context.Context, id string) (packet.Record, error)
	Clock
}

// Staging is the part of Redis in which packets begin.
type StagingPool interface {
	Create(ctx context.Context, p packet.Packet, eligible []string, opensAt *time.Time, life, busy time.Duration) (packet.StageResult, error)
}

// Campaigns are the steps of campaigns.
type Campaigns struct {
	Store   CampaignStore
	Pool    StagingPool
	SeedKey [32]byte
}

// maxDaysPerRun bounds what one step decides: after a long outage the next one goes on.
const maxDaysPerRun = 40

// MakeCampaignPackets creates the packets of a campaign that are due, each campaign.Lead
// before it opens, and notes the days whose packets would have expired by now as missed.
// A day is reserved first: the row says which one is next, so that any number of runs may
// do it, and one that cannot be decided holds up no other. Returns the days that it
// decided, in order. Repeatable. Errors: of each day that could not be decided.
func (a *Campaigns) MakeCampaignPackets(ctx context.Context, id string) ([]campaign.Day, error) {
	defer heartbeat(ctx)()
	c, err := a.Store.Campaign(ctx, id)
	if errors.Is(err, packet.ErrNotFound) {
		return nil, nil // the books were restored; its schedule outlived it
	}
	if err != nil {
		return nil, typed(err)
	}
	for range maxDaysPerRun {
		_, ok, reserved := a.Store.ReserveDay(ctx, id)
		if err = reserved; !ok {
			break
		}
	}
	days, listed := a.Store.ReservedDays(ctx, id, maxDaysPerRun)
	err = errors.Join(err, listed)
	var decided []campaign.Day
	for _, day := range days {
		status, making := a.stageDay(ctx, c, day)
		if making == nil {
			making = a.Store.DecideDay(ctx, id, day.Day, status)
		}
		if making != nil {
			err = errors.Join(err, fmt.Errorf("campaign %s, day %s: %w", id, day.Day, making))
			continue
		}
		day.Status = status
		decided = append(decided, day)
	}
	return decided, typed(err)
}

// rowPause and rowPatience are for the row of a packet that was staged: its own workflow
// writes it at once, unless something is away. Then the step is tried again.
const (
	rowPause    = 100 * time.Millisecond
	rowPatience = 3 * time.Second
)

// make stages the packet of a day unless it is there, and returns what became of it when
// MySQL has it: then nothing that Redis may lose is lost. Only both together know whether
// it is there: its pool may have been lost, or retired. packet.ErrNotFound: MySQL does not
// have it yet.
func (a *Campaigns) stageDay(ctx context.Context, c campaign.Campaign, day campaign.Day) (campaign.DayStatus, error) {
	p, life := c.PacketOf(day.Day, a.SeedKey), time.Duration(c.Template.Life)*time.Second
	_, err := a.Store.Packet(ctx, p.ID)
	if !errors.Is(err, packet.ErrNotFound) {
		return campaign.DayMade, err
	}
	now, err := a.Store.Clock(ctx)
	if err != nil {
		return "", err
	}
	over := now.After(day.OpensAt.Add(life))
	if n := len(c.Template.Eligible); n != p.EligibleCount { // without its list it would be open to everybody
		if over {
			return campaign.DayMissed, nil
		}
		return "", fmt.Errorf("%d of %d users who may grab are known: %w", n, p.EligibleCount, packet.ErrPoolGone)
	}
	staged, err := a.Pool.Create(ctx, p, c.Template.Eligible, &day.OpensAt, life, time.Second)
	switch {
	case errors.Is(err, packet.ErrExpiresInPast): // it is not there
		return campaign.DayMissed, nil
	case err != nil:
		return "", err
	}
	// Books that were restored may never have its row again. Redis had it all the same, and
	// there is one packet of a day: one that is over, or is another body's, is not made anew.
	if v := staged.View; staged.Existed && (!staged.SameBody || v.Retired || v.State == packet.PoolRejected || over) {
		return campaign.DayMade, nil
	}
	return campaign.DayMade, a.awaitRow(ctx, p.ID)
}

func (a *Campaigns) awaitRow(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, rowPatience)
	defer cancel()
	tick := time.NewTicker(rowPause)
	defer tick.Stop()
	for {
		if _, err := a.Store.Packet(ctx, id); !errors.Is(err, packet.ErrNotFound) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("packet %s is staged, and not in the books: %w", id, packet.ErrNotFound)
		case <-tick.C:
		}
	}
}
