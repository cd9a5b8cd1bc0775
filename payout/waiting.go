package payout

import "time"

// Waiting is an open payment and when its next step is due.
type Waiting struct {
	Payment
	// OrderNo is the number of the current attempt, "" before the first.
	OrderNo string
	// NextAt is when the current attempt's next step is due; zero: at once.
	NextAt time.Time
	// Next is that step.
	Next Action
}

// Overdue tells for how long nobody has done what was due at the given time: 0
// while the step lies ahead.
func (w Waiting) Overdue(now time.Time) time.Duration {
	due := w.UpdatedAt
	if w.NextAt.After(due) {
		due = w.NextAt
	}
	return max(now.Sub(due), 0)
}
