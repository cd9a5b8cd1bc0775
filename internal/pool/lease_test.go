package pool

import (
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"hongbao/test/wait"
)

func TestSlots(t *testing.T) { onEach(t, testSlots) }

func testSlots(t *testing.T, on setup) {
	p := on.openFresh(t)
	h := handoffs(t, p)
	ctx := t.Context()
	acquire := func(t *testing.T) Slot {
		t.Helper()
		s, err := h.AcquireSlot(ctx, 3, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	live := func(t *testing.T, want ...string) {
		t.Helper()
		got, err := h.LiveSlots(ctx, 3)
		if err != nil {
			t.Fatal(err)
		}
		expected := map[string]bool{}
		for _, w := range want {
			expected[w] = true
		}
		if !reflect.DeepEqual(got, expected) {
			t.Errorf("live %v, want %v", got, want)
		}
	}
	lose := func(t *testing.T, n int) {
		t.Helper()
		for place := range copies {
			if err := p.rdb.Del(ctx, keyWorker(n, place)).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}

	live(t)
	a, b, c := acquire(t), acquire(t), acquire(t)
	if a.Consumer() != "w0" || b.Consumer() != "w1" || c.Consumer() != "w2" {
		t.Errorf("consumers %s %s %s", a.Consumer(), b.Consumer(), c.Consumer())
	}
	live(t, "w0", "w1", "w2")
	_, err := h.AcquireSlot(ctx, 3, time.Minute)
	wantErr(t, err, ErrNoSlot)

	// A released slot, or one with an expired lease, is the next one taken.
	if err := b.Release(ctx); err != nil {
		t.Fatal(err)
	}
	live(t, "w0", "w2")
	wantErr(t, b.Renew(ctx), ErrLeaseLost)
	if b = acquire(t); b.Consumer() != "w1" {
		t.Errorf("took %s", b.Consumer())
	}
	lose(t, 0)
	successor := acquire(t)
	if successor.Consumer() != "w0" {
		t.Errorf("took %s", successor.Consumer())
	}
	// The former holder can neither renew nor release the slot.
	wantErr(t, a.Renew(ctx), ErrLeaseLost)
	if err := a.Release(ctx); err != nil {
		t.Error(err)
	}
	live(t, "w0", "w1", "w2")

	for place := range copies {
		if err := p.rdb.PExpire(ctx, keyWorker(0, place), time.Second).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := successor.Renew(ctx); err != nil {
		t.Fatal(err)
	}
	for place := range copies {
		if life, err := p.rdb.PTTL(ctx, keyWorker(0, place)).Result(); err != nil || life < 50*time.Second || life > time.Minute {
			t.Errorf("copy %d: renewed for %v, %v", place, life, err)
		}
	}
}

func TestSlotRunsOut(t *testing.T) { onEach(t, testSlotRunsOut) }

func testSlotRunsOut(t *testing.T, on setup) {
	p := on.openFresh(t)
	h := handoffs(t, p)
	s, err := h.AcquireSlot(t.Context(), 1, 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "lease runs out", func() bool {
		live, err := h.LiveSlots(t.Context(), 1)
		return err == nil && !live["w0"]
	})
	wantErr(t, s.Renew(t.Context()), ErrLeaseLost)
}

func TestSlotsAreExclusive(t *testing.T) { onEach(t, testSlotsAreExclusive) }

func testSlotsAreExclusive(t *testing.T, on setup) {
	p := on.openFresh(t)
	h := handoffs(t, p)
	var mu sync.Mutex
	held := map[string]int{}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			s, err := h.AcquireSlot(t.Context(), 20, time.Minute)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			held[s.Consumer()]++
		})
	}
	wg.Wait()
	if len(held) != 20 {
		t.Errorf("held %v", held)
	}
}

// TestSlotNeedsMajority: with one missing copy the slot stays held, and a renewal restores
// the copy. One copy alone does not hold the slot.
func TestSlotNeedsMajority(t *testing.T) { onEach(t, testSlotNeedsMajority) }

func testSlotNeedsMajority(t *testing.T, on setup) {
	p := on.openFresh(t)
	h := handoffs(t, p)
	ctx := t.Context()
	held := func() bool {
		t.Helper()
		live, err := h.LiveSlots(ctx, 1)
		if err != nil {
			t.Fatal(err)
		}
		return live["w0"]
	}
	lose := func(place int) {
		t.Helper()
		if err := p.rdb.Del(ctx, keyWorker(0, place)).Err(); err != nil {
			t.Fatal(err)
		}
	}
	s, err := h.AcquireSlot(ctx, 1, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for place := range copies {
		lose(place)
		if !held() {
			t.Errorf("not held without copy %d", place)
		}
		if _, err := h.AcquireSlot(ctx, 1, time.Minute); !errors.Is(err, ErrNoSlot) {
			t.Errorf("without copy %d: acquired by another, %v", place, err)
		}
		if err := s.Renew(ctx); err != nil {
			t.Errorf("without copy %d: %v", place, err)
		}
		if n, err := p.rdb.Exists(ctx, keyWorker(0, place)).Result(); n != 1 || err != nil {
			t.Errorf("copy %d was not renewed: %d, %v", place, n, err)
		}
	}
	lose(0)
	lose(2)
	if held() {
		t.Error("held with one copy")
	}
	wantErr(t, s.Renew(ctx), ErrLeaseLost)
	successor, err := h.AcquireSlot(ctx, 1, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := successor.Renew(ctx); err != nil {
		t.Error(err)
	}
	wantErr(t, s.Renew(ctx), ErrLeaseLost)
}
