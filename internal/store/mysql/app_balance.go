package mysql

import (
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// AppBalanceRow is a row of app_balances.
type AppBalanceRow struct {
	AppID     string
	Currency  string
	Available int64
	Reserved  int64
	Version   int64
	Recovered bool
}

// TableName names the table.
func (AppBalanceRow) TableName() string { return "app_balances" }

// BalanceMovementRow is a row of balance_movements.
type BalanceMovementRow struct {
	ID            string
	AppID         string
	Kind          string
	Amount        int64
	Reference     string
	UsedReference *string
	CreatedAt     time.Time
}

// TableName names the table.
func (BalanceMovementRow) TableName() string { return "balance_movements" }

// Movement returns the movement.
func (r BalanceMovementRow) Movement() staff.BalanceMovement {
	return staff.BalanceMovement{ID: r.ID, App: r.AppID, Kind: payout.TransferKind(r.Kind), Amount: money.Fen(r.Amount),
		Reference: r.Reference}
}
