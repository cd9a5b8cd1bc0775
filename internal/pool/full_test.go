package pool

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/fence"
	"hongbao/internal/packet"
)

// full makes Redis refuse calls that need memory, until the returned function is called.
func full(t *testing.T, addr string) (again func()) {
	t.Helper()
	admin := redis.NewClient(&redis.Options{Addr: addr})
	limit := func(bytes string) {
		t.Helper()
		if err := admin.ConfigSet(t.Context(), "maxmemory", bytes).Err(); err != nil {
			t.Fatal(err)
		}
	}
	limit("1")
	t.Cleanup(func() { // other tests may use the server
		if err := admin.ConfigSet(context.WithoutCancel(t.Context()), "maxmemory", "0").Err(); err != nil {
			t.Error(err)
		}
		_ = admin.Close()
	})
	return func() { t.Helper(); limit("0") }
}

// TestFullRedis: at its memory limit Redis accepts nothing new, and everything that ends
// packets, pays, or frees memory.
func TestFullRedis(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	p := openAt(t, Config{Addr: server.Addr})
	ctx := t.Context()
	mates := laneMates(t, p, 4, 2)
	ended, recalled, declined, lane := mates[0], mates[1], mates[2], packet.Lane(mates[0].ID, p.Lanes())
	openPacket(t, p, ended)
	openPacket(t, p, recalled)
	stage(t, p, declined)
	stage(t, p, mates[3])
	mustGrab(t, p, ended.ID, "a")
	mustGrab(t, p, ended.ID, "b")
	h := handoffs(t, p)
	s, err := h.AcquireSlot(ctx, 200, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	read, err := h.Read(ctx, lane, "dead", 2, time.Millisecond)
	if err != nil || len(read.HandOffs) != 2 {
		t.Fatalf("%+v, %v", read, err)
	}
	pc := newThrottle(t, p, 1)
	again := full(t, server.Addr)

	var own *Handoffs
	var taken Batch
	for _, step := range []struct {
		name string
		call func() error
	}{
		{"another process opens", func() error { return openAt(t, Config{Addr: server.Addr}).Ping(ctx) }},
		{"hand-offs are read", func() (err error) { own, err = NewHandoffs(ctx, p); return err }},
		{"acquire", func() error { _, err := h.AcquireSlot(ctx, 200, time.Minute); return err }},
		{"renew", func() error { return s.Renew(ctx) }},
		{"read", func() error { _, err := h.Read(ctx, lane, s.Consumer(), 100, time.Millisecond); return err }},
		{"consumers", func() error { _, err := h.Consumers(ctx, lane); return err }},
		{"take over", func() (err error) { taken, err = h.TakeOver(ctx, lane, "dead", s.Consumer(), 50); return err }},
		{"remove consumer", func() error { _, err := h.RemoveConsumer(ctx, lane, "dead"); return err }},
		{"orphans", func() error { _, err := h.TakeOrphans(ctx, lane, s.Consumer(), 50); return err }},
		{"pace", func() error { _, err := pc.Acquire(ctx, "one"); return err }},
		{"pace in line", func() error { _, err := pc.Acquire(ctx, "two"); return err }},
		{"answered", func() error {
			_, err := p.StoreFirstAnswer(ctx, mates[3].ID, packet.FirstAnswer{HTTPStatus: 202})
			return err
		}},
		{"reject", func() error { return p.Reject(ctx, declined.ID, packet.Failure{Code: "declined"}) }},
		{"recall", func() error { _, err := p.Recall(ctx, recalled.ID); return err }},
		{"close", func() error { _, err := p.ClosePool(ctx, ended.ID, packet.CloseSoldOut); return err }},
		{"claims of a user", func() error { _, err := userClaims(ctx, p, "shop", "a", packet.Cursor{}, 10); return err }},
		{"restore counter", func() error { return p.RaiseHeartbeatNumber(ctx, 7) }},
		{"ack", func() error { return h.Ack(ctx, lane, entryIDs(read, taken)...) }},
		{"retire", func() error { return p.Retire(ctx, ended.ID) }},
		{"release", func() error { return s.Release(ctx) }},
	} {
		if err := step.call(); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
	}
	// it would add a key for every new user
	if _, _, err := p.WithinLimits(ctx, counted("user", "shop:a", 1, time.Minute)); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a limit is counted: %v", err)
	}
	if own != nil {
		if err := own.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, id := range []string{ended.ID, recalled.ID, declined.ID} {
		if v, err := p.View(ctx, id); err != nil || v.State == packet.PoolOpen || v.State == packet.PoolFunding {
			t.Errorf("%+v, %v", v, err)
		}
	}
	if v, err := p.View(ctx, ended.ID); err != nil || !v.Retired {
		t.Errorf("%+v, %v", v, err)
	}
	for _, id := range entryIDs(read, taken) {
		if n, err := p.rdb.XRange(ctx, p.keys.handoff(lane), id, id).Result(); err != nil || len(n) != 0 {
			t.Errorf("hand-off %s is still there: %v, %v", id, n, err)
		}
	}
	again()
}

func entryIDs(batches ...Batch) []string {
	var ids []string
	for _, b := range batches {
		for _, h := range b.HandOffs {
			ids = append(ids, h.EntryID)
		}
	}
	return ids
}

// TestFullRedisRebuilds: a lane can be rebuilt while Redis is at its memory limit.
func TestFullRedisRebuilds(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	p := openAt(t, Config{Addr: server.Addr})
	ctx := t.Context()
	pk := newPacket(t, 2)
	openPacket(t, p, pk)
	lane := packet.Lane(pk.ID, p.Lanes())
	full(t, server.Addr)
	if err := p.HaltFence(ctx, lane, 1, fence.LaneRequested); err != nil {
		t.Error(err)
	}
	if err := p.CloseFence(ctx, lane, 2); err != nil {
		t.Error(err)
	}
	if n, err := p.ClearLane(ctx, lane, 2, nil, nil); err != nil || n != 1 {
		t.Errorf("cleared %d, %v", n, err)
	}
	if err := p.RestoreTombstones(ctx, lane, 2,
		[]packet.Tombstone{{ID: pk.ID, State: packet.PoolClosed, Until: time.Now().Add(time.Hour)}}); err != nil {
		t.Error(err)
	}
	if err := p.OpenFence(ctx, lane, 2, 0); err != nil {
		t.Error(err)
	}
}

// TestFullRedisAnswers: at the memory limit a user who could win gets unavailable, every
// other user the usual result.
func TestFullRedisAnswers(t *testing.T) { onEach(t, testFullRedisAnswers) }

func testFullRedisAnswers(t *testing.T, on setup) {
	p := on.openFresh(t)
	ctx := t.Context()
	mates := laneMates(t, p, 5, 2)
	open, sold, over, funding, guests := mates[0], mates[1], mates[2], mates[3], mates[4]
	for _, pk := range []packet.Packet{open, sold, over} {
		openPacket(t, p, pk)
		mustGrab(t, p, pk.ID, "a")
	}
	mustGrab(t, p, sold.ID, "b")
	if _, err := p.Recall(ctx, over.ID); err != nil {
		t.Fatal(err)
	}
	stage(t, p, funding)
	openPacket(t, p, guests, "guest")
	won, err := p.Claims(ctx, open.ID)
	if err != nil || len(won) != 1 {
		t.Fatal(won, err)
	}
	before := dump(t, p, open.ID)
	var again []func()
	for _, addr := range on.addrs {
		again = append(again, full(t, addr))
	}

	cases := []struct {
		id, user string
		want     packet.GrabResult // GrabUnavailable: at the memory limit
	}{
		{newPacket(t, 1).ID, "u", packet.GrabNotFound},
		{open.ID, "a", packet.GrabReplayed},
		{sold.ID, "b", packet.GrabReplayed},
		{over.ID, "a", packet.GrabReplayed},
		{funding.ID, "u", packet.GrabNotOpenYet},
		{guests.ID, "u", packet.GrabNotEligible},
		{sold.ID, "u", packet.GrabSoldOut},
		{over.ID, "u", packet.GrabExpired},
		{open.ID, "u", packet.GrabUnavailable},
		{guests.ID, "guest", packet.GrabUnavailable},
	}
	check := func(id, user string, want packet.GrabResult, got packet.GrabAnswer, err error) {
		t.Helper()
		if want == packet.GrabUnavailable {
			wantErr(t, err, ErrUnavailable)
			if !redis.IsOOMError(err) || errors.Is(err, ErrInconsistent) {
				t.Errorf("%s of %s: %v", user, id, err)
			}
			return
		}
		if err != nil || got.Result != want {
			t.Errorf("%s of %s: %v, %v; want %v", user, id, got.Result, err, want)
		}
		if id == open.ID && !reflect.DeepEqual(got.Claim, won[0]) {
			t.Errorf("%+v, won %+v", got.Claim, won[0])
		}
	}
	for _, c := range cases {
		got, err := p.Grab(ctx, c.id, c.user, packet.Profile{})
		check(c.id, c.user, c.want, got, err)
	}
	var grabs [][2]string
	for _, c := range cases[1:] { // those of one lane
		grabs = append(grabs, [2]string{c.id, c.user})
	}
	batch := batchOf(ctx, grabs...)
	flush(p, packet.Lane(open.ID, p.Lanes()), batch)
	for i, c := range cases[1:] {
		got, err := batch.answer(i)
		check(c.id, c.user, c.want, got, err)
	}
	for _, limit := range again {
		limit()
	}
	unchanged(t, p, open.ID, before)
	if g := mustGrab(t, p, open.ID, "u"); g.Result != packet.GrabWon {
		t.Errorf("afterwards: %v", g.Result)
	}
}
