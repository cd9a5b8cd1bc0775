package mysql

import (
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// BreakRow is a row of breaks.
type BreakRow struct {
	ID               int64
	Kind             string
	PacketID         string
	PaymentID        string
	OrderNo          string
	UserID           string
	Detail           string
	Provider         string
	Amount           *int64
	ReconciliationID *string
	Seen             int
	CreatedAt        time.Time
	LastSeen         time.Time
	ResolvedAt       *time.Time
	ResolvedBy       *string
	Reason           *string
	PaymentAmount    *int64
}

// TableName names the table.
func (BreakRow) TableName() string { return "breaks" }

// Row returns the break as lists show it.
func (r BreakRow) Row() staff.BreakRow {
	b := staff.BreakRow{
		Break: payout.Break{Kind: payout.BreakKind(r.Kind), OrderNo: r.OrderNo, UserID: r.UserID, Detail: r.Detail},
		ID:    r.ID, PacketID: r.PacketID, PaymentID: r.PaymentID, Provider: r.Provider, ReconciliationID: OrEmpty(r.ReconciliationID),
		Seen: r.Seen, CreatedAt: r.CreatedAt.UTC(), LastSeen: r.LastSeen.UTC(), ResolvedAt: OrZero(r.ResolvedAt),
	}
	if r.Amount != nil {
		b.Amount = money.Fen(*r.Amount)
	}
	if r.PaymentAmount != nil {
		b.PaymentAmount = money.Fen(*r.PaymentAmount)
	}
	if r.ResolvedAt != nil { // of a reopened break they describe the earlier resolution
		b.ResolvedBy, b.Reason = OrEmpty(r.ResolvedBy), OrEmpty(r.Reason)
	}
	return b
}
