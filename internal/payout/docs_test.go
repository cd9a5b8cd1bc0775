package payout

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
)

// movers describes the cause of every transition.
var movers = map[[2]Status]string{
	{StatusPending, StatusSending}:               "BeginSend: order number and exact request are stored, the send is noted, then it goes out",
	{StatusPending, StatusUnknown}:               "an earlier order number, queried after a decision, is not final",
	{StatusPending, StatusPaid}:                  "an earlier order number, queried after a decision, has succeeded",
	{StatusPending, StatusFailed}:                "an unsent charge, once its packet has expired; no other payment",
	{StatusPending, StatusCancelled}:             "two persons cancel a refund that its sender must not get",
	{StatusSending, StatusCancelled}:             "two persons cancel a refund that its sender must not get",
	{StatusUnknown, StatusCancelled}:             "two persons cancel a refund that its sender must not get",
	{StatusAwaitingRecipient, StatusCancelled}:   "two persons cancel a refund that its sender must not get",
	{StatusSending, StatusPaid}:                  "the provider reports that the money has moved",
	{StatusSending, StatusFailed}:                "final failure, confirmed by a query or stated by two persons",
	{StatusSending, StatusUnknown}:               "no answer, or one without information, or a contradiction",
	{StatusSending, StatusAwaitingRecipient}:     "the recipient has to act",
	{StatusSending, StatusReturned}:              "the money had moved and was returned",
	{StatusUnknown, StatusPaid}:                  "a query reports that the money has moved",
	{StatusUnknown, StatusFailed}:                "final failure, confirmed by a query or stated by two persons",
	{StatusUnknown, StatusAwaitingRecipient}:     "the recipient has to act",
	{StatusUnknown, StatusReturned}:              "the money had moved and was returned",
	{StatusUnknown, StatusSending}:               "the provider has the order, or never received it: the same order number is sent again",
	{StatusAwaitingRecipient, StatusPaid}:        "the recipient has acted",
	{StatusAwaitingRecipient, StatusFailed}:      "the recipient has not acted in time, confirmed by a query or stated by two persons",
	{StatusAwaitingRecipient, StatusReturned}:    "the money had moved and was returned",
	{StatusAwaitingRecipient, StatusUnknown}:     "the provider contradicts itself or no longer knows the order",
	{StatusPaid, StatusReturned}:                 "the money was returned",
	{StatusFailed, StatusPending}:                "staff retry",
	{StatusFailed, StatusPaid}:                   "the provider reports success after all: a break",
	{StatusFailed, StatusCancelled}:              "two persons cancel: the money goes back to the sender, or a refund is given up",
	{StatusFailed, StatusPaidOutside}:            "two persons, with evidence",
	{StatusReturned, StatusPending}:              "staff retry",
	{StatusReturned, StatusCancelled}:            "two persons cancel: the money goes back to the sender, or a refund is given up",
	{StatusReturned, StatusPaidOutside}:          "two persons, with evidence",
	{StatusSending, StatusPending}:               "as from unknown: two persons retry, with evidence",
	{StatusSending, StatusPaidOutside}:           "as from unknown: two persons, with evidence",
	{StatusUnknown, StatusPending}:               "two persons retry after the provider's memory of the order number has ended: a new one",
	{StatusUnknown, StatusPaidOutside}:           "two persons, with evidence, after the provider's memory of the order number has ended",
	{StatusAwaitingRecipient, StatusPending}:     "as from unknown: two persons retry, with evidence",
	{StatusAwaitingRecipient, StatusPaidOutside}: "as from unknown: two persons, with evidence",
}

// TestDocs compares docs/states.md with the transition table; -update rewrites it.
func TestDocs(t *testing.T) {
	var out bytes.Buffer
	out.WriteString(`# States of a payment

<!-- Generated from payout.Transitions by "go test ./internal/payout -run Docs -update". Do not edit. -->

Charges, payouts and refunds share one table. The status is stored only in the MySQL row; it changes by
compare-and-set. ` + "`failed`" + ` means that a query of the provider confirmed it, that two persons stated it with
evidence, or that a charge was never sent; no number of tries makes a payment fail.

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
	out.WriteString("```\n\n| from | to | cause |\n|---|---|---|\n")
	for _, from := range Statuses {
		for _, to := range Transitions[from] {
			cause := movers[[2]Status{from, to}]
			if cause == "" {
				t.Errorf("%s to %s: name the cause", from, to)
			}
			fmt.Fprintf(&out, "| `%s` | `%s` | %s |\n", from, to, cause)
		}
	}
	if rows != len(movers) {
		t.Errorf("%d transitions, %d explained", rows, len(movers))
	}
	out.WriteString("\nOpen statuses, which a run or the watch continues without a decision:")
	for _, s := range Statuses {
		if s.Open() {
			fmt.Fprintf(&out, " `%s`", s)
		}
	}
	out.WriteString(". Every other status waits for a decision, or for a new statement of the provider.\n")
	writeTransfers(t, &out)
	writeHolds(&out)
	compareFile(t, filepath.Join("..", "..", "docs", "states.md"), out.Bytes())
}

// causes describes every kind of ledger transfer.
var causes = map[TransferKind]string{
	PostCharge: "the sender's charge has succeeded", PostClaim: "a claim is recorded", PostPaid: "a payout has succeeded",
	PostReturned: "a payout was returned", PostPaidOutside: "a payout was marked as paid by other means",
	PostCancel: "a payout was cancelled: its refund is owed", PostClose: "the books are closed: the remainder is owed to the sender",
	PostRefunded: "a refund has succeeded", PostRefundReturned: "a refund was returned",
	PostRefundPaidOutside: "a refund was marked as made by other means", PostHonoured: "a share conflict is paid with our own money",
	PostVoided:         "an honoured share conflict was cancelled",
	PostSecondSuccess:  "money moved under a superseded number, or after a cancel or mark-paid",
	PostSecondReturned: "the money of a second success was returned", PostChargeReturned: "the sender has the charge back",
	PostRefundKept:    "a refund of a packet whose charge came back: the sender has the money already",
	PostRefundDropped: "the refund of a cancelled payout that has reached its recipient after all was cancelled",
}

// writeTransfers writes the ledger's kinds of transfer.
func writeTransfers(t *testing.T, out *bytes.Buffer) {
	out.WriteString("\n## Ledger transfers\n\nA payment's transfers are made in the transaction that changes its status. Holding, owed and " +
		"refunding are never below\nzero; in each packet, the charge and honoured share conflicts equal what is held, owed, refunding, paid " +
		"and refunded.\n`hongbao ledger verify` refuses every other pair of accounts.\n\n| kind | from | to | cause |\n|---|---|---|---|\n")
	for _, kind := range TransferKinds {
		if causes[kind] == "" {
			t.Errorf("%s: name the cause", kind)
		}
		accounts := transferAccounts[kind]
		fmt.Fprintf(out, "| `%s` | %s | %s | %s |\n", kind, accounts[0], accounts[1], causes[kind])
	}
	if len(TransferKinds) != len(transferAccounts) || len(causes) != len(transferAccounts) {
		t.Errorf("%d kinds of transfer, %d listed, %d explained", len(transferAccounts), len(TransferKinds), len(causes))
	}
}

// writeHolds writes what a hold of each scope stops.
func writeHolds(out *bytes.Buffer) {
	scopes := []Hold{{Scope: HoldAll, Kind: HoldRestored}, {Scope: HoldProvider}, {Scope: HoldPacket}, {Scope: HoldPayment}}
	out.WriteString("\n## What a hold stops\n\n| action | restored MySQL | provider | packet | payment |\n|---|---|---|---|---|\n")
	for _, action := range HoldActions {
		fmt.Fprintf(out, "| %s |", action)
		for _, h := range scopes {
			verdict := "goes on"
			if h.Stops(action) {
				verdict = "stops"
			}
			fmt.Fprintf(out, " %s |", verdict)
		}
		out.WriteString("\n")
	}
	out.WriteString("\nRecording a packet with its charge, ending its grabs, queries, settling, notifications and the proof go on under " +
		"every hold. A hold of staff on\neverything acts as one on every provider. Opening a packet and ending one that never opened look at " +
		"the hold of its charge.\n")
}
