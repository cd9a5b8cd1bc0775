package payout

import "time"

// The clock that rows go by may jump ahead and be set right: times written until then lie
// in the future.
const (
	// LongestPause is the longest pause between two steps of a payment, the longest that an
	// adapter may want, and the longest landing window.
	LongestPause = pauseCap
	// LongestDelay is how far ahead of the clock a payment's rows lie at most, apart from what
	// the provider remembers: the longest pause, and a transaction that waited for a row.
	LongestDelay = LongestPause + time.Minute
	// attended is for how long a number of an open payment that was sent by a clock ahead may
	// be sent on: the day that QueryUntil keeps off what the provider remembers.
	resendWindow = 24 * time.Hour
)

// ClockSetBack is the repair of rows that lay in the future.
const ClockSetBack = "clock_set_back"

// Ahead reports whether no delay can have put a time of a payment's rows so far ahead of now.
func TooFarAhead(t, now time.Time) bool { return t.After(now.Add(LongestDelay)) }

// Rewind pulls back to now the times of a payment that lie further ahead than any delay puts
// them, and reports whether there were any. What was sent by a clock ahead may have been sent
// long ago: nothing is sent on under the number of a payment at its end, and under that of an
// open one, which has been asked about all along, for a day at most. From then on "never
// received" proves nothing (rule R5).
func ClampFutureTimes(p *Payment, attempts []Attempt, now time.Time) (rewound bool) {
	back := func(t *time.Time, to time.Time) {
		if TooFarAhead(*t, now) {
			*t, rewound = to, true
		}
	}
	noted := p.UpdatedAt // the last that was noted
	back(&p.UpdatedAt, now)
	back(&p.DecidedAt, now)
	for i := range attempts {
		a := &attempts[i]
		if TooFarAhead(a.StartedAt, now) {
			left := time.Duration(0)
			if p.Status.Open() {
				left = min(a.QueryUntil.Sub(a.StartedAt), resendWindow)
			}
			a.QueryUntil = now.Add(left)
		}
		for _, t := range []*time.Time{&a.StartedAt, &a.NextAt, &a.QueriedAt, &a.EndedAt} {
			back(t, now)
		}
		for _, until := range []*time.Time{&a.NotedUntil, &a.OpenUntil} { // a send may land for as long as it had left by then
			back(until, now.Add(min(max(until.Sub(noted), 0), LongestDelay)))
		}
	}
	return rewound
}
