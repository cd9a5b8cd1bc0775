package staff

import (
	"slices"
	"strings"
	"testing"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
)

// folio is one packet's whole ledger, as the store reads it.
type folio struct {
	packet    LedgerPacket
	transfers []StoredTransfer
	payments  []LedgerPayment
}

const booksID = "00000000000000000001"

var booksAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func (b *folio) post(kind payout.TransferKind, orderNo string, amount money.Fen) {
	p := payout.NewTransfer(kind, orderNo, amount)
	b.transfers = append(b.transfers, StoredTransfer{ID: int64(len(b.transfers) + 1), PacketID: booksID, Transfer: p,
		Reference: p.Reference()})
}

func (b *folio) add(kind payout.Kind, n int, amount money.Fen, status payout.Status, attempts ...LedgerAttempt) *LedgerPayment {
	p := LedgerPayment{ID: payout.ID(kind, booksID, n), PacketID: booksID, Kind: kind, UserID: string(rune('a' + n)), Amount: amount,
		Status:   status,
		Attempts: attempts}
	if !status.Open() {
		p.SettledAt = booksAt
	}
	if kind == payout.KindPayout {
		p.ShareUser, p.ShareAmount = p.UserID, p.Amount
	}
	b.payments = append(b.payments, p)
	return &b.payments[len(b.payments)-1]
}

// soundBooks: a packet of ten shares of 100: paid, failed, returned, paid again after a return,
// cancelled and refunded, paid outside, paid twice, unknown, and two unclaimed and refunded.
func soundBooks() *folio {
	b := &folio{packet: LedgerPacket{ID: booksID, Total: 1000, Shares: 10, Status: "closed", BooksClosedAt: booksAt, ClosedAt: booksAt,
		Remainder:      200,
		RecordedClaims: 8, ShareRows: 10, ShareSum: 1000, ClaimedCount: 8, ClaimedAmount: 800, ClaimRows: 8}}
	order := func(k payout.Kind, n, attempt int) string { return payout.OrderNo(payout.ID(k, booksID, n), attempt) }
	booked := func(o string) LedgerAttempt { return LedgerAttempt{OrderNo: o, Booked: true} }
	back := func(o string) LedgerAttempt { return LedgerAttempt{OrderNo: o, Booked: true, ReturnBooked: true} }
	none := func(o string) LedgerAttempt { return LedgerAttempt{OrderNo: o} }

	b.post(payout.PostCharge, order(payout.KindCharge, 0, 1), 1000)
	b.add(payout.KindCharge, 0, 1000, payout.StatusPaid, booked(order(payout.KindCharge, 0, 1)))
	for n := range 8 {
		b.post(payout.PostClaim, payout.ID(payout.KindPayout, booksID, n), 100)
	}
	b.post(payout.PostClose, payout.ID(payout.KindRefund, booksID, 0), 200)
	pay := func(n, attempt int) string { return order(payout.KindPayout, n, attempt) }
	b.post(payout.PostPaid, pay(0, 1), 100)
	b.add(payout.KindPayout, 0, 100, payout.StatusPaid, booked(pay(0, 1)))
	b.add(payout.KindPayout, 1, 100, payout.StatusFailed, none(pay(1, 1)))
	b.post(payout.PostPaid, pay(2, 1), 100)
	b.post(payout.PostReturned, pay(2, 1), 100)
	b.add(payout.KindPayout, 2, 100, payout.StatusReturned, back(pay(2, 1)))
	b.post(payout.PostPaid, pay(3, 1), 100)
	b.post(payout.PostReturned, pay(3, 1), 100)
	b.post(payout.PostPaid, pay(3, 2), 100)
	b.add(payout.KindPayout, 3, 100, payout.StatusPaid, back(pay(3, 1)), booked(pay(3, 2)))
	b.post(payout.PostCancel, payout.ID(payout.KindPayout, booksID, 4), 100)
	b.add(payout.KindPayout, 4, 100, payout.StatusCancelled, none(pay(4, 1))).CancelRefund = 100
	b.post(payout.PostRefunded, order(payout.KindRefund, 5, 1), 100)
	b.add(payout.KindRefund, 5, 100, payout.StatusPaid, booked(order(payout.KindRefund, 5, 1)))
	b.post(payout.PostPaidOutside, payout.ID(payout.KindPayout, booksID, 5), 100)
	b.add(payout.KindPayout, 5, 100, payout.StatusPaidOutside, none(pay(5, 1)))
	b.post(payout.PostPaid, pay(6, 2), 100)
	b.post(payout.PostSecondSuccess, pay(6, 1), 100)
	b.add(payout.KindPayout, 6, 100, payout.StatusPaid, booked(pay(6, 1)), booked(pay(6, 2)))
	b.add(payout.KindPayout, 7, 100, payout.StatusUnknown, none(pay(7, 1)))
	b.post(payout.PostRefunded, order(payout.KindRefund, 0, 1), 200)
	b.add(payout.KindRefund, 0, 200, payout.StatusPaid, booked(order(payout.KindRefund, 0, 1)))
	return b
}

// verify does what the store does page by page.
func (b *folio) verify() (rules []Rule, suspense money.Fen) {
	v := NewPacketVerifier(b.packet)
	for _, t := range b.transfers {
		v.Add(t)
	}
	found := v.End()
	for _, p := range b.payments {
		for _, t := range b.transfers {
			if strings.HasPrefix(t.OrderNo, p.ID) {
				p.Transfers = append(p.Transfers, t)
			}
		}
		found = append(found, VerifyPayment(p)...)
	}
	for _, f := range found {
		if !slices.Contains(rules, f.Rule) {
			rules = append(rules, f.Rule)
		}
	}
	return rules, v.Suspense()
}

// TestR12_VerifierCatches breaks a sound ledger in every way that has a rule.
func TestR12_VerifierCatches(t *testing.T) {
	if rules, suspense := soundBooks().verify(); len(rules) != 0 || suspense != 100 {
		t.Fatalf("a sound ledger breaks %v, suspense %d", rules, suspense)
	}
	caught := map[Rule]bool{}
	find := func(b *folio, kind payout.TransferKind) *StoredTransfer {
		for i := range b.transfers {
			if b.transfers[i].Kind == kind {
				return &b.transfers[i]
			}
		}
		t.Fatalf("no %s", kind)
		return nil
	}
	remove := func(b *folio, kind payout.TransferKind) {
		id := find(b, kind).ID
		b.transfers = slices.DeleteFunc(b.transfers, func(t StoredTransfer) bool { return t.ID == id })
	}
	payment := func(b *folio, status payout.Status) *LedgerPayment {
		for i := range b.payments {
			if b.payments[i].Status == status && b.payments[i].Kind == payout.KindPayout {
				return &b.payments[i]
			}
		}
		t.Fatalf("no payout is %s", status)
		return nil
	}
	for _, tc := range []struct {
		name   string
		rule   Rule
		tamper func(b *folio)
	}{
		{"amount of zero", RuleTransfer, func(b *folio) { find(b, payout.PostPaid).Amount = 0 }},
		{"one account", RuleTransfer, func(b *folio) { x := find(b, payout.PostPaid); x.Credit = x.Debit }},
		{"accounts of another kind", RuleTransfer, func(b *folio) { find(b, payout.PostPaid).Credit = payout.AccountHouse }},
		{"unknown kind", RuleTransfer, func(b *folio) { find(b, payout.PostPaid).Kind = "gift" }},
		{"reference of another", RuleReference, func(b *folio) { find(b, payout.PostPaid).Reference = "x:paid" }},
		{"posted twice", RuleReference, func(b *folio) { b.transfers = append(b.transfers, *find(b, payout.PostPaid)) }},
		{"paid before it was owed", RuleNegative, func(b *folio) { slices.Reverse(b.transfers) }},
		{"charged less", RuleTotal, func(b *folio) { find(b, payout.PostCharge).Amount = 999 }},
		{"never charged", RuleTotal, func(b *folio) { remove(b, payout.PostCharge) }},
		{"shares are not the total", RuleTotal, func(b *folio) { b.packet.ShareSum = 999 }},
		{"a share too few", RuleTotal, func(b *folio) { b.packet.ShareRows = 9 }},
		{"rejected with money", RuleStatus, func(b *folio) { b.packet.Status = "rejected" }},
		{"open without shares", RuleStatus, func(b *folio) { b.packet.Status, b.packet.ShareRows = "open", 0 }},
		{"held after the books were closed", RuleStatus, func(b *folio) { remove(b, payout.PostClose) }},
		{"claim not posted", RuleClaims, func(b *folio) { remove(b, payout.PostClaim) }},
		{"claim not recorded", RuleClaims, func(b *folio) { b.packet.RecordedClaims = 7 }},
		{"share of another", RuleClaims, func(b *folio) { payment(b, payout.StatusPaid).ShareUser = "z" }},
		{"share of another amount", RuleClaims, func(b *folio) { payment(b, payout.StatusPaid).ShareAmount = 99 }},
		{"remainder too small", RuleRemainder, func(b *folio) { b.packet.Remainder = 199 }},
		{"remainder posted twice as high", RuleRemainder, func(b *folio) { find(b, payout.PostClose).Amount = 400 }},
		{"remainder while books are open", RuleRemainder, func(b *folio) { b.packet.BooksClosedAt = time.Time{} }},
		{"paid without transfer", RulePayment, func(b *folio) { remove(b, payout.PostPaid) }},
		{"transfer without paid", RulePayment, func(b *folio) { payment(b, payout.StatusPaid).Status = payout.StatusFailed }},
		{"returned without transfer", RulePayment, func(b *folio) { remove(b, payout.PostReturned) }},
		{"cancelled without transfer", RulePayment, func(b *folio) { remove(b, payout.PostCancel) }},
		{"cancelled without refund", RulePayment, func(b *folio) { payment(b, payout.StatusCancelled).CancelRefund = 0 }},
		{"refund without cancel", RulePayment, func(b *folio) { payment(b, payout.StatusPaid).CancelRefund = 100 }},
		{"paid outside without transfer", RulePayment, func(b *folio) { remove(b, payout.PostPaidOutside) }},
		{"refunded without transfer", RulePayment, func(b *folio) { remove(b, payout.PostRefunded) }},
		{"another amount", RulePayment, func(b *folio) { find(b, payout.PostPaid).Amount = 99 }},
		{"booked without transfer", RuleAttempt, func(b *folio) { payment(b, payout.StatusFailed).Attempts[0].Booked = true }},
		{"transfer without booked", RuleAttempt, func(b *folio) { payment(b, payout.StatusPaid).Attempts[0].Booked = false }},
		{"return without booked", RuleAttempt, func(b *folio) { payment(b, payout.StatusReturned).Attempts[0].ReturnBooked = false }},
		{"second success without booked", RuleAttempt, func(b *folio) { remove(b, payout.PostSecondSuccess) }},
		{"closed without a time", RuleSettled, func(b *folio) { b.packet.ClosedAt = time.Time{} }},
		{"closed with open books", RuleSettled, func(b *folio) { b.packet.BooksClosedAt = time.Time{} }},
		{"open with closed books", RuleSettled, func(b *folio) { b.packet.Status = "open" }},
		{"paid without a time", RuleSettled, func(b *folio) { payment(b, payout.StatusPaid).SettledAt = time.Time{} }},
		{"unknown with a time", RuleSettled, func(b *folio) { payment(b, payout.StatusUnknown).SettledAt = booksAt }},
		{"unknown order number", RuleUnknown, func(b *folio) { find(b, payout.PostPaid).OrderNo = "x" }},
		{"posted to another packet", RuleUnknown, func(b *folio) { find(b, payout.PostPaid).PacketID = "00000000000000000002" }},
		{"number without an attempt", RuleUnknown, func(b *folio) { payment(b, payout.StatusPaid).Attempts = nil }},
		{"payment of another packet", RuleUnknown, func(b *folio) {
			payment(b, payout.StatusPaid).ID = payout.ID(payout.KindPayout, "00000000000000000002", 0)
		}},
	} {
		b := soundBooks()
		tc.tamper(b)
		if rules, _ := b.verify(); !slices.Contains(rules, tc.rule) {
			t.Errorf("%s: found %v, want %s", tc.name, rules, tc.rule)
		}
		caught[tc.rule] = true
	}
	sound := LedgerBalance{App: "shop", Available: 70, Sum: 70, Last: 70, Reserved: 30, Open: 30}
	if found := VerifyBalance(sound); len(found) != 0 {
		t.Errorf("a sound balance: %v", found)
	}
	for _, tamper := range []func(b *LedgerBalance){func(b *LedgerBalance) { b.Available = 71 }, func(b *LedgerBalance) { b.Reserved = 0 },
		func(b *LedgerBalance) { b.Last = 69 }, func(b *LedgerBalance) { b.Unmatched = []string{"m1: no approved movement"} }} {
		b := sound
		tamper(&b)
		found := VerifyBalance(b)
		if len(found) != 1 || found[0].Subject != "shop" {
			t.Errorf("%+v: found %v", b, found)
			continue
		}
		caught[found[0].Rule] = true
	}
	for _, rule := range Rules {
		if !caught[rule] {
			t.Errorf("nothing breaks rule %s", rule)
		}
	}
}

// TestVerifierOfUnfinished: a packet is sound at every stage of its life.
func TestVerifierOfUnfinished(t *testing.T) {
	for _, tc := range []struct {
		name string
		live func(b *folio)
	}{
		{"funding", func(b *folio) {
			b.packet = LedgerPacket{ID: booksID, Total: 1000, Shares: 10, Status: "funding"}
			b.transfers, b.payments = nil, nil
			b.add(payout.KindCharge, 0, 1000, payout.StatusUnknown)
		}},
		{"funding, charged", func(b *folio) {
			b.packet = LedgerPacket{ID: booksID, Total: 1000, Shares: 10, Status: "funding"}
			b.transfers, b.payments = b.transfers[:1], b.payments[:1]
		}},
		{"rejected", func(b *folio) {
			b.packet = LedgerPacket{ID: booksID, Total: 1000, Shares: 10, Status: "rejected"}
			b.transfers, b.payments = nil, nil
			b.add(payout.KindCharge, 0, 1000, payout.StatusFailed)
		}},
		{"rejected, charged after all, on its way back", func(b *folio) {
			b.packet = LedgerPacket{ID: booksID, Total: 1000, Shares: 10, Status: "rejected"}
			b.transfers, b.payments = b.transfers[:1], b.payments[:1]
			b.post(payout.PostClose, payout.ID(payout.KindRefund, booksID, 0), 1000)
			b.add(payout.KindRefund, 0, 1000, payout.StatusPending)
		}},
		{"charged, closed unopened", func(b *folio) {
			b.packet = LedgerPacket{ID: booksID, Total: 1000, Shares: 10, Status: "closing", BooksClosedAt: booksAt, Remainder: 1000}
			b.transfers, b.payments = b.transfers[:1], b.payments[:1]
			b.post(payout.PostClose, payout.ID(payout.KindRefund, booksID, 0), 1000)
			b.add(payout.KindRefund, 0, 1000, payout.StatusPending)
		}},
		{"a share conflict that was not honoured", func(b *folio) { b.add(payout.KindHonour, 1, 77, payout.StatusFailed) }},
		{"a share conflict that the house honoured", func(b *folio) {
			id := payout.ID(payout.KindHonour, booksID, 1)
			b.post(payout.PostHonoured, id, 77)
			b.post(payout.PostPaid, payout.OrderNo(id, 1), 77)
			b.add(payout.KindHonour, 1, 77, payout.StatusPaid, LedgerAttempt{OrderNo: payout.OrderNo(id, 1), Booked: true})
		}},
		{"a refund made by other means", func(b *folio) {
			b.transfers = b.transfers[:len(b.transfers)-1]
			b.payments = b.payments[:len(b.payments)-1]
			id := payout.ID(payout.KindRefund, booksID, 0)
			b.post(payout.PostRefundPaidOutside, id, 200)
			b.add(payout.KindRefund, 0, 200, payout.StatusPaidOutside, LedgerAttempt{OrderNo: payout.OrderNo(id, 1)})
		}},
	} {
		b := soundBooks()
		tc.live(b)
		if rules, _ := b.verify(); len(rules) != 0 {
			t.Errorf("%s: breaks %v", tc.name, rules)
		}
	}
}
