package payout

import (
	"errors"
	"time"
)

// ErrMySQLRestored means that MySQL was restored from an older backup (rule R13). Nothing was
// changed. Closing, sends and decisions wait until `hongbao recover` has run.
var ErrMySQLRestored = errors.New("MySQL was restored from an older backup and is not recovered")

// MySQLStatus says whether MySQL holds everything that has happened.
type MySQLStatus string

// The statuses.
const (
	// MySQLNormal: MySQL holds everything that has happened.
	MySQLNormal MySQLStatus = "normal"
	// MySQLRestored: MySQL comes from an older backup. Only a recovery ends this status.
	MySQLRestored MySQLStatus = "restored"
)

// MySQLState is the heartbeat of MySQL and the result of comparing it with its copies.
type MySQLState struct {
	// Heartbeat only rises. A copy is kept outside MySQL, in Redis.
	Heartbeat int64
	State     MySQLStatus
	// HeartbeatAt is when Heartbeat rose last: everything before it is stored.
	HeartbeatAt time.Time
	// Known is the highest heartbeat known outside MySQL when the restore was detected, RestoredAt
	// the time of the detection.
	Known      int64
	RestoredAt time.Time
	// RecoveredAt is when the last recovery ended; zero: never.
	RecoveredAt time.Time
}

// CheckRestored compares the heartbeat with known, the highest one remembered outside MySQL. A
// lower heartbeat means that MySQL was restored; only Recovered ends that status. Otherwise the
// heartbeat rises by one if rise is set.
func (b MySQLState) CheckRestored(known int64, rise bool, now time.Time) MySQLState {
	switch {
	case b.State == MySQLRestored:
		// A recovered MySQL was restored again, to a backup from before the recovery. Sends
		// recorded in between may be in flight.
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

// recoveredLead is how far a recovered heartbeat is ahead of the known one: more than processes can
// have raised it, once each, without updating Redis.
const recoveredLead = 1000

// Recovered returns the state after recovery has put back everything since the backup.
func (b MySQLState) Recovered(known int64, now time.Time) MySQLState {
	b.Heartbeat = max(b.Heartbeat, b.Known, known) + recoveredLead
	b.State, b.HeartbeatAt, b.RecoveredAt = MySQLNormal, now, now
	return b
}

// Hold is the hold on everything while MySQL is restored; nil while it is normal.
func (b MySQLState) Hold() *Hold {
	if b.State != MySQLRestored {
		return nil
	}
	return &Hold{Scope: HoldAll, Kind: HoldRestored, By: "watch", Role: "system", Since: b.RestoredAt,
		Reason: "MySQL was restored from an older backup; hongbao recover has to run"}
}
