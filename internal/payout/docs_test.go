package payout

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/packet"
)

// movers describes the cause of every transition.
var movers = map[[2]Status]string{
	{StatusPending, StatusSending}:             "BeginSend: order number and exact request are stored, the send is noted, then it goes out",
	{StatusPending, StatusUnknown}:             "an earlier order number, queried after a decision, is not final",
	{StatusPending, StatusPaid}:                "an earlier order number, queried after a decision, has succeeded",
	{StatusPending, StatusFailed}:              "an unsent charge, once its packet has expired; an unsent refund beyond the provider's limits",
	{StatusPending, StatusCancelled}:           "two persons cancel a refund that its sender must not get",
	{StatusSending, StatusCancelled}:           "two persons cancel a refund that its sender must not get",
	{StatusUnknown, StatusCancelled}:           "two persons cancel a refund that its sender must not get",
	{StatusAwaitingRecipient, StatusCancelled}: "two persons cancel a refund that its sender must not get",
	{StatusSending, StatusPaid}:                "the provider reports that the money has moved",
	{StatusSending, StatusFailed}:              "final failure, confirmed by a query or stated by two persons",
	{StatusSending, StatusUnknown}:             "no answer, or one without information, or a contradiction",
	{StatusSending, StatusAwaitingRecipient}:   "the recipient has to act",
	{StatusSending, StatusReturned}:            "the money had moved and was returned",
	{StatusUnknown, StatusPaid}:                "a query reports that the money has moved",
	{StatusUnknown, StatusFailed}:              "final failure, confirmed by a query or stated by two persons",
	{StatusUnknown, StatusAwaitingRecipient}:   "the recipient has to act",
	{StatusSending, StatusAwaitingPayer}:       "of a charge: the sender has to pay in an app",
	{StatusUnknown, StatusAwaitingPayer}:       "of a charge: a query says that it is not paid yet",
	{StatusAwaitingPayer, StatusPaid}:          "the sender has paid",
	{StatusAwaitingPayer, StatusFailed}: "closed at the provider at its deadline or on request, " +
		"and a query confirms that nothing was paid",
	{StatusAwaitingPayer, StatusUnknown}:         "the provider contradicts itself or no longer knows the order",
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
	out.WriteString(`# States of a payment, steps of a packet

<!-- Generated from payout.Transitions by "go test ./internal/payout -run Docs -update". Do not edit. -->

Charges, payouts and refunds share one table. The status is stored only in the MySQL row; it changes by
compare-and-set. ` + "`failed`" + ` means that a query of the provider confirmed it, that two persons stated it with
evidence, or that a charge or refund was never sent; no number of tries makes a payment fail.

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
	writePacketSteps(t, &out)
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
	PostRefundKept:    "a refund of a packet whose charge was returned: the sender has the money already",
	PostRefundDropped: "the refund of a cancelled payout that has reached its recipient after all was cancelled",
	PostWrittenOff:    "two persons write off the money of a second success: it was our own",
	PostRecovered:     "the money of a second success was returned after it had been written off",
	PostCredit:        "two persons record that an app has paid money in", PostDebit: "two persons record that an app was paid money out",
	PostReserve: "a packet is paid from the balance of its app",
	PostRelease: "a remainder, or a cancelled payout, goes back to the balance of the app",
	PostFee:     "a statement lists a fee", PostFeeReturned: "a statement lists a returned fee",
	PostTopUp:      "a statement lists money of our bank account that is with the provider",
	PostWithdrawal: "a statement lists money of the provider that is on our bank account",
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

// result is one result of a packet's step: what became known.
type result struct {
	text  string
	after func(*packet.Facts)
}

func known(s packet.Status) func(*packet.Facts) { return func(f *packet.Facts) { f.Status = s } }

func nothing(f *packet.Facts) { *f = packet.Facts{} }

func late(f *packet.Facts) { f.Late = true }

// packetResults are the results of each step of a packet.
var packetResults = map[packet.Step][]result{
	packet.StepRecord: {{"new, or an earlier run has not charged it", known(packet.StatusFunding)}, {"the row is open",
		known(packet.StatusOpen)},
		{"the row is closing", known(packet.StatusClosing)}, {"the row is closed", known(packet.StatusClosed)},
		{"the row is rejected", known(packet.StatusRejected)}},
	packet.StepCharge: {{"paid", func(f *packet.Facts) { f.Charge = packet.ChargeTaken }},
		{"paid after expires_at", func(f *packet.Facts) { f.Charge, f.Late = packet.ChargeTaken, true }},
		{"declined", func(f *packet.Facts) { f.Charge = packet.ChargeDeclined }}},
	packet.StepReject: {{"rejected", func(f *packet.Facts) { f.Status, f.Finished = packet.StatusRejected, true }},
		{"a restored MySQL: the charge is open again", nothing}},
	packet.StepFund: {{"shares written", known(packet.StatusOpen)},
		{"the sender has the charge back, or the list of users is lost", known(packet.StatusClosing)}, {"not written by expires_at", late}},
	packet.StepOpenPool: {{"open", func(f *packet.Facts) { f.Pool = packet.PoolUsed }}, {"not open by expires_at", late}},
	packet.StepBeginClosing: {{"closing", func(f *packet.Facts) { f.Reason, f.Status = f.CloseReason(), packet.StatusClosing }},
		{"another run has closed it", known(packet.StatusClosed)}, {"another run has rejected it", known(packet.StatusRejected)},
		{"a restored MySQL: the charge is open again", nothing}},
	packet.StepClosePool: {{"no more grabs, or no pool", func(f *packet.Facts) { f.Pool = packet.PoolEnded }}},
	packet.StepDrain:     {{"every claim is recorded", func(f *packet.Facts) { f.Drained = true }}},
	packet.StepCloseBooks: {{"nothing remains", func(f *packet.Facts) { f.Remainder = new(money.Fen) }},
		{"a remainder: its refund closes the packet", func(f *packet.Facts) { f.Remainder = new(money.Fen(1)) }},
		{"a restored MySQL: the row is not closing", nothing}},
	packet.StepFinish: {{"closed", func(f *packet.Facts) { f.Status, f.Finished = packet.StatusClosed, true }},
		{"a restored MySQL: the books are open again", nothing}},
}

// writePacketSteps draws the steps of a packet that follow from every result of the one before.
func writePacketSteps(t *testing.T, out *bytes.Buffer) {
	out.WriteString("\n## Steps of a packet\n\n`packet.Next` names the next step from what is known about a packet. A run starts with " +
		"nothing known, and each step\nproves its own precondition again. An open packet waits for its last share, a recall or `expires_at` " +
		"before `begin_closing`; a\npool that is open by the clock of Redis is closed again later.\n\n```mermaid\nstateDiagram-v2\n" +
		"    [*] --> record\n")
	type edge struct {
		from packet.Step
		text string
		to   packet.Step
	}
	var edges []edge
	seen := map[string]bool{}
	of := packet.Packet{ExpiresAt: time.Unix(1, 0)}
	var explore func(packet.Facts)
	explore = func(f packet.Facts) {
		remainder := f.Remainder != nil && *f.Remainder > 0
		plain := f
		plain.Remainder = nil
		key := fmt.Sprintf("%+v %t %t", plain, f.Remainder != nil, remainder)
		if seen[key] {
			return
		}
		seen[key] = true
		step, _ := packet.Next(of, f, time.Time{})
		if step != packet.StepEnd && packetResults[step] == nil {
			t.Errorf("step %s: name its results", step)
		}
		for _, r := range packetResults[step] {
			after := f
			r.after(&after)
			next, _ := packet.Next(of, after, time.Time{})
			if e := (edge{step, r.text, next}); !slices.Contains(edges, e) {
				edges = append(edges, e)
			}
			explore(after)
		}
	}
	explore(packet.Facts{})
	order := []packet.Step{packet.StepRecord, packet.StepCharge, packet.StepReject, packet.StepFund, packet.StepOpenPool,
		packet.StepBeginClosing, packet.StepClosePool, packet.StepDrain, packet.StepCloseBooks, packet.StepFinish, packet.StepEnd}
	slices.SortStableFunc(edges, func(a, b edge) int { return cmp.Compare(slices.Index(order, a.from), slices.Index(order, b.from)) })
	drawn := map[string]bool{}
	for _, e := range edges {
		if line := fmt.Sprintf("    %s --> %s\n", e.from, e.to); !drawn[line] {
			drawn[line] = true
			out.WriteString(line)
		}
	}
	out.WriteString("    end --> [*]\n```\n\n| step | result | next |\n|---|---|---|\n")
	for _, e := range edges {
		fmt.Fprintf(out, "| `%s` | %s | `%s` |\n", e.from, e.text, e.to)
	}
}
