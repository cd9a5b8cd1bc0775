package pool

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/test/wait"
)

func handoffs(t testing.TB, p *Pool) *Handoffs {
	t.Helper()
	h, err := NewHandoffs(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// readAll reads all unread entries.
func readAll(t testing.TB, h *Handoffs, lane int) Batch {
	t.Helper()
	var all Batch
	for {
		b, err := h.Read(t.Context(), lane, "reader", 100, time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if b.Empty() {
			return all
		}
		all.HandOffs, all.Undecodable, all.Last = append(all.HandOffs, b.HandOffs...), append(all.Undecodable, b.Undecodable...), b.Last
	}
}

// fill writes n hand-offs into the lane and returns their ids.
func fill(t testing.TB, p *Pool, lane, n int) []string {
	t.Helper()
	var ids []string
	for i := range n {
		id, err := p.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: p.keys.handoff(lane), Values: []string{
			"kind", "recalled", "packet_id", packet.NewID([]byte(t.Name()), fmt.Sprint(i)),
		}}).Result()
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

func ids(b Batch) []string {
	var list []string
	for _, h := range b.HandOffs {
		list = append(list, h.EntryID)
	}
	return list
}

func pendingOf(t testing.TB, h *Handoffs, lane int, consumer string) int {
	t.Helper()
	consumers, err := h.Consumers(t.Context(), lane)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range consumers {
		if c.Name == consumer {
			return c.Pending
		}
	}
	return -1 // no such consumer
}

func TestRead(t *testing.T) { onEach(t, testRead) }

func testRead(t *testing.T, on setup) {
	p := on.openFresh(t)
	h := handoffs(t, p)
	ctx := t.Context()

	t.Run("waits for an entry", func(t *testing.T) {
		got := make(chan Batch, 1)
		go func() {
			b, err := h.Read(ctx, 1, "w0", 10, patience)
			if err != nil {
				t.Error(err)
			}
			got <- b
		}()
		wait.Until(t, "reader is waiting", func() bool { return blocked(t, p) == 1 })
		want := fill(t, p, 1, 1)
		if b := <-got; !slices.Equal(ids(b), want) || b.Last != want[0] {
			t.Errorf("read %+v, want %v", b, want)
		}
	})

	t.Run("nothing", func(t *testing.T) {
		for _, block := range []time.Duration{0, time.Millisecond} {
			if b, err := h.Read(ctx, 2, "w0", 10, block); err != nil || !b.Empty() {
				t.Errorf("read %+v, %v", b, err)
			}
		}
	})

	t.Run("own pending", func(t *testing.T) {
		want := fill(t, p, 3, 5)
		if b, err := h.Read(ctx, 3, "w0", 4, time.Millisecond); err != nil || len(b.HandOffs) != 4 {
			t.Fatalf("read %+v, %v", b, err)
		}
		// Two were deleted without acknowledgement, as with redis-cli.
		if err := p.rdb.XDel(ctx, p.keys.handoff(3), want[0], want[1]).Err(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for after := "0"; ; {
			b, err := h.ReadOwnPending(ctx, 3, "w0", after, 1)
			if err != nil {
				t.Fatal(err)
			}
			if b.Empty() {
				break
			}
			got, after = append(got, ids(b)...), b.Last
		}
		if !slices.Equal(got, want[2:4]) {
			t.Errorf("pending %v, want %v", got, want[2:4])
		}
		if n := pendingOf(t, h, 3, "w0"); n != 2 {
			t.Errorf("%d pending after the deleted ones were acknowledged", n)
		}
	})

	t.Run("stream vanished", func(t *testing.T) {
		if err := p.rdb.Del(ctx, p.keys.handoff(4)).Err(); err != nil {
			t.Fatal(err)
		}
		want := fill(t, p, 4, 2)
		if b, err := h.Read(ctx, 4, "w0", 10, time.Millisecond); err != nil || !slices.Equal(ids(b), want) {
			t.Errorf("read %+v, %v; want %v from the first on", b, err, want)
		}
		for name, call := range map[string]func() error{
			"pending":   func() error { _, err := h.ReadOwnPending(ctx, 4, "w0", "0", 10); return err },
			"consumers": func() error { _, err := h.Consumers(ctx, 4); return err },
			"take over": func() error { _, err := h.TakeOver(ctx, 4, "w0", "w1", 10); return err },
			"orphans":   func() error { _, err := h.TakeOrphans(ctx, 4, "w1", 10); return err },
			"remove":    func() error { _, err := h.RemoveConsumer(ctx, 4, "w0"); return err },
			"depth":     func() error { _, _, err := h.Depth(ctx, 4); return err },
		} {
			if err := p.rdb.Del(ctx, p.keys.handoff(4)).Err(); err != nil {
				t.Fatal(err)
			}
			if err := call(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})

	t.Run("stream vanishes while waiting", func(t *testing.T) {
		got := make(chan Batch, 1)
		go func() {
			b, err := h.Read(ctx, 5, "w0", 10, patience)
			if err != nil {
				t.Error(err)
			}
			got <- b
		}()
		wait.Until(t, "reader is waiting", func() bool { return blocked(t, p) == 1 })
		if err := p.rdb.Del(ctx, p.keys.handoff(5)).Err(); err != nil {
			t.Fatal(err)
		}
		want := fill(t, p, 5, 1)
		if b := <-got; !slices.Equal(ids(b), want) {
			t.Errorf("read %+v, want %v", b, want)
		}
	})

	t.Run("deadline", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		_, err := h.Read(ctx, 6, "w0", 10, time.Hour)
		wantErr(t, err, ErrUnavailable)
	})

	t.Run("groups stay", func(t *testing.T) {
		want := fill(t, p, 7, 1)
		if err := h.EnsureGroups(ctx); err != nil {
			t.Fatal(err)
		}
		if b, err := h.Read(ctx, 7, "w0", 10, time.Millisecond); err != nil || !slices.Equal(ids(b), want) {
			t.Errorf("read %+v, %v", b, err)
		}
		if err := h.EnsureGroups(ctx); err != nil {
			t.Fatal(err)
		}
		if b, err := h.Read(ctx, 7, "w0", 10, time.Millisecond); err != nil || !b.Empty() {
			t.Errorf("read twice: %+v, %v", b, err)
		}
	})
}

// blocked returns the number of connections in a blocking call.
func blocked(t testing.TB, p *Pool) int {
	t.Helper()
	masters, err := p.masters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, m := range masters {
		info, err := m.InfoMap(t.Context(), "clients").Result()
		if err != nil {
			t.Fatal(err)
		}
		var n int
		if _, err := fmt.Sscan(info["Clients"]["blocked_clients"], &n); err != nil {
			t.Fatal(err)
		}
		total += n
	}
	return total
}

func TestTakeOver(t *testing.T) { onEach(t, testTakeOver) }

func testTakeOver(t *testing.T, on setup) {
	p := on.openFresh(t)
	h := handoffs(t, p)
	ctx := t.Context()
	const lane = 3
	want := fill(t, p, lane, 120)
	if b, err := h.Read(ctx, lane, "dead", 110, time.Millisecond); err != nil || len(b.HandOffs) != 110 {
		t.Fatalf("%d read, %v", len(b.HandOffs), err)
	}
	// The first 60 were deleted: a whole step returns nothing.
	if err := p.rdb.XDel(ctx, p.keys.handoff(lane), want[:60]...).Err(); err != nil {
		t.Fatal(err)
	}
	if gone, err := h.RemoveConsumer(ctx, lane, "dead"); err != nil || gone {
		t.Errorf("removed with entries pending: %v, %v", gone, err)
	}
	var got []string
	for {
		b, err := h.TakeOver(ctx, lane, "dead", "successor", 1000)
		if err != nil {
			t.Fatal(err)
		}
		if b.Empty() {
			break
		}
		if n := len(b.HandOffs); n > maxTakeOver {
			t.Errorf("%d entries in one call", n)
		}
		got = append(got, ids(b)...)
	}
	if !slices.Equal(got, want[60:110]) {
		t.Errorf("taken over %d entries, want %d", len(got), 50)
	}
	if n := pendingOf(t, h, lane, "successor"); n != 50 {
		t.Errorf("%d pending for the successor", n)
	}
	if gone, err := h.RemoveConsumer(ctx, lane, "dead"); err != nil || !gone {
		t.Errorf("removed: %v, %v", gone, err)
	}
	if n := pendingOf(t, h, lane, "dead"); n != -1 {
		t.Errorf("the dead consumer is still there, with %d pending", n)
	}
	if gone, err := h.RemoveConsumer(ctx, lane, "dead"); err != nil || !gone {
		t.Errorf("removed again: %v, %v", gone, err)
	}
	if b := readAll(t, h, lane); !slices.Equal(ids(b), want[110:]) {
		t.Errorf("unread entries %v", ids(b))
	}
}

func TestTakeOrphans(t *testing.T) { onEach(t, testTakeOrphans) }

// testTakeOrphans: entries that were acknowledged and not removed, or left by a truncated
// file of Redis, are taken oldest first; never pending or unread ones.
func testTakeOrphans(t *testing.T, on setup) {
	p := on.openFresh(t)
	h := handoffs(t, p)
	ctx := t.Context()
	const lane = 2
	orphans := func() []string {
		t.Helper()
		b, err := h.TakeOrphans(ctx, lane, "successor", 2)
		if err != nil {
			t.Fatal(err)
		}
		return ids(b)
	}
	if got := orphans(); len(got) != 0 {
		t.Errorf("of an empty lane: %v", got)
	}
	want := fill(t, p, lane, 8)
	if got := orphans(); len(got) != 0 {
		t.Errorf("unread: %v", got)
	}
	if b, err := h.Read(ctx, lane, "reader", 7, time.Millisecond); err != nil || len(b.HandOffs) != 7 {
		t.Fatalf("%d read, %v", len(b.HandOffs), err)
	}
	if got := orphans(); len(got) != 0 {
		t.Errorf("that a reader has: %v", got)
	}
	gone := []string{want[0], want[1], want[2], want[4]}
	if err := p.rdb.XAck(ctx, p.keys.handoff(lane), Group, gone...).Err(); err != nil {
		t.Fatal(err)
	}
	if got := orphans(); !slices.Equal(got, want[:2]) {
		t.Errorf("first %v, want %v", got, want[:2])
	}
	if got := orphans(); len(got) != 0 {
		t.Errorf("behind those that are pending now: %v", got)
	}
	for _, step := range [][2][]string{{want[:2], want[2:3]}, {want[2:4], want[4:5]}, {want[4:7], nil}} {
		if err := h.Ack(ctx, lane, step[0]...); err != nil {
			t.Fatal(err)
		}
		if got := orphans(); !slices.Equal(got, step[1]) {
			t.Errorf("after %v are gone: %v, want %v", step[0], got, step[1])
		}
	}
	if b := readAll(t, h, lane); !slices.Equal(ids(b), want[7:]) {
		t.Errorf("unread entries %v, want %v", ids(b), want[7:])
	}
}

func TestHandoffsUnavailable(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	p := openAt(t, Config{Addr: server.Addr, Timeout: 200 * time.Millisecond})
	h := handoffs(t, p)
	server.Kill()
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"read":      func() error { _, err := h.Read(ctx, 0, "w0", 1, time.Millisecond); return err },
		"pending":   func() error { _, err := h.ReadOwnPending(ctx, 0, "w0", "0", 1); return err },
		"ack":       func() error { return h.Ack(ctx, 0, "1-1") },
		"consumers": func() error { _, err := h.Consumers(ctx, 0); return err },
		"take over": func() error { _, err := h.TakeOver(ctx, 0, "a", "b", 1); return err },
		"orphans":   func() error { _, err := h.TakeOrphans(ctx, 0, "b", 1); return err },
		"remove":    func() error { _, err := h.RemoveConsumer(ctx, 0, "a"); return err },
		"depth":     func() error { _, _, err := h.Depth(ctx, 0); return err },
		"groups":    func() error { return h.EnsureGroups(ctx) },
		"slot":      func() error { _, err := h.AcquireSlot(ctx, 1, time.Second); return err },
		"slots":     func() error { _, err := h.LiveSlots(ctx, 1); return err },
	} {
		t.Run(name, func(t *testing.T) { wantErr(t, call(), ErrUnavailable) })
	}
}
