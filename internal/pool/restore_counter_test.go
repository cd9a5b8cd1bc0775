package pool

import "testing"

// TestR13_RestoreCounter: the copy of the restore counter only increases, and survives the
// loss of two of its three copies.
func TestR13_RestoreCounter(t *testing.T) { onEach(t, testR13RestoreCounter) }

func testR13RestoreCounter(t *testing.T, on setup) {
	p := on.openFresh(t)
	ctx := t.Context()
	want := func(n int64) {
		t.Helper()
		if got, err := p.HeartbeatNumber(ctx); err != nil || got != n {
			t.Errorf("%d, %v, want %d", got, err, n)
		}
	}
	want(0)
	for _, n := range []int64{1, 9, 10, 2} { // 10 is above 9, unlike as text
		if err := p.RaiseHeartbeatNumber(ctx, n); err != nil {
			t.Fatal(err)
		}
	}
	want(10)
	for place := range copies {
		if err := p.rdb.Del(ctx, keyBooks(place)).Err(); err != nil {
			t.Fatal(err)
		}
		if place < copies-1 {
			want(10)
		}
	}
	want(0)
	if err := p.RaiseHeartbeatNumber(ctx, 3); err != nil {
		t.Fatal(err)
	}
	want(3)
}
