package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
)

// HeartbeatEvery is well below every heartbeat timeout that the workflows set.
const HeartbeatEvery = time.Second

// heartbeat sends heartbeats until the returned function is called. A dead worker is then
// detected within the heartbeat timeout, however long a step on a store takes. A hung step is
// bounded by its own timeout.
func heartbeat(ctx context.Context) (stop func()) {
	return heartbeatWith(ctx, func() any { return nil })
}

// heartbeatWith sends heartbeats with details, which a later attempt of the activity can read.
// Outside an activity (`hongbao recover`) it sends nothing, because activity.RecordHeartbeat
// panics there.
func heartbeatWith(ctx context.Context, details func() any) (stop func()) {
	if !activity.IsActivity(ctx) {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(HeartbeatEvery)
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
