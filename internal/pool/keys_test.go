package pool

import (
	"fmt"
	"strings"
	"testing"

	"hongbao/internal/packet"
)

func TestLaneTagsAreSpreadEvenly(t *testing.T) {
	for _, lanes := range []int{1, 2, 3, 16, 64, 100, MaxLanes} {
		k := newKeyspace(lanes)
		seen := map[string]bool{}
		for i, tag := range k.tags {
			low, high := i*slots/lanes, (i+1)*slots/lanes-1
			if s := hashSlot(tag); s < low || s > high {
				t.Errorf("lane %d of %d: tag %q in slot %d, want %d to %d", i, lanes, tag, s, low, high)
			}
			if seen[tag] {
				t.Errorf("tag %q twice", tag)
			}
			seen[tag] = true
		}
	}
}

// TestLaneTagsStay: the tags of an installation are in its data and must never change.
func TestLaneTagsStay(t *testing.T) {
	k := newKeyspace(DefaultClusterLanes)
	if copyTags != [copies]string{"p0bd", "p1b", "p2b"} {
		t.Errorf("tags of the copies %q", copyTags)
	}
	if k.tags[0] != "l00da" || k.tags[7] != "l07dp" || k.tags[63] != "l63s" {
		t.Errorf("tags %q %q %q", k.tags[0], k.tags[7], k.tags[63])
	}
}

// TestCopiesAreApart: the copies are on three masters of every Cluster whose masters have
// equal parts of the slots.
func TestCopiesAreApart(t *testing.T) {
	for n := copies; n <= 100; n++ {
		seen := map[int]bool{}
		for _, tag := range copyTags {
			seen[hashSlot(tag)*n/slots] = true
		}
		if len(seen) != copies {
			t.Errorf("%d masters: the copies are on %d of them", n, len(seen))
		}
	}
}

func TestHashSlot(t *testing.T) {
	for tag, want := range map[string]int{"": 0, "123456789": 0x31c3, "foo": 12182, "user1000": 3443} {
		if got := hashSlot(tag); got != want {
			t.Errorf("slot of %q: %d, want %d", tag, got, want)
		}
	}
}

func TestKeys(t *testing.T) {
	k := newKeyspace(DefaultClusterLanes)
	id := "7f" + strings.Repeat("0", packet.IDLen-2)
	lane := packet.Lane(id, DefaultClusterLanes)
	prefix := fmt.Sprintf("hb:{%s}:", k.tags[lane])
	want := packetKeys{
		packet: prefix + "packet:" + id, shares: prefix + "packet:" + id + ":shares", winners: prefix + "packet:" + id + ":winners",
		eligible: prefix + "packet:" + id + ":eligible", handoff: prefix + "handoff", epoch: prefix + "epoch", live: prefix + "live",
		order: prefix + "packet:" + id + ":order", claimed: prefix + "claimed", listed: prefix + "listed", staged: prefix + "staged",
		wins: prefix + "wins:" + id[:10],
	}
	if got := k.of(id); got != want {
		t.Errorf("keys\n got %+v\nwant %+v", got, want)
	}
}
