package mysql

import (
	"encoding/json"
	"fmt"
	"time"

	"hongbao/internal/payout"
)

// EventRow is a row of payment_events.
type EventRow struct {
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

// TableName names the table.
func (EventRow) TableName() string { return "payment_events" }

// AsEvent returns the event.
func (r EventRow) AsEvent() (payout.Event, error) {
	e := payout.Event{At: r.At.UTC(), Source: r.Source, Event: payout.EventCode(r.Event), Op: r.Op, OrderNo: r.OrderNo, Outcome: r.Outcome,
		Code: r.Code, StartedAt: OrZero(r.StartedAt), EndedAt: OrZero(r.EndedAt)}
	if err := json.Unmarshal(r.Args, &e.Args); err != nil {
		return e, fmt.Errorf("event %d of payment %s: %w", r.ID, r.PaymentID, err)
	}
	return e, nil
}
