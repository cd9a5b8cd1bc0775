package staff

import (
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
)

// ReconciliationStatus is the progress of a reconciliation.
type ReconciliationStatus string

// The statuses of a reconciliation.
const (
	ReconciliationRequested ReconciliationStatus = "requested" // the worker will start it
	ReconciliationRunning   ReconciliationStatus = "running"
	ReconciliationDone      ReconciliationStatus = "done"
	ReconciliationFailed    ReconciliationStatus = "failed" // the statement could not be read
)

// Reconciliation (对账) is one comparison of a day of a provider's statement with the ledger. The
// counts are those at its end.
type Reconciliation struct {
	ID       string
	Provider string
	Day      payout.Day
	Status   ReconciliationStatus
	// Provisional: it began before the end of the day, which has to be reconciled again.
	Provisional bool
	RequestedBy string // the member of staff, or BySchedule
	Reason      string
	CreatedAt   time.Time
	StartedAt   time.Time // the comparison covers everything up to this time
	EndedAt     time.Time
	Lines       int64 // of the statement
	Matched     int64 // lines that agree with the ledger
	InFlight    int64 // lines too young for a verdict
	Repaired    int64 // breaks and movements in flight that a query of the provider has settled
	Breaks      int64 // breaks of this day that were open at its end
	Sums        []OpSum
	Error       string // why it failed
}

// BySchedule is the author of the daily reconciliations.
const BySchedule = "schedule"

// ReconcileRetryDelay is the delay before a failed reconciliation of a day is requested again,
// after n failures: 2 h, doubling to 16 h. Statements of the previous day are available by late
// morning; one that is missing for days is a matter for staff.
func ReconcileRetryDelay(n int) time.Duration { return 2 * time.Hour << min(max(n-1, 0), 3) }

// ByReconciliation is the author of resolutions of breaks that no longer exist.
const ByReconciliation = "reconciliation"

// Sum is a count and the sum of the amounts.
type Sum struct {
	Count  int64     `json:"count"`
	Amount money.Fen `json:"amount"`
}

// OpSum compares both sides of one operation: the provider's statement of the day, and the ledger
// for the same movements and for those missing in the statement. The sides are equal unless there
// are breaks or movements in flight.
type OpSum struct {
	Op       payout.Op `json:"op"`
	Provider Sum       `json:"provider"`
	Books    Sum       `json:"books"`
}

// StatementDay is a day of a provider's statement.
type StatementDay struct {
	Provider string
	Day      payout.Day
}

// ReconciliationFilter selects reconciliations, newest first. Zero members do not filter.
type ReconciliationFilter struct {
	Provider  string
	Day       payout.Day
	Status    ReconciliationStatus
	AfterTime time.Time
	AfterID   string
	Limit     int
}

// BreakRow is a stored break.
type BreakRow struct {
	payout.Break
	ID               int64
	PacketID         string
	PaymentID        string
	Provider         string    // of a break that reconciliation found
	Amount           money.Fen // moved or booked, of a break found by reconciliation; 0: unknown
	PaymentAmount    money.Fen // of the payment that the break is about; 0: not one of ours
	ReconciliationID string    // the reconciliation that found it last
	Seen             int
	CreatedAt        time.Time
	LastSeen         time.Time
	ResolvedAt       time.Time
	ResolvedBy       string
	Reason           string
}

// BreakFilter selects breaks, newest first. Zero members do not filter.
type BreakFilter struct {
	Kind             payout.BreakKind
	PacketID         string
	ReconciliationID string
	Resolved         *bool
	CreatedTo        time.Time // created at or before
	AfterTime        time.Time
	AfterID          int64
	Limit            int
}

// TransferCursor is a position in the ledger in the order of time.
type TransferCursor struct {
	At time.Time `json:"at"`
	ID int64     `json:"id"`
}

// TransferPage is the result of comparing a part of a day's transfers.
type TransferPage struct {
	Next *TransferCursor `json:"next"` // nil: no more transfers
	// Missing sums up what is in the ledger and in no statement.
	Missing map[payout.Op]Sum `json:"missing"`
	// Unread are days that have to be read before their transfers can be compared.
	Unread []payout.Day `json:"unread"`
}

// AddMissing adds a movement to Missing.
func (p *TransferPage) AddMissing(op payout.Op, amount money.Fen) {
	if p.Missing == nil {
		p.Missing = map[payout.Op]Sum{}
	}
	p.Missing[op] = p.Missing[op].Plus(Sum{Count: 1, Amount: amount})
}
