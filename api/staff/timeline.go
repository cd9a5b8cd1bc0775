package staff

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"hongbao/api/rest"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

func newTimelineEntry(e payout.Event) wire.TimelineEntry {
	return wire.TimelineEntry{At: wire.At(e.At), Source: e.Source, Event: wire.EventCode(e.Event), Args: e.Arguments(), What: e.What()}
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
func (s *API) timeline(ctx context.Context, d staff.PaymentDetail, began payout.EventCode,
	workflowID string) ([]wire.TimelineEntry, wire.TemporalRuns,
	error) {
	ctx, cancel := context.WithTimeout(ctx, rest.ReadTimeout)
	defer cancel()
	recorded, err := s.cfg.Store.Timeline(ctx, d)
	if err != nil {
		return nil, wire.TemporalRuns{}, err
	}
	runs := s.runsOf(ctx, workflowID)
	out := append(redisEntries(d.Kind, recorded), runEntries(runs)...)
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
func sortByTime(entries []wire.TimelineEntry) []wire.TimelineEntry {
	slices.SortStableFunc(entries, func(a, b wire.TimelineEntry) int { return cmp.Compare(a.At.String(), b.At.String()) })
	return entries
}

// runEntries returns the start and end of each run.
func runEntries(t wire.TemporalRuns) (out []wire.TimelineEntry) {
	for _, run := range t.Runs {
		out = append(out, newTimelineEntry(payout.Event{At: run.StartedAt.Time, Source: "temporal", Event: payout.EventRunStarted,
			Args: map[string]string{"run_id": run.RunID}}))
		if end := run.ClosedAt; end != nil {
			out = append(out, newTimelineEntry(payout.Event{At: end.Time, Source: "temporal", Event: payout.EventRunEnded,
				Args: map[string]string{"run_id": run.RunID, "status": run.Status}}))
		}
	}
	return out
}

// redisEntries returns the acknowledgment by Redis; none if its time is unknown.
func redisEntries(kind payout.Kind, p staff.Timeline) []wire.TimelineEntry {
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
	return []wire.TimelineEntry{newTimelineEntry(e)}
}

// storedEntries returns the events stored in MySQL.
func storedEntries(d staff.PaymentDetail, began payout.EventCode) []wire.TimelineEntry {
	out := []wire.TimelineEntry{newTimelineEntry(payout.Event{At: d.CreatedAt, Source: "ledger", Event: began})}
	for _, e := range d.Events {
		out = append(out, newTimelineEntry(e))
	}
	return out
}

// runsOf queries Temporal for the runs of a workflow, for temporalTimeout at most.
func (s *API) runsOf(ctx context.Context, workflowID string) wire.TemporalRuns {
	out := wire.TemporalRuns{State: temporalAway, Runs: []wire.TemporalRun{}, Pending: []wire.PendingStep{}}
	if s.cfg.Runs == nil {
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, temporalTimeout)
	defer cancel()
	found, err := s.cfg.Runs(ctx, workflowID)
	if err != nil {
		slog.WarnContext(ctx, "Temporal runs could not be read", slog.String("workflow_id", workflowID), slog.Any("error", err))
		return out
	}
	if out.State = temporalKnown; !found.Known {
		out.State = temporalGone
	}
	for _, run := range found.Runs {
		out.Runs = append(out.Runs, wire.TemporalRun{RunID: run.ID, Status: run.Status, StartedAt: wire.At(run.StartedAt),
			ClosedAt: rest.TimeOrNull(run.ClosedAt)})
	}
	for _, p := range found.Pending {
		out.Pending = append(out.Pending, wire.PendingStep{Name: p.Name, State: p.State, Attempt: max(p.Attempt, 1),
			LastFailure: rest.TextOrNull(p.LastFailure),
			LastAt:      rest.TimeOrNull(p.LastAt), NextAt: rest.TimeOrNull(p.NextAt)})
	}
	return out
}
