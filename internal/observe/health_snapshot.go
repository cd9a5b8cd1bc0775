// Package observe defines how the running platform is observed: names of metrics, the health
// snapshot behind them, log attributes and traces.
package observe

import "time"

// HealthSnapshot holds the figures that show stuck money. They are read from the stores, so every
// process reports the same.
type HealthSnapshot struct {
	// FromRedis, FromMySQL, FromTemporal and FromProviders are set by each source that has filled in all
	// of its part. Unread parts are not reported: a zero would look healthy.
	FromRedis, FromMySQL, FromTemporal, FromProviders bool
	// Durable is whether Redis is configured to keep every acknowledged write.
	Durable bool
	// Handoffs wait in Redis for the relay, over all lanes.
	Handoffs Backlog
	// LanesFenced counts the lanes of the pool that this process refuses.
	LanesFenced int64
	// Lanes are the lanes by the state of their fence in MySQL; Oldest is since when a fence is not
	// open.
	Lanes []LaneBacklog
	// LostGrabs are acknowledged grabs that may be lost, from unresolved breaks.
	LostGrabs int64
	// Payments are those that are not final or wait for a decision of staff, by kind and status.
	Payments []PaymentBacklog
	// Troubles are payments that the provider has not accepted, by reason. Per kind and status only
	// the oldest thousands are examined. Reasons without payments are omitted.
	Troubles []TroubleBacklog
	// ProviderMissing are open payments whose provider is not configured, among the oldest thousands per kind and
	// status; Oldest is the creation of the oldest.
	ProviderMissing Backlog
	// Overdue are packets past their expiry and not closed, by stored status.
	Overdue []PacketBacklog
	// Breaks are open breaks, by kind.
	Breaks []KindBacklog
	// Unreconciled are days whose statement could not be read and that were not reconciled since;
	// Oldest is the first failure.
	Unreconciled Backlog
	// Reconciled is the end of the last completed reconciliation; zero: none yet.
	Reconciled time.Time
	// Installed is the creation of the installation.
	Installed time.Time
	// ReturnsSearched is the time up to which returns were searched in the statements of all
	// providers that list the current day; zero when there is none.
	ReturnsSearched time.Time
	// Campaigns are campaign days whose packet is overdue; Oldest is when it was due.
	Campaigns Backlog
	// CampaignDays are days of the last 24 h without a grabbable packet, by reason: missed,
	// declined, unopened; Oldest is when the first of them was decided.
	CampaignDays []KindBacklog
	// ShortBalances counts apps whose balance is low, or does not cover their campaign days of the next 24 h.
	ShortBalances int64
	// Accounts are our accounts at the providers, by name.
	Accounts []ProviderAccount
	// Decisions are items that wait for staff, by reason, and for breaks by kind.
	Decisions []DecisionBacklog
	// Approvals are decisions that wait for a second person.
	Approvals Backlog
	// Outbox are due outbox entries: runs to be started or woken.
	Outbox Backlog
	// Quarantined counts hand-offs that cannot be decoded.
	Quarantined int64
	// Repairs counts all repairs by the watch, by kind.
	Repairs map[string]int64
	// Retention are the tables whose old rows are removed.
	Retention []Retained
	// HeldProviders has the time since when a provider is held, by name; zero: not held.
	HeldProviders map[string]time.Time
	// Holds are the active holds by scope and kind; Oldest is when the first was placed.
	Holds []HoldBacklog
	// HeldFen is the money in fen that the oldest thousand active holds of packets and payments stop.
	// Packets too large to be added up count with their total.
	HeldFen int64
	// Releases are releases of holds that wait for a second person.
	Releases Backlog
	// ShareConflicts counts the share conflicts that are neither honoured nor voided; ShareConflictsFen is
	// their sum in fen.
	ShareConflicts, ShareConflictsFen int64
	// Queues are the tasks that no worker has taken yet.
	Queues []QueueBacklog
	// Imbalanced counts the recently active packets whose ledger does not balance or has an account
	// below zero.
	Imbalanced int64
	// Suspense is money in fen that moved twice and was neither returned nor written off, from unresolved breaks.
	Suspense int64
	// MySQLRestored: MySQL was restored from an older backup.
	MySQLRestored bool
}

// Backlog is the number of waiting items and the time since when the oldest waits; zero: none.
type Backlog struct {
	Waiting int64
	Oldest  time.Time
}

// Figure returns the backlog: everything that embeds one has this method.
func (b Backlog) Figure() Backlog { return b }

// Add adds up two backlogs.
func (b Backlog) Add(other Backlog) Backlog {
	if b.Oldest.IsZero() || !other.Oldest.IsZero() && other.Oldest.Before(b.Oldest) {
		b.Oldest = other.Oldest
	}
	b.Waiting += other.Waiting
	return b
}

// PaymentBacklog is the backlog of one kind of payment (charge, payout, refund,
// honour) in one status.
type PaymentBacklog struct {
	Kind, Status string
	Backlog
}

// DecisionBacklog is the backlog of staff decisions for one reason; Kind is the kind of break, Fen
// the sum of the amounts.
type DecisionBacklog struct {
	Reason, Kind string
	Fen          int64
	Backlog
}

// Retained is a table whose old rows are removed, with the number of removed rows.
type Retained struct {
	Table   string
	Removed int64
	Oldest  time.Time // zero: the table is empty
}

// TroubleBacklog is the number of payments that a provider has not accepted, by the reason in its
// answer to the last send; Oldest is the oldest first send.
type TroubleBacklog struct {
	Provider string
	Why      Trouble
	Backlog
}

// Trouble is why a provider has not accepted a payment.
type Trouble string

// The troubles.
const (
	TroubleLowBalance  Trouble = "low_balance"  // refused: our balance does not cover it
	TroubleRateLimited Trouble = "rate_limited" // refused: too many calls
	TroubleNoAnswer    Trouble = "no_answer"    // no answer, or one without information about the order
)

// ProviderAccount is our account at a provider. Payable is what it may still have to pay out in fen: claimed and not
// paid, and unclaimed in open packets.
type ProviderAccount struct {
	Provider  string
	Payable   int64
	Available int64 // for payouts, in fen
	Known     bool  // the provider has said what is available
}

// Short reports whether the account holds less than it may have to pay out.
func (a ProviderAccount) Short() bool { return a.Known && a.Available < a.Payable }

// ShortAccounts counts the accounts at providers that hold less than they may have to pay out.
func (v HealthSnapshot) ShortAccounts() (n int64) {
	for _, a := range v.Accounts {
		if a.Short() {
			n++
		}
	}
	return n
}

// LaneBacklog is the number of lanes with their fence in one state.
type LaneBacklog struct {
	State string
	Backlog
}

// PacketBacklog is the backlog of packets in one status; Oldest is an expiry.
type PacketBacklog struct {
	Status string
	Backlog
}

// KindBacklog is the backlog of one kind of break.
type KindBacklog struct {
	Kind string
	Backlog
}

// HoldBacklog is the backlog of active holds of one scope and kind.
type HoldBacklog struct {
	Scope, Kind string
	Backlog
}

// HeldItems adds up the active holds of packets and payments.
func (v HealthSnapshot) HeldItems() Backlog {
	var sum Backlog
	for _, h := range v.Holds {
		if h.Scope == "packet" || h.Scope == "payment" {
			sum = sum.Add(h.Backlog)
		}
	}
	return sum
}

// QueueBacklog is the backlog of one of Temporal's task queues; Kind is workflow
// or activity.
type QueueBacklog struct {
	Queue, Kind string
	Backlog
}
