package packet

import (
	"time"

	"hongbao/money"
)

// Record is a packet as MySQL knows it.
type Record struct {
	Packet
	// Stored is the row's status: funding, rejected, open, closing or closed.
	Stored  Status
	Failure *Failure
	Reason  CloseReason
	Counts
	// Remainder is what went (or goes) back to the sender; set when the books are closed.
	Remainder     money.Fen
	BooksClosedAt time.Time
	ClosedAt      time.Time
	SealedSeed    []byte
	Eligible      []string // nil: everyone
	First         *FirstAnswer
}

// Status derives what the API tells from the row, at the given time.
func (r Record) Status(now time.Time) Status {
	if r.Stored != StatusOpen {
		return r.Stored
	}
	switch {
	case now.Before(r.OpensAt):
		return StatusScheduled
	case r.ClaimedCount == r.ShareCount:
		return StatusSoldOut
	default:
		return StatusOpen
	}
}

// Paid is a claim with the state of its payout.
type Paid struct {
	Claim
	PayoutID     string
	PayoutStatus string
}

// RecordFilter selects packets of an app for a list, newest first.
type RecordFilter struct {
	App       string // "": every app (staff)
	SenderID  string
	Stored    []Status
	AfterTime time.Time
	AfterID   string
	Limit     int
}
