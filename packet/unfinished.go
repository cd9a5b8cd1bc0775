package packet

import "time"

// Unfinished is a packet that is not at its end in MySQL, with what tells whose
// turn it is: its own workflow's, its refund's, or a person's.
type Unfinished struct {
	Record
	// RefundStatus is the status of the remainder's refund; "" before there is one.
	RefundStatus string
	// UpdatedAt is when the row last moved.
	UpdatedAt time.Time
}

// BooksClosed reports whether the remainder is fixed: from then on its refund, if
// there is one, carries the packet to its end.
func (u Unfinished) BooksClosed() bool { return !u.BooksClosedAt.IsZero() }

// RowState is what the watch compares a pool with.
type RowState struct {
	Stored    Status
	UpdatedAt time.Time
}
