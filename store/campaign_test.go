package store

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"hongbao/campaign"
	"hongbao/observe"
	"hongbao/packet"
	"hongbao/payout"
)

// sampleCampaign opens at 20:00 in Shanghai, from the first day that is possible on.
func sampleCampaign() campaign.Campaign {
	p := samplePacket(100, 2)
	id := campaign.NewID([]byte(rand.Text()), "key")
	return campaign.Campaign{ID: id, App: "app", Name: "evening rain 🧧", Salt: campaign.NewSalt([]byte("salt"), id), Zone: "Asia/Shanghai", Minute: 20 * 60, BodyHash: strings.Repeat("c", 64),
		Template: campaign.Template{Life: 3600, Eligible: []string{"u1", "用户"}, Packet: packet.Packet{SenderID: "sender", Currency: p.Currency, TotalAmount: 100, ShareCount: 2,
			Split: p.Split, MinShare: 1, GroupID: p.GroupID, Metadata: p.Metadata, EligibleCount: 2}}}
}

// campaignClock stands on noon UTC, which is 20:00 in Shanghai, plus some time.
func campaignClock(t *testing.T, after time.Duration) (*Store, *clock) {
	t.Helper()
	s, c := newStore(t)
	c.at = time.Date(2026, 2, 17, 12, 0, 0, 0, time.UTC).Add(after)
	return s, c
}

func TestCreateCampaign(t *testing.T) {
	s, clock := campaignClock(t, -time.Minute)
	want := sampleCampaign()
	made, existed, err := s.CreateCampaign(t.Context(), want)
	must(t, err)
	if existed || made.Status != campaign.StatusActive || made.StartsOn != "2026-02-17" || made.NextDay != "2026-02-17" || !made.NextOpens.Equal(time.Date(2026, 2, 17, 12, 0, 0, 0, time.UTC)) {
		t.Fatalf("%+v", made)
	}
	clock.pass(48 * time.Hour)
	again, existed, err := s.CreateCampaign(t.Context(), want)
	must(t, err)
	if !existed || again.NextDay != made.NextDay || !again.CreatedAt.Equal(made.CreatedAt) || again.Template.Eligible[1] != "用户" || again.Template.Life != 3600 || *again.Template.Packet.GroupID != "group" {
		t.Errorf("again: %+v", again)
	}
	other := want
	other.BodyHash = strings.Repeat("d", 64)
	_, _, err = s.CreateCampaign(t.Context(), other)
	wantErr(t, err, ErrConflict)

	past := sampleCampaign()
	past.StartsOn, past.EndsOn = "2026-02-01", "2026-02-18"
	_, _, err = s.CreateCampaign(t.Context(), past)
	wantErr(t, err, campaign.ErrNoDay)
	_, err = s.Campaign(t.Context(), past.ID)
	wantErr(t, err, ErrNotFound)

	race := sampleCampaign()
	existing := make([]bool, 8)
	for _, err := range together(8, func(i int) error {
		_, there, err := s.CreateCampaign(t.Context(), race)
		existing[i] = there
		return err
	}) {
		must(t, err)
	}
	created := 0
	for _, there := range existing {
		if !there {
			created++
		}
	}
	if created != 1 {
		t.Errorf("created %d times", created)
	}
}

// TestCampaignDays: each day is decided once, in order; after the last one it ends.
func TestCampaignDays(t *testing.T) {
	s, clock := campaignClock(t, -time.Hour)
	c := sampleCampaign()
	c.EndsOn = "2026-02-19"
	c, _, err := s.CreateCampaign(t.Context(), c)
	must(t, err)
	day := func(d payout.Day, status campaign.DayStatus) campaign.Day {
		opens, err := c.Opening(d)
		must(t, err)
		return campaign.Day{Day: d, Status: status, PacketID: c.PacketID(d), OpensAt: opens}
	}
	_, err = s.DecideDay(t.Context(), c.ID, day("2026-02-18", campaign.DayMissed))
	wantErr(t, err, ErrMoved)
	for range 2 { // a repeat changes nothing
		got, err := s.DecideDay(t.Context(), c.ID, day("2026-02-17", campaign.DayMade))
		must(t, err)
		if got.NextDay != "2026-02-18" || got.Status != campaign.StatusActive || got.Revision != 1 {
			t.Fatalf("%+v", got)
		}
	}
	_, err = s.DecideDay(t.Context(), c.ID, day("2026-02-17", campaign.DayMissed))
	wantErr(t, err, ErrMoved)
	clock.pass(50 * time.Hour)
	made(s.DecideDay(t.Context(), c.ID, day("2026-02-18", campaign.DayMissed)))(t)
	got := made(s.DecideDay(t.Context(), c.ID, day("2026-02-19", campaign.DayMade)))(t)
	if got.Status != campaign.StatusEnded || got.NextDay != "" || !got.NextOpens.IsZero() || got.EndedAt.IsZero() || got.Revision != 2 {
		t.Errorf("after the last day: %+v", got)
	}
	first := made(s.CampaignDays(t.Context(), c.ID, "", 2))(t)
	rest := made(s.CampaignDays(t.Context(), c.ID, first[1].Day, 2))(t)
	if len(first) != 2 || first[0].Day != "2026-02-19" || first[1].Status != campaign.DayMissed || len(rest) != 1 || rest[0].PacketID != c.PacketID("2026-02-17") || !rest[0].OpensAt.Equal(day("2026-02-17", "").OpensAt) {
		t.Errorf("%+v, then %+v", first, rest)
	}
}

// TestSetCampaign: a pause leaves days out, and what was made before one is not made again.
func TestSetCampaign(t *testing.T) {
	s, clock := campaignClock(t, -5*time.Minute)
	c, _, err := s.CreateCampaign(t.Context(), sampleCampaign())
	must(t, err)
	opens := c.NextOpens
	paused := made(s.SetCampaign(t.Context(), c.ID, campaign.StatusPaused))(t)
	if paused.Status != campaign.StatusPaused || paused.NextDay != "" || paused.Revision != 2 {
		t.Fatalf("%+v", paused)
	}
	// Its packet was being made just then.
	made(s.DecideDay(t.Context(), c.ID, campaign.Day{Day: "2026-02-17", Status: campaign.DayMade, PacketID: c.PacketID("2026-02-17"), OpensAt: opens}))(t)
	if again := made(s.SetCampaign(t.Context(), c.ID, campaign.StatusPaused))(t); again.Revision != 2 {
		t.Errorf("paused twice: %+v", again)
	}
	if resumed := made(s.SetCampaign(t.Context(), c.ID, campaign.StatusActive))(t); resumed.NextDay != "2026-02-18" || resumed.Status != campaign.StatusActive {
		t.Errorf("resumed: %+v", resumed)
	}
	made(s.SetCampaign(t.Context(), c.ID, campaign.StatusPaused))(t)
	clock.pass(72 * time.Hour)
	if resumed := made(s.SetCampaign(t.Context(), c.ID, campaign.StatusActive))(t); resumed.NextDay != "2026-02-20" {
		t.Errorf("resumed after three days: %+v", resumed)
	}
	ended := made(s.SetCampaign(t.Context(), c.ID, campaign.StatusEnded))(t)
	if ended.EndedAt.IsZero() || made(s.SetCampaign(t.Context(), c.ID, campaign.StatusEnded))(t).Revision != ended.Revision {
		t.Errorf("ended: %+v", ended)
	}
	for _, to := range []campaign.Status{campaign.StatusActive, campaign.StatusPaused} {
		_, err := s.SetCampaign(t.Context(), c.ID, to)
		wantErr(t, err, campaign.ErrEnded)
	}
	_, err = s.SetCampaign(t.Context(), newID(), campaign.StatusEnded)
	wantErr(t, err, ErrNotFound)

	short := sampleCampaign()
	short.EndsOn = "2026-02-20"
	short, _, err = s.CreateCampaign(t.Context(), short)
	must(t, err)
	made(s.SetCampaign(t.Context(), short.ID, campaign.StatusPaused))(t)
	clock.pass(24 * time.Hour)
	if over := made(s.SetCampaign(t.Context(), short.ID, campaign.StatusActive))(t); over.Status != campaign.StatusEnded {
		t.Errorf("resumed when no day was left: %+v", over)
	}
}

// TestCampaignsAreLookedAfter: what worker and lists read.
func TestCampaignsAreLookedAfter(t *testing.T) {
	s, clock := campaignClock(t, -time.Hour)
	ids := func(all []campaign.Campaign, err error) string {
		t.Helper()
		must(t, err)
		out := make([]string, len(all))
		for i, c := range all {
			out[i] = c.ID
			if c.Template.Eligible != nil {
				t.Error("a list reads who may grab")
			}
		}
		return strings.Join(out, " ")
	}
	a, _, err := s.CreateCampaign(t.Context(), sampleCampaign())
	must(t, err)
	other := sampleCampaign()
	other.App = "another"
	other.Minute = 23 * 60
	b, _, err := s.CreateCampaign(t.Context(), other)
	must(t, err)
	low, high := min(a.ID, b.ID), max(a.ID, b.ID)
	if got := ids(s.UnsyncedCampaigns(t.Context(), 5)); got != low+" "+high {
		t.Errorf("unsynced: %s", got)
	}
	must(t, s.CampaignSynced(t.Context(), a.ID, 1))
	must(t, s.CampaignSynced(t.Context(), b.ID, 0)) // it has changed since
	if got := ids(s.UnsyncedCampaigns(t.Context(), 5)); got != b.ID {
		t.Errorf("unsynced: %s", got)
	}
	if got := ids(s.ScheduledCampaigns(t.Context(), low, 5)); got != high {
		t.Errorf("scheduled after one: %s", got)
	}
	if got := ids(s.LateCampaigns(t.Context(), 5)); got != "" {
		t.Errorf("late an hour before: %s", got)
	}
	clock.pass(50*time.Minute + campaign.Late)
	if got := ids(s.LateCampaigns(t.Context(), 5)); got != a.ID {
		t.Errorf("late: %s, want %s", got, a.ID)
	}
	made(s.SetCampaign(t.Context(), a.ID, campaign.StatusEnded))(t)
	if got := ids(s.LateCampaigns(t.Context(), 5)) + ids(s.ScheduledCampaigns(t.Context(), "", 5)); got != b.ID {
		t.Errorf("late, and scheduled: %s", got)
	}
	if got := ids(s.UnsyncedCampaigns(t.Context(), 5)); got != low+" "+high {
		t.Errorf("unsynced: %s", got)
	}
	if got := ids(s.Campaigns(t.Context(), "app", "", packet.Place{}, 5)) + ids(s.Campaigns(t.Context(), "another", campaign.StatusEnded, packet.Place{}, 5)); got != a.ID {
		t.Errorf("lists: %s", got)
	}
	if got := ids(s.Campaigns(t.Context(), "app", "", packet.Place{At: a.CreatedAt, ID: a.ID}, 5)); got != "" {
		t.Errorf("behind the only one: %s", got)
	}
}

func TestVitalsOfCampaigns(t *testing.T) {
	s, clock := campaignClock(t, -time.Hour)
	vitals := func() (v observe.Vitals) {
		t.Helper()
		must(t, NewVitals(s).campaigns(t.Context(), &v))
		return v
	}
	c, _, err := s.CreateCampaign(t.Context(), sampleCampaign())
	must(t, err)
	if v := vitals(); v.Campaigns != (observe.Backlog{}) || v.CampaignDays != (observe.Backlog{}) {
		t.Errorf("new: %+v", v)
	}
	clock.pass(55 * time.Minute)
	if v := vitals(); v.Campaigns.Waiting != 1 || !v.Campaigns.Oldest.Equal(c.NextOpens.Add(-campaign.Lead)) {
		t.Errorf("late: %+v", v)
	}
	p := samplePacket(100, 2)
	p.ID = c.PacketID(c.NextDay)
	recorded(t, s, p)
	c = made(s.DecideDay(t.Context(), c.ID, campaign.Day{Day: c.NextDay, Status: campaign.DayMade, PacketID: p.ID, OpensAt: c.NextOpens}))(t)
	if v := vitals(); v.Campaigns.Waiting != 0 || v.CampaignDays.Waiting != 0 {
		t.Errorf("made: %+v", v)
	}
	fail(t, s, chargeID(p))
	must(t, s.RejectPacket(t.Context(), p.ID, packet.Failure{Code: "declined", Message: "no"}))
	if v := vitals(); v.CampaignDays.Waiting != 1 {
		t.Errorf("rejected: %+v", v)
	}
	clock.pass(12 * time.Hour)
	made(s.DecideDay(t.Context(), c.ID, campaign.Day{Day: c.NextDay, Status: campaign.DayMissed, PacketID: c.PacketID(c.NextDay), OpensAt: c.NextOpens}))(t)
	if v := vitals(); v.CampaignDays.Waiting != 2 || v.CampaignDays.Oldest.IsZero() {
		t.Errorf("missed: %+v", v)
	}
	clock.pass(13 * time.Hour)
	if v := vitals(); v.CampaignDays.Waiting != 1 {
		t.Errorf("a day after the first: %+v", v)
	}
}
