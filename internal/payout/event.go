package payout

import (
	"maps"
	"slices"
	"time"

	"hongbao/internal/sentence"
)

// EventCode says what happened in a line of a payment's timeline.
type EventCode string

// The events: the first line of a payment, those stored in MySQL, and those of other sources.
const (
	EventClaimBooked     EventCode = "claim_booked"
	EventClaimConflict   EventCode = "claim_conflict"
	EventPacketRecorded  EventCode = "packet_recorded"
	EventBooksClosed     EventCode = "books_closed"
	EventPayoutCancelled EventCode = "payout_cancelled"

	EventSent               EventCode = "sent"
	EventQueried            EventCode = "queried"
	EventMoved              EventCode = "moved"
	EventNotMoved           EventCode = "not_moved"
	EventWrittenOff         EventCode = "written_off"
	EventDecision           EventCode = "decision"
	EventRecipientChanged   EventCode = "recipient_changed"
	EventChargeExpired      EventCode = "charge_expired"
	EventRefundNotSent      EventCode = "refund_not_sent"
	EventNotRecorded        EventCode = "not_recorded"
	EventOnStatement        EventCode = "on_statement"
	EventReturnListed       EventCode = "return_listed"
	EventSendRecovered      EventCode = "send_recovered"
	EventReserveRecovered   EventCode = "reserve_recovered"
	EventCancelRecovered    EventCode = "cancel_recovered"
	EventRejectionRecovered EventCode = "rejection_recovered"

	EventGrabAcknowledged     EventCode = "grab_acknowledged"
	EventCreationAcknowledged EventCode = "creation_acknowledged"
	EventNotBooked            EventCode = "not_booked"
	EventRunStarted           EventCode = "run_started"
	EventRunEnded             EventCode = "run_ended"
	EventNotification         EventCode = "notification"
	EventOutbox               EventCode = "outbox"
)

// eventTexts are the sentences of the events, with their arguments (sentence.Fill).
var eventTexts = map[EventCode]string{
	EventClaimBooked:     "claim booked, payout owed",
	EventClaimConflict:   "claim acknowledged, nothing booked",
	EventPacketRecorded:  "packet recorded, charge due",
	EventBooksClosed:     "books closed, remainder goes back",
	EventPayoutCancelled: "payout cancelled, its money goes back",

	EventSent:               "sent {order_no}: {outcome}[ ({code})]",
	EventQueried:            "asked about {order_no}: {outcome}[ ({code})]",
	EventMoved:              "moved: stated by two persons about {order_no}; the provider's last answer: {last}; evidence: {evidence}",
	EventNotMoved:           "not_moved: stated by two persons about {order_no}; the provider's last answer: {last}; evidence: {evidence}",
	EventWrittenOff:         "written_off: two persons took what {order_no} had in suspense to our own account; evidence: {evidence}",
	EventDecision:           "{action} by {by}: {reason}",
	EventRecipientChanged:   "recipient changed by {by}: account {account}",
	EventChargeExpired:      "the packet expired before the charge was sent",
	EventRefundNotSent:      "not sent: beyond the provider's limits of refunds ({code})",
	EventNotRecorded:        "not recorded: {detail}",
	EventOnStatement:        "the statement of {day} has a {op} that MySQL lacks: query requested",
	EventReturnListed:       "returned without a notification: query requested",
	EventReserveRecovered:   "Redis has this packet as paid for, and the restored MySQL lacked its reservation",
	EventSendRecovered:      "the restored MySQL may lack a send of this order number; the provider is queried about it",
	EventCancelRecovered:    "cancelled after the backup: its refund is known to the provider",
	EventRejectionRecovered: "its packet was rejected after the backup; the provider did not charge it",

	EventGrabAcknowledged:     "grab acknowledged, hand-off written[: seq {seq}, epoch {epoch}]",
	EventCreationAcknowledged: "creation acknowledged, hand-off written",
	EventNotBooked:            "not booked yet",
	EventRunStarted:           "run {run_id} started",
	EventRunEnded:             "run {run_id} ended: {status}",
	EventNotification:         "notification for {order_no}: event {event_id}",
	EventOutbox:               "start or wake-up pending: {kind}, attempts {attempts}",
}

// EventCodes are all codes, sorted.
var EventCodes = slices.Sorted(maps.Keys(eventTexts))

// Event is one line of a payment's timeline.
type Event struct {
	At        time.Time
	Source    string // provider, operator, finance, reconciliation, ledger; redis, temporal, notification, outbox
	Event     EventCode
	Op        string // send or ask; empty otherwise
	OrderNo   string
	Outcome   string
	Code      string
	Args      map[string]string // beside order number, outcome and code
	StartedAt time.Time
	EndedAt   time.Time
}

// Arguments are all arguments of the event by name, without empty ones.
func (e Event) Arguments() map[string]string {
	out := map[string]string{"order_no": e.OrderNo, "outcome": e.Outcome, "code": e.Code}
	maps.Copy(out, e.Args)
	maps.DeleteFunc(out, func(_, value string) bool { return value == "" })
	return out
}

// What is the English sentence about the event; of an unknown one, which a newer version has
// written, its code.
func (e Event) What() string {
	if text, ok := eventTexts[e.Event]; ok {
		return sentence.Fill(text, e.Arguments())
	}
	return string(e.Event)
}

// event is the line of the timeline for an observation about an attempt.
func (o Observation) event(a Attempt) Event {
	if o.Source == SourceOperator {
		e := Event{Source: "operator", Event: EventMoved, OrderNo: a.OrderNo, Outcome: string(o.Kind),
			Args: map[string]string{"last": string(a.LastAnswer())}}
		if o.Kind == ObsDeclined {
			e.Event = EventNotMoved
		}
		return e
	}
	e := Event{Source: "provider", Event: EventQueried, Op: string(o.Source), OrderNo: a.OrderNo, Outcome: string(o.Kind), Code: o.Code,
		StartedAt: o.StartedAt, EndedAt: o.EndedAt}
	if o.Source == SourceSend {
		e.Event = EventSent
	}
	return e
}
