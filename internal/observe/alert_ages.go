package observe

import "time"

// Ages from which an alert fires or a warning is shown: in the alert rules in deploy/prometheus, in
// `hongbao doctor` and on the console's health page.
const (
	// HandoffMaxAge: grabs wait for their payout: no relay is running.
	HandoffMaxAge = 30 * time.Second
	// QueueMaxAge: tasks wait for a worker.
	QueueMaxAge = 30 * time.Second
	// MovingMaxAge: payments are not sent, or have no answer.
	MovingMaxAge = 5 * time.Minute
	// UnknownMaxAge: the outcome of payments is unknown.
	UnknownMaxAge = time.Hour
	// TroubleWarnAge: payments are deferred, or the provider does not accept them. Lost answers are
	// queried and rate-limited calls repeated within this time.
	TroubleWarnAge = time.Minute
	// OverdueMaxAge: packets are past their expiry and not closed.
	OverdueMaxAge = 5 * time.Minute
	// OutboxMaxAge: outbox entries are due.
	OutboxMaxAge = time.Minute
	// ReconciledWarnAge: no reconciliation was completed; one a day is scheduled.
	ReconciledWarnAge = 36 * time.Hour
	// ApprovalWarnAge: decisions wait for a second person.
	ApprovalWarnAge = time.Hour
)

// Add returns the sum of two backlogs.
func (b Backlog) Add(other Backlog) Backlog {
	if b.Oldest.IsZero() || !other.Oldest.IsZero() && other.Oldest.Before(b.Oldest) {
		b.Oldest = other.Oldest
	}
	b.Waiting += other.Waiting
	return b
}
