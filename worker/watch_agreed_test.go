package worker_test

import (
	"fmt"
	"testing"
	"time"

	"hongbao/internal/packet"
	"hongbao/worker"
)

// TestSettledIsBounded: for a lane of more than one page the watch stores the packets of two
// passes, however many packets there were.
func TestSettledIsBounded(t *testing.T) {
	w := worker.NewWatch(worker.WatchConfig{Lanes: 1})
	at, now, n := time.UnixMilli(1), time.Now(), 0
	page := func(count int) []packet.LivePacket {
		var live []packet.LivePacket
		for range count {
			at = at.Add(time.Millisecond)
			live = append(live, packet.LivePacket{ID: fmt.Sprint("packet", n), CreatedAt: at})
			n++
		}
		return live
	}
	const last = 10
	for range 20 {
		for _, count := range []int{worker.LanePage, worker.LanePage, last} {
			if kept := w.Turn(0, page(count), now); kept > 2*(2*worker.LanePage+last) {
				t.Fatalf("%d packets remembered after %d", kept, n)
			}
		}
	}
	met := fmt.Sprint("packet", n-1)
	w.Turn(0, page(last), now) // the next turn
	if !w.Settled(0, 0, met, 1, now) {
		t.Error("what was met in the turn before is forgotten")
	}
}

// TestR9_SettledIsNotForEver: an agreement does not hold for another count, after a rebuild, or
// for ever, because a stale claim may be recorded.
func TestR9_SettledIsNotForEver(t *testing.T) {
	w := worker.NewWatch(worker.WatchConfig{Lanes: 1})
	now := time.Now()
	w.Settled(0, 1, "p", 1, now)
	w.Turn(0, []packet.LivePacket{{ID: "p", CreatedAt: now}}, now)
	for _, c := range []struct {
		name    string
		epoch   int64
		claimed int
		after   time.Duration
		want    bool
	}{
		{"at once", 1, 1, 0, true},
		{"claimed since", 1, 2, 0, false},
		{"for a while", 1, 1, worker.AgreedFor - time.Second, true},
		{"not for ever", 1, 1, worker.AgreedFor, false},
		{"rebuilt", 2, 1, 0, false},
	} {
		if got := w.Settled(0, c.epoch, "p", c.claimed, now.Add(c.after)); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}
