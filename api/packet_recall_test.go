package api_test

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"hongbao/api"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/internal/staff"
	"hongbao/test/wait"
)

// TestStaffRecall: staff stops a packet of any app with the same effect as its app:
// no more grabs, the remainder goes back. Who, why, before and after stand in the audit.
func TestStaffRecall(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	id := h.open(h.app2, with("share_count", "4"))
	h.grab(h.app2, id, "a")
	path := "packets/" + id + "/recall"
	const body = `{"reason":"骗子，工单 4711"}`
	for _, who := range []owner{h.auditor, h.app2} {
		if r := h.write(who, path, "k", body); r.code() != "forbidden" {
			t.Errorf("by %s: %s", who.key.Role, r)
		}
	}
	for body, want := range map[string]string{`{}`: "invalid_request", `{"reason":" "}`: "invalid_request",
		`{"reason":"x","at":"now"}`: "invalid_request", `{"reason":`: "malformed_json"} {
		if r := h.write(h.finance, path, "k", body); r.code() != want {
			t.Errorf("%s: %s", body, r)
		}
	}
	if r := h.as(h.finance, "POST", "/v1/staff/"+path, body); r.code() != "idempotency_key_required" {
		t.Errorf("without key: %s", r)
	}
	for _, missing := range []string{anonymous, "x"} {
		if r := h.write(h.finance, "packets/"+missing+"/recall", "k", body); r.code() != "packet_not_found" {
			t.Errorf("%s: %s", missing, r)
		}
	}
	if p := h.packet(h.app2, id); p.Status != "open" || len(h.audit("").Items) != 0 {
		t.Fatalf("recalled by a refused request: %+v", p)
	}

	first := h.write(h.finance, path, "k1", body)
	var returned staffPacketBody
	first.json(t, &returned)
	if first.status != http.StatusAccepted || returned.ID != id || returned.Status != "closing" || returned.App != h.app2.app.ID ||
		returned.ClaimedCount != 1 {
		t.Fatalf("%s", first)
	}
	again := h.write(h.finance, path, "k1", body)
	if again.status != first.status || !bytes.Equal(again.body, first.body) || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("with the same key: %s", again)
	}
	if r := h.write(h.finance, path, "k1", `{"reason":"another"}`); r.code() != "idempotency_key_reused" {
		t.Errorf("with another body: %s", r)
	}
	other := h.write(h.ops, path, "k1", body) // another person's wish, which changes nothing
	other.json(t, &returned)
	if other.status != http.StatusAccepted || returned.Status != "closing" || other.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("by operations: %s", other)
	}
	if r := h.as(h.app2, "POST", "/v1/packets/"+id+"/grabs", `{"user_id":"b"}`); r.code() != "expired" {
		t.Errorf("a grab afterwards: %s", r)
	}
	h.finish(id, packet.CloseRecalled)
	if p := h.packet(h.app2, id); p.Status != "closed" || p.RefundedAmount != p.TotalAmount-p.ClaimedAmount || p.RefundedAmount == 0 {
		t.Errorf("in the end: %+v", p)
	}
	if last := h.write(h.finance, path, "k2", body); last.status != http.StatusAccepted {
		t.Errorf("of a closed packet: %s", last)
	}
	entries := h.audit("?subject=packet/" + id).Items
	slices.Reverse(entries)
	want := []struct{ who, role, before, after string }{{h.finance.key.Owner, "finance", "open", "closing"},
		{h.ops.key.Owner, "ops", "closing", "closing"}, {h.finance.key.Owner, "finance", "closed", "closed"}}
	if len(entries) != len(want) {
		t.Fatalf("%d entries: %+v", len(entries), entries)
	}
	for i, e := range entries {
		if e.Actor != want[i].who || e.Role != want[i].role || e.Action != "recall" || e.Reason != "骗子，工单 4711" ||
			e.Before["status"] != want[i].before || e.After["status"] != want[i].after ||
			time.Since(e.At) > time.Minute {
			t.Errorf("entry %d: %+v", i, e)
		}
	}
	if v := h.verdict(); !v.Valid {
		t.Errorf("%+v", v)
	}
}

// TestStaffRecallTooEarly: a packet whose charge has no answer cannot be recalled; a
// scheduled one can.
func TestStaffRecallTooEarly(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	funding := h.stage(h.app, "u1").ID
	for range 2 {
		if r := h.write(h.finance, "packets/"+funding+"/recall", "k", because); r.status != http.StatusConflict || r.code() != "not_open_yet" {
			t.Errorf("funding: %s", r)
		}
	}
	if n := len(h.audit("").Items); n != 0 {
		t.Errorf("%d entries about what was refused", n)
	}
	scheduled := h.open(h.app, with("opens_at", `"`+time.Now().Add(time.Hour).UTC().Format(time.RFC3339)+`"`))
	var returned staffPacketBody
	h.write(h.ops, "packets/"+scheduled+"/recall", "k", because).json(t, &returned)
	if returned.Status != "closing" || h.audit("").Items[0].Before["status"] != "scheduled" {
		t.Errorf("%+v", returned)
	}
}

// TestStaffRecallGoesOn: the audit entry is written before the recall in Redis. When Redis is
// unavailable, a repeat with the same key completes it, with one entry.
func TestStaffRecallGoesOn(t *testing.T) {
	t.Parallel()
	redis := stacktest.FreshRedis(t)
	cut := false
	h := newFixture(t, parts{redis: redis.Addr,
		change: func(c *api.Config) { c.Store = &cutStore{Store: c.Store, cut: &cut, pause: func() { redis.Pause(t) }} }})
	id := h.open(h.app, with("share_count", "4"))
	cut = true
	if r := h.write(h.finance, "packets/"+id+"/recall", "k", because); r.status != http.StatusServiceUnavailable {
		t.Errorf("without Redis: %s", r)
	}
	cut = false
	redis.Resume(t)
	if n := len(h.audit("?action=recall").Items); n != 1 {
		t.Fatalf("%d entries", n)
	}
	if p := h.packet(h.app, id); p.Status != "open" {
		t.Fatalf("%+v: what is tested?", p)
	}
	var returned staffPacketBody
	wait.Until(h.t, "Redis answers", func() bool {
		r := h.write(h.finance, "packets/"+id+"/recall", "k", because)
		if r.status == http.StatusAccepted {
			r.json(t, &returned)
		}
		return r.status == http.StatusAccepted
	})
	if n := len(h.audit("?action=recall").Items); n != 1 || returned.Status != "closing" {
		t.Errorf("%d entries, %+v", n, returned)
	}
}

// cutStore takes Redis away between the entry and the recall.
type cutStore struct {
	api.Store
	cut   *bool
	pause func()
}

func (s *cutStore) PlanRecall(ctx context.Context, w staff.Write, id string, look func(context.Context) (staff.Recall, error)) (
	staff.Answer, error) {
	out, err := s.Store.PlanRecall(ctx, w, id, look)
	if *s.cut {
		s.pause()
	}
	return out, err
}
