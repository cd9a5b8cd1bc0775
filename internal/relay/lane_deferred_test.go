package relay

import (
	"fmt"
	"testing"
)

// TestGiantLeavesRoom: a packet takes no more than its part of a lane, whatever arrives for
// others. Its postponed entries are read later, in order and completely.
func TestGiantLeavesRoom(t *testing.T) {
	l := newLaneReader(&Relay{}, 0, "w", newScheduler(1), newScheduler(1))
	const entries = 3 * packetLimit
	held := 0
	for i := range entries {
		id := fmt.Sprintf("1-%d", i)
		if l.markUnderway(id, "giant", 1) && l.admit(id, "giant", 1) {
			held++
		}
	}
	if held != packetLimit || !l.admit("2-0", "small", 1) || !l.admit("2-1", "", 1) {
		t.Fatalf("the giant holds %d of %d, or there is no room beside it", held, packetLimit)
	}
	if _, id := l.nextPostponed(); id != "" {
		t.Fatalf("%s is read before there is room", id)
	}
	for want := packetLimit; held > 0; held-- {
		l.release("giant", 1)
		for packetID, id := l.nextPostponed(); id != ""; packetID, id = l.nextPostponed() {
			if id != fmt.Sprintf("1-%d", want) || l.markUnderway(id, "giant", 1) {
				t.Fatalf("%s is read, want 1-%d, underway until then", id, want)
			}
			if l.forgetPostponed(packetID, id); !l.markUnderway(id, packetID, 1) || !l.admit(id, packetID, 1) {
				t.Fatalf("%s has no room", id)
			}
			want, held = want+1, held+1
		}
		if held == 1 && want != entries {
			t.Fatalf("only %d of %d were read", want, entries)
		}
	}
	select {
	case <-l.resume:
	default:
		t.Error("no signal that there is room")
	}
}

func TestLargeEntryComesBack(t *testing.T) {
	l := newLaneReader(&Relay{}, 0, "w", newScheduler(1), newScheduler(1))
	if !l.admit("1-0", "p", 2*packetLimit) || l.admit("1-1", "p", 2*packetLimit) {
		t.Fatal("the first has to be taken, the second to wait")
	}
	l.release("p", 2*packetLimit)
	if packetID, id := l.nextPostponed(); id != "1-1" || packetID != "p" {
		t.Fatalf("%q is read again", id)
	}
	l.forgetPostponed("p", "1-1")
	if !l.admit("1-1", "p", 2*packetLimit) || len(l.postponed) != 0 {
		t.Fatal("it does not fit")
	}
}

func TestEntryBefore(t *testing.T) {
	for id, want := range map[string]string{"5-3": "5-2", "5-0": "4-18446744073709551615", "0-0": "0", "x": "0"} {
		if got := entryBefore(id); got != want {
			t.Errorf("before %s: %s, want %s", id, got, want)
		}
	}
}
