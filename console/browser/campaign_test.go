package browser

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"hongbao/internal/campaign"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
)

// campaign creates a campaign with three days; the packet of the first day exists.
func (h *testbed) campaign() string {
	h.t.Helper()
	status, raw := h.call(http.MethodPost, "/v1/campaigns", map[string]any{"name": "evening rain <b>", "opens_daily_at": "20:00",
		"starts_on": "2999-01-01", "ends_on": "2999-02-01",
		"packet": map[string]any{"sender_id": "lin mei", "total_amount": 900, "share_count": 3, "greeting": "恭喜发财",
			"eligible_user_ids": []string{"alice", "bob"}}})
	var c struct {
		ID   string
		Next time.Time `json:"next_opens_at"`
	}
	h.must(json.Unmarshal(raw, &c))
	if status != http.StatusCreated {
		h.t.Fatalf("%d %s", status, raw)
	}
	made := h.open(map[string]any{"sender_id": "lin mei", "total_amount": 900, "share_count": 3, "split": "equal"})
	for i, day := range []struct{ day, status, id string }{{"2999-01-01", string(campaign.DayCreated), made},
		{"2999-01-02", string(campaign.DayMissed), packet.NewID([]byte(c.ID), "2")},
		{"2999-01-03", string(campaign.DayCreating), packet.NewID([]byte(c.ID), "3")}} {
		stacktest.CampaignDay(h.t, h.DSN, c.ID, day.day, day.status, day.id, c.Next.AddDate(0, 0, i))
	}
	return c.ID
}

// TestCampaigns: staff see the campaigns of all apps and their days; operations pause or end one
// with a reason.
func TestCampaigns(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.campaign()
	page := "/campaigns/" + id
	auditor, zh := h.signIn(h.auditor, "en"), h.signIn(h.finance, "zh-CN")
	auditor.open(page)
	auditor.has("main", "evening rain <b>", "active", "lin mei", "20:00 Asia/Shanghai", "2999-01-03", "being created", "missed", "✓ created")
	auditor.lacks("#pause", "#end")
	zh.open(page)
	zh.has("main", "进行中", "未生成", "每日开抢时间")

	b := h.signIn(h.ops, "en")
	b.open("/packets")
	b.follow(`a[href="/campaigns"]`)
	b.has("tbody", "evening rain <b>", "¥9.00 / 3", "active")
	b.follow("tbody a")
	if b.where() != page {
		t.Errorf("at %s", b.where())
	}
	b.fill("#pause textarea", " ")
	b.follow("#pause button")
	b.has("main", "The input is not valid", "active")
	b.set("#pause textarea", "ticket 4711")
	b.follow("#pause button")
	if b.where() != page+"?done=campaign_pause" {
		t.Errorf("at %s", b.where())
	}
	b.has("main", "The campaign is paused", "paused")
	b.lacks("#pause")
	stale := h.signIn(h.finance, "en")
	stale.open("/campaigns?status=paused")
	stale.follow("tbody a")
	stale.fill("#end textarea", "the sender has left")
	stale.follow("#end button")
	stale.has("main", "The campaign has ended", "ended")
	stale.lacks("#pause", "#end")
	stale.open("/campaigns?status=active")
	stale.has("main", "No entries.")
	auditor.open("/audit?subject=campaign/" + id)
	auditor.has("tbody", "Paused campaign", "Ended campaign", "ticket 4711", "the sender has left", h.ops.Key.Owner)
}
