package payout

import (
	"errors"
	"time"
)

// ErrMySQLRestored means that MySQL was restored from an older backup (rule R13), or this
// packet is one of those that its recovery could not decide. Nothing was changed:
// no books are closed, nothing is sent and nothing decided until `hongbao recover`
// has run.
var ErrMySQLRestored = errors.New("MySQL was restored from an older backup and is not recovered")

// MySQLStatus says whether the books can be believed.
type MySQLStatus string

// The states of the books.
const (
	// MySQLNormal: they hold all that has happened.
	MySQLNormal MySQLStatus = "normal"
	// MySQLRestored: they are older than reality. Ended by a recovery alone.
	MySQLRestored MySQLStatus = "restored"
)

// Books is the state of all books together.
type MySQLState struct {
	// Number only rises, and a copy of it is outside MySQL.
	Heartbeat int64
	State     MySQLStatus
	// HeartbeatAt is when Number rose last: what had happened by then is in the books.
	HeartbeatAt time.Time
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
func (b MySQLState) CheckRestored(known int64, rise bool, now time.Time) MySQLState {
	switch {
	case b.State == MySQLRestored:
		// They had come further than anybody knew of: they were recovered and restored again, to
		// a backup of this time. What was noted in between may be under way.
		if known > b.Known {
			b.Known, b.RestoredAt = known, now
		}
	case b.Heartbeat < known:
		b.State, b.Known, b.RestoredAt = MySQLRestored, known, now
	case rise:
		b.Heartbeat, b.HeartbeatAt = b.Heartbeat+1, now
	}
	return b
}

// recoveredLead is by how much recovered books are ahead of what is known: more
// than processes can have beaten, each at most once, without Redis hearing of it.
const recoveredLead = 1000

// Recovered is what the books are once all that happened since the backup was put
// back.
func (b MySQLState) Recovered(known int64, now time.Time) MySQLState {
	b.Heartbeat = max(b.Heartbeat, b.Known, known) + recoveredLead
	b.State, b.HeartbeatAt, b.RecoveredAt = MySQLNormal, now, now
	return b
}

// Hold is what stops sends while the books are restored; nil while they are normal.
func (b MySQLState) Hold() *Hold {
	if b.State != MySQLRestored {
		return nil
	}
	return &Hold{By: "watch", Role: "system", Reason: "MySQL was restored from an older backup; hongbao recover has to run",
		Since: b.RestoredAt}
}
