package wire

// EventCode is the kind of an event of a timeline; internal/payout lists them. A newer server may have further values.
type EventCode string

// TimelineEntry is one event of a payment.
type TimelineEntry struct {
	At     Time              `json:"at" doc:"When it happened, by the clock of its source."`
	Source string            `json:"source" doc:"Where the event comes from. redis: the grab or creation and its hand-off. temporal: the workflow's runs. ledger, finance, reconciliation, provider: MySQL, with the provider's responses. notification: a notification of the provider. outbox: a run that is still to be started or woken. operator: what two persons stated about an order number." example:"provider"`
	Event  EventCode         `json:"event" doc:"What happened. A newer version may have further values." example:"queried"`
	Args   map[string]string `json:"args" nullable:"false" doc:"What the event is about, by name: order_no, outcome and code as far as it has them, and the other arguments of the text." example:"{\"order_no\":\"p3q5k9v0c1m7e2u8h4r6t000301\",\"outcome\":\"declined\",\"code\":\"account_frozen\"}"`
	What   string            `json:"what" doc:"The event and its arguments as text." example:"asked about p3q5k9v0c1m7e2u8h4r6t000301: declined (account_frozen)"`
}

// TemporalRuns is what Temporal knows about a payment's workflow.
type TemporalRuns struct {
	State   string        `json:"state" enum:"known,gone,away" doc:"known: Temporal responded. gone: it has no such workflow, or its retention is over. away: it did not respond in time; the rest of the timeline is complete."`
	Runs    []TemporalRun `json:"runs" nullable:"false" doc:"Oldest first, 100 at most. Starts and ends may appear some seconds late."`
	Pending []PendingStep `json:"pending" nullable:"false" doc:"Steps of the latest run that have not ended."`
}

// TemporalRun is one run of a workflow.
type TemporalRun struct {
	RunID     string `json:"run_id" doc:"Temporal's run id."`
	Status    string `json:"status" doc:"running, completed, failed (needs a decision), canceled, terminated, continued_as_new or timed_out."`
	StartedAt Time   `json:"started_at" doc:"When it was started."`
	ClosedAt  *Time  `json:"closed_at" doc:"When it ended; null while it runs."`
}

// PendingStep is a step of a run that has not ended.
type PendingStep struct {
	Name        string  `json:"name" doc:"Name of the activity; workflow task if the run itself is stuck." example:"Settle"`
	State       string  `json:"state" doc:"scheduled, started or cancel_requested."`
	Attempt     int     `json:"attempt" minimum:"1" doc:"Attempt of this step. Sends and queries of an order are counted in attempts."`
	LastFailure *string `json:"last_failure" doc:"Error of the last failed attempt; null if none failed."`
	LastAt      *Time   `json:"last_at" doc:"Start of the current attempt, or end of the last one; null if there was none."`
	NextAt      *Time   `json:"next_at" doc:"Start of the next attempt; null: now."`
}

// TimelineSpan is a line of a timeline with the equal lines directly after it.
type TimelineSpan struct {
	TimelineEntry      // the first
	Count         int  `json:"count"`
	LastAt        Time `json:"last_at"`
}

// Spans joins consecutive equal lines of a timeline.
func Spans(timeline []TimelineEntry) (out []TimelineSpan) {
	for _, e := range timeline {
		if n := len(out); n > 0 && out[n-1].Source == e.Source && out[n-1].What == e.What {
			out[n-1].Count, out[n-1].LastAt = out[n-1].Count+1, e.At
		} else {
			out = append(out, TimelineSpan{TimelineEntry: e, Count: 1, LastAt: e.At})
		}
	}
	return out
}
