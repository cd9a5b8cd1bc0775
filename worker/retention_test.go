package worker

import (
	"context"
	"testing"
	"time"

	"hongbao/internal/staff"
)

// oldRows are those of one table, which are removed two at a time.
type oldRows struct {
	left  int
	turns int
	kept  []time.Duration
}

func (o *oldRows) TakeRetentionTurn(context.Context, staff.RetainedTable, time.Duration) (bool, error) {
	o.turns++
	return o.turns == 1, nil
}

func (o *oldRows) RemoveOld(_ context.Context, _ staff.RetainedTable, keep time.Duration, after staff.RetentionCursor) (int64,
	staff.RetentionCursor, bool, error) {
	o.kept = append(o.kept, keep)
	n := min(2, o.left)
	o.left -= n
	after.ID++
	return int64(n), after, o.left > 0, nil
}

// TestRetentionTurn: a turn continues until no old row is left. A table without a limit has no
// turn, and a turn of another worker is left to it.
func TestRetentionTurn(t *testing.T) {
	t.Parallel()
	rows := &oldRows{left: 5}
	r := &Retention{Book: rows, Keep: map[staff.RetainedTable]time.Duration{staff.RetainedBreaks: time.Hour}}
	if n, err := r.turn(t.Context(), staff.RetainedEvents); err != nil || n != 0 || rows.turns != 0 {
		t.Errorf("for ever: %d, %v, %d turns", n, err, rows.turns)
	}
	for _, want := range []int64{5, 0} {
		if n, err := r.turn(t.Context(), staff.RetainedBreaks); err != nil || n != want {
			t.Errorf("%d, %v, want %d", n, err, want)
		}
	}
	if rows.left != 0 || len(rows.kept) != 3 || rows.kept[0] != time.Hour {
		t.Errorf("%+v", rows)
	}
}
