package activities

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.temporal.io/sdk/testsuite"

	"hongbao/test/wait"
)

// `hongbao recover` calls steps outside an activity, longer than HeartbeatEvery for a large
// packet. The SDK panics at a heartbeat and at a request for a logger.
func TestOutsideAnActivity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent atomic.Bool
		stop := heartbeatWith(t.Context(), func() any { sent.Store(true); return nil })
		wait.Holds(t, 3*HeartbeatEvery, "no heartbeat is sent", func() bool { return !sent.Load() })
		stop()
	})
	logger(t.Context()).Debug("a line of a step outside an activity")
}

func TestHeartbeatInsideAnActivity(t *testing.T) {
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	var heartbeats atomic.Int64
	step := func(ctx context.Context) error {
		sent := make(chan struct{})
		defer heartbeatWith(ctx, func() any {
			if heartbeats.Add(1) == 1 {
				close(sent)
			}
			return nil
		})()
		select {
		case <-sent:
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	env.RegisterActivity(step)
	if _, err := env.ExecuteActivity(step); err != nil || heartbeats.Load() == 0 {
		t.Errorf("%d heartbeats, %v", heartbeats.Load(), err)
	}
}
