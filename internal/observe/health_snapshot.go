// Package observe says what is told of the running platform: names of metrics
// and what they are made of.
package observe

import "time"

// Vitals are the figures by which people see that money is stuck, before anybody
// asks for it. They are read from the stores, so every process tells the same.
type HealthSnapshot struct {
	// FromRedis, FromMySQL and FromTemporal are set by who has filled in all of their part. What
	// could not be read is not told: a zero would look like good news.
	FromRedis, FromMySQL, FromTemporal bool
	// Durable is whether Redis keeps what it acknowledges.
	Durable bool
	// Handoffs wait in Redis for the relay, all lanes together.
	Handoffs Backlog
	// LanesFenced counts the lanes of the pool that this process refuses (rule R9).
	LanesFenced int64
	// Gates are the lanes of the pool by the state of their gate in the books; Oldest
	// is since when a gate is not open.
	Lanes []LaneBacklog
	// LostGrabs may have been lost, by breaks that nobody has dealt with yet.
	LostGrabs int64
	// Payments that are not at their end, and those that wait for a person, by
	// kind and status.
	Payments []PaymentBacklog
	// Troubles are payments under way that the provider has not taken, by why; of each
	// kind and status the oldest thousands are looked at. A reason without any is not there.
	Troubles []TroubleBacklog
	// Overdue are packets past their expiry and not closed, by stored status.
	Overdue []PacketBacklog
	// Breaks wait for a person, by kind.
	Breaks []KindBacklog
	// Unreconciled are days whose statement could not be read, and that no reconciliation
	// has compared since; Oldest is when the first one failed.
	Unreconciled Backlog
	// Reconciled is when the last reconciliation ended that was carried out; of an
	// installation without any when it was made.
	Reconciled time.Time
	// ReturnsSeen is the time up to which returns were searched in the statements of all
	// providers that list the current day; zero when there is none.
	ReturnsSeen time.Time
	// Campaigns are days of campaigns whose packet should have been made; Oldest is when.
	Campaigns Backlog
	// CampaignDays are days of the last 24 h on which nobody could grab anything, by why:
	// missed, declined, unopened; Oldest is when the first of them was decided.
	CampaignDays []KindBacklog
	// Decisions wait for staff, by reason, and breaks by kind too.
	Decisions []DecisionBacklog
	// Approvals wait for a second person.
	Approvals Backlog
	// Outbox are runs that are to be started or woken.
	Outbox Backlog
	// Quarantined counts hand-offs that could not be decoded.
	Quarantined int64
	// Repairs counts what the watch has put right, by kind, for ever.
	Repairs map[string]int64
	// Retention are the tables whose old rows are removed.
	Retention []Retained
	// Held is since when a person has been holding a provider, by its name; zero: he is not held.
	HeldProviders map[string]time.Time
	// Queues are the tasks that no worker has taken yet.
	Queues []QueueBacklog
	// Imbalanced counts the packets, of those posted to lately, whose ledger does not
	// add up or has an account below zero.
	Imbalanced int64
	// Suspense is what moved twice and has not come back, in fen, by breaks that nobody
	// has dealt with yet.
	Suspense int64
	// MySQLRestored: MySQL is older than reality (rule R13).
	BooksRestored bool
}

// Backlog is how many wait, and since when the oldest does; zero: none waits.
type Backlog struct {
	Waiting int64
	Oldest  time.Time
}

// PaymentBacklog is the backlog of one kind of payment (charge, payout, refund,
// honour) in one status.
type PaymentBacklog struct {
	Kind, Status string
	Backlog
}

// DecisionBacklog is what waits for a decision of staff for one reason; Kind is that of a
// break, and Fen what they come to.
type DecisionBacklog struct {
	Reason, Kind string
	Fen          int64
	Backlog
}

// Retained is a table whose old rows are removed: how many were, and the age of the oldest.
type Retained struct {
	Table   string
	Removed int64
	Oldest  time.Time // zero: the table is empty
}

// TroubleBacklog is how many payments a provider has not taken, for the reason that its
// answer to their last send gave, or that there was none; Oldest is a first send.
type TroubleBacklog struct {
	Provider string
	Why      Trouble
	Backlog
}

// Trouble is why a provider has not taken a payment.
type Trouble string

// The troubles.
const (
	TroubleLowBalance  Trouble = "low_balance"  // refused: our balance does not cover it
	TroubleRateLimited Trouble = "rate_limited" // refused: too many calls
	TroubleNoAnswer    Trouble = "no_answer"    // silence, or an answer that says nothing of the order
)

// LaneBacklog is how many lanes have their gate in one state.
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

// QueueBacklog is the backlog of one of Temporal's task queues; Kind is workflow
// or activity.
type QueueBacklog struct {
	Queue, Kind string
	Backlog
}
