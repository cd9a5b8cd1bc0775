package payout

import (
	"errors"
	"time"
)

// ErrBooksRestored means that MySQL was restored from an older backup (rule R13), or this
// packet is one of those that its recovery could not decide. Nothing was changed:
// no books are closed, nothing is sent and nothing decided until `hongbao recover`
// has run.
var ErrBooksRestored = errors.New("MySQL was restored from an older backup and is not recovered")

// BooksState says whether the books can be believed.
type BooksState string

// The states of the books.
const (
	// BooksNormal: they hold all that has happened.
	BooksNormal BooksState = "normal"
	// BooksRestored: they are older than reality. Ended by a recovery alone.
	BooksRestored BooksState = "restored"
)

// Books is the state of all books together.
type Books struct {
	// Number only rises, and a copy of it is outside MySQL.
	Number int64
	State  BooksState
	// BeatAt is when Number rose last: what had happened by then is in the books.
	BeatAt time.Time
	// Known is the highest number known outside MySQL when the books were found
	// restored, RestoredAt when that was.
	Known      int64
	RestoredAt time.Time
	// RecoveredAt is when the last recovery ended; zero: there was none.
	RecoveredAt time.Time
}

// Judge looks at the books at a moment at which known was the highest number that
// anybody remembers outside them. Books below it are older than reality, and stay
// so whatever is remembered later. Others rise by one when rise is set.
func (b Books) Judge(known int64, rise bool, now time.Time) Books {
	switch {
	case b.State == BooksRestored:
		// They had come further than anybody knew of: they were recovered and restored again, to
		// a backup of this time. What was noted in between may be under way.
		if known > b.Known {
			b.Known, b.RestoredAt = known, now
		}
	case b.Number < known:
		b.State, b.Known, b.RestoredAt = BooksRestored, known, now
	case rise:
		b.Number, b.BeatAt = b.Number+1, now
	}
	return b
}

// recoveredLead is by how much recovered books are ahead of what is known: more
// than processes can have beaten, each at most once, without Redis hearing of it.
const recoveredLead = 1000

// Recovered is what the books are once all that happened since the backup was put
// back.
func (b Books) Recovered(known int64, now time.Time) Books {
	b.Number = max(b.Number, b.Known, known) + recoveredLead
	b.State, b.BeatAt, b.RecoveredAt = BooksNormal, now, now
	return b
}

// Hold is what stops sends while the books are restored; nil while they are normal.
func (b Books) Hold() *Hold {
	if b.State != BooksRestored {
		return nil
	}
	return &Hold{By: "watch", Role: "system", Reason: "MySQL was restored from an older backup; hongbao recover has to run",
		Since: b.RestoredAt}
}
