package worker

import (
	"context"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/pool"
)

// Fatal does what Temporal's SDK does when its pollers give up.
func (w *Worker) Fatal(err error) { w.fatal(err) }

// Make is the step of a rebuild that replaces what Redis has of a lane.
func (r *Rebuilder) Make(ctx context.Context, b *packet.Rebuild) error {
	return r.rebuildFromRows(ctx, b)
}

// Await waits for claims of one packet to get into the books.
func (r *Rebuilder) Await(ctx context.Context, b packet.Rebuild, claims []packet.Claim) error {
	missing := map[claimed]int{}
	for _, c := range claims {
		missing[claimed{c.PacketID, c.UserID}] = c.ShareIndex
	}
	return r.awaitRecorded(ctx, b, missing, nil)
}

// OnStep has f loggedAt of each step that a rebuild of a lane has done.
func (r *Rebuilder) OnStep(f func(lane int, done string)) { r.step = f }

// Turn has the watch of a lane meet a page of it in which all is settled, and returns of
// how many packets it remembers that.
func (w *Watch) Turn(lane int, page []pool.LivePacket, now time.Time) int {
	l := &w.lanes[lane]
	l.next(page)
	for _, p := range page {
		l.agreed.note(p.ID, 1, now)
	}
	return len(l.agreed.now) + len(l.agreed.last)
}

// Settled reports whether the watch of a lane need not ask the books about a packet; the
// lane is in an epoch.
func (w *Watch) Settled(lane int, epoch int64, id string, claimed int, now time.Time) bool {
	w.lanes[lane].agreed.resetForEpoch(epoch)
	return w.lanes[lane].agreed.holds(id, claimed, now)
}

// LanePage and AgreedFor are what the watch goes by.
const (
	LanePage  = lanePage
	AgreedFor = agreedFor
)
