package mysql

import "time"

// OutboxRow is a row of outbox.
type OutboxRow struct {
	PaymentID, Kind string
	Tries           int
	DueAt           time.Time
	CreatedAt       time.Time
}

// TableName names the table.
func (OutboxRow) TableName() string { return "outbox" }
