package mysql

import (
	"encoding/json"
	"fmt"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// ReconciliationRow is a row of reconciliations.
type ReconciliationRow struct {
	ID          string
	Provider    string
	Day         string
	Status      string
	Active      bool // stored as TRUE or NULL
	Provisional bool
	RequestedBy string
	Reason      string
	CreatedAt   time.Time
	StartedAt   *time.Time
	EndedAt     *time.Time
	DueAt       time.Time
	LineCount   int64
	Matched     int64
	InFlight    int64
	Repaired    int64
	BreakCount  int64
	Sums        []byte
	Error       string
}

// TableName names the table.
func (ReconciliationRow) TableName() string { return "reconciliations" }

// Reconciliation returns the reconciliation.
func (r ReconciliationRow) Reconciliation() (staff.Reconciliation, error) {
	out := staff.Reconciliation{
		ID: r.ID, Provider: r.Provider, Day: payout.Day(r.Day), Status: staff.ReconciliationStatus(r.Status), Provisional: r.Provisional,
		RequestedBy: r.RequestedBy, Reason: r.Reason, CreatedAt: r.CreatedAt.UTC(), StartedAt: OrZero(r.StartedAt), EndedAt: OrZero(r.EndedAt),
		Lines: r.LineCount, Matched: r.Matched, InFlight: r.InFlight, Repaired: r.Repaired, Breaks: r.BreakCount, Error: r.Error,
	}
	if len(r.Sums) > 0 {
		if err := json.Unmarshal(r.Sums, &out.Sums); err != nil {
			return out, fmt.Errorf("decode sums of reconciliation %s: %w", r.ID, err)
		}
	}
	return out, nil
}

// Uncovered selects failed reconciliations of days that no other reconciliation has compared. One
// that failed before its day was over is left out: the schedule requests that day later.
const Uncovered = ` FROM reconciliations f FORCE INDEX (reconciliations_created)
	WHERE f.created_at >= ? AND f.status = 'failed' AND NOT f.provisional AND NOT EXISTS
		(SELECT 1 FROM reconciliations d WHERE d.provider = f.provider AND d.day = f.day AND d.status = 'done' AND NOT d.provisional)`

// MatchDays is how many days back a day is matched again automatically: as long as the provider
// keeps its orders. An older day is matched while it is among as many last reconciliations.
const MatchDays = 40

// VerdictBreak is the result of comparing a statement line that is part of a break.
const VerdictBreak = "break"
