package worker

import (
	"context"

	"hongbao/packet"
)

// Fatal does what Temporal's SDK does when its pollers give up.
func (w *Worker) Fatal(err error) { w.fatal(err) }

// Make is the step of a rebuild that replaces what Redis has of a lane.
func (r *Rebuilder) Make(ctx context.Context, b *packet.Rebuild) error { return r.make(ctx, b) }

// OnStep has f told of each step that a rebuild of a lane has done.
func (r *Rebuilder) OnStep(f func(lane int, done string)) { r.step = f }
