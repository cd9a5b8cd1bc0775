package bench

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestSameClaims: the comparison that stands behind every number sees each way
// in which answers and claims can differ.
func TestSameClaims(t *testing.T) {
	stored := map[string]int{"a": 0, "b": 1}
	for name, answered := range map[string]map[string]int{
		"lost":           {"a": 0, "b": 1, "c": 2},
		"invented":       {"a": 0},
		"another share":  {"a": 0, "b": 2},
		"another person": {"a": 0, "c": 1},
	} {
		if sameClaims(answered, stored) == nil {
			t.Errorf("%s: not seen", name)
		}
	}
	twice := map[string]int{"a": 1, "b": 1}
	if sameClaims(twice, twice) == nil {
		t.Error("a share given twice: not seen")
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

// TestRun: what is counted is what was asked while the clock ran.
func TestRun(t *testing.T) {
	asked := make([]int, 3)
	got := run(t, subject{"counter", func(_ testing.TB, callers int, _ time.Duration) attempt {
		a := attempt{finish: func(tb testing.TB, done int) {
			if sum := asked[0] + asked[1] + asked[2]; sum != done {
				tb.Errorf("asked %d times, told of %d", sum, done)
			}
		}}
		for i := range callers {
			a.callers = append(a.callers, func() error { asked[i]++; return nil })
		}
		return a
	}}, 3, 5*time.Millisecond)
	if sum := asked[0] + asked[1] + asked[2]; got.done != sum-3 || got.perSecond <= 0 {
		t.Errorf("asked %d times, of which 3 before the clock: %+v", sum, got)
	}
}

// TestRunSoldOut: the last share ends a run, and is counted.
func TestRunSoldOut(t *testing.T) {
	left := 5
	got := run(t, subject{"counter", func(testing.TB, int, time.Duration) attempt {
		return attempt{
			callers: []ask{func() error {
				if left == 0 {
					return errSoldOut
				}
				left--
				return nil
			}},
			finish: func(tb testing.TB, done int) {
				if done != 5 {
					tb.Errorf("told of %d", done)
				}
			},
		}
	}}, 1, time.Hour)
	if got.done != 4 {
		t.Errorf("%+v", got)
	}
}

func TestOutput(t *testing.T) {
	results := []*comparison{{title: "grabs", callers: 20, baseline: subject{name: "old"}, ours: subject{name: "new"},
		baseRuns: []sample{{done: 1, perSecond: 100, p50: time.Millisecond, p99: 2 * time.Millisecond}},
		times:    []sample{{done: 1, perSecond: 250, p50: time.Millisecond, p99: 2 * time.Millisecond}}}}
	env := surroundings{Kind: "environment", Cores: 2, Redis: "7.0"}
	var out bytes.Buffer
	writeTable(&out, env, results)
	for _, want := range []string{"2 cores", "Redis 7.0", "grabs", "old", "new", "250", "2.50"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	out.Reset()
	writeLines(t, &out, env, results, &shelf{})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines", len(lines))
	}
	var m measurement
	if err := json.Unmarshal([]byte(lines[2]), &m); err != nil || m.Who != "new" || m.Ratio != 2.5 || m.PerSecond.Median != 250 {
		t.Errorf("%v: %s", err, lines[2])
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

func TestPagesOutput(t *testing.T) {
	ms := func(all ...int) (out times) {
		for _, n := range all {
			out = append(out, time.Duration(n)*time.Millisecond)
		}
		return out
	}
	s := &shelf{Kind: "pages", MariaDB: "10.11", Rows: 2_000, Few: 1_000, results: []latency{
		{"claims, first page", ms(1, 2, 9), ms(2, 4, 8, 16)}, {"  last page", ms(1), ms(3)}}}
	var out bytes.Buffer
	s.write(&out)
	for _, want := range []string{"MariaDB 10.11", "2000", "claims, first page", "4.00", "16.00", "last page", "3.00"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	want := []any{s, pageTime{"page", "claims, first page", 4, 8, 2, 16, 2, 2}, pageTime{"page", "claims, last page", 3, 3, 3, 3, 1, 3}}
	if got := s.lines(); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if got := new(shelf).lines(); len(got) != 0 {
		t.Errorf("nothing was measured: %+v", got)
	}
}
