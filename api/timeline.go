package api

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"hongbao/internal/payout"
)

// TimelineEntry is one thing that happened to a payment.
type TimelineEntry struct {
	At     Stamp  `json:"at" doc:"When it happened, by the clock of its source."`
	Source string `json:"source" doc:"Who tells it. redis: the grab or creation and its hand-off. temporal: the workflow's runs. ledger, finance, reconciliation, provider: the books, with what the provider answered. notification: what the provider told by itself. outbox: a run that is still to be started or woken." example:"provider"`
	What   string `json:"what" doc:"What happened, for people."`
}

// TemporalRuns is what Temporal tells of a payment's workflow.
type TemporalRuns struct {
	State   string        `json:"state" enum:"known,gone,away" doc:"known: it has answered. gone: it knows no such workflow, or none any more: finished ones are kept for the time of its retention. away: it has not answered in time; everything else is told without it."`
	Runs    []TemporalRun `json:"runs" nullable:"false" doc:"Oldest first, 100 at most. Earlier ones may appear, and end, some seconds late."`
	Pending []PendingStep `json:"pending" nullable:"false" doc:"Steps of the latest run that have not ended."`
}

// TemporalRun is one run of a workflow.
type TemporalRun struct {
	RunID     string          `json:"run_id" doc:"Temporal's name of it."`
	Status    string          `json:"status" doc:"running, completed, failed (a person is needed), canceled, terminated, continued_as_new or timed_out."`
	StartedAt Stamp           `json:"started_at" doc:"When it was started."`
	ClosedAt  Nullable[Stamp] `json:"closed_at" doc:"When it ended; null while it runs."`
}

// PendingActivity is a step of a run that has not ended.
type PendingStep struct {
	Name        string           `json:"name" doc:"The activity, or workflow task: the run itself cannot go on." example:"Settle"`
	State       string           `json:"state" doc:"scheduled, started or cancel_requested."`
	Attempt     int              `json:"attempt" minimum:"1" doc:"Which try it is of this step; sends and asks are counted by attempts."`
	LastFailure Nullable[string] `json:"last_failure" doc:"Why the last try failed; null: none has."`
	LastAt      Nullable[Stamp]  `json:"last_at" doc:"When the try that is under way began, or the last one ended; null: none has."`
	NextAt      Nullable[Stamp]  `json:"next_at" doc:"When the next try begins; null: now."`
}

// States of TemporalRuns.
const (
	temporalKnown = "known"
	temporalGone  = "gone"
	temporalAway  = "away"
)

// temporalTimeout bounds the question to Temporal: a page does not wait for it.
const temporalTimeout = 700 * time.Millisecond

// timeline tells what happened to a payment, from every source. began says in words
// how it began in the books.
func (r *request) timeline(d payout.Detail, began, workflowID string) ([]TimelineEntry, TemporalRuns, error) {
	ctx, cancel := context.WithTimeout(r.ctx, readLimit)
	defer cancel()
	passage, err := r.server.cfg.Store.Timeline(ctx, d)
	if err != nil {
		return nil, TemporalRuns{}, err
	}
	runs := r.runsOf(workflowID)
	out := append(redisEntries(d.Kind, passage), runs.entries()...)
	out = append(out, storedEntries(d, began)...)
	for _, n := range passage.Notifications {
		out = append(out, TimelineEntry{At: Stamp(n.At), Source: "notification", What: "notification for " + n.OrderNo + ": event " + n.EventID})
	}
	for _, e := range passage.OutboxEntries {
		out = append(out, TimelineEntry{At: Stamp(e.Since), Source: "outbox", What: fmt.Sprintf("start or wake-up pending: %s, attempts %d",
			e.Kind, e.Tries)})
	}
	return sortByTime(out), runs, nil
}

// sortByTime sorts by time, in milliseconds: more of it no source but Temporal has. What
// is of the same one stays as it was put together.
func sortByTime(entries []TimelineEntry) []TimelineEntry {
	slices.SortStableFunc(entries, func(a, b TimelineEntry) int { return cmp.Compare(a.At.String(), b.At.String()) })
	return entries
}

// entries tells of the runs, each at its start and at its end.
func (t TemporalRuns) entries() (out []TimelineEntry) {
	for _, run := range t.Runs {
		out = append(out, TimelineEntry{At: run.StartedAt, Source: "temporal", What: "run " + run.RunID + " started"})
		if run.ClosedAt.Value != nil {
			out = append(out, TimelineEntry{At: *run.ClosedAt.Value, Source: "temporal", What: "run " + run.RunID + " ended: " + run.Status})
		}
	}
	return out
}

// redisEntries tells what Redis acknowledged, where that is known.
func redisEntries(kind payout.Kind, p payout.Timeline) []TimelineEntry {
	if p.AcknowledgedAt.IsZero() {
		return nil
	}
	what := "grab acknowledged, hand-off written"
	if kind == payout.KindCharge {
		what = "creation acknowledged, hand-off written"
	}
	if p.Seq > 0 {
		what += fmt.Sprintf(": seq %d, epoch %d", p.Seq, p.Epoch)
	}
	return []TimelineEntry{{At: Stamp(p.AcknowledgedAt), Source: "redis", What: what}}
}

// storedEntries tells what the books know of a payment.
func storedEntries(d payout.Detail, began string) []TimelineEntry {
	out := []TimelineEntry{{At: Stamp(d.CreatedAt), Source: "ledger", What: began}}
	for _, e := range d.Events {
		out = append(out, TimelineEntry{At: Stamp(e.At), Source: e.Source, What: cmp.Or(e.What, e.Op+" "+e.Outcome)})
	}
	return out
}

// runsOf asks Temporal about a workflow, and does not wait for it long.
func (r *request) runsOf(workflowID string) TemporalRuns {
	out := TemporalRuns{State: temporalAway, Runs: []TemporalRun{}, Pending: []PendingStep{}}
	if r.server.cfg.Runs == nil {
		return out
	}
	ctx, cancel := context.WithTimeout(r.ctx, temporalTimeout)
	defer cancel()
	found, err := r.server.cfg.Runs(ctx, workflowID)
	if err != nil {
		slog.WarnContext(r.ctx, "Temporal was not asked about a workflow", slog.String("workflow_id", workflowID), slog.Any("error", err))
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
