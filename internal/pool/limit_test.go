package pool

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"hongbao/internal/access"
	"hongbao/test/wait"
)

// counted is a list of one limit.
func counted(kind, who string, n int64, span time.Duration) []access.AppliedLimit {
	return []access.AppliedLimit{{Kind: kind, Party: who, Limit: access.Limit{N: n, Span: span}}}
}

// TestLimit: every process counts the same, for each party of each kind separately. Refused
// requests are not counted, and the limit allows again after its time.
func TestLimit(t *testing.T) { onEach(t, testLimit) }

func testLimit(t *testing.T, on setup) {
	ctx := t.Context()
	one, two := on.openFresh(t), on.open(t)
	within := func(p *Pool, kind, who string, n int64, span time.Duration) time.Duration {
		t.Helper()
		_, wait, err := p.WithinLimits(ctx, counted(kind, who, n, span))
		if err != nil {
			t.Fatal(err)
		}
		return wait
	}
	for i, p := range []*Pool{one, two, one} {
		if wait := within(p, "user", "app:u", 3, time.Hour); wait != 0 {
			t.Fatalf("%d of three waits %v", i+1, wait)
		}
	}
	first := within(two, "user", "app:u", 3, time.Hour)
	if first <= 19*time.Minute || first > 20*time.Minute {
		t.Errorf("the fourth of three an hour waits %v", first)
	}
	for range 10 { // refused requests are not counted
		if wait := within(one, "user", "app:u", 3, time.Hour); wait > first || wait < first-time.Minute {
			t.Errorf("the second time it waits %v, the first time %v", wait, first)
		}
	}
	if err := two.GiveBack(ctx, counted("user", "app:u", 3, time.Hour)); err != nil {
		t.Fatal(err)
	}
	if wait := within(one, "user", "app:u", 3, time.Hour); wait != 0 {
		t.Errorf("after one was given back it waits %v", wait)
	}
	if wait := within(two, "user", "app:u", 3, time.Hour); wait > first || wait < first-time.Minute {
		t.Errorf("and then %v", wait)
	}
	for range 3 { // returning never exceeds the limit
		if err := one.GiveBack(ctx, counted("user", "app:nobody", 1, time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if now, later := within(one, "user", "app:nobody", 1, time.Hour), within(one, "user", "app:nobody", 1, time.Hour); now != 0 || later == 0 {
		t.Errorf("returned without a count: %v, then %v", now, later)
	}
	for _, other := range [][2]string{{"user", "app:v"}, {"user", "app2:u"}, {"key", "app:u"}, {"user", "app:u}x"}, {"user", "app:{u"}} {
		if wait := within(one, other[0], other[1], 3, time.Hour); wait != 0 {
			t.Errorf("%v waits %v", other, wait)
		}
	}
	if wait := within(one, "user", "soon", 1, time.Second); wait != 0 {
		t.Fatalf("waits %v", wait)
	}
	if wait := within(one, "user", "soon", 1, time.Second); wait <= 0 || wait > time.Second {
		t.Errorf("the second of one a second waits %v", wait)
	}
	wait.Until(t, "one more is allowed", func() bool { return within(one, "user", "soon", 1, time.Second) == 0 })
	wait.Until(t, "the key of an idle party expires", func() bool {
		n, err := one.rdb.Exists(ctx, keyLimit("user", "soon")).Result()
		return err == nil && n == 0
	})
}

// TestLimitClock: after the clock was set back, or the limit lowered, no wait is longer than
// that of a limit used up now.
func TestLimitClock(t *testing.T) {
	t.Parallel()
	p := onSingle(t).openFresh(t)
	ahead := time.Now().Add(1000 * time.Hour).UnixMicro()
	if err := p.rdb.Set(t.Context(), keyLimit("user", "u"), ahead, time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	if _, wait, err := p.WithinLimits(t.Context(), counted("user", "u", 60, time.Minute)); err != nil || wait <= 0 || wait > time.Second {
		t.Errorf("waits %v, %v", wait, err)
	}
}

// TestLimitKeys: on a Cluster the keys are spread by party, and ids chosen by a client only
// affect the part after our prefix.
func TestLimitKeys(t *testing.T) {
	slots := map[int]bool{}
	for _, who := range []string{"app:a", "app:b", "app:c", "app:d", "{app}", "}"} {
		key := keyLimit("user", who)
		if !strings.HasPrefix(key, strings.TrimSuffix(keyPattern, "*")) {
			t.Errorf("%s: users of Redis that may touch our keys may not touch it", key)
		}
		slots[slotOf(key)] = true
	}
	if len(slots) < 5 {
		t.Errorf("%d slots", len(slots))
	}
}

func TestLimitErrors(t *testing.T) {
	t.Parallel()
	p := onSingle(t).open(t)
	for _, bad := range []struct {
		n    int64
		span time.Duration
	}{{0, time.Second}, {-1, time.Second}, {access.MaxLimit + 1, time.Second}, {math.MaxInt64, time.Second}, {1, 0},
		{1, access.MinLimitSpan - 1}, {1, access.MaxLimitSpan + 1}} {
		if _, _, err := p.WithinLimits(t.Context(), counted("user", "u", bad.n, bad.span)); err == nil || errors.Is(err, ErrUnavailable) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := p.WithinLimits(ended, counted("user", "u", 1, time.Second))
	wantErr(t, err, ErrUnavailable)
}

// TestLimitsTogether: a request that any of its limits refuses is counted against none, also
// when they are on several masters.
func TestLimitsTogether(t *testing.T) { onEach(t, testLimitsTogether) }

func testLimitsTogether(t *testing.T, on setup) {
	p := on.openFresh(t)
	limit := func(kind string, n int64) access.AppliedLimit { return counted(kind, "app:a", n, time.Hour)[0] }
	within := func(limits ...access.AppliedLimit) (over int, allowed bool) {
		t.Helper()
		over, wait, err := p.WithinLimits(t.Context(), limits)
		if err != nil {
			t.Fatal(err)
		}
		if wait < 0 || wait > time.Hour {
			t.Errorf("%v: waits %v", limits, wait)
		}
		return over, wait == 0
	}
	kinds := []string{"address", "key", "user"}
	for refusing := range kinds {
		var limits []access.AppliedLimit
		for i, kind := range kinds {
			n := int64(3)
			if i == refusing {
				n = 1
			}
			limits = append(limits, limit(fmt.Sprint(kind, refusing), n))
		}
		if _, allowed := within(limits...); !allowed {
			t.Fatalf("refused at once: %v", limits)
		}
		for range 5 {
			if over, allowed := within(limits...); allowed || over != refusing {
				t.Fatalf("limit %d refuses, want %d: allowed %v", over, refusing, allowed)
			}
		}
		for i, l := range limits { // the others allow two more
			for n := range 3 {
				if _, allowed := within(l); allowed != (i != refusing && n < 2) {
					t.Errorf("refused by %s; then %s: allowed %v after %d", kinds[refusing], l.Kind, allowed, n)
				}
			}
		}
	}
	both := []access.AppliedLimit{limit("key", 1), limit("user", 1)}
	for range 2 {
		if over, allowed := within(both...); !allowed {
			t.Fatalf("refused by limit %d", over)
		}
		if err := p.GiveBack(t.Context(), both); err != nil {
			t.Fatal(err)
		}
	}
}
