package chaos

import (
	"fmt"
	"maps"
	"slices"
)

// verdict is the sandbox provider's own answer about an order.
type verdict struct {
	Status string `json:"status"`
	Code   string `json:"code"`
}

// judgement compares the answers of the API with the snapshot of the stores. It reads no store, so
// a test can show each violation that it finds.
type judgement struct {
	snapshot *snapshot
	answers  *answers
	verdicts map[string]verdict // of every order that did not succeed

	violations []violation
	lost       map[string]bool // acknowledged claims and packets that are missing or not paid
	doubled    map[string]bool // order numbers, claims, charges and refunds that moved money more than once

	moved map[string][]movement // by payment, returns left out
	back  map[string][]movement // by payment, returns
}

// open records a state that is not final yet; wrong records one that cannot heal.
func (j *judgement) open(format string, args ...any) {
	j.violations = append(j.violations, violation{fmt.Sprintf(format, args...), false})
}

func (j *judgement) wrong(format string, args ...any) {
	j.violations = append(j.violations, violation{fmt.Sprintf(format, args...), true})
}

func judge(b *snapshot, a *answers, verdicts map[string]verdict) *judgement {
	j := &judgement{snapshot: b, answers: a, verdicts: verdicts, lost: map[string]bool{}, doubled: map[string]bool{},
		moved: map[string][]movement{}, back: map[string][]movement{}}
	a.mu.Lock()
	defer a.mu.Unlock()
	j.violations = append(j.violations, a.wrong...)
	j.orders()
	j.creates()
	j.claims()
	j.closes()
	for _, id := range slices.Sorted(maps.Keys(b.packets)) {
		j.packet(b.packets[id])
	}
	for _, id := range slices.Sorted(maps.Keys(b.payments)) {
		j.payment(b.payments[id])
	}
	j.ledger()
	j.leftovers()
	return j
}

var opOfKind = map[string]string{"c": "charge", "p": "transfer", "h": "transfer", "r": "refund"}

// orders checks that every order number moved money at most once, was returned at most once, and
// belongs to a payment with the same account and amount.
func (j *judgement) orders() {
	seen := map[string]int64{} // what an order number has moved
	for _, m := range j.snapshot.movements {
		o, err := readOrder(m.OrderNo)
		if err != nil {
			j.wrong("movement %d: %v", m.Seq, err)
			continue
		}
		p := j.snapshot.payments[j.snapshot.attempts[m.OrderNo]]
		switch {
		case p == nil:
			j.wrong("order %s moved %d fen to or from %s, and no payment explains it", m.OrderNo, m.Amount, m.Account)
			continue
		case p.id != o.payment || p.account != m.Account || p.amount != m.Amount:
			j.wrong("order %s moved %d fen of %q; its payment %s is about %d fen of %q", m.OrderNo, m.Amount, m.Account, p.id, p.amount, p.account)
		}
		if m.Op == "return" {
			j.back[p.id] = append(j.back[p.id], m)
			if seen[m.OrderNo] -= m.Amount; seen[m.OrderNo] != 0 {
				j.wrong("order %s: the returned amount is not the amount moved", m.OrderNo)
			}
			continue
		}
		if m.Op != opOfKind[o.kind] {
			j.wrong("order %s was a %s", m.OrderNo, m.Op)
		}
		j.moved[p.id] = append(j.moved[p.id], m)
		if seen[m.OrderNo] += m.Amount; seen[m.OrderNo] != m.Amount {
			j.doubled[m.OrderNo] = true
			j.wrong("order %s moved money more than once", m.OrderNo)
		}
	}
}

// creates checks that every acknowledged create made one packet, however often it was repeated.
func (j *judgement) creates() {
	of := map[string][]string{} // group -> packets
	for id, p := range j.snapshot.packets {
		of[p.group] = append(of[p.group], id)
	}
	for n := range j.answers.asked {
		group := groupOf(n)
		if len(of[group]) > 1 {
			j.doubled["create "+group] = true
			j.wrong("create %d made the packets %v", n, of[group])
		}
		id, acknowledged := j.answers.creates[n]
		if !acknowledged {
			continue
		}
		p := j.snapshot.packets[id]
		if p == nil || p.group != group {
			j.lost["packet "+id] = true
			j.open("create %d was answered with packet %s, which MySQL does not have", n, id)
			continue
		}
		if j.answers.rejected[n] && p.status != "rejected" {
			j.wrong("create %d was answered as declined, and packet %s is %s", n, id, p.status)
		}
	}
	for id, p := range j.snapshot.packets {
		var n int
		if _, err := fmt.Sscanf(p.group, "chaos-%d", &n); err != nil || !j.answers.asked[n] {
			j.wrong("no create asked for packet %s", id)
		}
	}
}

// claims checks that acknowledged claims equal the recorded ones, and that every recorded claim was
// grabbed.
func (j *judgement) claims() {
	for packet, users := range j.answers.claims {
		p := j.snapshot.packets[packet]
		for user, c := range users {
			var row *shareRow
			if p != nil {
				row = p.claims[user]
			}
			if row == nil {
				j.lost[packet+" "+user] = true
				j.open("packet %s: %q has an acknowledged claim of %d fen, and it is not recorded", packet, user, c.amount)
				continue
			}
			if row.index != c.index || row.amount != int64(c.amount) {
				j.wrong("packet %s: %q has acknowledged share %d of %d fen; recorded is share %d of %d fen", packet, user, c.index, c.amount, row.index,
					row.amount)
			}
			if pay := j.payout(packet, row.index); pay != nil && (pay.user != user || pay.id != c.payoutID) {
				j.wrong("packet %s: %q has acknowledged payout %s, which is %s for %q", packet, user, c.payoutID, pay.id, pay.user)
			}
		}
	}
	for id, p := range j.snapshot.packets {
		for user := range p.claims {
			if _, tried := j.answers.tried[id][user]; !tried {
				j.wrong("packet %s: %q has a claim and never grabbed", id, user)
			}
		}
	}
}

func (j *judgement) payout(packet string, share int) *paymentRow {
	return j.snapshot.payments["p"+packet+base32(share)]
}

func base32(n int) string {
	const digits = "0123456789abcdefghijklmnopqrstuv"
	return string([]byte{digits[n>>15&31], digits[n>>10&31], digits[n>>5&31], digits[n&31]})
}

// packet checks that a packet is charged once, every claim is paid once with its amount to its
// account, and exactly the remainder is refunded.
func (j *judgement) packet(p *packetRow) {
	claimed := int64(0)
	for user, c := range p.claims {
		claimed += c.amount
		account := j.answers.tried[p.id][user].account()
		pay := j.payout(p.id, c.index)
		switch {
		case pay == nil:
			j.lost[p.id+" "+user] = true
			j.open("packet %s: the claim of %q has no payout", p.id, user)
		case pay.user != user || pay.amount != c.amount || pay.account != account:
			j.wrong("packet %s: %q has claimed %d fen for account %q; payout %s is %d fen for %q at %q",
				p.id, user, c.amount, account, pay.id, pay.amount, pay.user, pay.account)
		}
	}
	charge, refund := j.snapshot.payments["c"+p.id+"0000"], j.snapshot.payments["r"+p.id+"0000"]
	switch {
	case charge == nil:
		j.open("packet %s has no charge", p.id)
	case charge.amount != p.total || charge.account != p.sender:
		j.wrong("packet %s: charge of %d fen from %q, total %d from %q", p.id, charge.amount, charge.account, p.total, p.sender)
	}
	if p.status != "funding" && p.status != "rejected" && len(j.moved["c"+p.id+"0000"]) == 0 {
		j.wrong("packet %s is %s, and nothing was charged", p.id, p.status)
	}
	switch p.status {
	case "rejected":
		j.rejected(p, refund)
		return
	case "closed":
	case "closing":
		if refund == nil || refund.status != "failed" && refund.status != "returned" {
			j.open("packet %s is still closing", p.id)
		}
	default:
		j.open("packet %s is still %s", p.id, p.status)
		return
	}
	left := p.total - claimed
	if p.remainder.Valid && p.remainder.Int64 != left {
		j.wrong("packet %s: %d of %d fen are claimed, and the remainder is %d", p.id, claimed, p.total, p.remainder.Int64)
	}
	switch {
	case left == 0 && refund != nil:
		j.wrong("packet %s: nothing is left, and %d fen are refunded", p.id, refund.amount)
	case left > 0 && refund == nil:
		j.open("packet %s: %d fen are left, and there is no refund", p.id, left)
	case left > 0 && (refund.amount != left || refund.account != p.sender):
		j.wrong("packet %s: %d fen are left of %q; the refund is %d fen to %q", p.id, left, p.sender, refund.amount, refund.account)
	}
}

// payment checks that the status agrees with what the provider did, over all order numbers of the
// payment.
func (j *judgement) payment(p *paymentRow) {
	of := j.snapshot.packets[p.packet]
	payer := of != nil && of.payer && p.kind == "c"
	if of == nil || p.kind == "h" {
		j.wrong("payment %s belongs to no packet, or honours a share conflict", p.id)
	}
	moved, back := len(j.moved[p.id]), len(j.back[p.id])
	if moved > 1 {
		j.doubled[p.id] = true
		j.wrong("payment %s of %d fen to or from %q moved money %d times", p.id, p.amount, p.account, moved)
	}
	unpaid := func() {
		if p.kind == "p" {
			j.lost[p.packet+" "+p.user] = true
		}
	}
	switch v := j.verdicts[p.orderNo]; p.status {
	case "paid":
		switch {
		case moved == 0 || back > 0 && suffix(p.account) != "~returned":
			unpaid()
			j.wrong("payment %s is called paid; the provider moved it %d times and returned it %d times", p.id, moved, back)
		case back > 0:
			j.open("payment %s is called paid, and was returned", p.id)
		}
	case "failed":
		neverSent := p.kind == "c" && p.orderNo == "" // its packet expired before the charge was sent
		byAccount := suffix(p.account) == "~declined" || suffix(p.account) == "~frozen" || suffix(p.account) == "~broke" && p.kind == "c"
		missed := v.Code == "OVERDUE_CLOSE" && !confirms(p)
		if payer && moved > 0 {
			j.open("payment %s moved after its close, and is called failed", p.id)
			return
		}
		closed := payer && (v.Code == "order_closed" || v.Status == "answer 404")
		if moved > 0 || !neverSent && !closed && (v.Status != "declined" || !byAccount && !missed && v.Code != "declined_by_rule") {
			unpaid()
			j.wrong("payment %s to or from %q is called failed; it moved %d times, and the provider reports %+v", p.id, p.account, moved, v)
		}
	case "returned":
		if moved != 1 || back != 1 || suffix(p.account) != "~returned" {
			j.wrong("payment %s to %q is called returned; it moved %d times and was returned %d times", p.id, p.account, moved, back)
		}
	case "awaiting_recipient":
		if moved > 0 || v.Status != "awaiting_confirmation" || confirms(p) {
			j.open("payment %s of %q waits for its recipient; it moved %d times, and the provider reports %+v", p.id, p.account, moved, v)
		}
	case "pending", "sending", "unknown", "awaiting_payer":
		unpaid()
		j.open("payment %s of %d fen to or from %q is still %s; the provider reports %+v", p.id, p.amount, p.account, p.status, v)
	default:
		j.wrong("payment %s is %s, which needs staff", p.id, p.status)
	}
}

// confirms reports whether the account of a waiting payment confirms in the end: all do but every other
// recipient of the suffix.
func confirms(p *paymentRow) bool {
	return p.kind != "p" || p.share%2 == 0 || suffix(p.account) != "~confirm"
}

// ledger checks that no account of a packet is ever negative, suspense is empty, and the provider's
// movements equal the ledger's balance. Charges are not returned: no sender of the load is
// ~returned.
func (j *judgement) ledger() {
	with := map[string]int64{} // packet -> net fen received from the provider
	for _, m := range j.snapshot.movements {
		o, err := readOrder(m.OrderNo)
		if err != nil {
			continue
		}
		amount := -m.Amount // paid or refunded
		if m.Op == "charge" || m.Op == "return" {
			amount = m.Amount
		}
		with[o.packet] += amount
	}
	balances := map[string]map[string]int64{}
	for _, p := range j.snapshot.postings {
		of := balances[p.packet]
		if of == nil {
			of = map[string]int64{}
			balances[p.packet] = of
		}
		of[p.debit] -= p.amount
		of[p.credit] += p.amount
		for _, account := range []string{"holding", "owed", "refunding", "outside"} {
			if of[account] < 0 {
				j.wrong("ledger of packet %s: %s is %d after a transfer %q", p.packet, account, of[account], p.kind)
			}
		}
	}
	for id := range j.snapshot.packets {
		of := balances[id]
		sum := int64(0)
		for _, balance := range of {
			sum += balance
		}
		if sum != 0 || of["suspense"] != 0 || of["house"] != 0 || of["outside"] != 0 {
			j.wrong("ledger of packet %s: %v", id, of)
		}
		if -of["provider"] != with[id] {
			j.open("ledger of packet %s: %d fen are with us; the provider moved %d", id, -of["provider"], with[id])
		}
	}
}

// leftovers checks that no work waits and no break was found.
func (j *judgement) leftovers() {
	if j.snapshot.outbox > 0 {
		j.open("%d rows are in the outbox", j.snapshot.outbox)
	}
	if j.snapshot.waiting > 0 {
		j.wrong("%d hand-offs are in quarantine", j.snapshot.waiting)
	}
	for _, kind := range slices.Sorted(maps.Keys(j.snapshot.breaks)) {
		if kind != "contradiction" && kind != "forgotten" { // the fault rules cause these
			j.wrong("%d breaks of kind %s", j.snapshot.breaks[kind], kind)
		}
	}
}
