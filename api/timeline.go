package api

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// TimelineEntry is one event of a payment.
type TimelineEntry struct {
	At     Stamp             `json:"at" doc:"When it happened, by the clock of its source."`
	Source string            `json:"source" doc:"Where the event comes from. redis: the grab or creation and its hand-off. temporal: the workflow's runs. ledger, finance, reconciliation, provider: MySQL, with the provider's responses. notification: a notification of the provider. outbox: a run that is still to be started or woken. operator: what two persons stated about an order number." example:"provider"`
	Event  EventCode         `json:"event" doc:"What happened. A newer version may have further values." example:"queried"`
	Args   map[string]string `json:"args" nullable:"false" doc:"What the event is about, by name: order_no, outcome and code as far as it has them, and the other arguments of the text." example:"{\"order_no\":\"p3q5k9v0c1m7e2u8h4r6t000301\",\"outcome\":\"declined\",\"code\":\"account_frozen\"}"`
	What   string            `json:"what" doc:"The event and its arguments as text." example:"asked about p3q5k9v0c1m7e2u8h4r6t000301: declined (account_frozen)"`
}

// EventCode is the kind of an event of a timeline.
type EventCode payout.EventCode

// Schema lists the kinds.
func (EventCode) Schema(huma.Registry) *huma.Schema { return enum(payout.EventCodes) }

func newTimelineEntry(e payout.Event) TimelineEntry {
	return TimelineEntry{At: Stamp(e.At), Source: e.Source, Event: EventCode(e.Event), Args: e.Arguments(), What: e.What()}
}

// TemporalRuns is what Temporal knows about a payment's workflow.
type TemporalRuns struct {
	State   string        `json:"state" enum:"known,gone,away" doc:"known: Temporal responded. gone: it has no such workflow, or its retention is over. away: it did not respond in time; the rest of the timeline is complete."`
	Runs    []TemporalRun `json:"runs" nullable:"false" doc:"Oldest first, 100 at most. Starts and ends may appear some seconds late."`
	Pending []PendingStep `json:"pending" nullable:"false" doc:"Steps of the latest run that have not ended."`
}

// TemporalRun is one run of a workflow.
type TemporalRun struct {
	RunID     string          `json:"run_id" doc:"Temporal's run id."`
	Status    string          `json:"status" doc:"running, completed, failed (needs a decision), canceled, terminated, continued_as_new or timed_out."`
	StartedAt Stamp           `json:"started_at" doc:"When it was started."`
	ClosedAt  Nullable[Stamp] `json:"closed_at" doc:"When it ended; null while it runs."`
}

// PendingStep is a step of a run that has not ended.
type PendingStep struct {
	Name        string           `json:"name" doc:"Name of the activity; workflow task if the run itself is stuck." example:"Settle"`
	State       string           `json:"state" doc:"scheduled, started or cancel_requested."`
	Attempt     int              `json:"attempt" minimum:"1" doc:"Attempt of this step. Sends and queries of an order are counted in attempts."`
	LastFailure Nullable[string] `json:"last_failure" doc:"Error of the last failed attempt; null if none failed."`
	LastAt      Nullable[Stamp]  `json:"last_at" doc:"Start of the current attempt, or end of the last one; null if there was none."`
	NextAt      Nullable[Stamp]  `json:"next_at" doc:"Start of the next attempt; null: now."`
}

// States of TemporalRuns.
const (
	temporalKnown = "known"
	temporalGone  = "gone"
	temporalAway  = "away"
)

// temporalTimeout limits the query to Temporal, so that a page does not wait for an outage.
const temporalTimeout = 700 * time.Millisecond

// timeline returns the events of a payment from every source, oldest first, and its runs. began
// describes the first row of the payment.
func (r *request) timeline(d staff.PaymentDetail, began payout.EventCode, workflowID string) ([]TimelineEntry, TemporalRuns, error) {
	ctx, cancel := context.WithTimeout(r.ctx, readTimeout)
	defer cancel()
	recorded, err := r.server.cfg.Store.Timeline(ctx, d)
	if err != nil {
		return nil, TemporalRuns{}, err
	}
	runs := r.runsOf(workflowID)
	out := append(redisEntries(d.Kind, recorded), runs.entries()...)
	out = append(out, storedEntries(d, began)...)
	for _, n := range recorded.Notifications {
		out = append(out, newTimelineEntry(payout.Event{At: n.At, Source: "notification", Event: payout.EventNotification, OrderNo: n.OrderNo,
			Args: map[string]string{"event_id": n.EventID}}))
	}
	for _, e := range recorded.OutboxEntries {
		out = append(out, newTimelineEntry(payout.Event{At: e.Since, Source: "outbox", Event: payout.EventOutbox,
			Args: map[string]string{"kind": e.Kind, "attempts": strconv.Itoa(e.Tries)}}))
	}
	return sortByTime(out), runs, nil
}

// sortByTime sorts by time in milliseconds, because only Temporal is more precise. Entries of the
// same millisecond keep their order.
func sortByTime(entries []TimelineEntry) []TimelineEntry {
	slices.SortStableFunc(entries, func(a, b TimelineEntry) int { return cmp.Compare(a.At.String(), b.At.String()) })
	return entries
}

// entries returns the start and end of each run.
func (t TemporalRuns) entries() (out []TimelineEntry) {
	for _, run := range t.Runs {
		out = append(out, newTimelineEntry(payout.Event{At: time.Time(run.StartedAt), Source: "temporal", Event: payout.EventRunStarted,
			Args: map[string]string{"run_id": run.RunID}}))
		if end := run.ClosedAt.Value; end != nil {
			out = append(out, newTimelineEntry(payout.Event{At: time.Time(*end), Source: "temporal", Event: payout.EventRunEnded,
				Args: map[string]string{"run_id": run.RunID, "status": run.Status}}))
		}
	}
	return out
}

// redisEntries returns the acknowledgment by Redis; none if its time is unknown.
func redisEntries(kind payout.Kind, p staff.Timeline) []TimelineEntry {
	if p.AcknowledgedAt.IsZero() {
		return nil
	}
	e := payout.Event{At: p.AcknowledgedAt, Source: "redis", Event: payout.EventGrabAcknowledged}
	if kind == payout.KindCharge {
		e.Event = payout.EventCreationAcknowledged
	}
	if p.Seq > 0 {
		e.Args = map[string]string{"seq": strconv.FormatInt(p.Seq, 10), "epoch": strconv.FormatInt(p.Epoch, 10)}
	}
	return []TimelineEntry{newTimelineEntry(e)}
}

// storedEntries returns the events stored in MySQL.
func storedEntries(d staff.PaymentDetail, began payout.EventCode) []TimelineEntry {
	out := []TimelineEntry{newTimelineEntry(payout.Event{At: d.CreatedAt, Source: "ledger", Event: began})}
	for _, e := range d.Events {
		out = append(out, newTimelineEntry(e))
	}
	return out
}

// runsOf queries Temporal for the runs of a workflow, for temporalTimeout at most.
func (r *request) runsOf(workflowID string) TemporalRuns {
	out := TemporalRuns{State: temporalAway, Runs: []TemporalRun{}, Pending: []PendingStep{}}
	if r.server.cfg.Runs == nil {
		return out
	}
	ctx, cancel := context.WithTimeout(r.ctx, temporalTimeout)
	defer cancel()
	found, err := r.server.cfg.Runs(ctx, workflowID)
	if err != nil {
		slog.WarnContext(r.ctx, "Temporal runs could not be read", slog.String("workflow_id", workflowID), slog.Any("error", err))
		return out
	}
	if out.State = temporalKnown; !found.Known {
		out.State = temporalGone
	}
	for _, run := range found.Runs {
		out.Runs = append(out.Runs, TemporalRun{RunID: run.ID, Status: run.Status, StartedAt: Stamp(run.StartedAt),
			ClosedAt: stampOrNull(run.ClosedAt)})
	}
	for _, p := range found.Pending {
		out.Pending = append(out.Pending, PendingStep{Name: p.Name, State: p.State, Attempt: max(p.Attempt, 1),
			LastFailure: textOrNull(p.LastFailure),
			LastAt:      stampOrNull(p.LastAt), NextAt: stampOrNull(p.NextAt)})
	}
	return out
}
