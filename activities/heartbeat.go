package activities

import (
	"context"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
)

// HeartbeatEvery is well below every heartbeat timeout the workflows set.
const HeartbeatEvery = time.Second

// logger returns the logger of the running activity. `hongbao recover` calls some steps
// without an activity, where activity.GetLogger panics: then it is the process's own.
func logger(ctx context.Context) log.Logger {
	if activity.IsActivity(ctx) {
		return activity.GetLogger(ctx)
	}
	return log.NewStructuredLogger(slog.Default())
}

// heartbeat heartbeats until the returned function is called: a worker's death is
// noticed within the heartbeat timeout, however long one step on a store takes.
// What bounds a hung step is its own timeout.
func heartbeat(ctx context.Context) (stop func()) {
	return heartbeatWith(ctx, func() any { return nil })
}

// heartbeatWith heartbeats with details, which a later attempt of the activity can read.
// `hongbao recover` calls some steps without an activity: no server waits for heartbeats
// then, and activity.RecordHeartbeat panics, so nothing is sent.
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
