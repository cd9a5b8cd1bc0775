package store

import (
	"context"
	"time"

	"hongbao/internal/payout"
)

type transferRow struct {
	ID        int64
	PacketID  string
	Kind      string
	Debit     string
	Credit    string
	Amount    int64
	OrderNo   string
	Reference string
	CreatedAt time.Time
}

func (transferRow) TableName() string { return "transfers" }

// post appends one transfer. The unique reference refuses a duplicate.
func (tx tx) post(packetID string, p payout.Transfer) error {
	return tx.Create(&transferRow{PacketID: packetID, Kind: string(p.Kind), Debit: string(p.Debit), Credit: string(p.Credit),
		Amount: int64(p.Amount), OrderNo: p.OrderNo, Reference: p.Reference(), CreatedAt: tx.now}).Error
}

type eventRow struct {
	ID        int64
	PaymentID string
	At        time.Time
	Source    string
	Op        string
	OrderNo   string
	Outcome   string
	Code      string
	What      string
	StartedAt *time.Time
	EndedAt   *time.Time
}

func (eventRow) TableName() string { return "payment_events" }

func (tx tx) addEvent(paymentID string, e payout.Event) error {
	return tx.Create(&eventRow{PaymentID: paymentID, At: tx.now, Source: e.Source, Op: e.Op, OrderNo: e.OrderNo, Outcome: e.Outcome,
		Code: clipCode(e.Code), What: clip(e.What, 255), StartedAt: optTime(e.StartedAt), EndedAt: optTime(e.EndedAt)}).Error
}

// Balances sums a packet's ledger; zero without transfers. Errors: ErrUnavailable.
func (s *Store) Balances(ctx context.Context, packetID string) (payout.Balances, error) {
	b, err := tx{DB: s.read(ctx)}.balances(packetID)
	return b, classify(err)
}

func (tx tx) balances(packetID string) (payout.Balances, error) {
	var rows []ledgerSum
	err := tx.Raw(`SELECT kind, debit, credit, SUBSTRING(order_no, 1, 1) = 'h' AS promise, SUM(amount) AS sum FROM transfers
		WHERE packet_id = ? GROUP BY kind, debit, credit, promise`, packetID).Scan(&rows).Error
	return balancesOf(rows), err
}
