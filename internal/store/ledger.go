package store

import (
	"context"
	"encoding/json"
	"fmt"

	"hongbao/internal/payout"
	"hongbao/internal/store/mysql"
)

// post appends one transfer; provider names whose account it changes, if it changes one. The unique
// reference refuses a duplicate.
func (tx tx) post(packetID, provider string, p payout.Transfer) error {
	row := mysql.TransferRow{PacketID: packetID, Kind: string(p.Kind), Debit: string(p.Debit), Credit: string(p.Credit),
		Amount: int64(p.Amount), OrderNo: p.OrderNo, Reference: p.Reference(), CreatedAt: tx.now}
	if p.AtProvider() {
		row.Provider = &provider
	}
	return tx.Create(&row).Error
}

// argLen is the longest argument of an event, in characters, as of a reason.
const argLen = 500

func (tx tx) addEvent(paymentID string, e payout.Event) error {
	args := make(map[string]string, len(e.Args))
	for name, value := range e.Args {
		args[name] = mysql.Clip(value, argLen)
	}
	text, err := json.Marshal(args)
	if err != nil {
		return fmt.Errorf("event of payment %s: %w", paymentID, err)
	}
	return tx.Create(&mysql.EventRow{PaymentID: paymentID, At: tx.now, Source: e.Source, Op: e.Op, OrderNo: e.OrderNo, Outcome: e.Outcome,
		Code: mysql.ClipCode(e.Code), Event: string(e.Event), Args: text, StartedAt: mysql.OptTime(e.StartedAt),
		EndedAt: mysql.OptTime(e.EndedAt)}).Error
}

// Balances sums a packet's ledger; zero without transfers. Errors: ErrUnavailable.
func (s *Store) Balances(ctx context.Context, packetID string) (payout.Balances, error) {
	b, err := mysql.Balances(s.read(ctx), packetID)
	return b, mysql.Classify(err)
}
