package mysql

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// PaymentRow is a row of payments.
type PaymentRow struct {
	ID                string `gorm:"primaryKey"`
	Kind              string
	PacketID          string
	AppID             string
	UserID            string
	ShareIndex        int
	Account           string
	RecipientName     *string
	Authorization     *string
	Amount            int64
	Currency          string
	Remark            string
	Provider          string
	ProviderAccount   string
	Status            string
	Version           int
	Attempt           int
	OrderNo           *string
	DecidedAt         *time.Time
	Deciding          string
	NeedsSecondPerson bool
	FailureCode       *string
	FailureMessage    *string
	CreatedAt         time.Time
	UpdatedAt         time.Time
	SettledAt         *time.Time
	PayUntil          *time.Time
	CloseRequestedAt  *time.Time
	ClosedAt          *time.Time
}

// TableName names the table.
func (PaymentRow) TableName() string { return "payments" }

// NewPaymentRow returns the row of a payment.
func NewPaymentRow(p payout.Payment) PaymentRow {
	row := PaymentRow{
		ID: p.ID, Kind: string(p.Kind), PacketID: p.PacketID, AppID: p.App, UserID: p.UserID, ShareIndex: p.ShareIndex, Account: p.Account,
		RecipientName: OptString(p.SealedName), Authorization: OptString(p.Authorization), Amount: int64(p.Amount), Currency: p.Currency,
		Remark: p.Remark, Provider: p.Provider, ProviderAccount: p.ProviderAccount,
		Status: string(p.Status), Attempt: p.Attempt,
		DecidedAt: OptTime(p.DecidedAt), Deciding: string(p.OpenDecision), NeedsSecondPerson: p.NeedsSecondPerson,
		PayUntil: OptTime(p.PayUntil), CloseRequestedAt: OptTime(p.CloseRequestedAt), ClosedAt: OptTime(p.ClosedAt),
		CreatedAt: p.CreatedAt.UTC(), UpdatedAt: p.UpdatedAt.UTC(),
	}
	if p.Attempt > 0 {
		row.OrderNo = OptString(payout.OrderNo(p.ID, p.Attempt))
	}
	if p.Failure != nil {
		row.FailureCode, row.FailureMessage = OptString(ClipCode(p.Failure.Code)), OptString(Clip(p.Failure.Message, MessageLen))
	}
	return row
}

// Payment returns the payment.
func (r PaymentRow) Payment() payout.Payment {
	p := payout.Payment{
		ID: r.ID, Kind: payout.Kind(r.Kind[0]), PacketID: r.PacketID, App: r.AppID, UserID: r.UserID, ShareIndex: r.ShareIndex,
		Account: r.Account, SealedName: OrEmpty(r.RecipientName), Authorization: OrEmpty(r.Authorization), Amount: money.Fen(r.Amount),
		Currency: r.Currency, Remark: r.Remark, Provider: r.Provider,
		ProviderAccount: r.ProviderAccount,
		Status:          payout.Status(r.Status), Attempt: r.Attempt, DecidedAt: OrZero(r.DecidedAt),
		OpenDecision: payout.DecisionKind(r.Deciding), NeedsSecondPerson: r.NeedsSecondPerson,
		PayUntil: OrZero(r.PayUntil), CloseRequestedAt: OrZero(r.CloseRequestedAt), ClosedAt: OrZero(r.ClosedAt),
		CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(),
	}
	if r.FailureCode != nil {
		p.Failure = payout.FailureOf(p.Kind, *r.FailureCode, OrEmpty(r.FailureMessage))
	}
	return p
}

// ListedRow names its embedded row: gorm skips unexported embedded fields.
type ListedRow struct {
	Payment     PaymentRow `gorm:"embedded"`
	ProviderRef *string
}

// Row returns the payment as lists show it.
func (r ListedRow) Row() staff.PaymentRow {
	return staff.PaymentRow{Payment: r.Payment.Payment(), OrderNo: OrEmpty(r.Payment.OrderNo), ProviderRef: OrEmpty(r.ProviderRef),
		AttemptCount: r.Payment.Attempt}
}

// Listed returns the payment as a list row, with the reference of the current attempt.
func (r PaymentRow) Listed(attempts []payout.Attempt) staff.PaymentRow {
	l := ListedRow{Payment: r}
	if r.Attempt > 0 && r.Attempt <= len(attempts) {
		l.ProviderRef = &attempts[r.Attempt-1].ProviderRef
	}
	return l.Row()
}

// selectPayment reads a payment with its attempts, and MySQL's time. Without ORDER BY: MariaDB would sort the
// requests in a temporary table on disk, which takes four times as long as all the rest.
const selectPayment = `SELECT UTC_TIMESTAMP(6) AS read_at, p.*, a.order_no AS a_order_no, a.payment_id AS a_payment_id, a.no AS a_no,
	a.op AS a_op, a.account AS a_account, a.request AS a_request,
	a.sends AS a_sends, a.asks AS a_asks, a.noted_until AS a_noted_until, a.open_until AS a_open_until,
	a.statement AS a_statement, a.refused AS a_refused, a.booked AS a_booked, a.return_booked AS a_return_booked,
	a.next_action AS a_next_action, a.next_at AS a_next_at, a.asked_at AS a_asked_at, a.ask_wanted_at AS a_ask_wanted_at,
	a.forgotten AS a_forgotten, a.consented AS a_consented, a.observed AS a_observed, a.code AS a_code, a.message AS a_message,
	a.provider_ref AS a_provider_ref, a.sealed_action AS a_sealed_action, a.started_at AS a_started_at, a.ask_until AS a_ask_until,
	a.ended_at AS a_ended_at, a.renew_at AS a_renew_at
	FROM payments p LEFT JOIN attempts a ON a.payment_id = p.id WHERE p.id = ?`

// LoadPayment reads a payment with its attempts in ascending order, and MySQL's time. lock locks their rows.
// Errors: packet.ErrNotFound.
func LoadPayment(db *gorm.DB, id string, lock bool) (row PaymentRow, attempts []payout.Attempt, now time.Time, err error) {
	var rows []struct {
		Payment PaymentRow `gorm:"embedded"`
		Stored  AttemptRow `gorm:"embedded;embeddedPrefix:a_"`
		Now     time.Time  `gorm:"column:read_at"`
	}
	query := selectPayment
	if lock {
		query += " FOR UPDATE"
	}
	if err := db.Raw(query, id).Scan(&rows).Error; err != nil { // raw: JOIN
		return row, nil, now, err
	}
	if len(rows) == 0 {
		return row, nil, now, fmt.Errorf("payment %s: %w", id, packet.ErrNotFound)
	}
	for _, r := range rows {
		if r.Stored.OrderNo != "" {
			attempts = append(attempts, r.Stored.Attempt())
		}
	}
	slices.SortFunc(attempts, func(a, b payout.Attempt) int { return cmp.Compare(a.No, b.No) })
	return rows[0].Payment, attempts, rows[0].Now, nil
}
