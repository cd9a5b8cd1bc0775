package chaos

import (
	"database/sql"
	"slices"
	"strings"
	"testing"
)

const (
	somePacket = "0123456789abcdefghij"
	someCharge = "c" + somePacket + "0000"
	someRefund = "r" + somePacket + "0000"
)

// somePayout is the id of a share's payout.
func somePayout(share int) string { return "p" + somePacket + base32(share) }

// healthy is a closed packet of 100 fen: two claims, of 30 and 20 fen, are paid, and 50 fen were
// refunded.
func healthy() (*snapshot, *answers, map[string]verdict) {
	b := &snapshot{attempts: map[string]string{}, breaks: map[string]int{}, payments: map[string]*paymentRow{}, packets: map[string]*packetRow{
		somePacket: {id: somePacket, group: groupOf(1), sender: "boss", status: "closed", total: 100, shares: 4,
			remainder: sql.NullInt64{Int64: 50, Valid: true},
			claims:    map[string]*shareRow{"ann": {index: 0, amount: 30}, "bob": {index: 33, amount: 20}}}}}
	pay := func(id, op, user string, share int, amount int64) {
		no := id + "01"
		b.attempts[no] = id
		b.payments[id] = &paymentRow{id: id, kind: id[:1], packet: somePacket, user: user, account: user, status: "paid", orderNo: no,
			share: share, amount: amount}
		b.movements = append(b.movements, movement{int64(len(b.movements) + 1), op, no, user, amount})
	}
	pay(someCharge, "charge", "boss", -1, 100)
	pay(somePayout(0), "transfer", "ann", 0, 30)
	pay(somePayout(33), "transfer", "bob", 33, 20)
	pay(someRefund, "refund", "boss", -1, 50)
	b.postings = []transferRow{{somePacket, "charge", "provider", "holding", 100}, {somePacket, "claim", "holding", "owed", 30},
		{somePacket, "claim", "holding", "owed", 20},
		{somePacket, "paid", "owed", "provider", 30}, {somePacket, "paid", "owed", "provider", 20},
		{somePacket, "close", "holding", "refunding", 50}, {somePacket, "refunded", "refunding", "provider", 50}}
	a := newAnswers()
	a.asked[1] = true
	a.created(1, somePacket, false)
	for user, c := range map[string]claim{"ann": {0, 30, somePayout(0)}, "bob": {33, 20, somePayout(33)}} {
		a.trying(somePacket, grabber{user: user})
		a.claimed(somePacket, user, c)
	}
	return b, a, map[string]verdict{}
}

// unsent is a packet that expired before its charge was sent, as on a busy machine.
func unsent() (*snapshot, *answers, map[string]verdict) {
	p := &packetRow{id: somePacket, group: groupOf(1), sender: "boss", status: "rejected", total: 100, shares: 4,
		claims: map[string]*shareRow{}}
	c := &paymentRow{id: someCharge, kind: "c", packet: somePacket, user: "boss", account: "boss", status: "failed", share: -1, amount: 100}
	a := newAnswers()
	a.asked[1] = true
	return &snapshot{attempts: map[string]string{}, breaks: map[string]int{}, packets: map[string]*packetRow{somePacket: p},
		payments: map[string]*paymentRow{someCharge: c}}, a, map[string]verdict{}
}

// TestJudgeSees checks that each way to lose, double or fail to explain money is reported, as final
// or not, and that a healthy packet has no violation.
func TestJudgeSees(t *testing.T) {
	if j := judge(healthy()); len(j.violations) > 0 {
		t.Fatalf("a healthy packet: %v", j.violations)
	}
	if j := judge(unsent()); len(j.violations) > 0 {
		t.Fatalf("a packet that expired before its charge was sent: %v", j.violations)
	}
	move := func(b *snapshot, op, no, account string, amount int64) {
		b.movements = append(b.movements, movement{int64(len(b.movements) + 1), op, no, account, amount})
	}
	fail := func(b *snapshot, v map[string]verdict, code string) {
		b.payments[somePayout(0)].status = "failed"
		b.payments[somePayout(0)].account, b.packets[somePacket].claims["ann"].recipient.String = "ann", ""
		v[somePayout(0)+"01"] = verdict{"declined", code}
	}
	for name, tc := range map[string]struct {
		spoil         func(b *snapshot, a *answers, v map[string]verdict)
		sees          string
		final         bool
		lost, doubled int
	}{
		"a claim is lost": {func(b *snapshot, _ *answers, _ map[string]verdict) { delete(b.packets[somePacket].claims, "ann") },
			"is not recorded", false,
			1, 0},
		"a packet is lost": {func(b *snapshot, _ *answers, _ map[string]verdict) { delete(b.packets, somePacket) },
			"MySQL does not have", false, 3, 0},
		"another amount": {func(b *snapshot, _ *answers, _ map[string]verdict) { b.packets[somePacket].claims["ann"].amount = 31 },
			"has acknowledged share 0 of 30 fen", true, 0, 0},
		"another share": {func(b *snapshot, _ *answers, _ map[string]verdict) { b.packets[somePacket].claims["ann"].index = 1 },
			"has acknowledged share 0",
			true, 1, 0},
		"acknowledged twice": {func(_ *snapshot, a *answers, _ map[string]verdict) {
			a.claimed(somePacket, "ann", claim{0, 31, somePayout(0)})
		}, "then", true, 0, 0},
		"made twice": {func(_ *snapshot, a *answers, _ map[string]verdict) { a.created(1, "another", false) }, "made packet", true, 1, 0},
		"two packets of one key": {func(b *snapshot, _ *answers, _ map[string]verdict) {
			b.packets["x"] = &packetRow{id: "x", group: groupOf(1), status: "rejected"}
		}, "made the packets", true, 0, 1},
		"a packet without a create": {func(b *snapshot, _ *answers, _ map[string]verdict) {
			b.packets["x"] = &packetRow{id: "x", group: groupOf(2), status: "rejected"}
		}, "no create asked", true, 0, 0},
		"a claim without a grab": {func(_ *snapshot, a *answers, _ map[string]verdict) { delete(a.tried[somePacket], "bob") },
			"never grabbed", true, 0,
			0},
		"paid elsewhere": {func(b *snapshot, _ *answers, _ map[string]verdict) { b.payments[somePayout(0)].account = "thief" },
			"for account \"ann\"", true, 0, 0},
		"moved elsewhere": {func(b *snapshot, _ *answers, _ map[string]verdict) { b.movements[1].Account = "thief" },
			"its payment", true, 0, 0},
		"moved another amount": {func(b *snapshot, _ *answers, _ map[string]verdict) { b.movements[1].Amount = 29 }, "its payment", true, 0, 0},
		"one number twice": {func(b *snapshot, _ *answers, _ map[string]verdict) {
			move(b, "transfer", somePayout(0)+"01", "ann", 30)
		},
			"more than once", true, 0, 2},
		"one claim by two numbers": {func(b *snapshot, _ *answers, _ map[string]verdict) {
			b.attempts[somePayout(0)+"02"] = somePayout(0)
			move(b, "transfer", somePayout(0)+"02", "ann", 30)
		}, "moved money 2 times", true, 0, 1},
		"charged twice": {func(b *snapshot, _ *answers, _ map[string]verdict) {
			b.attempts[someCharge+"02"] = someCharge
			move(b, "charge", someCharge+"02", "boss", 100)
		}, "moved money 2 times", true, 0, 1},
		"money without a payment": {func(b *snapshot, _ *answers, _ map[string]verdict) { move(b, "transfer", somePayout(7)+"01", "eve", 5) },
			"no payment explains", true, 0, 0},
		"not paid": {func(b *snapshot, _ *answers, _ map[string]verdict) { b.movements = slices.Delete(b.movements, 1, 2) },
			"called paid", true, 1, 0},
		"still unknown": {func(b *snapshot, _ *answers, _ map[string]verdict) { b.payments[somePayout(0)].status = "unknown" },
			"still unknown", false, 1, 0},
		"no payout": {func(b *snapshot, _ *answers, _ map[string]verdict) { delete(b.payments, somePayout(0)) }, "has no payout", false,
			1, 0},
		"failed although it moved": {func(b *snapshot, _ *answers, v map[string]verdict) { fail(b, v, "declined_by_rule") },
			"called failed; it moved",
			false, 1, 0},
		"failed without reason": {func(b *snapshot, _ *answers, v map[string]verdict) {
			fail(b, v, "")
			b.movements = slices.Delete(b.movements, 1, 2)
		}, "called failed", false, 1, 0},
		"expired though the recipient confirms": {func(b *snapshot, _ *answers, v map[string]verdict) {
			fail(b, v, "OVERDUE_CLOSE")
			b.movements = slices.Delete(b.movements, 1, 2)
		}, "called failed", false, 1, 0},
		"paid by the wrong provider": {func(b *snapshot, _ *answers, _ map[string]verdict) { b.movements[1].Op = wrongProvider },
			"was a transfer of the wrong", true, 0, 0},
		"never sent, and charged": {func(b *snapshot, _ *answers, _ map[string]verdict) {
			b.payments[someCharge].status, b.payments[someCharge].orderNo = "failed", ""
		}, "called failed; it moved", false, 0, 0},
		"returned from nowhere": {func(b *snapshot, _ *answers, _ map[string]verdict) { move(b, "return", somePayout(0)+"01", "ann", 30) },
			"called paid", true, 1, 0},
		"refund too small": {func(b *snapshot, _ *answers, _ map[string]verdict) { b.payments[someRefund].amount = 49 }, "50 fen are left",
			true, 0, 0},
		"no refund": {func(b *snapshot, _ *answers, _ map[string]verdict) { delete(b.payments, someRefund) }, "there is no refund",
			false, 0, 0},
		"another remainder": {func(b *snapshot, _ *answers, _ map[string]verdict) { b.packets[somePacket].remainder.Int64 = 51 },
			"the remainder is 51", true, 0, 0},
		"still closing": {func(b *snapshot, _ *answers, _ map[string]verdict) { b.packets[somePacket].status = "closing" },
			"still closing", false, 0, 0},
		"still open": {func(b *snapshot, _ *answers, _ map[string]verdict) { b.packets[somePacket].status = "open" }, "still open",
			false, 0, 0},
		"answered as declined, and charged": {func(_ *snapshot, a *answers, _ map[string]verdict) { a.rejected[1] = true },
			"was answered as declined",
			true, 0, 0},
		"rejected, and charged": {func(b *snapshot, _ *answers, _ map[string]verdict) { b.packets[somePacket].status = "rejected" },
			"is rejected, and",
			true, 0, 0},
		"opened after it was closed unpaid": {func(_ *snapshot, a *answers, _ map[string]verdict) { a.close(somePacket, "funding") },
			"was closed before it was paid", true, 0, 0},
		"a close without an effect": {func(b *snapshot, a *answers, _ map[string]verdict) {
			b.packets[somePacket].payer, b.packets[somePacket].why = true, "expired"
			a.close(somePacket, "closing")
		}, "its close was acknowledged", false, 0, 0},
		"open, and nothing was charged": {func(b *snapshot, _ *answers, _ map[string]verdict) { b.movements = b.movements[1:] },
			"nothing was charged", true, 0, 0},
		"an account below zero": {func(b *snapshot, _ *answers, _ map[string]verdict) {
			b.postings[0], b.postings[1] = b.postings[1], b.postings[0]
		}, "holding is -30", true, 0, 0},
		"suspense": {func(b *snapshot, _ *answers, _ map[string]verdict) { b.postings[3].debit = "suspense" }, "ledger of packet",
			true, 0, 0},
		"ledger and provider differ": {func(b *snapshot, _ *answers, _ map[string]verdict) { b.postings = b.postings[:6] }, "50 fen are with us",
			false, 0, 0},
		"outbox":     {func(b *snapshot, _ *answers, _ map[string]verdict) { b.outbox = 1 }, "in the outbox", false, 0, 0},
		"quarantine": {func(b *snapshot, _ *answers, _ map[string]verdict) { b.waiting = 1 }, "in quarantine", true, 0, 0},
		"a break": {func(b *snapshot, _ *answers, _ map[string]verdict) { b.breaks["second_success"] = 1 }, "breaks of kind", true,
			0, 0},
		"a foreign order number": {func(b *snapshot, _ *answers, _ map[string]verdict) { move(b, "transfer", "friend", "ann", 5) },
			"not one of ours", true, 0, 0},
	} {
		b, a, v := healthy()
		tc.spoil(b, a, v)
		j := judge(b, a, v)
		i := slices.IndexFunc(j.violations, func(v violation) bool { return strings.Contains(v.what, tc.sees) })
		if i < 0 {
			t.Errorf("%s: not seen, only %v", name, j.violations)
			continue
		}
		if tc.final && !j.violations[i].final {
			t.Errorf("%s: is waited for: %v", name, j.violations)
		}
		if len(j.lost) != tc.lost || len(j.doubled) != tc.doubled {
			t.Errorf("%s: lost %v, doubled %v; %v", name, j.lost, j.doubled, j.violations)
		}
	}
}
