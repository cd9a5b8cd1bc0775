package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
)

// BeatEvery is well below every heartbeat timeout the workflows set.
const BeatEvery = time.Second

// beat heartbeats until the returned function is called: a worker's death is
// noticed within the heartbeat timeout, however long one step on a store takes.
// What bounds a hung step is its own timeout.
func beat(ctx context.Context) (stop func()) {
	return beatWith(ctx, func() any { return nil })
}

// beatWith does the same with details, which a later try of the step can read.
func beatWith(ctx context.Context, details func() any) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(BeatEvery)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				activity.RecordHeartbeat(ctx, details())
			}
		}
	}()
	return func() { cancel(); <-done }
}
