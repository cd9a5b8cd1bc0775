package pool

import (
	"context"
	"errors"
	"testing"
	"time"

	"hongbao/test/wait"
)

// TestSignIns: every process counts the same failures, of each address and of all,
// and a span after the first one they are forgotten.
func TestSignIns(t *testing.T) { onEach(t, testSignIns) }

func testSignIns(t *testing.T, on setup) {
	ctx := t.Context()
	one, two := NewSignIns(on.openFresh(t)), NewSignIns(on.open(t))
	failed := func(s *SignIns, address string, add int, span time.Duration) [2]int {
		t.Helper()
		each, all, err := s.Failed(ctx, address, add, span)
		if err != nil {
			t.Fatal(err)
		}
		return [2]int{each, all}
	}
	for i, step := range []struct {
		s       *SignIns
		address string
		add     int
		want    [2]int
	}{
		{one, "192.0.2.1", 0, [2]int{0, 0}}, {one, "192.0.2.1", 1, [2]int{1, 1}}, {two, "192.0.2.1", 1, [2]int{2, 2}},
		{two, "2001:db8::1", 1, [2]int{1, 3}}, {one, "192.0.2.1", 0, [2]int{2, 3}}, {one, "2001:db8::1", 0, [2]int{1, 3}},
		{one, "192.0.2.3", 0, [2]int{0, 3}},
	} {
		if got := failed(step.s, step.address, step.add, time.Hour); got != step.want {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
	}
	fresh := NewSignIns(on.openFresh(t))
	failed(fresh, "192.0.2.1", 1, 100*time.Millisecond)
	failed(fresh, "192.0.2.1", 1, time.Hour) // the span is that of the first
	wait.Until(t, "failures are forgotten", func() bool { return failed(fresh, "192.0.2.1", 0, time.Hour) == [2]int{} })
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, _, err := one.Failed(ended, "192.0.2.1", 1, time.Hour); !errors.Is(err, ErrUnavailable) {
		t.Errorf("%v", err)
	}
}
