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

// CampaignStore is the part of MySQL that stores campaigns.
type CampaignStore interface {
	Campaign(ctx context.Context, id string) (campaign.Campaign, error)
	ReserveDay(ctx context.Context, id string) (campaign.Day, bool, error)
	ReservedDays(ctx context.Context, id string, limit int) ([]campaign.Day, error)
	DecideDay(ctx context.Context, id string, day payout.Day, status campaign.DayStatus) error
	PacketRow(ctx context.Context, id string) (packet.Record, error)
	Clock
}

// StagingPool is the part of Redis that stages packets.
type StagingPool interface {
	Create(ctx context.Context, p packet.Packet, eligible []string, opensAt *time.Time, life, busy time.Duration) (packet.StageResult, error)
}

// Campaigns holds the activities of campaigns.
type Campaigns struct {
	Store   CampaignStore
	Pool    StagingPool
	SeedKey [32]byte
	// Providers has the defaults for the packets.
	Providers *payout.Registry
}

// maxDaysPerRun bounds the days that one call decides. After a long outage the next call
// continues.
const maxDaysPerRun = 40

// MakeCampaignPackets creates the packets of a campaign that are due, each campaign.Lead before
// it opens. Days whose packets would have expired by now are noted as missed. Each day is
// reserved first: the row determines the next day, so concurrent runs are safe. A day that cannot
// be decided does not delay the others. It returns the days that it decided, in order, and is
// repeatable. Errors: those of each day that could not be decided, joined.
func (a *Campaigns) MakeCampaignPackets(ctx context.Context, id string) ([]campaign.Day, error) {
	defer heartbeat(ctx)()
	c, err := a.Store.Campaign(ctx, id)
	if errors.Is(err, packet.ErrNotFound) {
		return nil, nil // MySQL was restored from before the campaign; only its schedule is left
	}
	if err != nil {
		return nil, temporalError(err)
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
	return decided, temporalError(err)
}

// rowPause and rowPatience bound the wait for the row of a staged packet. The packet's workflow
// writes it at once unless a store is unavailable; then the activity is retried.
const (
	rowPause    = 100 * time.Millisecond
	rowPatience = 3 * time.Second
)

// stageDay stages the packet of a day unless it exists, and returns the day's status once MySQL
// has the packet. Then a loss in Redis loses nothing. Only both stores together show whether the
// packet exists, because its pool may be lost or retired. Error: packet.ErrNotFound while MySQL
// does not have it yet.
func (a *Campaigns) stageDay(ctx context.Context, c campaign.Campaign, day campaign.Day) (campaign.DayStatus, error) {
	p, life := c.PacketOf(day.Day, a.SeedKey), time.Duration(c.Template.Life)*time.Second
	p.PayoutProvider = a.Providers.Payouts().Name()
	if p.ChargeProvider == "" { // the sender is charged
		p.ChargeProvider = a.Providers.Charges().Name()
	}
	_, err := a.Store.PacketRow(ctx, p.ID)
	if !errors.Is(err, packet.ErrNotFound) {
		return campaign.DayCreated, err
	}
	now, err := a.Store.Clock(ctx)
	if err != nil {
		return "", err
	}
	over := now.After(day.OpensAt.Add(life))
	pays := a.Providers.Payouts().Limits()
	unfit := p.BoundShares(pays.MinPayout, pays.MaxPayout)
	if n := len(c.Template.Eligible); n != p.EligibleCount { // without the list every user could grab
		unfit = fmt.Errorf("%d of %d users who may grab are known: %w", n, p.EligibleCount, packet.ErrPoolGone)
	}
	if unfit != nil { // until then another provider, or the list, may be restored
		if over {
			return campaign.DayMissed, nil
		}
		return "", unfit
	}
	staged, err := a.Pool.Create(ctx, p, c.Template.Eligible, &day.OpensAt, life, time.Second)
	switch {
	case errors.Is(err, packet.ErrExpiresInPast): // it is not there
		return campaign.DayMissed, nil
	case err != nil:
		return "", err
	}
	// A restored MySQL may never get this row again, although Redis had the packet. A day has one
	// packet, so one that is over or has another body is not created again.
	if v := staged.View; staged.Existed && (!staged.SameBody || v.Retired || v.State == packet.PoolRejected || over) {
		return campaign.DayCreated, nil
	}
	return campaign.DayCreated, a.awaitRow(ctx, p.ID)
}

func (a *Campaigns) awaitRow(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, rowPatience)
	defer cancel()
	tick := time.NewTicker(rowPause)
	defer tick.Stop()
	for {
		if _, err := a.Store.PacketRow(ctx, id); !errors.Is(err, packet.ErrNotFound) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("packet %s is staged, but MySQL has no row yet: %w", id, packet.ErrNotFound)
		case <-tick.C:
		}
	}
}
