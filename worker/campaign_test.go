package worker_test

import (
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"

	"hongbao/activities"
	"hongbao/internal/campaign"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/test/wait"
	"hongbao/worker"
	"hongbao/workflows"
)

// campaigns returns the campaign part of the rig's worker.
func (r *rig) campaigns() *worker.Campaigns {
	return &worker.Campaigns{Steps: r.campaignSteps(), Store: r.store, Every: 200 * time.Millisecond}
}

func (r *rig) campaignSteps() *activities.Campaigns {
	return &activities.Campaigns{Store: r.store, Pool: r.pool, SeedKey: r.seedKey, Providers: payout.OnlyProvider(r.provider)}
}

// makeCampaignPackets is one step of a run.
func (r *rig) makeCampaignPackets(id string) error { return runCampaignSteps(r.campaignSteps(), id) }

func runCampaignSteps(steps *activities.Campaigns, id string) error {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(steps)
	_, err := env.ExecuteActivity(steps.MakeCampaignPackets, id)
	return err
}

// campaign makes one whose packet opens in some whole minutes from now, in UTC.
func (r *rig) campaign(t *testing.T, sender string, in time.Duration,
	change func(c *campaign.Campaign, opens time.Time)) campaign.Campaign {
	t.Helper()
	opens := must(r.store.Clock(t.Context()))(t).Truncate(time.Minute).Add(in)
	id := campaign.NewID([]byte(rand.Text()), "key")
	c := campaign.Campaign{ID: id, App: "app", Name: "evening rain", Salt: campaign.NewSalt([]byte("salt"), id), Zone: "UTC",
		Minute: opens.Hour()*60 + opens.Minute(), BodyHash: id,
		Template: campaign.Template{Life: 3600, Packet: packet.Packet{SenderID: sender, Currency: packet.CurrencyCNY, TotalAmount: 1000,
			ShareCount: 10, Split: packet.SplitRandom, MinShare: 1}}}
	if change != nil {
		change(&c, opens)
	}
	made, existed, err := r.store.CreateCampaign(t.Context(), c)
	if err != nil || existed {
		t.Fatalf("create: %v, %v", existed, err)
	}
	return made
}

// days awaits that some days of a campaign are decided, and no other one is reserved, and
// returns them, oldest first.
func (r *rig) days(t *testing.T, c campaign.Campaign, n int) []campaign.Day {
	t.Helper()
	var all []campaign.Day
	wait.Until(t, "days are decided", func() bool {
		all = must(r.store.CampaignDays(t.Context(), c.ID, "", 10))(t)
		return len(all) >= n && !slices.ContainsFunc(all, func(d campaign.Day) bool { return d.Status == campaign.DayCreating })
	})
	if len(all) != n {
		t.Fatalf("%d days, want %d: %+v", len(all), n, all)
	}
	for i, j := 0, n-1; i < j; i, j = i+1, j-1 {
		all[i], all[j] = all[j], all[i]
	}
	return all
}

// chargedOnce waits until a sender is charged, and checks that only one packet was.
func (r *rig) chargedOnce(t *testing.T, sender string) {
	t.Helper()
	n := 0
	wait.Until(t, "a charge", func() bool {
		n = len(r.movementsThat(t, func(m movement) bool { return m.Op == "charge" && m.Account == sender }))
		return n > 0
	})
	if n != 1 {
		t.Errorf("%s was charged %d times", sender, n)
	}
}

// schedule describes a campaign's schedule; nil: there is none.
func (r *rig) schedule(t *testing.T, c campaign.Campaign) *client.ScheduleDescription {
	t.Helper()
	d, err := r.temporal.ScheduleClient().GetHandle(t.Context(), workflows.CampaignID(c.ID)).Describe(t.Context())
	if gone := (*serviceerror.NotFound)(nil); err != nil && !errors.As(err, &gone) {
		t.Log(err)
	}
	if err != nil {
		return nil
	}
	return d
}

// TestCampaigns: packets are made by themselves, once a day each, whatever happens to
// schedules and runs.
func TestCampaigns(t *testing.T) {
	t.Parallel()
	temporal, ns := stacktest.TemporalNamespace(t)
	r := newRig(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), temporal, ns)

	t.Run("a packet that is due is made at once, and the schedule waits for the next", func(t *testing.T) {
		c := r.campaign(t, "anna", 5*time.Minute, nil)
		day := r.days(t, c, 1)[0]
		if day.Status != campaign.DayCreated || !day.OpensAt.Equal(c.NextOpens) || day.PacketID != c.PacketID(c.NextDay) {
			t.Errorf("%+v of %+v", day, c)
		}
		rec := r.awaitStatus(t, day.PacketID, packet.StatusScheduled)
		if !rec.OpensAt.Equal(c.NextOpens) || !rec.ExpiresAt.Equal(c.NextOpens.Add(time.Hour)) || rec.App != "app" || rec.SenderID != "anna" {
			t.Errorf("%+v", rec)
		}
		var got packet.GrabAnswer
		wait.Until(t, "the pool is open", func() bool { // after the row
			got = must(r.pool.Grab(t.Context(), day.PacketID, "u1", packet.Profile{}))(t)
			return !got.OpensAt.IsZero()
		})
		if got.Result != packet.GrabNotOpenYet || !got.OpensAt.Equal(c.NextOpens) {
			t.Errorf("a grab before: %+v", got)
		}
		r.chargedOnce(t, "anna")
		next := must(r.store.Campaign(t.Context(), c.ID))(t)
		if next.NextDay != day.Day.Add(1) || !next.NextOpens.Equal(day.OpensAt.Add(24*time.Hour)) {
			t.Errorf("then: %+v", next)
		}
		wait.Until(t, "the schedule's next run", func() bool {
			d := r.schedule(t, c)
			return d != nil && len(d.Info.NextActionTimes) > 0 && d.Info.NextActionTimes[0].Equal(next.NextOpens.Add(-campaign.CreateAhead))
		})
		ran := workflows.CampaignID(c.ID) // started by a worker that did not learn that it had created the schedule
		if recent := r.schedule(t, c).Info.RecentActions; len(recent) > 0 {
			ran = recent[0].StartWorkflowResult.WorkflowID
		}
		if err := r.temporal.GetWorkflow(t.Context(), ran, "").Get(t.Context(), nil); err != nil {
			t.Error(err)
		}
		recorded(t, "campaign", r.history(t, ran))
		// A Temporal that lost it has it again.
		if err := r.temporal.ScheduleClient().GetHandle(t.Context(), workflows.CampaignID(c.ID)).Delete(t.Context()); err != nil {
			t.Fatal(err)
		}
		wait.Until(t, "the schedule is made again", func() bool { return r.schedule(t, c) != nil })
	})

	t.Run("a pause pauses the schedule, the end deletes it", func(t *testing.T) {
		c := r.campaign(t, "berta", 2*time.Hour, nil)
		wait.Until(t, "a schedule", func() bool { return r.schedule(t, c) != nil })
		for _, to := range []campaign.Status{campaign.StatusPaused, campaign.StatusActive, campaign.StatusPaused, campaign.StatusActive} {
			must(r.store.SetCampaignStatus(t.Context(), c.ID, to))(t)
			wait.Until(t, "the schedule follows: "+string(to), func() bool {
				d := r.schedule(t, c)
				return d != nil && d.Schedule.State.Paused == (to == campaign.StatusPaused)
			})
		}
		must(r.store.SetCampaignStatus(t.Context(), c.ID, campaign.StatusEnded))(t)
		wait.Until(t, "the schedule is gone", func() bool { return r.schedule(t, c) == nil })
		r.days(t, c, 0)
	})

	t.Run("what was missed is made late, or given up when it would have expired", func(t *testing.T) {
		c := r.campaign(t, "carla", 2*time.Hour, func(c *campaign.Campaign, _ time.Time) {
			c.Template.Life, c.Template.Eligible, c.Template.Packet.EligibleCount = 30*3600, []string{"u1"}, 1
		})
		wait.Until(t, "a schedule", func() bool { return r.schedule(t, c) != nil })
		// After two days without a run: the packet of the day before yesterday has expired,
		// yesterday's has not.
		before := c.NextDay.Add(-2)
		exec(t, r.sql(t), 1, "UPDATE campaigns SET next_day = ?, next_opens = next_opens - INTERVAL 2 DAY WHERE id = ?", string(before), c.ID)
		days := r.days(t, c, 2)
		if days[0].Status != campaign.DayMissed || days[0].Day != before || days[1].Status != campaign.DayCreated ||
			days[1].Day != before.Add(1) {
			t.Fatalf("%+v", days)
		}
		rec := r.awaitStatus(t, days[1].PacketID, packet.StatusOpen)
		if !rec.OpensAt.Equal(c.NextOpens.Add(-24 * time.Hour)) {
			t.Errorf("%+v", rec)
		}
		wait.Until(t, "a grab of the late one", func() bool {
			got, err := r.pool.Grab(t.Context(), days[1].PacketID, "u1", packet.Profile{})
			return err == nil && got.Claim.Amount > 0
		})
		if got := must(r.pool.Grab(t.Context(), days[1].PacketID, "stranger", packet.Profile{}))(t); got.Result != packet.GrabNotEligible {
			t.Errorf("a second day of one run has lost its guests: %+v", got)
		}
		r.chargedOnce(t, "carla")
		if next := must(r.store.Campaign(t.Context(), c.ID))(t); next.NextDay != c.NextDay {
			t.Errorf("then: %+v", next)
		}
	})

	t.Run("a user wins once in all packets, also when their lane is made again", func(t *testing.T) {
		c := r.campaign(t, "olga", 2*time.Hour, func(c *campaign.Campaign, _ time.Time) {
			c.Template.Life, c.Template.Packet.OneWin = 7*24*3600, true
		})
		exec(t, r.sql(t), 1, "UPDATE campaigns SET next_day = ?, next_opens = next_opens - INTERVAL 2 DAY WHERE id = ?",
			string(c.NextDay.Add(-2)), c.ID)
		days := r.days(t, c, 2)
		for _, d := range days {
			r.awaitOpen(t, d.PacketID)
		}
		grab := func(day int, user string) packet.GrabAnswer {
			return must(r.pool.Grab(t.Context(), days[day].PacketID, user, packet.Profile{}))(t)
		}
		won := grab(0, "u1")
		if won.Result != packet.GrabWon {
			t.Fatalf("%+v", won)
		}
		if got := grab(1, "u1"); got.Result != packet.GrabNotEligible || !got.WonBefore {
			t.Errorf("the second day: %+v", got)
		}
		r.awaitPayout(t, won.Claim, payout.StatusPaid) // the lane is made again from the rows
		r.flush(t)
		var got packet.GrabAnswer
		wait.Until(t, "the lane is open again", func() (open bool) {
			var err error
			got, err = r.pool.Grab(t.Context(), days[1].PacketID, "u1", packet.Profile{})
			return err == nil
		})
		if got.Result != packet.GrabNotEligible || !got.WonBefore {
			t.Errorf("the second day, made again: %+v", got)
		}
		if got := grab(1, "u2"); got.Result != packet.GrabWon {
			t.Errorf("another user: %+v", got)
		}
	})

	t.Run("a run that died after the packet was made, and many at once, make no other", func(t *testing.T) {
		c := r.campaign(t, "dora", 5*time.Minute, func(c *campaign.Campaign, _ time.Time) {
			c.Template.Eligible, c.Template.Packet.EligibleCount = []string{"u2", "u1"}, 2
		})
		day := r.days(t, c, 1)[0]
		db := r.sql(t)
		exec(t, db, 1, "DELETE FROM campaign_days WHERE campaign_id = ?", c.ID)
		exec(t, db, 1, "UPDATE campaigns SET next_day = ?, next_opens = ? WHERE id = ?", string(day.Day), day.OpensAt, c.ID)
		done := make(chan error, 8)
		for range cap(done) {
			go func() { done <- r.makeCampaignPackets(c.ID) }()
		}
		for range cap(done) {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if again := r.days(t, c, 1)[0]; again.PacketID != day.PacketID || again.Status != campaign.DayCreated {
			t.Errorf("%+v, then %+v", day, again)
		}
		r.chargedOnce(t, "dora")
		if rec := must(r.store.Packet(t.Context(), day.PacketID))(t); len(rec.Eligible) != 2 {
			t.Errorf("who may grab: %q", rec.Eligible)
		}
	})

	t.Run("a charge that is declined rejects the packet of that day alone", func(t *testing.T) {
		c := r.campaign(t, "~broke", 5*time.Minute, nil)
		day := r.days(t, c, 1)[0]
		r.awaitStatus(t, day.PacketID, packet.StatusRejected)
		if next := must(r.store.Campaign(t.Context(), c.ID))(t); next.Status != campaign.StatusActive || next.NextDay != day.Day.Add(1) {
			t.Errorf("%+v", next)
		}
	})

	t.Run("it ends after its last day", func(t *testing.T) {
		c := r.campaign(t, "emma", 5*time.Minute, func(c *campaign.Campaign, opens time.Time) { c.EndsOn = payout.DayOf(opens, time.UTC) })
		r.days(t, c, 1)
		wait.Until(t, "it has ended, and its schedule is gone", func() bool {
			return must(r.store.Campaign(t.Context(), c.ID))(t).Status == campaign.StatusEnded && r.schedule(t, c) == nil
		})
	})
}

// TestCampaignDayWaitsForTheRow: a day counts as made once MySQL has its packet. A packet that
// only Redis has would be lost in a rebuild.
func TestCampaignDayWaitsForTheRow(t *testing.T) {
	t.Parallel()
	temporal, ns := stacktest.Temporal(t)
	r := newParts(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), temporal, ns)
	c := r.campaign(t, "frida", 5*time.Minute, nil)
	if err := r.makeCampaignPackets(c.ID); err == nil {
		t.Fatal("a step succeeds without a row")
	}
	if days := must(r.store.CampaignDays(t.Context(), c.ID, "", 5))(t); len(days) != 1 || days[0].Status != campaign.DayCreating ||
		days[0].PacketID != c.PacketID(c.NextDay) {
		t.Errorf("%+v", days)
	}
	if view := must(r.pool.View(t.Context(), c.PacketID(c.NextDay)))(t); view.State != packet.PoolFunding {
		t.Errorf("%+v", view)
	}
	r.startWorker(t)
	if day := r.days(t, c, 1)[0]; day.Status != campaign.DayCreated || day.PacketID != c.PacketID(c.NextDay) {
		t.Errorf("%+v", day)
	}
	r.chargedOnce(t, "frida")
}

// TestCampaignDayHoldsUpNoOther: a day whose packet is never recorded is retried until its time
// is over, and the next day's packet is created.
func TestCampaignDayHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	temporal, ns := stacktest.Temporal(t)
	r := newParts(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), temporal, ns)
	db := r.sql(t)
	c := r.campaign(t, "gerda", 5*time.Minute, func(c *campaign.Campaign, _ time.Time) { c.Template.Life = 30 * 3600 })
	first, second := c.NextDay.Add(-1), c.NextDay
	exec(t, db, 1, "UPDATE campaigns SET next_day = ?, next_opens = next_opens - INTERVAL 1 DAY WHERE id = ?", string(first), c.ID)
	if err := r.makeCampaignPackets(c.ID); err == nil {
		t.Fatal("a step succeeds without a row")
	}
	for _, day := range []payout.Day{first, second} {
		if view := must(r.pool.View(t.Context(), c.PacketID(day)))(t); view.State != packet.PoolFunding {
			t.Errorf("%s: %+v", day, view)
		}
	}
	// The first packet expires in Redis. The second has another body: before the restore of MySQL
	// a campaign with another body had the same id.
	exec(t, db, 1, "UPDATE campaign_days SET opens_at = opens_at - INTERVAL 1 DAY WHERE campaign_id = ? AND day = ?", c.ID, string(first))
	exec(t, db, 1, "UPDATE campaigns SET body_hash = ? WHERE id = ?", strings.Repeat("a", 64), c.ID)
	if err := r.makeCampaignPackets(c.ID); err != nil {
		t.Error(err)
	}
	for _, day := range r.days(t, c, 2) {
		if day.Status != campaign.DayCreated {
			t.Errorf("%+v", day)
		}
	}
}

// TestCampaignWithoutItsGuests: a list that cannot be read whole lets nobody in.
func TestCampaignWithoutItsGuests(t *testing.T) {
	t.Parallel()
	temporal, ns := stacktest.Temporal(t)
	r := newParts(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), temporal, ns)
	db := r.sql(t)
	c := r.campaign(t, "hilde", 5*time.Minute, func(c *campaign.Campaign, _ time.Time) {
		c.Template.Eligible, c.Template.Packet.EligibleCount = []string{"u1", "u2"}, 2
	})
	exec(t, db, 1, "UPDATE campaigns SET eligible = NULL WHERE id = ?", c.ID)
	if err := r.makeCampaignPackets(c.ID); err == nil {
		t.Fatal("it is made")
	}
	if _, err := r.pool.View(t.Context(), c.PacketID(c.NextDay)); !errors.Is(err, packet.ErrNotFound) {
		t.Errorf("%v", err)
	}
	exec(t, db, 1, "UPDATE campaign_days SET opens_at = opens_at - INTERVAL 1 DAY WHERE campaign_id = ?", c.ID)
	if err := r.makeCampaignPackets(c.ID); err != nil {
		t.Error(err)
	}
	if day := r.days(t, c, 1)[0]; day.Status != campaign.DayMissed {
		t.Errorf("%+v", day)
	}
}

// bounded is a provider that pays from least to most fen.
type bounded struct {
	payout.Provider
	least, most money.Fen
}

func (b bounded) Limits() payout.Limits {
	l := b.Provider.Limits()
	l.MinPayout, l.MaxPayout = b.least, b.most
	return l
}

// TestCampaignDayWithinTheLimits: the packet of a day has the bounds of the provider of that day. A day that no
// provider would pay waits for another one until it is missed.
func TestCampaignDayWithinTheLimits(t *testing.T) {
	t.Parallel()
	temporal, ns := stacktest.Temporal(t)
	r := newParts(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), temporal, ns)
	c := r.campaign(t, "ingrid", 5*time.Minute, nil)
	steps := r.campaignSteps()
	steps.Providers = payout.OnlyProvider(bounded{r.provider, 101, 0})
	if err := runCampaignSteps(steps, c.ID); err == nil {
		t.Fatal("the packet is made")
	}
	if _, err := r.pool.View(t.Context(), c.PacketID(c.NextDay)); !errors.Is(err, packet.ErrNotFound) {
		t.Errorf("%v", err)
	}
	steps.Providers = payout.OnlyProvider(bounded{r.provider, 90, 200})
	if err := runCampaignSteps(steps, c.ID); err == nil { // no worker writes its row
		t.Fatal("the day is decided")
	}
	view, err := r.pool.View(t.Context(), c.PacketID(c.NextDay))
	if p := view.Packet; err != nil || p.MinShare != 90 || p.MaxShare != 200 {
		t.Errorf("%+v, %v", view, err)
	}
	late := r.campaign(t, "jonas", 5*time.Minute, nil)
	steps.Providers = payout.OnlyProvider(bounded{r.provider, 0, 99})
	if err := runCampaignSteps(steps, late.ID); err == nil {
		t.Fatal("the packet is made")
	}
	exec(t, r.sql(t), 1, "UPDATE campaign_days SET opens_at = opens_at - INTERVAL 1 DAY WHERE campaign_id = ?", late.ID)
	if err := runCampaignSteps(steps, late.ID); err != nil {
		t.Error(err)
	}
	if day := r.days(t, late, 1)[0]; day.Status != campaign.DayMissed {
		t.Errorf("%+v", day)
	}
}

// TestScheduleOfAnEarlierChange: a worker that applies an older change after a newer one is
// detected, and the schedule gets the newer one.
func TestScheduleOfAnEarlierChange(t *testing.T) {
	t.Parallel()
	temporal, ns := stacktest.Temporal(t)
	r := newParts(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), temporal, ns)
	c := r.campaign(t, "inge", 2*time.Hour, nil)
	paused := must(r.store.SetCampaignStatus(t.Context(), c.ID, campaign.StatusPaused))(t)
	ended := must(r.store.SetCampaignStatus(t.Context(), c.ID, campaign.StatusEnded))(t)
	for _, late := range []campaign.Campaign{ended, c, paused} {
		if err := errors.Join(r.starter.ScheduleCampaign(t.Context(), late),
			r.store.MarkCampaignSynced(t.Context(), late.ID, late.Revision)); err != nil {
			t.Fatal(err)
		}
	}
	wait.Until(t, "an orphan", func() bool { return r.schedule(t, c) != nil })
	r.startWorker(t)
	wait.Until(t, "the orphan is gone", func() bool { return r.schedule(t, c) == nil })
}
