package activities

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/testsuite"
)

// `hongbao recover` calls steps without an activity, and a large packet's step takes longer
// than HeartbeatEvery: the SDK panics at a heartbeat, and at a request for a logger.
func TestOutsideAnActivity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := heartbeatWith(t.Context(), func() any { t.Error("a heartbeat was sent outside an activity"); return nil })
		<-time.After(3 * HeartbeatEvery) // of the clock of synctest
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
