package packet

import (
	"cmp"
	"time"

	"hongbao/internal/money"
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
	Remainder money.Fen
	// BestShare is the share of the luckiest claim (Luckier); set once nothing can
	// be claimed any more, unless nobody claimed anything.
	BestShare     *int
	BooksClosedAt time.Time
	ClosedAt      time.Time
	SealedSeed    []byte
	Eligible      []string // the users of EligibleCount; lists leave it out
	First         *FirstAnswer
}

// EligibleListLost reports whether the packet has a list of users that is lost: EligibleCount says how
// many may grab, and not all of them are known. Nobody may grab then.
func (r Record) EligibleListLost() bool { return len(r.Eligible) != r.EligibleCount }

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
	case r.expired(now): // the workflow follows
		return StatusClosing
	default:
		return StatusOpen
	}
}

// Paid is a claim with the state of its payout.
type ClaimWithPayout struct {
	Claim
	PayoutID     string
	PayoutStatus string
}

// RecordFilter selects packets of an app for a list, newest first.
type RecordFilter struct {
	App      string // "": every app (staff)
	SenderID string
	Stored   []Status
	From     time.Time // created at or after; zero: no bound
	To       time.Time // created before; zero: no bound
	// ExpiresBefore: expired before, with Stored; zero: no bound.
	ExpiresBefore time.Time
	AfterTime     time.Time
	AfterID       string
	Limit         int
}

// Place is where something stands in a list that is ordered by time, then id,
// both falling. The zero Place is before everything: where a list begins.
type Cursor struct {
	At time.Time
	ID string
}

// Compare orders places as lists do: the newest first.
func (p Cursor) Compare(q Cursor) int {
	return cmp.Or(q.At.Compare(p.At), cmp.Compare(q.ID, p.ID))
}

// Received is a recorded claim as its user sees it among his others.
type ReceivedClaim struct {
	ClaimWithPayout
	SenderID string
	Greeting string
	BestLuck bool // of a packet whose books are closed
}

// Span is a time from From up to, but without, To.
type Span struct{ From, To time.Time }

// Sums are what one user sent and received in a span of time.
type UserSums struct {
	SentCount      int
	SentAmount     money.Fen
	ReceivedCount  int
	ReceivedAmount money.Fen
	BestLuckCount  int
}

// Unfinished is a packet that is not at its end in MySQL, with what tells whose
// turn it is: its own workflow's, its refund's, or a person's.
type UnfinishedPacket struct {
	Record
	// RefundStatus is the status of the remainder's refund; "" before there is one.
	RefundStatus string
	// UpdatedAt is when the row last moved.
	UpdatedAt time.Time
}

// BooksClosed reports whether the remainder is fixed: from then on its refund, if
// there is one, carries the packet to its end.
func (u UnfinishedPacket) BooksClosed() bool { return !u.BooksClosedAt.IsZero() }

// RowState is what the watch compares a pool with.
type RowState struct {
	Stored    Status
	UpdatedAt time.Time
}
