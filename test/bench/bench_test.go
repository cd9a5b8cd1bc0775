package bench

import (
	"testing"
	"time"
)

// TestSameClaims checks that the comparison behind every number finds each way in which answers and
// claims can differ.
func TestSameClaims(t *testing.T) {
	stored := map[string]int{"a": 0, "b": 1}
	for name, answered := range map[string]map[string]int{
		"lost":          {"a": 0, "b": 1, "c": 2},
		"invented":      {"a": 0},
		"another share": {"a": 0, "b": 2},
		"another user":  {"a": 0, "c": 1},
	} {
		if sameClaims(answered, stored) == nil {
			t.Errorf("%s: not found", name)
		}
	}
	twice := map[string]int{"a": 1, "b": 1}
	if sameClaims(twice, twice) == nil {
		t.Error("a share given twice: not found")
	}
	if err := sameClaims(stored, stored); err != nil {
		t.Error(err)
	}
}

func TestSpread(t *testing.T) {
	runs := []sample{{perSecond: 3}, {perSecond: 1}, {perSecond: 8}}
	if got := spread(runs, perSecond); got != (rate{3, 1, 8}) {
		t.Errorf("%+v", got)
	}
	if got := spread(runs[:2], perSecond); got != (rate{2, 1, 3}) {
		t.Errorf("%+v", got)
	}
}

// TestRun checks that exactly the calls within the time are counted.
func TestRun(t *testing.T) {
	calls := make([]int, 3)
	got := run(t, subject{"counter", func(_ testing.TB, callers int, _ time.Duration) attempt {
		a := attempt{finish: func(tb testing.TB, done int) {
			if sum := calls[0] + calls[1] + calls[2]; sum != done {
				tb.Errorf("%d calls, %d counted", sum, done)
			}
		}}
		for i := range callers {
			a.callers = append(a.callers, func() error { calls[i]++; return nil })
		}
		return a
	}}, 3, 5*time.Millisecond)
	if sum := calls[0] + calls[1] + calls[2]; got.done != sum-3 || got.perSecond <= 0 {
		t.Errorf("%d calls, of which 3 before the measurement: %+v", sum, got)
	}
}

// TestRunSoldOut checks that the last share ends a run, and is counted.
func TestRunSoldOut(t *testing.T) {
	left := 5
	got := run(t, subject{"counter", func(testing.TB, int, time.Duration) attempt {
		return attempt{
			callers: []operation{func() error {
				if left == 0 {
					return errSoldOut
				}
				left--
				return nil
			}},
			finish: func(tb testing.TB, done int) {
				if done != 5 {
					tb.Errorf("%d counted", done)
				}
			},
		}
	}}, 1, time.Hour)
	if got.done != 4 {
		t.Errorf("%+v", got)
	}
}

func TestShareIndex(t *testing.T) {
	if got, err := shareIndex([]byte(`{"user_id":"u","share_index":12,"amount":1}`)); got != 12 || err != nil {
		t.Error(got, err)
	}
	for _, bad := range []string{``, `{"share_index":`, `{"share_index":x}`} {
		if got, err := shareIndex([]byte(bad)); err == nil {
			t.Error(bad, got)
		}
	}
}

// TestSampled checks that a sample has sorted times.
func TestSampled(t *testing.T) {
	var took []time.Duration
	for i := 100; i > 0; i-- {
		took = append(took, time.Duration(i)*time.Millisecond)
	}
	if got := sampled(took, 2*time.Second); got.done != 100 || got.perSecond != 50 || got.p50 != 51*time.Millisecond ||
		got.p99 != 100*time.Millisecond {
		t.Errorf("%+v", got)
	}
}
