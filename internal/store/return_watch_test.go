package store

import (
	"testing"
	"time"

	"hongbao/internal/observe"
	"hongbao/internal/payout"
	"hongbao/internal/store/report"
)

// TestReturnWatch: one worker at a time has the turn, and a position moves only from the one that
// its worker read.
func TestReturnWatch(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	turn := func(every time.Duration) (payout.ReturnWatch, bool) {
		t.Helper()
		w, ok, err := s.TakeReturnWatchTurn(ctx, adapter, every)
		must(t, err)
		return w, ok
	}
	keep := func(was, now payout.ReturnWatch, next time.Duration) bool {
		t.Helper()
		ok, err := s.AdvanceReturnWatch(ctx, was, now, next)
		must(t, err)
		return ok
	}
	first, ok := turn(time.Hour)
	if !ok || first != (payout.ReturnWatch{Provider: "sandbox"}) {
		t.Fatalf("the first turn: %+v, %t", first, ok)
	}
	if w, ok := turn(time.Hour); ok {
		t.Errorf("a second one beside it: %+v", w)
	}
	if _, ok, err := s.TakeReturnWatchTurn(ctx, payout.Adapter{Provider: "other"}, time.Hour); err != nil || !ok {
		t.Errorf("another provider has to wait: %v", err)
	}
	at := payout.ReturnWatch{Provider: "sandbox", Day: "2026-02-17", After: "17", Until: time.Date(2026, 2, 17, 20, 0, 0, 123e6, time.UTC)}
	if !keep(first, at, 0) {
		t.Error("the position was not stored")
	}
	v := observe.HealthSnapshot{Repairs: map[string]int64{}, HeldProviders: map[string]time.Time{}}
	if must(t, report.NewHealthReader(s.Source).Read(ctx, &v)); !v.ReturnsSearched.Equal(at.Until) { // the other one has seen nothing yet
		t.Errorf("seen up to %v, shown as %v", at.Until, v.ReturnsSearched)
	}
	if keep(first, payout.ReturnWatch{Provider: "sandbox", Day: "2026-02-16", After: "3"}, time.Hour) {
		t.Error("a slower worker has put the position back")
	}
	if w, ok := turn(0); !ok || w != at {
		t.Errorf("the next turn: %+v, %t, want %+v", w, ok, at)
	}
	further := at
	further.Day, further.After = "2026-02-18", ""
	if !keep(at, further, time.Hour) || keep(at, further, time.Hour) {
		t.Error("the next day was not begun once")
	}
	if w, ok := turn(0); ok {
		t.Errorf("before it is due: %+v", w)
	}
}
