package relay

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"hongbao/internal/packet"
	"hongbao/internal/pool"
)

// recorder accepts every call.
type recorder struct{ started, quarantined []string }

func (r *recorder) StartPacket(context.Context, packet.Packet) error { return nil }

func (r *recorder) StartPayout(_ context.Context, c packet.Claim, _ string) (bool, error) {
	r.started = append(r.started, c.PacketID+"/"+c.UserID)
	return true, nil
}

func (r *recorder) SignalClose(context.Context, string, packet.CloseReason) error { return nil }

func (r *recorder) Quarantine(_ context.Context, _ int, entryID string, _ map[string]any, _ string) error {
	r.quarantined = append(r.quarantined, entryID)
	return nil
}

// TestPartsOfAnEntry: a packet with no room postpones its own part of an entry, which is acknowledged after all
// parts. Parts that are underway or relayed are not relayed again.
func TestPartsOfAnEntry(t *testing.T) {
	ctx, done := t.Context(), &recorder{}
	relay := &Relay{starter: done, quarantine: done, logger: slog.New(slog.DiscardHandler)}
	l := newLaneReader(relay, 0, "w", newScheduler(1), newScheduler(1))
	claims := func(packetID string, users ...string) packet.HandOff {
		h := packet.HandOff{EntryID: "1-0"}
		for _, user := range users {
			h.Claims = append(h.Claims, packet.Claim{PacketID: packetID, UserID: user})
		}
		return h
	}
	batch := pool.Batch{HandOffs: []packet.HandOff{claims("a", "u", "v"), claims("giant", "u"), {EntryID: "1-0", SoldOut: []string{"bad"}}},
		Undecodable: []pool.Undecodable{{EntryID: "1-0", Err: pool.ErrMalformed}}}
	work := func(want ...string) {
		t.Helper()
		done.started = nil
		for range 2 { // the second read finds nothing new
			if err := l.take(ctx, batch); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range []*scheduler{l.sched, l.quarantine} {
			for len(s.turn) > 0 {
				j, _ := s.next(ctx)
				if err := j.do(ctx); err != nil {
					t.Fatal(err)
				}
			}
		}
		if !slices.Equal(done.started, want) {
			t.Errorf("started %v, want %v", done.started, want)
		}
	}
	if !l.admit("0-1", "giant", packetLimit) {
		t.Fatal("no room for the giant")
	}
	work("a/u", "a/v")
	if len(l.relayed) != 0 || !slices.Equal(done.quarantined, []string{"1-0"}) || !l.hasAll(1) {
		t.Errorf("acknowledged %v, quarantined %v", l.relayed, done.quarantined)
	}
	l.release("giant", packetLimit)
	packetID, id := l.nextPostponed()
	if packetID != "giant" || id != "1-0" {
		t.Fatalf("%s of %s is read again", id, packetID)
	}
	l.forgetPostponed(packetID, id)
	work("giant/u")
	if !slices.Equal(l.relayed, []string{"1-0"}) || len(done.quarantined) != 1 {
		t.Errorf("acknowledged %v, quarantined %v", l.relayed, done.quarantined)
	}
}
