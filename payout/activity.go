package payout

import "time"

// ActivitySpan is how many minutes Activity goes back, the current one included.
const ActivitySpan = 60

// Minute is what was booked in one minute.
type Minute struct {
	At time.Time // when it began
	// Grabs were booked, so that their money is owed; Paid went out to winners.
	Grabs, Paid Sum
	// Counted is false for a minute whose postings were not added up yet.
	Counted bool
}
