package store

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hongbao/internal/campaign"
	"hongbao/internal/money"
	"hongbao/internal/observe"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/store/report"
	"hongbao/internal/store/storetest"
)

// sampleCampaign opens at 20:00 in Shanghai, from the first possible day on.
func sampleCampaign() campaign.Campaign {
	p := samplePacket(100, 2)
	id := campaign.NewID([]byte(rand.Text()), "key")
	return campaign.Campaign{ID: id, App: "app", Name: "evening rain 🧧", Salt: campaign.NewSalt([]byte("salt"), id), Zone: "Asia/Shanghai",
		Minute: 20 * 60, BodyHash: strings.Repeat("c", 64),
		Template: campaign.Template{Life: 3600, Eligible: []string{"u1", "用户"}, Packet: packet.Packet{SenderID: "sender", Currency: p.Currency,
			TotalAmount: 100, ShareCount: 2,
			Split: p.Split, MinShare: 1, GroupID: p.GroupID, Metadata: p.Metadata, EligibleCount: 2}}}
}

// campaignClock starts at noon UTC, 20:00 in Shanghai, plus after.
func campaignClock(t *testing.T, after time.Duration) (*testStore, *storetest.Clock) {
	t.Helper()
	s, c := newStore(t)
	c.At = time.Date(2026, 2, 17, 12, 0, 0, 0, time.UTC).Add(after)
	return s, c
}

func TestCreateCampaign(t *testing.T) {
	t.Parallel()
	s, clock := campaignClock(t, -time.Minute)
	want := sampleCampaign()
	made, existed, err := s.CreateCampaign(t.Context(), want)
	must(t, err)
	if existed || made.Status != campaign.StatusActive || made.StartsOn != "2026-02-17" || made.NextDay != "2026-02-17" ||
		!made.NextOpens.Equal(time.Date(2026, 2, 17, 12, 0, 0, 0, time.UTC)) {
		t.Fatalf("%+v", made)
	}
	clock.Pass(48 * time.Hour)
	again, existed, err := s.CreateCampaign(t.Context(), want)
	must(t, err)
	if !existed || again.NextDay != made.NextDay || !again.CreatedAt.Equal(made.CreatedAt) || again.Template.Eligible[1] != "用户" ||
		again.Template.Life != 3600 || *again.Template.Packet.GroupID != "group" {
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

// reserved reserves the next day of a campaign.
func reserved(t *testing.T, s *testStore, c campaign.Campaign) campaign.Day {
	t.Helper()
	d, ok, err := s.ReserveDay(t.Context(), c.ID)
	must(t, err)
	if !ok || d.Status != campaign.DayCreating || d.PacketID != c.PacketID(d.Day) {
		t.Fatalf("%t, %+v", ok, d)
	}
	return d
}

// nothingDue checks that no day can be reserved.
func nothingDue(t *testing.T, s *testStore, c campaign.Campaign) {
	t.Helper()
	if d, ok, err := s.ReserveDay(t.Context(), c.ID); ok || err != nil {
		t.Fatalf("reserved %+v, %v", d, err)
	}
}

// TestReserveDay: each day is reserved once, in order and when it is due; after the last one the
// campaign ends.
func TestReserveDay(t *testing.T) {
	t.Parallel()
	s, clock := campaignClock(t, -time.Hour)
	c := sampleCampaign()
	c.EndsOn = "2026-02-19"
	c, _, err := s.CreateCampaign(t.Context(), c)
	must(t, err)
	nothingDue(t, s, c)
	clock.Pass(50*time.Minute - campaign.ClockSkew - time.Second)
	nothingDue(t, s, c)
	clock.Pass(time.Second) // the caller's clock may be ahead of MySQL's by that much
	found := make([]bool, 8)
	for _, err := range together(8, func(i int) (err error) {
		_, found[i], err = s.ReserveDay(t.Context(), c.ID)
		return err
	}) {
		must(t, err)
	}
	once := 0
	for _, ok := range found {
		if ok {
			once++
		}
	}
	if once != 1 {
		t.Errorf("reserved %d times", once)
	}
	got := made(s.Campaign(t.Context(), c.ID))(t)
	if got.NextDay != "2026-02-18" || got.Status != campaign.StatusActive || got.Revision != 1 {
		t.Fatalf("%+v", got)
	}
	clock.Pass(50 * time.Hour)
	if second, third := reserved(t, s, c), reserved(t, s, c); second.Day != "2026-02-18" || third.Day != "2026-02-19" ||
		!third.OpensAt.Equal(c.NextOpens.AddDate(0, 0, 2)) {
		t.Errorf("%+v, %+v", second, third)
	}
	nothingDue(t, s, c)
	got = made(s.Campaign(t.Context(), c.ID))(t)
	if got.Status != campaign.StatusEnded || got.NextDay != "" || !got.NextOpens.IsZero() || got.EndedAt.IsZero() || got.Revision != 2 {
		t.Errorf("after the last day: %+v", got)
	}
	days := made(s.ReservedDays(t.Context(), c.ID, 2))(t)
	if len(days) != 2 || days[0].Day != "2026-02-17" || days[1].Day != "2026-02-18" {
		t.Errorf("%+v", days)
	}
	_, _, err = s.ReserveDay(t.Context(), newID())
	wantErr(t, err, ErrNotFound)
}

// TestReserveOrPause: a pause comes before or after the reservation of a day.
func TestReserveOrPause(t *testing.T) {
	t.Parallel()
	s, _ := campaignClock(t, -time.Minute)
	for range 20 {
		c, _, err := s.CreateCampaign(t.Context(), sampleCampaign())
		must(t, err)
		found := make([]bool, 4)
		for _, err := range together(5, func(i int) (err error) {
			if i == 4 {
				_, err = s.SetCampaignStatus(t.Context(), c.ID, campaign.StatusPaused)
				return err
			}
			_, found[i], err = s.ReserveDay(t.Context(), c.ID)
			return err
		}) {
			must(t, err)
		}
		days := made(s.ReservedDays(t.Context(), c.ID, 5))(t)
		if reserved := slices.Contains(found, true); reserved != (len(days) == 1) || len(days) > 1 {
			t.Errorf("%v, and %+v", found, days)
		}
		nothingDue(t, s, c) // from then on
		if got := made(s.Campaign(t.Context(), c.ID))(t); got.Status != campaign.StatusPaused {
			t.Errorf("%+v", got)
		}
	}
}

// TestDecideDay: a reserved day is decided once; made wins.
func TestDecideDay(t *testing.T) {
	t.Parallel()
	s, clock := campaignClock(t, -time.Minute)
	c, _, err := s.CreateCampaign(t.Context(), sampleCampaign())
	must(t, err)
	wantErr(t, s.DecideDay(t.Context(), c.ID, c.NextDay, campaign.DayCreated), ErrMoved)
	first := reserved(t, s, c)
	status := func(want campaign.DayStatus) {
		t.Helper()
		days := made(s.CampaignDays(t.Context(), c.ID, "", 1))(t)
		if len(days) != 1 || days[0].Status != want || days[0].Day != first.Day {
			t.Fatalf("%+v, want %s", days, want)
		}
	}
	status(campaign.DayCreating)
	must(t, s.DecideDay(t.Context(), c.ID, first.Day, campaign.DayMissed))
	status(campaign.DayMissed)
	for _, then := range []campaign.DayStatus{campaign.DayCreated, campaign.DayCreated, campaign.DayMissed} {
		must(t, s.DecideDay(t.Context(), c.ID, first.Day, then))
		status(campaign.DayCreated)
	}

	clock.Pass(24 * time.Hour)
	first = reserved(t, s, c)
	must(t, s.DecideDay(t.Context(), c.ID, first.Day, campaign.DayMissed))
	p := samplePacket(100, 2)
	p.ID = first.PacketID
	recorded(t, s, p)
	status(campaign.DayCreated) // the packet has a row

	clock.Pass(24 * time.Hour)
	first = reserved(t, s, c)
	made(s.CompareHeartbeat(t.Context(), 1000))(t) // a number above MySQL's is known
	wantErr(t, s.DecideDay(t.Context(), c.ID, first.Day, campaign.DayMissed), payout.ErrMySQLRestored)
	status(campaign.DayCreating)
	must(t, s.DecideDay(t.Context(), c.ID, first.Day, campaign.DayCreated))
	status(campaign.DayCreated)
	clock.Pass(24 * time.Hour)
	_, _, err = s.ReserveDay(t.Context(), c.ID)
	wantErr(t, err, payout.ErrMySQLRestored)
}

// TestSetCampaignStatus: a pause skips days, and a day made before the pause is not made again.
func TestSetCampaignStatus(t *testing.T) {
	t.Parallel()
	s, clock := campaignClock(t, -5*time.Minute)
	c, _, err := s.CreateCampaign(t.Context(), sampleCampaign())
	must(t, err)
	reserved(t, s, c) // its packet is being made
	paused := made(s.SetCampaignStatus(t.Context(), c.ID, campaign.StatusPaused))(t)
	if paused.Status != campaign.StatusPaused || paused.NextDay != "" || paused.Revision != 2 {
		t.Fatalf("%+v", paused)
	}
	must(t, s.DecideDay(t.Context(), c.ID, "2026-02-17", campaign.DayCreated))
	if again := made(s.SetCampaignStatus(t.Context(), c.ID, campaign.StatusPaused))(t); again.Revision != 2 {
		t.Errorf("paused twice: %+v", again)
	}
	if resumed := made(s.SetCampaignStatus(t.Context(), c.ID, campaign.StatusActive))(t); resumed.NextDay != "2026-02-18" ||
		resumed.Status != campaign.StatusActive {
		t.Errorf("resumed: %+v", resumed)
	}
	made(s.SetCampaignStatus(t.Context(), c.ID, campaign.StatusPaused))(t)
	clock.Pass(72 * time.Hour)
	if resumed := made(s.SetCampaignStatus(t.Context(), c.ID, campaign.StatusActive))(t); resumed.NextDay != "2026-02-20" {
		t.Errorf("resumed after three days: %+v", resumed)
	}
	ended := made(s.SetCampaignStatus(t.Context(), c.ID, campaign.StatusEnded))(t)
	if ended.EndedAt.IsZero() || made(s.SetCampaignStatus(t.Context(), c.ID, campaign.StatusEnded))(t).Revision != ended.Revision {
		t.Errorf("ended: %+v", ended)
	}
	for _, to := range []campaign.Status{campaign.StatusActive, campaign.StatusPaused} {
		_, err := s.SetCampaignStatus(t.Context(), c.ID, to)
		wantErr(t, err, campaign.ErrEnded)
	}
	_, err = s.SetCampaignStatus(t.Context(), newID(), campaign.StatusEnded)
	wantErr(t, err, ErrNotFound)

	short := sampleCampaign()
	short.EndsOn = "2026-02-20"
	short, _, err = s.CreateCampaign(t.Context(), short)
	must(t, err)
	made(s.SetCampaignStatus(t.Context(), short.ID, campaign.StatusPaused))(t)
	clock.Pass(24 * time.Hour)
	for range 2 { // the repeat, too
		if over := made(s.SetCampaignStatus(t.Context(), short.ID, campaign.StatusActive))(t); over.Status != campaign.StatusEnded {
			t.Errorf("resumed when no day was left: %+v", over)
		}
	}
	other := sampleCampaign()
	other.EndsOn = "2026-02-22"
	other, _, err = s.CreateCampaign(t.Context(), other)
	must(t, err)
	made(s.SetCampaignStatus(t.Context(), other.ID, campaign.StatusEnded))(t)
	clock.Pass(96 * time.Hour)
	_, err = s.SetCampaignStatus(t.Context(), other.ID, campaign.StatusActive) // staff ended it, also now that it would be over
	wantErr(t, err, campaign.ErrEnded)
}

// TestCampaignWatch: what worker and lists read.
func TestCampaignWatch(t *testing.T) {
	t.Parallel()
	s, clock := campaignClock(t, -time.Hour)
	ids := func(all []campaign.Campaign, err error) string {
		t.Helper()
		must(t, err)
		out := make([]string, len(all))
		for i, c := range all {
			out[i] = c.ID
			if c.Template.Eligible != nil {
				t.Error("a list reads the eligible users")
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
	if got := ids(s.UnsyncedCampaigns(t.Context(), "", 5)); got != low+" "+high {
		t.Errorf("unsynced: %s", got)
	}
	must(t, s.MarkCampaignSynced(t.Context(), a.ID, 1))
	must(t, s.MarkCampaignSynced(t.Context(), b.ID, 0)) // it has changed since
	if got := ids(s.UnsyncedCampaigns(t.Context(), "", 5)); got != b.ID {
		t.Errorf("unsynced: %s", got)
	}
	if got := ids(s.ScheduledCampaigns(t.Context(), low, 5)); got != high {
		t.Errorf("scheduled after one: %s", got)
	}
	if got := ids(s.OverdueCampaigns(t.Context(), "", 5)); got != "" {
		t.Errorf("late an hour before: %s", got)
	}
	clock.Pass(50*time.Minute + campaign.OverdueAfter)
	if got := ids(s.OverdueCampaigns(t.Context(), "", 5)); got != a.ID {
		t.Errorf("late: %s, want %s", got, a.ID)
	}
	day := reserved(t, s, a)
	made(s.SetCampaignStatus(t.Context(), a.ID, campaign.StatusEnded))(t)
	if got := ids(s.OverdueCampaigns(t.Context(), "", 5)); got != a.ID {
		t.Errorf("a day that is being made is late, also when the campaign has ended: %s", got)
	}
	if got := ids(s.OverdueCampaigns(t.Context(), a.ID, 5)); got != "" {
		t.Errorf("late after the only one: %s", got)
	}
	must(t, s.DecideDay(t.Context(), a.ID, day.Day, campaign.DayMissed))
	if got := ids(s.OverdueCampaigns(t.Context(), "", 5)) + ids(s.ScheduledCampaigns(t.Context(), "", 5)); got != b.ID {
		t.Errorf("late, and scheduled: %s", got)
	}
	if got := ids(s.UnsyncedCampaigns(t.Context(), "", 5)); got != low+" "+high {
		t.Errorf("unsynced: %s", got)
	}
	if got := ids(s.Campaigns(t.Context(), "app", "", packet.Cursor{}, 5)) +
		ids(s.Campaigns(t.Context(), "another", campaign.StatusEnded, packet.Cursor{}, 5)); got != a.ID {
		t.Errorf("lists: %s", got)
	}
	if got := ids(s.Campaigns(t.Context(), "app", "", packet.Cursor{At: a.CreatedAt, ID: a.ID}, 5)); got != "" {
		t.Errorf("behind the only one: %s", got)
	}
}

func TestHealthOfCampaigns(t *testing.T) {
	t.Parallel()
	s, clock := campaignClock(t, -time.Hour)
	snapshot := func() observe.HealthSnapshot {
		t.Helper()
		v := storetest.NewSnapshot()
		must(t, report.NewHealthReader(s.Source).Read(t.Context(), v))
		return *v
	}
	c, _, err := s.CreateCampaign(t.Context(), sampleCampaign())
	must(t, err)
	lost := func(v observe.HealthSnapshot) (text string) {
		for _, d := range v.CampaignDays {
			text += fmt.Sprintf("%s %d ", d.Kind, d.Waiting)
		}
		return text
	}
	wantLost := func(want string) {
		t.Helper()
		if got := lost(snapshot()); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if v := snapshot(); v.Campaigns != (observe.Backlog{}) {
		t.Errorf("new: %+v", v)
	}
	wantLost("missed 0 declined 0 unopened 0 ")
	clock.Pass(55 * time.Minute)
	late := func() {
		t.Helper()
		if v := snapshot(); v.Campaigns.Waiting != 1 || !v.Campaigns.Oldest.Equal(c.NextOpens.Add(-campaign.CreateAhead)) {
			t.Errorf("late: %+v", v)
		}
	}
	late()
	day := reserved(t, s, c)
	late()
	p := samplePacket(100, 2)
	p.ID = day.PacketID
	recorded(t, s, p)
	must(t, s.DecideDay(t.Context(), c.ID, day.Day, campaign.DayCreated))
	if v := snapshot(); v.Campaigns.Waiting != 0 {
		t.Errorf("made: %+v", v)
	}
	wantLost("missed 0 declined 0 unopened 0 ")
	clock.Pass(30 * time.Hour) // the provider was held that long
	fail(t, s, chargeID(p))
	must(t, s.RejectPacket(t.Context(), p.ID, packet.Failure{Code: "declined", Message: "no"}))
	wantLost("missed 0 declined 1 unopened 0 ")
	clock.Pass(24*time.Hour - time.Minute)
	day = reserved(t, s, c)
	must(t, s.DecideDay(t.Context(), c.ID, day.Day, campaign.DayMissed))
	wantLost("missed 1 declined 1 unopened 0 ")
	clock.Pass(2 * time.Minute)
	wantLost("missed 1 declined 0 unopened 0 ")
	clock.Pass(24 * time.Hour)
	day = reserved(t, s, c)
	p.ID = day.PacketID
	recorded(t, s, p)
	must(t, s.DecideDay(t.Context(), c.ID, day.Day, campaign.DayCreated))
	pay(t, s, chargeID(p))
	clock.Pass(72 * time.Hour)
	made(s.BeginClosing(t.Context(), p.ID, packet.CloseUnopened))(t)
	wantLost("missed 0 declined 0 unopened 1 ")
	day = reserved(t, s, c)
	p.ID, p.OpensAt, p.ExpiresAt = day.PacketID, s.Now().Add(-time.Hour), s.Now()
	recorded(t, s, p)
	must(t, s.DecideDay(t.Context(), c.ID, day.Day, campaign.DayCreated))
	expireCharge(t, s, chargeID(p))
	must(t, s.RejectPacket(t.Context(), p.ID, packet.Failure{Code: payout.FailureExpiredBeforeCharge}))
	wantLost("missed 0 declined 0 unopened 2 ")
}

// TestHealthOfBalances: an app whose balance does not cover the next days of the campaigns that it pays for is
// counted. Days later than in 24 hours, paused campaigns and those that a sender pays for are not. So is one below the
// limit.
func TestHealthOfBalances(t *testing.T) {
	t.Parallel()
	s, _ := campaignClock(t, -time.Hour)
	var limit money.Fen
	short := func(want int64) {
		t.Helper()
		v := storetest.NewSnapshot()
		reader := report.NewHealthReader(s.Source)
		reader.LowBalance = limit
		must(t, reader.Read(t.Context(), v))
		if v.ShortBalances != want {
			t.Errorf("%d apps, want %d", v.ShortBalances, want)
		}
	}
	_, _, err := s.CreateCampaign(t.Context(), sampleCampaign())
	must(t, err)
	short(0)
	paid := sampleCampaign()
	paid.Template.Packet.ChargeProvider = payout.BalanceProvider
	c, _, err := s.CreateCampaign(t.Context(), paid)
	must(t, err)
	short(1)
	total := c.Template.Packet.TotalAmount
	moveBalance(t, s, c.App, payout.PostCredit, total-1)
	short(1)
	moveBalance(t, s, c.App, payout.PostCredit, 1)
	short(0)
	moveBalance(t, s, c.App, payout.PostDebit, 1)
	short(1)
	limit = total
	short(1) // counted once
	made(s.SetCampaignStatus(t.Context(), c.ID, campaign.StatusPaused))(t)
	short(1)
	moveBalance(t, s, c.App, payout.PostCredit, 1)
	short(0)
}

// TestTooManyCampaigns: the number of an app's campaigns that have not ended is bounded.
func TestTooManyCampaigns(t *testing.T) {
	t.Parallel()
	s, _ := campaignClock(t, -time.Hour)
	first, _, err := s.CreateCampaign(t.Context(), sampleCampaign())
	must(t, err)
	must(t, s.db.Gorm.Exec("INSERT INTO campaigns SELECT CONCAT('c', seq), app_id, name, salt, zone, opens_minute, starts_on, ends_on, "+
		"template, eligible, body_hash, status, next_day, next_opens, revision, unsynced, created_at, updated_at, ended_at FROM campaigns, "+
		"seq_1_to_999").Error)
	_, _, err = s.CreateCampaign(t.Context(), sampleCampaign())
	wantErr(t, err, campaign.ErrTooMany)
	again := sampleCampaign()
	again.ID, again.BodyHash = first.ID, first.BodyHash
	if _, existed, err := s.CreateCampaign(t.Context(), again); !existed || err != nil {
		t.Errorf("a repeat: %t, %v", existed, err)
	}
	made(s.SetCampaignStatus(t.Context(), first.ID, campaign.StatusEnded))(t)
	_, _, err = s.CreateCampaign(t.Context(), sampleCampaign())
	must(t, err)
}
