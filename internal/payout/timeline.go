package payout

import "time"

// Passage is what is known of a payment beside its own rows: how it came to the
// books, what the provider has told by itself, what waits to be started.
type Timeline struct {
	// AcknowledgedAt is when Redis took the grab, or the creation of the packet, and
	// wrote its hand-off, by Redis' clock; zero: not known, or nobody's grab.
	AcknowledgedAt time.Time
	// Epoch and Seq say where in its lane's history a grab was won (rule R9); 0: not known.
	Epoch, Seq    int64
	Notifications []Notification
	OutboxEntries []OutboxEntry
}

// Notice is a notification of the provider about one of a payment's order numbers.
// It moves nothing: it has the provider asked (rule R12).
type Notification struct {
	At      time.Time
	EventID string // the provider's own name of it
	OrderNo string
}

// Errand is a row of the outbox: a run that is to be started or woken.
type OutboxEntry struct {
	Kind  string // begin, ask, decide or finish
	Since time.Time
	DueAt time.Time // of the next try
	Tries int
}

// Runs are the runs of a workflow as Temporal tells of them.
type WorkflowRuns struct {
	Known   bool          // false: Temporal knows none, or none any more
	Runs    []WorkflowRun // oldest first
	Pending []PendingActivity
}

// Run is one run of a workflow.
type WorkflowRun struct {
	ID        string
	Status    string // running, completed, failed, canceled, terminated, continued_as_new, timed_out
	StartedAt time.Time
	ClosedAt  time.Time // zero while it runs
}

// PendingActivity is a step of the latest run that has not ended.
type PendingActivity struct {
	Name    string // of the activity; "workflow task" when the run itself cannot go on
	State   string // scheduled, started, cancel_requested
	Attempt int
	// LastFailure says why the last attempt failed; "": none has.
	LastFailure string
	LastAt      time.Time // when the attempt under way began, or the last one ended; zero: none has
	NextAt      time.Time // of the next attempt; zero: it is under way, or due
}
