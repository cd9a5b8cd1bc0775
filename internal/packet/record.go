package packet

import (
	"cmp"
	"time"

	"hongbao/internal/money"
)

// Record is a packet as stored in MySQL.
type Record struct {
	Packet
	// Stored is the status of the row: funding, rejected, open, closing or closed.
	Stored  Status
	Failure *Failure
	Reason  CloseReason
	Counts
	// Remainder is the amount refunded to the sender; set when the books are closed.
	Remainder money.Fen
	// BestShare is the share of the luckiest claim (Luckier); set once nothing more can be claimed,
	// nil without a claim.
	BestShare     *int
	BooksClosedAt time.Time
	ClosedAt      time.Time
	SealedSeed    []byte
	Eligible      []string // the users of EligibleCount; omitted in lists
	First         *FirstAnswer
}

// EligibleListLost reports whether the list of eligible users is incomplete: fewer are stored than
// EligibleCount. Then nobody may grab.
func (r Record) EligibleListLost() bool { return len(r.Eligible) != r.EligibleCount }

// Status derives the API status from the row, at the given time.
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

// ClaimWithPayout is a claim with the state of its payout.
type ClaimWithPayout struct {
	Claim
	PayoutID     string
	PayoutStatus string
	FailureCode  string // of a failed or returned payout
}

// RecordFilter selects packets of an app for a list, newest first.
type RecordFilter struct {
	App      string // "": every app (staff)
	SenderID string
	Stored   []Status
	From     time.Time // created at or after; zero: no bound
	To       time.Time // created before; zero: no bound
	// ExpiresBefore: expired before, together with Stored; zero: no bound.
	ExpiresBefore time.Time
	AfterTime     time.Time
	AfterID       string
	Limit         int
}

// Cursor is a position in a list that is ordered by time, then id, both descending. The zero Cursor
// is the beginning of a list.
type Cursor struct {
	At time.Time
	ID string
}

// Compare orders positions as lists do: the newest first.
func (p Cursor) Compare(q Cursor) int {
	return cmp.Or(q.At.Compare(p.At), cmp.Compare(q.ID, p.ID))
}

// ReceivedClaim is a recorded claim in the list of its user.
type ReceivedClaim struct {
	ClaimWithPayout
	SenderID string
	Greeting string
	BestLuck bool // only of a packet whose books are closed
	Final    bool // the books are closed
}

// ClaimedPacket is what the list of a user's claims shows of a packet.
type ClaimedPacket struct {
	SenderID string
	Greeting string
	Recorded bool // the user's claim is recorded
}

// Span is the half-open interval from From to To.
type Span struct{ From, To time.Time }

// UserSums are the sums that one user sent and received in a span.
type UserSums struct {
	SentCount      int
	SentAmount     money.Fen
	ReceivedCount  int
	ReceivedAmount money.Fen
	BestLuckCount  int
}

// UnfinishedPacket is a packet that is not final in MySQL, with the state that decides what has to
// continue: its workflow, its refund, or staff.
type UnfinishedPacket struct {
	Record
	// RefundStatus is the status of the remainder's refund; "" before there is one.
	RefundStatus string
	// UpdatedAt is the last change of the row.
	UpdatedAt time.Time
}

// BooksClosed reports whether the remainder is fixed. From then on its refund, if there is one,
// completes the packet.
func (u UnfinishedPacket) BooksClosed() bool { return !u.BooksClosedAt.IsZero() }

// RowState is the state of a row that the watch compares with a pool.
type RowState struct {
	Stored    Status
	UpdatedAt time.Time
}
