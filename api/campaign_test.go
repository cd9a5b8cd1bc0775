package api_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"hongbao/internal/campaign"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// campaignBody is a request for a campaign that opens in twelve hours, with changes.
func campaignBody(changes ...string) string {
	at := time.Now().UTC().Add(12 * time.Hour).Format("15:04")
	members := append([]string{"name", `"evening rain"`, "opens_daily_at", quoted(at), "time_zone", `"UTC"`, "packet", with()}, changes...)
	body := map[string]string{}
	var names []string
	for i := 0; i < len(members); i += 2 {
		if !slices.Contains(names, members[i]) {
			names = append(names, members[i])
		}
		body[members[i]] = members[i+1]
	}
	var parts []string
	for _, name := range names {
		if body[name] != "" {
			parts = append(parts, fmt.Sprintf("%q:%s", name, body[name]))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

type campaignAnswer struct {
	ID, Name, Status string
	TimeZone         string     `json:"time_zone"`
	OpensDailyAt     string     `json:"opens_daily_at"`
	StartsOn         string     `json:"starts_on"`
	EndsOn           *string    `json:"ends_on"`
	NextOpensAt      *time.Time `json:"next_opens_at"`
	EndedAt          *time.Time `json:"ended_at"`
	Packet           struct {
		SenderID      string            `json:"sender_id"`
		TotalAmount   int64             `json:"total_amount"`
		Split         string            `json:"split"`
		Life          int64             `json:"expires_in_seconds"`
		EligibleCount int               `json:"eligible_count"`
		Metadata      map[string]string `json:"metadata"`
	}
	OneWin   bool `json:"one_win_per_user"`
	Schedule struct{ ID string }
}

func (h *fixture) postCampaign(o owner, key, body string) result {
	h.t.Helper()
	return h.do(call{method: "POST", path: "/v1/campaigns", key: o.token, body: body, header: map[string]string{"Idempotency-Key": key}})
}

func (h *fixture) campaign(o owner, key, body string) (c campaignAnswer) {
	h.t.Helper()
	r := h.postCampaign(o, key, body)
	if r.status != http.StatusCreated {
		h.t.Fatalf("create a campaign: %s", r)
	}
	r.json(h.t, &c)
	return c
}

// campaignOfDays is one of which some days were decided.
func (h *fixture) campaignOfDays(n int) (id string) {
	h.t.Helper()
	id = h.campaign(h.app, rand.Text(), campaignBody()).ID
	c, err := h.store.Campaign(h.t.Context(), id)
	h.check(err)
	for i := range n {
		day := c.NextDay.Add(i)
		stacktest.CampaignDay(h.t, h.dsn, id, string(day), string(campaign.DayMissed), c.PacketID(day), c.NextOpens.AddDate(0, 0, i))
	}
	return id
}

func TestCampaignFields(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	for _, c := range []struct {
		name, body string
		want       []string
	}{
		{"empty object", `{}`, []string{"name required", "opens_daily_at required", "packet required"}},
		{"no packet's members", campaignBody("packet", `{}`), []string{"packet.sender_id required", "packet.total_amount required",
			"packet.share_count required"}},
		{"packet is no object", campaignBody("packet", `[]`), []string{"packet wrong_type"}},
		{"packet twice", campaignBody("name", `"x","packet":{}`), []string{"packet duplicate"}},
		{"opens_at", campaignBody("packet", with("opens_at", `"2027-01-01T00:00:00Z"`)), []string{"packet.opens_at unknown_field"}},
		{"within the packet", campaignBody("packet", with("total_amount", "9", "x", "1", "metadata", `{"a":1}`)),
			[]string{"packet.total_amount total_too_small", "packet.metadata.a wrong_type", "packet.x unknown_field"}},
		{"wrong total, and its relations", campaignBody("packet", with("total_amount", "-1")), []string{"packet.total_amount out_of_range"}},
		{"the packet's member outside", campaignBody("sender_id", `"u"`), []string{"sender_id unknown_field"}},
		{"time of day", campaignBody("opens_daily_at", `"24:00"`), []string{"opens_daily_at invalid_format"}},
		{"time with seconds", campaignBody("opens_daily_at", `"20:00:00"`), []string{"opens_daily_at invalid_format"}},
		{"one win", campaignBody("one_win_per_user", `"yes"`), []string{"one_win_per_user wrong_type"}},
		{"zone", campaignBody("time_zone", `"Local"`), []string{"time_zone invalid_format"}},
		{"name", campaignBody("name", `""`), []string{"name wrong_length"}},
		{"long name", campaignBody("name", quoted(strings.Repeat("雨", 65))), []string{"name wrong_length"}},
		{"days", campaignBody("starts_on", `"2027-02-30"`, "ends_on", `"tomorrow"`),
			[]string{"starts_on invalid_format", "ends_on invalid_format"}},
		{"ends before", campaignBody("starts_on", `"2037-02-02"`, "ends_on", `"2037-02-01"`), []string{"ends_on out_of_range"}},
		{"over", campaignBody("starts_on", `"2020-02-01"`, "ends_on", `"2020-02-02"`), []string{"ends_on out_of_range"}},
	} {
		r := h.postCampaign(h.app, "fields", c.body)
		if got := fieldsOf(t, r); r.code() != "invalid_request" ||
			!slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(c.want))) {
			t.Errorf("%s: %v, want %v: %s", c.name, got, c.want, r)
		}
	}
	if r := h.do(call{method: "POST", path: "/v1/campaigns", key: h.app.token, body: campaignBody()}); r.code() != "idempotency_key_required" {
		t.Errorf("without key: %s", r)
	}
	if r := h.as(h.app, "GET", "/v1/campaigns", ""); !strings.Contains(string(r.body), `"items":[]`) {
		t.Errorf("what was refused has left something: %s", r)
	}
}

func TestCampaignCreate(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	body := campaignBody("packet", with("eligible_user_ids", `["u1","u2"]`, "metadata", `{"k":"v"}`, "expires_in_seconds", "3600"))
	r := h.postCampaign(h.app, "order-1", body)
	var c campaignAnswer
	r.json(t, &c)
	next := time.Now().UTC().Add(12 * time.Hour)
	if r.status != http.StatusCreated || c.Status != "active" || c.Schedule.ID != "campaign/"+c.ID || c.NextOpensAt == nil ||
		c.NextOpensAt.Sub(next).Abs() > time.Minute ||
		c.StartsOn != c.NextOpensAt.Format(time.DateOnly) || c.EndsOn != nil || c.Packet.EligibleCount != 2 || c.Packet.Split != "random" ||
		c.Packet.Life != 3600 || c.Packet.Metadata["k"] != "v" {
		t.Errorf("%s", r)
	}
	// The same request with its defaults written out, after the campaign has moved on.
	stacktest.CampaignDay(t, h.dsn, c.ID, c.StartsOn, string(campaign.DayCreated), packet.NewID([]byte("x"), c.ID), *c.NextOpensAt)
	h.as(h.app, "POST", "/v1/campaigns/"+c.ID+"/end", "")
	same := strings.Replace(body, `"sender_id"`, `"currency":"CNY","min_share":1,"sender_id"`, 1)
	again := h.postCampaign(h.app, "order-1", same)
	if again.status != http.StatusCreated || again.header.Get("Idempotency-Replayed") != "true" || string(again.body) != string(r.body) {
		t.Errorf("again: %s\nfirst: %s", again, r)
	}
	if other := h.postCampaign(h.app, "order-1", campaignBody()); other.code() != "idempotency_key_reused" {
		t.Errorf("another body: %s", other)
	}
	if twin := h.campaign(h.app2, "order-1", body); twin.ID == c.ID {
		t.Error("two apps share a campaign")
	}
}

// TestCampaignOneWin: the rule is immutable and part of the body hash; a winner's further
// grabs get the reason.
func TestCampaignOneWin(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	if h.campaign(h.app, "every", campaignBody()).OneWin || h.campaign(h.app, "every", campaignBody("one_win_per_user", "false")).OneWin {
		t.Error("a rule that nobody has asked for")
	}
	c := h.campaign(h.app, "once", campaignBody("one_win_per_user", "true"))
	if got := h.as(h.app, "GET", "/v1/campaigns/"+c.ID, ""); !c.OneWin || !strings.Contains(string(got.body), `"one_win_per_user":true`) {
		t.Errorf("created %+v, read %s", c, got)
	}
	if other := h.postCampaign(h.app, "once", campaignBody()); other.code() != "idempotency_key_reused" {
		t.Errorf("without the rule: %s", other)
	}
	stored, err := h.store.Campaign(t.Context(), c.ID)
	h.check(err)
	var days []string
	for i := range 2 {
		p := stored.PacketOf(stored.NextDay.Add(i), [32]byte{})
		_, err := h.pool.Create(t.Context(), p, nil, nil, time.Hour, time.Second)
		h.check(errors.Join(err, h.pool.OpenPool(t.Context(), p.ID, slices.Repeat([]money.Fen{p.TotalAmount / 10}, 10), nil)))
		days = append(days, p.ID)
	}
	if r := h.grab(h.app, days[0], "ada"); r.status != http.StatusCreated {
		t.Fatalf("%s", r)
	}
	if r := h.grab(h.app, days[1], "ada"); r.code() != "not_eligible" || !strings.Contains(string(r.body), "another packet of this campaign") {
		t.Errorf("the next day: %s", r)
	}
	if r := h.grab(h.app, days[0], "ada"); r.status != http.StatusOK {
		t.Errorf("again: %s", r)
	}
}

func TestCampaignLife(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	c := h.campaign(h.app, "a", campaignBody("ends_on", `"2037-12-31"`))
	path := "/v1/campaigns/" + c.ID
	status := func(o owner, method, path, want string) {
		t.Helper()
		r := h.as(o, method, path, "")
		got := r.code()
		if got == "" {
			var c campaignAnswer
			r.json(t, &c)
			got = c.Status
			if (c.NextOpensAt != nil) != (c.Status == "active") || (c.EndedAt != nil) != (c.Status == "ended") {
				t.Errorf("%s", r)
			}
		}
		if got != want {
			t.Errorf("%s %s: %s, want %s", method, path, r, want)
		}
	}
	for _, verb := range []string{"pause", "resume", "end"} {
		status(h.app2, "POST", path+"/"+verb, "campaign_not_found")
	}
	status(h.app2, "GET", path, "campaign_not_found")
	status(h.app2, "GET", path+"/days", "campaign_not_found")
	status(h.app, "GET", "/v1/campaigns/nonsense", "campaign_not_found")
	status(h.app, "POST", path+"/pause", "paused")
	status(h.app, "POST", path+"/pause", "paused")
	status(h.app, "POST", path+"/resume", "active")
	status(h.app, "POST", path+"/end", "ended")
	status(h.app, "POST", path+"/end", "ended")
	status(h.app, "POST", path+"/resume", "campaign_ended")
	status(h.app, "POST", path+"/pause", "campaign_ended")
	status(h.app, "GET", path, "ended")
}

func TestCampaignLists(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	var ids []string
	for i := range 5 {
		ids = append(ids, h.campaign(h.app, fmt.Sprint("k", i), campaignBody()).ID)
	}
	h.campaign(h.app2, "other", campaignBody())
	h.as(h.app, "POST", "/v1/campaigns/"+ids[2]+"/pause", "")
	slices.Reverse(ids)
	type page struct {
		Items      []struct{ ID, Day, Status string }
		NextCursor *string `json:"next_cursor"`
	}
	read := func(path string) (all []string) {
		cursor := ""
		for {
			r := h.as(h.app, "GET", path+cursor, "")
			var p page
			r.json(t, &p)
			for _, one := range p.Items {
				all = append(all, one.ID+one.Day)
			}
			if p.NextCursor == nil || len(p.Items) == 0 {
				return all
			}
			cursor = "&cursor=" + *p.NextCursor
		}
	}
	if got := read("/v1/campaigns?limit=2"); !slices.Equal(got, ids) {
		t.Errorf("%v, want %v", got, ids)
	}
	if got := read("/v1/campaigns?status=paused&limit=1"); !slices.Equal(got, ids[2:3]) {
		t.Errorf("paused: %v", got)
	}
	c, err := h.store.Campaign(t.Context(), ids[0])
	h.check(err)
	var days []string
	for i := range 3 {
		day := c.NextDay.Add(i)
		days = append([]string{string(day)}, days...)
		stacktest.CampaignDay(t, h.dsn, c.ID, string(day),
			string([]campaign.DayStatus{campaign.DayCreating, campaign.DayMissed, campaign.DayCreated}[i]), c.PacketID(day),
			c.NextOpens.AddDate(0, 0, i))
	}
	path := "/v1/campaigns/" + c.ID + "/days"
	if got := read(path + "?limit=2"); !slices.Equal(got, days) {
		t.Errorf("days: %v, want %v", got, days)
	}
	r := h.as(h.app, "GET", path+"?limit=2", "")
	if text := string(r.body); strings.Count(text, `"packet_id":null`) != 1 ||
		strings.Count(text, `"packet_id":"`+c.PacketID(payout.Day(days[0]))) != 1 {
		t.Errorf("%s", r)
	}
	var p page
	r.json(t, &p)
	for _, bad := range []string{"/v1/campaigns/" + ids[1] + "/days?cursor=" + *p.NextCursor, "/v1/campaigns?cursor=" + *p.NextCursor,
		path + "?cursor=x", "/v1/campaigns?status=made"} {
		if r := h.as(h.app, "GET", bad, ""); r.code() != "invalid_request" {
			t.Errorf("%s: %s", bad, r)
		}
	}
}

// TestStaffCampaigns: staff finds the campaigns of all apps and stops them, once a key,
// with its place in the audit.
func TestStaffCampaigns(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	mine, other := h.campaign(h.app, "k", campaignBody()).ID, h.campaign(h.app2, "k", campaignBody()).ID
	var list func(query string) string
	list = func(query string) (ids string) {
		t.Helper()
		var page struct {
			Items      []struct{ ID, App string }
			NextCursor *string `json:"next_cursor"`
		}
		h.as(h.auditor, "GET", "/v1/staff/campaigns"+query, "").json(t, &page)
		for _, c := range page.Items {
			ids += c.ID + " "
		}
		if page.NextCursor != nil {
			return ids + list("?limit=1&cursor="+*page.NextCursor)
		}
		return ids
	}
	if got := list(""); got != other+" "+mine+" " {
		t.Errorf("all: %s", got)
	}
	if got := list("?limit=1"); got != other+" "+mine+" " {
		t.Errorf("in pages: %s", got)
	}
	if got := list("?app=" + h.app.app.ID); got != mine+" " {
		t.Errorf("of an app: %s", got)
	}
	if r := h.as(h.finance, "GET", "/v1/staff/campaigns?status=made", ""); r.code() != "invalid_request" {
		t.Errorf("%s", r)
	}
	if r := h.as(h.app2, "GET", "/v1/campaigns/"+mine, ""); r.code() != "campaign_not_found" {
		t.Errorf("an app reads another's: %s", r)
	}
	if r := h.as(h.finance, "GET", "/v1/staff/campaigns/"+mine, ""); r.status != http.StatusOK ||
		!strings.Contains(string(r.body), `"app":"`+h.app.app.ID+`"`) {
		t.Errorf("%s", r)
	}
	first := h.write(h.ops, "campaigns/"+mine+"/pause", "k1", because)
	if first.status != http.StatusOK || !strings.Contains(string(first.body), `"status":"paused"`) {
		t.Fatalf("%s", first)
	}
	if r := h.as(h.app, "POST", "/v1/campaigns/"+mine+"/resume", ""); !strings.Contains(string(r.body), `"status":"active"`) {
		t.Errorf("resumed by its app: %s", r)
	}
	if again := h.write(h.ops, "campaigns/"+mine+"/pause", "k1", because); string(again.body) != string(first.body) ||
		again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("again: %s", again)
	}
	if r := h.as(h.app, "GET", "/v1/campaigns/"+mine, ""); !strings.Contains(string(r.body), `"status":"active"`) {
		t.Errorf("a repeat has paused it once more: %s", r)
	}
	if r := h.write(h.finance, "campaigns/"+mine+"/end", "k1", because); !strings.Contains(string(r.body), `"status":"ended"`) {
		t.Errorf("%s", r)
	}
	for path, want := range map[string]string{mine + "/pause": "campaign_ended", "nope/end": "campaign_not_found",
		"00000000000000000000/end": "campaign_not_found"} {
		for range 2 {
			if r := h.write(h.ops, "campaigns/"+path, "k2"+path, because); r.code() != want {
				t.Errorf("%s: %s", path, r)
			}
		}
	}
	var entries struct {
		Items []struct{ Action, Subject string }
	}
	h.as(h.auditor, "GET", "/v1/staff/audit", "").json(t, &entries)
	var returned []string
	for _, e := range entries.Items {
		if e.Subject == "campaign/"+mine {
			returned = append(returned, e.Action)
		}
	}
	if !slices.Equal(returned, []string{"end_campaign", "pause_campaign"}) {
		t.Errorf("the audit: %v", returned)
	}
}
