package main

import (
	"fmt"

	"hongbao/internal/payout"
	"hongbao/wire"
)

// waitsFor describes the event that a payment in a status waits for.
var waitsFor = map[wire.PayoutStatus]string{wire.PayoutPending: "being sent", wire.PayoutSending: "the provider's answer",
	wire.PayoutUnknown:           "the outcome of a query to the provider",
	wire.PayoutAwaitingRecipient: "the recipient to accept the money at the provider"}

// printHistory prints attempts, timeline and pending activities of a payment.
func (t *call) printHistory(attempts []wire.Attempt, timeline []wire.TimelineEntry, temporal wire.TemporalRuns) error {
	if len(attempts) > 0 {
		show := newGrid(t.out, "attempt", "order number", "outcome", "code", "sent", "ended")
		for _, a := range attempts {
			show.row(a.No, a.OrderNo, optionalText(a.Outcome), optionalText(a.Code), formatOptionalTime(a.StartedAt), formatOptionalTime(a.EndedAt))
		}
		show.render()
	}
	if len(timeline) > 0 {
		show := newGrid(t.out, "at", "who", "what happened")
		for _, e := range wire.Spans(timeline) {
			if e.Count > 1 {
				e.What += fmt.Sprintf(" (%d times, last at %s)", e.Count, formatTime(e.LastAt))
			}
			show.row(formatTime(e.At), e.Source, e.What)
		}
		show.render()
	}
	switch temporal.State {
	case "away":
		return printf(t.notes, "Temporal did not answer: the history lacks its events.\n")
	case "gone":
		return printf(t.notes, "Temporal has no run of this payment, or has deleted it.\n")
	}
	if len(temporal.Pending) == 0 {
		return nil
	}
	show := newGrid(t.out, "pending step", "state", "try", "next try", "last failure")
	for _, p := range temporal.Pending {
		show.row(p.Name, p.State, p.Attempt, formatOptionalTime(p.NextAt), optionalText(p.LastFailure))
	}
	show.render()
	return nil
}

func failureText(f *wire.PayoutFailure) string {
	if f == nil {
		return ""
	}
	return f.Code + ": " + f.Message
}

func nextAction(f *wire.PayoutFailure) string {
	if f == nil {
		return ""
	}
	return f.NextAction
}

// dryRunReason is the reason of a dry run: the API requires one.
const dryRunReason = "dry run"

// retryText describes the effect of a retry now, or "" for a status that permits none.
func retryText(status wire.PayoutStatus, would wire.RetryPreview) string {
	if !would.Possible && !retryable(status) {
		return ""
	}
	if !would.Possible {
		return "is refused: " + optionalText(would.Code)
	}
	number, why := optionalText(would.OrderNo), orderNumberReason(status, would)
	text := fmt.Sprintf("queries every earlier order number, then sends the new order number %s: %s", number, why)
	if would.SameOrderNo {
		text = fmt.Sprintf("sends the same order number %s again: %s", number, why)
	}
	if would.Evidence {
		text += "; needs --evidence"
	}
	if would.SecondPerson {
		text += "; a second person has to approve first"
	}
	return text
}

// orderNumberReason says why a retry sends its order number, or "" when it sends none.
func orderNumberReason(status wire.PayoutStatus, would wire.RetryPreview) string {
	switch {
	case would.OrderNo == nil:
		return ""
	case would.SameOrderNo:
		return "the provider never received it"
	case status == wire.PayoutReturned:
		return "the last one was returned"
	case !retryable(status) || status == wire.PayoutUnknown:
		return "the provider's memory of the last one has ended"
	}
	if number, err := payout.Parse(*would.OrderNo); err == nil && number.Attempt == 1 {
		return "nothing was sent before"
	}
	return "the last one failed for good"
}

func failureCode(f *wire.PayoutFailure) string {
	if f == nil {
		return ""
	}
	return f.Code
}
