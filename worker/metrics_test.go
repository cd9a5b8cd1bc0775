package worker_test

import (
	"testing"

	"hongbao/internal/devstack/stacktest"
	"hongbao/test/wait"
	"hongbao/worker"
)

// TestQueuesLook: workers are counted by their polls for every kind of task.
func TestQueuesLook(t *testing.T) {
	t.Parallel()
	r := sharedRig(t)
	_, namespace := stacktest.Temporal(t)
	look := worker.NewQueues(r.temporal, namespace)
	wait.Until(t, "the worker is seen", func() bool {
		queues, workers, err := look.Look(t.Context())
		return err == nil && len(queues) == 3 && workers > 0
	})
	if _, workers, err := worker.NewQueues(r.temporal, "nowhere").Look(t.Context()); err == nil || workers != 0 {
		t.Errorf("%d workers in a namespace that is not there: %v", workers, err)
	}
}
