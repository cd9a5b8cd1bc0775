package client

import (
	"context"
	"net/http"
	"time"

	"hongbao/internal/money"
)

// Activity is what was booked in each of the last 60 minutes.
type Activity struct {
	Minutes []ActiveMinute `json:"minutes"` // the oldest first; the last one is not over
}

// ActiveMinute is what was booked in one minute; nil: it is still being counted.
type ActiveMinute struct {
	At    time.Time `json:"at"`
	Grabs *Booked   `json:"grabs"`
	Paid  *Booked   `json:"paid"`
}

// Booked counts bookings and adds them up.
type Booked struct {
	Count  int64     `json:"count"`
	Amount money.Fen `json:"amount"`
}

// Verdict is how something is.
type Verdict string

// The verdicts, the worst last.
const (
	VerdictOK      Verdict = "ok"
	VerdictUnknown Verdict = "unknown" // could not be looked at
	VerdictWarning Verdict = "warning" // somebody should look
	VerdictWrong   Verdict = "wrong"   // grabs, payments or promises suffer
)

// Health is how each part of the platform is.
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

// HealthCheck is one thing that was looked at.
type HealthCheck struct {
	Name      string     `json:"name"`
	Status    Verdict    `json:"status"`
	LatencyUS *int64     `json:"latency_us"` // in microseconds; nil: nobody was asked
	Count     *int64     `json:"count"`      // nil: nothing is counted
	Since     *time.Time `json:"since"`      // nil: nothing waits or lasts
}

// Activity tells what was booked in each minute of the last hour.
func (s *Staff) Activity(ctx context.Context) (*Activity, error) {
	a := new(Activity)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: "/v1/staff/activity"}, a); err != nil {
		return nil, err
	}
	return a, nil
}

// Health tells how each part of the platform is.
func (s *Staff) Health(ctx context.Context) (*Health, error) {
	h := new(Health)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: "/v1/staff/health"}, h); err != nil {
		return nil, err
	}
	return h, nil
}
