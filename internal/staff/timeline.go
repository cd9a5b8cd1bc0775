package staff

import "time"

// Timeline is what is known of a payment beside its own rows: the grab or creation, notifications
// of the provider, and waiting outbox entries.
type Timeline struct {
	// AcknowledgedAt is when Redis accepted the grab or the creation of the packet and wrote its
	// hand-off, by the clock of Redis; zero: unknown, or not from a grab.
	AcknowledgedAt time.Time
	// Epoch and Seq are the lane's position at the grab; 0: unknown.
	Epoch, Seq    int64
	Notifications []Notification
	OutboxEntries []OutboxEntry
}

// Notification is a notification of the provider about an order number of the payment. It moves
// nothing: it causes a query (rule R12).
type Notification struct {
	At      time.Time
	EventID string // the provider's id of the event
	OrderNo string
}

// OutboxEntry is a row of the outbox: a run to be started or woken.
type OutboxEntry struct {
	Kind  string // begin, ask, decide or finish
	Since time.Time
	DueAt time.Time // of the next try
	Tries int
}

// WorkflowRuns are the runs of a workflow as Temporal reports them.
type WorkflowRuns struct {
	Known   bool          // false: Temporal knows none, or no longer
	Runs    []WorkflowRun // oldest first
	Pending []PendingActivity
}

// WorkflowRun is one run of a workflow.
type WorkflowRun struct {
	ID        string
	Status    string // running, completed, failed, canceled, terminated, continued_as_new, timed_out
	StartedAt time.Time
	ClosedAt  time.Time // zero while it runs
}

// PendingActivity is an unfinished activity of the latest run.
type PendingActivity struct {
	Name    string // of the activity; "workflow task" when the run itself is stuck
	State   string // scheduled, started, cancel_requested
	Attempt int
	// LastFailure is why the last attempt failed; "": none has.
	LastFailure string
	LastAt      time.Time // start of the current attempt, or end of the last one; zero: none
	NextAt      time.Time // of the next attempt; zero: in progress, or due
}
