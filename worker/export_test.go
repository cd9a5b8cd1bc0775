package worker

import (
	"context"
	"time"

	"hongbao/internal/packet"
)

// Fatal does what Temporal's SDK does when its pollers give up.
func (w *Worker) Fatal(err error) { w.fatal(err) }

// Make replaces the lane's contents in Redis by MySQL's rows.
func (r *Rebuilder) Make(ctx context.Context, b *packet.Rebuild) error {
	return r.rebuildFromRows(ctx, b)
}

// Await waits until claims of one packet are recorded.
func (r *Rebuilder) Await(ctx context.Context, b packet.Rebuild, claims []packet.Claim) error {
	missing := map[claimed]int{}
	for _, c := range claims {
		missing[claimed{c.PacketID, c.UserID}] = c.ShareIndex
	}
	return r.awaitRecorded(ctx, b, missing, nil)
}

// OnStep sets a function that is called after each step of a rebuild.
func (r *Rebuilder) OnStep(f func(lane int, done string)) { r.step = f }

// Turn passes a page in which everything agrees to the watch of a lane, and returns how many
// packets it stores.
func (w *Watch) Turn(lane int, page []packet.LivePacket, now time.Time) int {
	l := &w.lanes[lane]
	w.cfg.Pools = onePage{page: page}
	_, _ = l.next(context.Background())
	for _, p := range page {
		l.agreed.note(p.ID, packet.PoolView{ClaimedCount: 1}, now)
	}
	return len(l.agreed.now) + len(l.agreed.last)
}

type onePage struct {
	LivePools
	page []packet.LivePacket
}

func (o onePage) LivePage(context.Context, int, time.Time, int) ([]packet.LivePacket, error) {
	return o.page, nil
}

// Settled reports whether the watch of a lane skips the comparison of a packet in the given
// epoch.
func (w *Watch) Settled(lane int, epoch int64, id string, claimed int, now time.Time) bool {
	w.lanes[lane].agreed.resetForEpoch(epoch)
	return w.lanes[lane].agreed.holds(id, packet.PoolView{ClaimedCount: claimed}, now)
}

// LanePage and AgreedFor export settings of the watch.
const (
	LanePage  = lanePage
	AgreedFor = agreedFor
)
