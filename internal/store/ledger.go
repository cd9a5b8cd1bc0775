package store

import (
	"context"
	"encoding/json"
	"fmt"
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

// argLen is the longest argument of an event, in characters, as of a reason.
const argLen = 500

type eventRow struct {
	ID        int64
	PaymentID string
	At        time.Time
	Source    string
	Op        string
	OrderNo   string
	Outcome   string
	Code      string
	Event     string
	Args      []byte
	StartedAt *time.Time
	EndedAt   *time.Time
}

func (eventRow) TableName() string { return "payment_events" }

func (tx tx) addEvent(paymentID string, e payout.Event) error {
	args := make(map[string]string, len(e.Args))
	for name, value := range e.Args {
		args[name] = clip(value, argLen)
	}
	text, err := json.Marshal(args)
	if err != nil {
		return fmt.Errorf("event of payment %s: %w", paymentID, err)
	}
	return tx.Create(&eventRow{PaymentID: paymentID, At: tx.now, Source: e.Source, Op: e.Op, OrderNo: e.OrderNo, Outcome: e.Outcome,
		Code: clipCode(e.Code), Event: string(e.Event), Args: text, StartedAt: optTime(e.StartedAt), EndedAt: optTime(e.EndedAt)}).Error
}

func (r eventRow) event() (payout.Event, error) {
	e := payout.Event{At: r.At.UTC(), Source: r.Source, Event: payout.EventCode(r.Event), Op: r.Op, OrderNo: r.OrderNo, Outcome: r.Outcome,
		Code: r.Code, StartedAt: orZero(r.StartedAt), EndedAt: orZero(r.EndedAt)}
	if err := json.Unmarshal(r.Args, &e.Args); err != nil {
		return e, fmt.Errorf("event %d of payment %s: %w", r.ID, r.PaymentID, err)
	}
	return e, nil
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
