package payout

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
)

// movers says of every transition who makes it and when.
var movers = map[[2]Status]string{
	{StatusPending, StatusSending}:            "BeginSend: number and exact request are stored, the send is noted, then it goes out",
	{StatusPending, StatusUnknown}:            "an earlier number, asked about after a decision, is not final",
	{StatusPending, StatusPaid}:               "an earlier number, asked about after a decision, has succeeded",
	{StatusPending, StatusFailed}:             "a charge of which nothing was ever sent, once its packet has expired; no other payment",
	{StatusSending, StatusPaid}:               "the provider says that the money has moved",
	{StatusSending, StatusFailed}:             "final failure, confirmed by asking",
	{StatusSending, StatusUnknown}:            "no answer, or one that says nothing, or one that contradicts another",
	{StatusSending, StatusAwaitingRecipient}:  "the recipient has to act",
	{StatusSending, StatusReturned}:           "the money had moved and has come back",
	{StatusUnknown, StatusPaid}:               "the provider, asked, says that the money has moved",
	{StatusUnknown, StatusFailed}:             "final failure, confirmed by asking",
	{StatusUnknown, StatusAwaitingRecipient}:  "the recipient has to act",
	{StatusUnknown, StatusReturned}:           "the money had moved and has come back",
	{StatusUnknown, StatusSending}:            "the provider has the order, or never received it: the same number is sent again",
	{StatusUnknown, StatusPending}:            "two persons retry once the provider no longer knows the number: a new one",
	{StatusUnknown, StatusPaidOutside}:        "two persons, with evidence, once the provider no longer knows the number",
	{StatusAwaitingRecipient, StatusPaid}:     "the recipient has acted",
	{StatusAwaitingRecipient, StatusFailed}:   "the recipient has not acted in time, confirmed by asking",
	{StatusAwaitingRecipient, StatusReturned}: "the money had moved and has come back",
	{StatusAwaitingRecipient, StatusUnknown}:  "the provider contradicts itself or no longer knows the order",
	{StatusPaid, StatusReturned}:              "the money has come back",
	{StatusFailed, StatusPending}:             "a person retries",
	{StatusFailed, StatusPaid}:                "the provider reports success after all: a break",
	{StatusFailed, StatusCancelled}:           "two persons cancel: it goes back to the sender",
	{StatusFailed, StatusPaidOutside}:         "two persons, with evidence",
	{StatusReturned, StatusPending}:           "a person retries",
	{StatusReturned, StatusCancelled}:         "two persons cancel: it goes back to the sender",
	{StatusReturned, StatusPaidOutside}:       "two persons, with evidence",
}

// TestDocs compares docs/states.md with the transition table; -update rewrites it.
func TestDocs(t *testing.T) {
	var out bytes.Buffer
	out.WriteString(`# States of a payment

<!-- Generated from payout.Transitions by "go test ./payout -run Docs -update". Do not edit. -->

Charges, payouts and refunds share one table. The row in MySQL is the only place where a status is
kept; it changes by compare-and-set. ` + "`failed`" + ` means confirmed by asking the provider, or of a charge that
nothing was ever sent; it is never a number of tries.

` + "```mermaid\nstateDiagram-v2\n    [*] --> pending\n")
	rows := 0
	for _, from := range Statuses {
		for _, to := range Transitions[from] {
			fmt.Fprintf(&out, "    %s --> %s\n", from, to)
			rows++
		}
		if len(Transitions[from]) == 0 {
			fmt.Fprintf(&out, "    %s --> [*]\n", from)
		}
	}
	out.WriteString("```\n\n| from | to | who moves it, and when |\n|---|---|---|\n")
	for _, from := range Statuses {
		for _, to := range Transitions[from] {
			who := movers[[2]Status{from, to}]
			if who == "" {
				t.Errorf("%s to %s: say who moves it", from, to)
			}
			fmt.Fprintf(&out, "| `%s` | `%s` | %s |\n", from, to, who)
		}
	}
	if rows != len(movers) {
		t.Errorf("%d transitions, %d explained", rows, len(movers))
	}
	out.WriteString("\nOpen, so that a run or the watch goes on without being told to:")
	for _, s := range Statuses {
		if s.Open() {
			fmt.Fprintf(&out, " `%s`", s)
		}
	}
	out.WriteString(". Everything else waits for a person, or for the provider to say more.\n")
	compareFile(t, filepath.Join("..", "..", "docs", "states.md"), out.Bytes())
}
