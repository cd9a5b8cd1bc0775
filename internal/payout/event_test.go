package payout

import (
	"maps"
	"testing"
)

// TestEvents: the sentence and the arguments of an event.
func TestEvents(t *testing.T) {
	order := Event{Event: EventQueried, OrderNo: "t1", Outcome: "declined", Code: "frozen"}
	if got := order.Arguments(); !maps.Equal(got, map[string]string{"order_no": "t1", "outcome": "declined", "code": "frozen"}) {
		t.Errorf("%v", got)
	}
	for want, e := range map[string]Event{
		"asked about t1: declined (frozen)": order,
		"sent t1: succeeded":                {Event: EventSent, OrderNo: "t1", Outcome: "succeeded"},
		"cancel by li.na: {by}":             {Event: EventDecision, Args: map[string]string{"action": "cancel", "by": "li.na", "reason": "{by}"}},
		"of_a_newer_version":                {Event: "of_a_newer_version"},
	} {
		if got := e.What(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestSettlementEvent: what two persons state names the answer that they were shown.
func TestSettlementEvent(t *testing.T) {
	a := Attempt{OrderNo: "t1", Statement: ObsPending}
	for kind, want := range map[ObservationKind]string{
		ObsSucceeded: "moved: stated by two persons about t1; the provider's last answer: pending; evidence: letter",
		ObsDeclined:  "not_moved: stated by two persons about t1; the provider's last answer: pending; evidence: letter",
	} {
		e := Observation{Source: SourceOperator, Kind: kind, OrderNo: "t1"}.event(a)
		e.Args["evidence"] = "letter"
		if got := e.What(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
