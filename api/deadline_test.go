package api

import (
	"context"
	"errors"
	"testing"
	"time"

	"hongbao/api/rest"
)

func TestDeadlines(t *testing.T) {
	base, stop := context.WithCancel(context.Background())
	defer stop()
	d := &deadlines{base: base}
	now := time.Now()
	first := d.from(now)
	if d.from(now.Add(deadlineStep-1)) != first {
		t.Error("requests of the same moment have different contexts")
	}
	later := d.from(now.Add(deadlineStep))
	for begun, ctx := range map[time.Time]context.Context{now: first, now.Add(deadlineStep - 1): first, now.Add(deadlineStep): later} {
		at, ok := ctx.Deadline()
		if took := at.Sub(begun); !ok || took < rest.RequestTimeout || took > rest.RequestTimeout+deadlineStep {
			t.Errorf("a request may take %v", took)
		}
	}
	if first.Err() != nil || later.Err() != nil {
		t.Errorf("ended at once: %v, %v", first.Err(), later.Err())
	}
	stop()
	for _, ctx := range []context.Context{first, later, d.from(now)} {
		if !errors.Is(ctx.Err(), context.Canceled) {
			t.Errorf("goes on after the server: %v", ctx.Err())
		}
	}
	ended := (&deadlines{base: context.Background()}).from(now.Add(-rest.RequestTimeout - deadlineStep))
	if !errors.Is(ended.Err(), context.DeadlineExceeded) {
		t.Errorf("goes on after its deadline: %v", ended.Err())
	}
}
