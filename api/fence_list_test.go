package api_test

import (
	"net/http"
	"slices"
	"testing"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/fence"
	"hongbao/internal/packet"
	"hongbao/test/wait"
)

// TestR9_ListsOfAFencedLane: while a lane is closed, staff get its packets as stored in MySQL.
// Lists of apps and users are unavailable until it is open, because a recent claim could be
// missing.
func TestR9_ListsOfAFencedLane(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{redis: stacktest.FreshRedis(t).Addr}) // its lane stays shut
	shut := h.open(h.app, with("share_count", "4", "split", `"equal"`))
	other := shut
	for packet.Lane(other, h.pool.Lanes()) == packet.Lane(shut, h.pool.Lanes()) {
		other = h.open(h.app, with("share_count", "4", "split", `"equal"`))
	}
	for _, id := range []string{shut, other} {
		if r := h.grab(h.app, id, "u"); r.status != http.StatusCreated {
			t.Fatalf("%s", r)
		}
	}
	h.record(shut)
	h.record(other)
	h.check(h.pool.HaltLane(t.Context(), packet.Lane(shut, h.pool.Lanes()), fence.LaneRequested))
	wait.Until(h.t, "the lane is shut", func() bool { return h.laneOf(shut).State == fence.LaneShut })

	for _, path := range []string{"/v1/packets", "/v1/users/u/claims"} {
		if r := h.as(h.app, "GET", path, ""); r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "" {
			t.Errorf("%s: %s", path, r)
		}
	}
	for _, query := range []string{"", "?status=open"} {
		var page struct{ Items []struct{ ID, Status string } }
		r := h.as(h.ops, "GET", "/v1/staff/packets"+query, "")
		if r.status != http.StatusOK {
			t.Errorf("staff%s: %s", query, r)
			continue
		}
		r.json(t, &page)
		var ids []string
		for _, p := range page.Items {
			if p.Status != "open" {
				t.Errorf("packet %s is listed as %s", p.ID, p.Status)
			}
			ids = append(ids, p.ID)
		}
		if !slices.Contains(ids, shut) || !slices.Contains(ids, other) {
			t.Errorf("staff%s get %q", query, ids)
		}
	}
	for _, id := range []string{shut, other} {
		if p := h.staffPacket(id); p.Status != "open" || p.ClaimedCount != 1 {
			t.Errorf("%+v", p)
		}
	}
}
