package client_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"hongbao/client"
	"hongbao/internal/campaign"
	"hongbao/internal/devstack/stacktest"
	"hongbao/wire"
)

// evening is a campaign that ends after three days far ahead.
func evening() wire.CreateCampaign {
	return wire.CreateCampaign{Name: "evening rain", TimeZone: "Asia/Tokyo", OpensDailyAt: "20:05",
		StartsOn: "2999-01-01", EndsOn: "2999-01-03",
		Packet: wire.CampaignCreate{SenderID: "u1", TotalAmount: 1000, ShareCount: 4, Split: wire.SplitEven, MinShare: 2, MaxShare: 500,
			Currency: "CNY", Greeting: "恭喜",
			ExpiresInSeconds: 60, EligibleUserIDs: []string{"bob", "carol"}, GroupID: "g", Metadata: map[string]string{"k": "v"}}}
}

func (b *bank) testCampaigns(t *testing.T) {
	ctx, r, key := t.Context(), evening(), rand.Text()
	c, err := b.client.CreateCampaign(ctx, r, client.Key(key))
	b.must(err)
	opens := time.Date(2999, 1, 1, 11, 5, 0, 0, time.UTC)
	if c.ID != campaign.NewID(b.app.Salt, key) || c.Name != r.Name || c.Status != wire.CampaignActive ||
		c.TimeZone != r.TimeZone || c.OpensDailyAt != r.OpensDailyAt ||
		c.StartsOn != r.StartsOn || *c.EndsOn != r.EndsOn || !c.NextOpensAt.Equal(opens) || c.CreatedAt.IsZero() || c.EndedAt != nil ||
		c.Schedule.ID == "" {
		t.Fatalf("campaign %+v", c)
	}
	if p := c.Packet; p.SenderID != "u1" || p.Currency != "CNY" || p.TotalAmount != 1000 || p.ShareCount != 4 || p.Split != wire.SplitEven ||
		p.MinShare != 2 || *p.MaxShare != 500 ||
		p.Greeting != "恭喜" || p.ExpiresInSeconds != 60 || p.EligibleCount != 2 || *p.GroupID != "g" || p.Metadata["k"] != "v" {
		t.Errorf("template %+v", p)
	}
	plain, err := b.client.CreateCampaign(ctx, wire.CreateCampaign{Name: "plain", OpensDailyAt: "00:00",
		Packet: wire.CampaignCreate{SenderID: "u1", TotalAmount: 10, ShareCount: 1, Tickets: true}})
	b.must(err)
	if plain.ID == c.ID || !plain.Packet.Tickets || c.Packet.Tickets || plain.TimeZone != "Asia/Shanghai" || plain.EndsOn != nil ||
		plain.NextOpensAt == nil || plain.Packet.MaxShare != nil || plain.Packet.GroupID != nil || plain.Packet.EligibleCount != 0 {
		t.Errorf("with defaults %+v", plain)
	}
	b.campaignStatuses(ctx, c.ID)
	again, err := b.client.CreateCampaign(ctx, r, client.Key(key))
	b.must(err)
	if again.ID != c.ID || again.Status != wire.CampaignActive || !again.NextOpensAt.Equal(opens) {
		t.Errorf("asked for again %+v", again)
	}
	ids := map[wire.CampaignStatus]string{}
	for item, err := range b.client.Campaigns(ctx, wire.CampaignFilter{}) {
		b.must(err)
		ids[item.Status] += item.ID
	}
	if len(ids) != 2 || ids[wire.CampaignActive] != plain.ID || ids[wire.CampaignEnded] != c.ID {
		t.Errorf("listed %v", ids)
	}
	page, err := b.client.ListCampaigns(ctx, wire.CampaignFilter{Status: wire.CampaignEnded}, client.Page{Limit: 1})
	b.must(err)
	if len(page.Items) != 1 || page.Items[0].ID != c.ID || page.NextCursor != nil {
		t.Errorf("ended ones: %+v", page)
	}
	b.staffCampaigns(ctx, plain.ID, c.ID)
	b.campaignDays(ctx)
	b.campaignRefusals(ctx, r, key)
}

// campaignStatuses pauses a campaign, goes on with it and ends it, each twice.
func (b *bank) campaignStatuses(ctx context.Context, id string) {
	b.t.Helper()
	for _, tc := range []struct {
		change func(context.Context, string) (*wire.Campaign, error)
		want   wire.CampaignStatus
	}{
		{b.client.PauseCampaign, wire.CampaignPaused}, {b.client.ResumeCampaign, wire.CampaignActive},
		{b.client.EndCampaign, wire.CampaignEnded},
	} {
		for range 2 {
			c, err := tc.change(ctx, id)
			b.must(err)
			read, err := b.client.Campaign(ctx, id)
			b.must(err)
			if c.ID != id || c.Status != tc.want || read.Status != tc.want || (c.NextOpensAt != nil) != (tc.want == wire.CampaignActive) ||
				(c.EndedAt != nil) != (tc.want == wire.CampaignEnded) {
				b.t.Errorf("%s: %+v, read %+v", tc.want, c, read)
			}
		}
	}
	for _, change := range []func(context.Context, string) (*wire.Campaign, error){b.client.PauseCampaign, b.client.ResumeCampaign} {
		if c, err := change(ctx, id); !client.IsCode(err, wire.CodeCampaignEnded) || c != nil {
			b.t.Errorf("after its end: %+v, %v", c, err)
		}
	}
}

// staffCampaigns finds and stops an active campaign as people of the staff do.
func (b *bank) staffCampaigns(ctx context.Context, active, ended string) {
	b.t.Helper()
	found := map[string]wire.CampaignStatus{}
	for c, err := range b.staff.Campaigns(ctx, wire.StaffCampaignFilter{App: b.app.ID}) {
		b.must(err)
		if c.App != b.app.ID {
			b.t.Errorf("%+v", c)
		}
		found[c.ID] = c.Status
	}
	if len(found) != 2 || found[active] != wire.CampaignActive || found[ended] != wire.CampaignEnded {
		b.t.Errorf("listed %v", found)
	}
	page, err := b.staff.ListCampaigns(ctx, wire.StaffCampaignFilter{App: "another"}, client.Page{Limit: 1})
	b.must(err)
	if len(page.Items) != 0 {
		b.t.Errorf("of another app: %+v", page)
	}
	for _, stop := range []func(context.Context, string, wire.Reason, ...client.Key) (*wire.StaffCampaign, error){b.staff.PauseCampaign,
		b.staff.EndCampaign} {
		wish, key := wire.Reason{Reason: "ticket 4711"}, client.Key(rand.Text())
		for range 2 {
			c, err := stop(ctx, active, wish, key)
			b.must(err)
			read, err := b.staff.Campaign(ctx, active)
			b.must(err)
			if c.ID != active || c.App != b.app.ID || c.Status == wire.CampaignActive || c.Status != read.Status {
				b.t.Errorf("%+v, then %+v", c, read)
			}
		}
	}
	if c, err := b.staff.PauseCampaign(ctx, ended, wire.Reason{Reason: "r"}); !client.IsCode(err, wire.CodeCampaignEnded) ||
		c != nil {
		b.t.Errorf("%+v, %v", c, err)
	}
	if _, err := b.staff.Campaign(ctx, "nope"); !client.IsCode(err, wire.CodeCampaignNotFound) {
		b.t.Errorf("%v", err)
	}
	if days, err := b.staff.ListCampaignDays(ctx, active, client.Page{}); err != nil || len(days.Items) != 0 {
		b.t.Errorf("%+v, %v", days, err)
	}
}

// campaignDays decides the days of a campaign, as its workflow would, and reads them.
func (b *bank) campaignDays(ctx context.Context) {
	b.t.Helper()
	c, err := b.client.CreateCampaign(ctx, evening())
	b.must(err)
	for _, day := range []campaign.Day{
		{Day: "2999-01-01", Status: campaign.DayMissed, PacketID: "jihgfedcba9876543210", OpensAt: c.NextOpensAt.Time},
		{Day: "2999-01-02", Status: campaign.DayCreated, PacketID: "0123456789abcdefghij", OpensAt: c.NextOpensAt.AddDate(0, 0, 1)},
	} {
		stacktest.CampaignDay(b.t, b.DSN, c.ID, string(day.Day), string(day.Status), day.PacketID, day.OpensAt)
	}
	var days []wire.CampaignDay
	for day, err := range b.client.CampaignDays(ctx, c.ID) {
		b.must(err)
		days = append(days, *day)
	}
	if len(days) != 2 || days[0].Day != "2999-01-02" || days[0].Status != wire.CampaignDayMade ||
		*days[0].PacketID != "0123456789abcdefghij" ||
		!days[0].OpensAt.Equal(c.NextOpensAt.AddDate(0, 0, 1)) || days[0].DecidedAt.IsZero() ||
		days[1].Day != "2999-01-01" || days[1].Status != wire.CampaignDayMissed || days[1].PacketID != nil {
		b.t.Fatalf("days %+v", days)
	}
	first, err := b.client.ListCampaignDays(ctx, c.ID, client.Page{Limit: 1})
	b.must(err)
	second, err := b.client.ListCampaignDays(ctx, c.ID, client.Page{Limit: 1, Cursor: *first.NextCursor})
	b.must(err)
	if len(first.Items) != 1 || len(second.Items) != 1 || first.Items[0].Day != "2999-01-02" || second.Items[0].Day != "2999-01-01" ||
		second.NextCursor != nil {
		b.t.Errorf("pages %+v, %+v", first, second)
	}
}

func (b *bank) campaignRefusals(ctx context.Context, used wire.CreateCampaign, key string) {
	b.t.Helper()
	other, over, wrong := used, evening(), evening()
	other.Name, over.StartsOn, over.EndsOn = "another one", "2020-01-01", "2020-01-31"
	wrong.OpensDailyAt, wrong.Packet.SenderID = "24:00", ""
	create := func(r wire.CreateCampaign, key string) func() error {
		return func() error { _, err := b.client.CreateCampaign(ctx, r, client.Key(key)); return err }
	}
	for name, tc := range map[string]struct {
		do   func() error
		code wire.Code
	}{
		"reused": {create(other, key), wire.CodeKeyReused},
		"no key": {create(evening(), "a b"), wire.CodeKeyRequired},
		"over":   {create(over, "over"), wire.CodeInvalidRequest},
		"wrong":  {create(wrong, "wrong"), wire.CodeInvalidRequest},
		"get":    {func() error { _, err := b.client.Campaign(ctx, "../packets"); return err }, wire.CodeCampaignNotFound},
		"end":    {func() error { _, err := b.client.EndCampaign(ctx, "0123456789abcdefghij"); return err }, wire.CodeCampaignNotFound},
		"days": {func() error {
			_, err := b.client.ListCampaignDays(ctx, "0123456789abcdefghij", client.Page{})
			return err
		}, wire.CodeCampaignNotFound},
		"wrong cursor": {func() error {
			_, err := b.client.ListCampaigns(ctx, wire.CampaignFilter{}, client.Page{Cursor: "x"})
			return err
		}, wire.CodeInvalidRequest},
	} {
		err := tc.do()
		p, ok := errors.AsType[*client.Problem](err)
		if !client.IsCode(err, tc.code) || !ok || p.RequestID == "" {
			b.t.Errorf("%s: %v", name, err)
		}
		if name == "wrong" && ok && (len(p.Errors) != 2 || p.Errors[0].Field != "opens_daily_at" || p.Errors[1].Field != "packet.sender_id") {
			b.t.Errorf("faults %+v", p.Errors)
		}
	}
	if call, _ := errors.AsType[*client.CallError](create(over, "over")()); call == nil || call.IdempotencyKey != "over" {
		b.t.Errorf("the key is not in the error: %+v", call)
	}
}
