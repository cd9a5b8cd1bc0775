package client

import (
	"context"
	"net/http"
	"time"

	"hongbao/internal/money"
)

// Activity is the claims and payouts recorded in each of the last 60 minutes.
type Activity struct {
	Minutes []ActiveMinute `json:"minutes"` // oldest first; the last minute is not over
}

// ActiveMinute is the claims and payouts recorded in one minute; nil: not counted yet.
type ActiveMinute struct {
	At    time.Time `json:"at"`
	Grabs *Booked   `json:"grabs"`
	Paid  *Booked   `json:"paid"`
}

// Booked is a count and a sum of recorded entries.
type Booked struct {
	Count  int64     `json:"count"`
	Amount money.Fen `json:"amount"`
}

// Verdict is the result of a check.
type Verdict string

// The verdicts, in ascending severity.
const (
	VerdictOK      Verdict = "ok"
	VerdictUnknown Verdict = "unknown" // could not be checked
	VerdictWarning Verdict = "warning" // staff should look into it
	VerdictWrong   Verdict = "wrong"   // grabs or payments are affected
)

// Health is the health of all parts of the platform.
type Health struct {
	Status Verdict      `json:"status"` // the worst of the parts
	Parts  []HealthPart `json:"parts"`
}

// HealthPart is one part of the platform: redis, mysql, temporal, workers,
// provider, reconciliation, audit.
type HealthPart struct {
	Name   string        `json:"name"`
	Status Verdict       `json:"status"`
	Checks []HealthCheck `json:"checks"`
}

// HealthCheck is one check of a part.
type HealthCheck struct {
	Name      string     `json:"name"`
	Status    Verdict    `json:"status"`
	LatencyUS *int64     `json:"latency_us"` // in microseconds; nil: a check without a call
	Count     *int64     `json:"count"`      // nil: a check without a count
	Since     *time.Time `json:"since"`      // nil: no item waits
}

// Activity returns the claims and payouts recorded per minute of the last hour.
func (s *Staff) Activity(ctx context.Context) (*Activity, error) {
	a := new(Activity)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: "/v1/staff/activity"}, a); err != nil {
		return nil, err
	}
	return a, nil
}

// Health returns the health of all parts of the platform.
func (s *Staff) Health(ctx context.Context) (*Health, error) {
	h := new(Health)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: "/v1/staff/health"}, h); err != nil {
		return nil, err
	}
	return h, nil
}
