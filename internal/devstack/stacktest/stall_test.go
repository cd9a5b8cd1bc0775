package stacktest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
)

// TestAwaitWork: work that goes on, however slowly, is no stall; work that stands
// still is one, also when the most of it is done, or none.
func TestAwaitWork(t *testing.T) {
	const limit = 300 * time.Millisecond
	looks := int64(0)
	p, err := stacktest.AwaitWork(t.Context(), 12, limit, func() int64 { looks++; return looks })
	if err != nil || p.Longest > p.Took {
		t.Error(p, err)
	}
	for _, done := range []int64{0, 9} {
		p, err := stacktest.AwaitWork(t.Context(), 10, limit, func() int64 { return done })
		if !errors.Is(err, stacktest.ErrStalled) || p.Longest < limit {
			t.Errorf("%d of 10, then none: %+v, %v", done, p, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := stacktest.AwaitWork(ended, 1, time.Hour, func() int64 { return 0 }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
