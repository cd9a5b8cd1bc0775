package payout

import (
	"time"

	"hongbao/internal/money"
)

// ReconciliationStatus says how far a reconciliation has come.
type ReconciliationStatus string

// The statuses of a reconciliation.
const (
	ReconciliationRequested ReconciliationStatus = "requested" // the worker will start it
	ReconciliationRunning   ReconciliationStatus = "running"
	ReconciliationDone      ReconciliationStatus = "done"
	ReconciliationFailed    ReconciliationStatus = "failed" // the statement could not be read
)

// Reconciliation (对账) is one comparison of a day of a provider's statement with
// the books. The counts are those of its end.
type Reconciliation struct {
	ID       string
	Provider string
	Day      Day
	Status   ReconciliationStatus
	// Provisional: it began before the day was over. The day is not finished with.
	Provisional bool
	RequestedBy string // who of the staff, or "schedule"
	Reason      string
	CreatedAt   time.Time
	StartedAt   time.Time // what happened until then is compared
	EndedAt     time.Time
	Lines       int64 // of the statement
	Matched     int64 // lines that the books agree with
	InFlight    int64 // lines too young to be judged
	Repaired    int64 // breaks and movements in flight that asking the provider has settled meanwhile
	Breaks      int64 // breaks of this day that were open at its end
	Sums        []OpSum
	Error       string // why it failed
}

// BySchedule is who asks for the daily reconciliations.
const BySchedule = "schedule"

// ReconcileRetryDelay is how long after the last of n failed reconciliations of a day another
// is asked for by itself: 2 h, doubling to 16 h. Statements of yesterday are there by the
// late morning, at the latest; one that is missing after days is a matter for people.
func ReconcileRetryDelay(n int) time.Duration { return 2 * time.Hour << min(max(n-1, 0), 3) }

// ByReconciliation is who resolves breaks that are no more.
const ByReconciliation = "reconciliation"

// Sum counts movements and adds them up.
type Sum struct {
	Count  int64     `json:"count"`
	Amount money.Fen `json:"amount"`
}

// OpSum is what both sides have of one operation: the provider's statement of
// the day, and the books for the same movements and for those that the
// statement should have had. Equal unless there are breaks or movements in flight.
type OpSum struct {
	Op       Op  `json:"op"`
	Provider Sum `json:"provider"`
	Books    Sum `json:"books"`
}

// ReconciliationFilter selects reconciliations, newest first. Zero members do not filter.
type ReconciliationFilter struct {
	Provider  string
	Day       Day
	Status    ReconciliationStatus
	AfterTime time.Time
	AfterID   string
	Limit     int
}

// BreakRow is a stored break.
type BreakRow struct {
	Break
	ID               int64
	PacketID         string
	PaymentID        string
	Provider         string    // of a break that reconciliation found
	Amount           money.Fen // what moved or was booked, of a break that reconciliation found; 0: not told
	PaymentAmount    money.Fen // of the payment that it is about; 0: of none of ours
	ReconciliationID string    // the run that saw it last
	Seen             int
	CreatedAt        time.Time
	LastSeen         time.Time
	ResolvedAt       time.Time
	ResolvedBy       string
	Reason           string
}

// BreakFilter selects breaks, newest first. Zero members do not filter.
type BreakFilter struct {
	Kind             BreakKind
	PacketID         string
	ReconciliationID string
	Resolved         *bool
	CreatedTo        time.Time // created at or before
	AfterTime        time.Time
	AfterID          int64
	Limit            int
}

// TransferCursor is a place in the ledger in the order of time.
type TransferCursor struct {
	At time.Time `json:"at"`
	ID int64     `json:"id"`
}

// TransferPage is what the comparison of a part of a day's postings has found.
type TransferPage struct {
	Next *TransferCursor `json:"next"` // nil: there are no more
	// Missing sums up what the books have and no statement.
	Missing map[Op]Sum `json:"missing"`
	// Unread are days that have to be read before their postings can be judged.
	Unread []Day `json:"unread"`
}

// Miss adds a movement to Missing.
func (p *TransferPage) AddMissing(op Op, amount money.Fen) {
	if p.Missing == nil {
		p.Missing = map[Op]Sum{}
	}
	p.Missing[op] = p.Missing[op].Plus(Sum{Count: 1, Amount: amount})
}
