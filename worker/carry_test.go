package worker

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"
)

// TestR11_CarriedUntilTemporalAnswers: a start that Temporal did not take is made
// again, whatever the error; only an answer, or the worker's own end, ends it. The
// hand-off is acknowledged after nil alone.
func TestR11_CarriedUntilTemporalAnswers(t *testing.T) {
	r := &relay{logger: slog.New(slog.DiscardHandler)}
	calls := 0
	err := r.carry(t.Context(), "packet", func(context.Context) error {
		if calls++; calls < 4 {
			return errors.New("not now")
		}
		return nil
	})
	if err != nil || calls != 4 {
		t.Errorf("%d calls, %v; the fourth was answered", calls, err)
	}
	ended, end := context.WithTimeout(t.Context(), 250*time.Millisecond)
	defer end()
	if err := r.carry(ended, "packet", func(context.Context) error { return errors.New("not now") }); err == nil {
		t.Error("carried, says a worker that ended before Temporal answered")
	}
}
