package mysql

import (
	"time"

	"hongbao/internal/payout"
)

// AttemptRow is a row of attempts.
type AttemptRow struct {
	OrderNo      string `gorm:"primaryKey"`
	PaymentID    string
	No           int
	Op           string
	Account      string
	Request      []byte
	Sends        int
	Asks         int
	NotedUntil   *time.Time
	OpenUntil    *time.Time
	Statement    string
	Refused      bool
	Booked       bool
	ReturnBooked bool
	NextAction   string
	NextAt       *time.Time
	AskedAt      *time.Time
	AskWantedAt  *time.Time
	Forgotten    bool
	Consented    string
	Observed     string
	Code         string
	Message      string
	ProviderRef  string
	SealedAction []byte
	StartedAt    time.Time
	AskUntil     time.Time
	EndedAt      *time.Time
	RenewAt      *time.Time
}

// TableName names the table.
func (AttemptRow) TableName() string { return "attempts" }

// NewAttemptRow returns the row of an attempt.
func NewAttemptRow(a payout.Attempt) AttemptRow {
	return AttemptRow{
		OrderNo: a.OrderNo, PaymentID: a.PaymentID, No: a.No, Op: string(a.Op), Account: a.Account, Request: a.Request,
		Sends: a.Sends, Asks: a.Queries,
		NotedUntil: OptTime(a.CurrentSendUntil), OpenUntil: OptTime(a.EarlierSendsUntil), Statement: string(a.Statement), Refused: a.Refused,
		Booked:       a.Booked,
		ReturnBooked: a.ReturnBooked, NextAction: string(a.Next), NextAt: OptTime(a.NextAt), AskedAt: OptTime(a.QueriedAt),
		AskWantedAt: OptTime(a.QueryWantedAt), Forgotten: a.Forgotten, Consented: string(a.Consented),
		Observed: a.ObservedIDs, Code: ClipCode(a.Code),
		Message:     Clip(a.Message, MessageLen),
		ProviderRef: ClipKey(a.ProviderRef, RefLen), SealedAction: a.SealedAction, StartedAt: a.StartedAt.UTC(), AskUntil: a.QueryUntil.UTC(),
		EndedAt: OptTime(a.EndedAt), RenewAt: OptTime(a.RenewAt),
	}
}

// Attempt returns the attempt.
func (r AttemptRow) Attempt() payout.Attempt {
	return payout.Attempt{
		OrderNo: r.OrderNo, PaymentID: r.PaymentID, No: r.No, Op: payout.Op(r.Op), Account: r.Account, Request: r.Request,
		Sends: r.Sends, Queries: r.Asks,
		CurrentSendUntil: OrZero(r.NotedUntil), EarlierSendsUntil: OrZero(r.OpenUntil), Statement: payout.ObservationKind(r.Statement),
		Refused: r.Refused,
		Booked:  r.Booked, ReturnBooked: r.ReturnBooked, Next: payout.Action(r.NextAction), NextAt: OrZero(r.NextAt),
		QueriedAt:     OrZero(r.AskedAt),
		QueryWantedAt: OrZero(r.AskWantedAt), Forgotten: r.Forgotten, Consented: payout.ObservationKind(r.Consented),
		ObservedIDs: r.Observed, Code: r.Code, Message: r.Message,
		ProviderRef:  r.ProviderRef,
		SealedAction: r.SealedAction, StartedAt: r.StartedAt.UTC(), QueryUntil: r.AskUntil.UTC(), EndedAt: OrZero(r.EndedAt),
		RenewAt: OrZero(r.RenewAt),
	}
}
