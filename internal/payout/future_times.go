package payout

import "time"

// The clock of the rows may jump ahead and be set back: times written in between lie in the future.
const (
	// LongestPause is the longest pause between two steps of a payment that does not wait for a person, the longest
	// pause that an adapter may request, and the longest landing window.
	LongestPause = pauseCap
	// LongestDelay is how far ahead of the clock a payment's rows may lie, except for QueryUntil and the next step of
	// one that waits for a person: the longest pause, and a transaction that waited for a row lock.
	LongestDelay = LongestPause + time.Minute
	// resendWindow is how long an order number of an open payment that was sent by a clock ahead
	// may be sent again: the day of margin that QueryUntil keeps.
	resendWindow = 24 * time.Hour
)

// ClockSetBack is the repair of rows that lay in the future.
const ClockSetBack = "clock_set_back"

// TooFarAhead reports whether no delay can explain a time so far ahead of now.
func TooFarAhead(t, now time.Time) bool { return t.After(now.Add(LongestDelay)) }

// stepTooFarAhead reports whether no delay can explain that the next step of a payment in this status is so far
// ahead of now.
func (s Status) stepTooFarAhead(next, now time.Time) bool {
	if s.awaitsPerson() {
		now = now.Add(personDaily)
	}
	return TooFarAhead(next, now)
}

// ClampFutureTimes sets the times of a payment that lie too far ahead to now, and reports whether
// there were any. An order sent by a clock ahead may have been sent long ago. So a number of a
// final payment is not sent again, and a number of an open one, which has been queried all along,
// for a day at most. From then on "never received" proves nothing (rule R5).
func ClampFutureTimes(p *Payment, attempts []Attempt, now time.Time) (rewound bool) {
	back := func(t *time.Time, to time.Time) {
		if TooFarAhead(*t, now) {
			*t, rewound = to, true
		}
	}
	written := p.UpdatedAt // the last change of the row
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
		if p.Status.stepTooFarAhead(a.NextAt, now) {
			a.NextAt, rewound = now, true
		}
		for _, t := range []*time.Time{&a.StartedAt, &a.QueriedAt, &a.QueryWantedAt, &a.EndedAt} {
			back(t, now)
		}
		for _, until := range []*time.Time{&a.CurrentSendUntil, &a.EarlierSendsUntil} { // a send may land for as long as it could by that clock
			back(until, now.Add(min(max(until.Sub(written), 0), LongestDelay)))
		}
	}
	return rewound
}
