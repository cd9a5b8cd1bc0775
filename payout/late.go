package payout

import "time"

// LateAfter is for how long a refund may be due before it is late. The alert about
// packets that are past their end has the same patience.
const LateAfter = 5 * time.Minute
