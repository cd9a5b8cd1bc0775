package mysql

import (
	"time"

	"gorm.io/gorm"

	"hongbao/internal/payout"
)

// StateRow is the row of books.
type StateRow struct {
	ID          int
	Number      int64
	State       string
	BeatAt      time.Time
	Known       int64
	RestoredAt  *time.Time
	RecoveredAt *time.Time
}

// TableName names the table.
func (StateRow) TableName() string { return "books" }

// AsState returns the stored state.
func (r StateRow) AsState() payout.MySQLState {
	return payout.MySQLState{Heartbeat: r.Number, State: payout.MySQLStatus(r.State), HeartbeatAt: r.BeatAt.UTC(), Known: r.Known,
		RestoredAt: OrZero(r.RestoredAt), RecoveredAt: OrZero(r.RecoveredAt)}
}

// ReadState reads MySQL's heartbeat and recovery state.
func ReadState(db *gorm.DB) (payout.MySQLState, error) {
	var row StateRow
	err := db.Where("id = 1").Limit(1).Find(&row).Error
	return row.AsState(), err
}
