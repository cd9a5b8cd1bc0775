package watch

import (
	"context"
	"fmt"
	"testing"
	"time"

	"hongbao/internal/packet"
)

// onePage is a lane that has one page of packets.
type onePage struct {
	Pools
	page []packet.LivePacket
}

func (o *onePage) LivePage(context.Context, int, time.Time, int) ([]packet.LivePacket, error) {
	return o.page, nil
}

// TestAgreementsAreBounded: for a lane of more than one page the watch stores the packets of two
// passes, however many packets there were.
func TestAgreementsAreBounded(t *testing.T) {
	pools := &onePage{}
	l := &New(Config{Lanes: 1, Pools: pools}).lanes[0]
	at, now, n := time.UnixMilli(1), time.Now(), 0
	one := packet.PoolView{ClaimedCount: 1}
	read := func(count int) int { // a page in which everything agrees
		pools.page = nil
		for range count {
			at = at.Add(time.Millisecond)
			pools.page = append(pools.page, packet.LivePacket{ID: fmt.Sprint("packet", n), CreatedAt: at})
			n++
		}
		live, err := l.next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range live {
			l.agreed.note(p.ID, one, now)
		}
		return len(l.agreed.now) + len(l.agreed.last)
	}
	const last = 10
	for range 20 {
		for _, count := range []int{lanePage, lanePage, last} {
			if kept := read(count); kept > 2*(2*lanePage+last) {
				t.Fatalf("%d packets remembered after %d", kept, n)
			}
		}
	}
	met := fmt.Sprint("packet", n-1)
	read(last) // the next pass
	if !l.agreed.holds(met, one, now) {
		t.Error("what was met in the pass before is forgotten")
	}
}

// TestR9_AgreementIsNotForEver: an agreement does not hold for other counts, after a rebuild, or for
// ever, because a stale claim may be recorded.
func TestR9_AgreementIsNotForEver(t *testing.T) {
	now := time.Now()
	agreed := newAgreedPackets()
	agreed.resetForEpoch(1)
	agreed.note("p", packet.PoolView{ClaimedCount: 1}, now)
	for _, c := range []struct {
		name  string
		epoch int64
		view  packet.PoolView
		after time.Duration
		want  bool
	}{
		{"at once", 1, packet.PoolView{ClaimedCount: 1}, 0, true},
		{"claimed since", 1, packet.PoolView{ClaimedCount: 2}, 0, false},
		{"a stale claim kept since", 1, packet.PoolView{ClaimedCount: 1, KeptCount: 1}, 0, false},
		{"for a while", 1, packet.PoolView{ClaimedCount: 1}, agreedFor - time.Second, true},
		{"not for ever", 1, packet.PoolView{ClaimedCount: 1}, agreedFor, false},
		{"rebuilt", 2, packet.PoolView{ClaimedCount: 1}, 0, false},
	} {
		agreed.resetForEpoch(c.epoch)
		if got := agreed.holds("p", c.view, now.Add(c.after)); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}
