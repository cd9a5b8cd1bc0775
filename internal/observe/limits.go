package observe

import "time"

// From these ages on something is wrong, or worth a look: those of the alert rules
// in deploy/prometheus, of `hongbao doctor` and of the console's health.
const (
	// HandoffsWrong: grabs wait to be paid, so no relay works.
	HandoffsWrong = 30 * time.Second
	// QueueWrong: tasks wait for a worker.
	QueueWrong = 30 * time.Second
	// MovingWrong: payments are to be sent, or were not answered.
	MovingWrong = 5 * time.Minute
	// UnknownWrong: nobody knows the outcome of payments.
	UnknownWrong = time.Hour
	// TroubleWarning: payments are held back, or the provider does not take them. A lost
	// answer is asked for, and a call that was too fast is repeated, sooner than that.
	TroubleWarning = time.Minute
	// OverdueWrong: packets are past their expiry and not closed.
	OverdueWrong = 5 * time.Minute
	// OutboxWrong: runs are to be started or woken.
	OutboxWrong = time.Minute
	// ReconciledWarning: no reconciliation was carried out; one a day is made.
	ReconciledWarning = 36 * time.Hour
	// ApprovalsWarning: decisions wait for a second person.
	ApprovalsWarning = time.Hour
)

// Add puts two backlogs together.
func (b Backlog) Add(other Backlog) Backlog {
	if b.Oldest.IsZero() || !other.Oldest.IsZero() && other.Oldest.Before(b.Oldest) {
		b.Oldest = other.Oldest
	}
	b.Waiting += other.Waiting
	return b
}
