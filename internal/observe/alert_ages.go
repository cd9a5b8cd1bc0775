package observe

import "time"

// From these ages on something is wrong, or worth a look: those of the alert rules
// in deploy/prometheus, of `hongbao doctor` and of the console's health.
const (
	// HandoffMaxAge: grabs wait to be paid, so no relay works.
	HandoffMaxAge = 30 * time.Second
	// QueueMaxAge: tasks wait for a worker.
	QueueMaxAge = 30 * time.Second
	// MovingMaxAge: payments are to be sent, or were not answered.
	MovingMaxAge = 5 * time.Minute
	// UnknownMaxAge: nobody knows the outcome of payments.
	UnknownMaxAge = time.Hour
	// TroubleWarnAge: payments are held back, or the provider does not take them. A lost
	// answer is asked for, and a call that was too fast is repeated, sooner than that.
	TroubleWarnAge = time.Minute
	// OverdueMaxAge: packets are past their expiry and not closed.
	OverdueMaxAge = 5 * time.Minute
	// OutboxMaxAge: runs are to be started or woken.
	OutboxMaxAge = time.Minute
	// ReconciledWarnAge: no reconciliation was carried out; one a day is made.
	ReconciledWarnAge = 36 * time.Hour
	// ApprovalWarnAge: decisions wait for a second person.
	ApprovalWarnAge = time.Hour
)

// Add puts two backlogs together.
func (b Backlog) Add(other Backlog) Backlog {
	if b.Oldest.IsZero() || !other.Oldest.IsZero() && other.Oldest.Before(b.Oldest) {
		b.Oldest = other.Oldest
	}
	b.Waiting += other.Waiting
	return b
}
