package payout

import (
	"slices"
	"strings"
	"testing"
	"time"

	"hongbao/internal/money"
)

// folio is one packet's whole ledger, as the store reads it.
type folio struct {
	packet    LedgerPacket
	transfers []StoredTransfer
	payments  []LedgerPayment
}

const booksID = "00000000000000000001"

var booksAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func (b *folio) post(kind TransferKind, orderNo string, amount money.Fen) {
	p := NewTransfer(kind, orderNo, amount)
	b.transfers = append(b.transfers, StoredTransfer{ID: int64(len(b.transfers) + 1), PacketID: booksID, Transfer: p,
		Reference: p.Reference()})
}

func (b *folio) add(kind Kind, n int, amount money.Fen, status Status, attempts ...LedgerAttempt) *LedgerPayment {
	p := LedgerPayment{ID: ID(kind, booksID, n), PacketID: booksID, Kind: kind, UserID: string(rune('a' + n)), Amount: amount, Status: status,
		Attempts: attempts}
	if !status.Open() {
		p.SettledAt = booksAt
	}
	if kind == KindPayout {
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
	order := func(k Kind, n, attempt int) string { return OrderNo(ID(k, booksID, n), attempt) }
	booked := func(o string) LedgerAttempt { return LedgerAttempt{OrderNo: o, Booked: true} }
	back := func(o string) LedgerAttempt { return LedgerAttempt{OrderNo: o, Booked: true, ReturnBooked: true} }
	none := func(o string) LedgerAttempt { return LedgerAttempt{OrderNo: o} }

	b.post(PostCharge, order(KindCharge, 0, 1), 1000)
	b.add(KindCharge, 0, 1000, StatusPaid, booked(order(KindCharge, 0, 1)))
	for n := range 8 {
		b.post(PostClaim, ID(KindPayout, booksID, n), 100)
	}
	b.post(PostClose, ID(KindRefund, booksID, 0), 200)
	pay := func(n, attempt int) string { return order(KindPayout, n, attempt) }
	b.post(PostPaid, pay(0, 1), 100)
	b.add(KindPayout, 0, 100, StatusPaid, booked(pay(0, 1)))
	b.add(KindPayout, 1, 100, StatusFailed, none(pay(1, 1)))
	b.post(PostPaid, pay(2, 1), 100)
	b.post(PostReturned, pay(2, 1), 100)
	b.add(KindPayout, 2, 100, StatusReturned, back(pay(2, 1)))
	b.post(PostPaid, pay(3, 1), 100)
	b.post(PostReturned, pay(3, 1), 100)
	b.post(PostPaid, pay(3, 2), 100)
	b.add(KindPayout, 3, 100, StatusPaid, back(pay(3, 1)), booked(pay(3, 2)))
	b.post(PostCancel, ID(KindPayout, booksID, 4), 100)
	b.add(KindPayout, 4, 100, StatusCancelled, none(pay(4, 1))).CancelRefund = 100
	b.post(PostRefunded, order(KindRefund, 5, 1), 100)
	b.add(KindRefund, 5, 100, StatusPaid, booked(order(KindRefund, 5, 1)))
	b.post(PostPaidOutside, ID(KindPayout, booksID, 5), 100)
	b.add(KindPayout, 5, 100, StatusPaidOutside, none(pay(5, 1)))
	b.post(PostPaid, pay(6, 2), 100)
	b.post(PostSecondSuccess, pay(6, 1), 100)
	b.add(KindPayout, 6, 100, StatusPaid, booked(pay(6, 1)), booked(pay(6, 2)))
	b.add(KindPayout, 7, 100, StatusUnknown, none(pay(7, 1)))
	b.post(PostRefunded, order(KindRefund, 0, 1), 200)
	b.add(KindRefund, 0, 200, StatusPaid, booked(order(KindRefund, 0, 1)))
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
	find := func(b *folio, kind TransferKind) *StoredTransfer {
		for i := range b.transfers {
			if b.transfers[i].Kind == kind {
				return &b.transfers[i]
			}
		}
		t.Fatalf("no %s", kind)
		return nil
	}
	remove := func(b *folio, kind TransferKind) {
		id := find(b, kind).ID
		b.transfers = slices.DeleteFunc(b.transfers, func(t StoredTransfer) bool { return t.ID == id })
	}
	payment := func(b *folio, status Status) *LedgerPayment {
		for i := range b.payments {
			if b.payments[i].Status == status && b.payments[i].Kind == KindPayout {
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
		{"amount of zero", RuleTransfer, func(b *folio) { find(b, PostPaid).Amount = 0 }},
		{"one account", RuleTransfer, func(b *folio) { x := find(b, PostPaid); x.Credit = x.Debit }},
		{"accounts of another kind", RuleTransfer, func(b *folio) { find(b, PostPaid).Credit = AccountHouse }},
		{"unknown kind", RuleTransfer, func(b *folio) { find(b, PostPaid).Kind = "gift" }},
		{"reference of another", RuleReference, func(b *folio) { find(b, PostPaid).Reference = "x:paid" }},
		{"posted twice", RuleReference, func(b *folio) { b.transfers = append(b.transfers, *find(b, PostPaid)) }},
		{"paid before it was owed", RuleNegative, func(b *folio) { slices.Reverse(b.transfers) }},
		{"charged less", RuleTotal, func(b *folio) { find(b, PostCharge).Amount = 999 }},
		{"never charged", RuleTotal, func(b *folio) { remove(b, PostCharge) }},
		{"shares are not the total", RuleTotal, func(b *folio) { b.packet.ShareSum = 999 }},
		{"a share too few", RuleTotal, func(b *folio) { b.packet.ShareRows = 9 }},
		{"rejected with money", RuleStatus, func(b *folio) { b.packet.Status = "rejected" }},
		{"open without shares", RuleStatus, func(b *folio) { b.packet.Status, b.packet.ShareRows = "open", 0 }},
		{"held after the books were closed", RuleStatus, func(b *folio) { remove(b, PostClose) }},
		{"claim not posted", RuleClaims, func(b *folio) { remove(b, PostClaim) }},
		{"claim not recorded", RuleClaims, func(b *folio) { b.packet.RecordedClaims = 7 }},
		{"share of another", RuleClaims, func(b *folio) { payment(b, StatusPaid).ShareUser = "z" }},
		{"share of another amount", RuleClaims, func(b *folio) { payment(b, StatusPaid).ShareAmount = 99 }},
		{"remainder too small", RuleRemainder, func(b *folio) { b.packet.Remainder = 199 }},
		{"remainder posted twice as high", RuleRemainder, func(b *folio) { find(b, PostClose).Amount = 400 }},
		{"remainder while books are open", RuleRemainder, func(b *folio) { b.packet.BooksClosedAt = time.Time{} }},
		{"paid without transfer", RulePayment, func(b *folio) { remove(b, PostPaid) }},
		{"transfer without paid", RulePayment, func(b *folio) { payment(b, StatusPaid).Status = StatusFailed }},
		{"returned without transfer", RulePayment, func(b *folio) { remove(b, PostReturned) }},
		{"cancelled without transfer", RulePayment, func(b *folio) { remove(b, PostCancel) }},
		{"cancelled without refund", RulePayment, func(b *folio) { payment(b, StatusCancelled).CancelRefund = 0 }},
		{"refund without cancel", RulePayment, func(b *folio) { payment(b, StatusPaid).CancelRefund = 100 }},
		{"paid outside without transfer", RulePayment, func(b *folio) { remove(b, PostPaidOutside) }},
		{"refunded without transfer", RulePayment, func(b *folio) { remove(b, PostRefunded) }},
		{"another amount", RulePayment, func(b *folio) { find(b, PostPaid).Amount = 99 }},
		{"booked without transfer", RuleAttempt, func(b *folio) { payment(b, StatusFailed).Attempts[0].Booked = true }},
		{"transfer without booked", RuleAttempt, func(b *folio) { payment(b, StatusPaid).Attempts[0].Booked = false }},
		{"return without booked", RuleAttempt, func(b *folio) { payment(b, StatusReturned).Attempts[0].ReturnBooked = false }},
		{"second success without booked", RuleAttempt, func(b *folio) { remove(b, PostSecondSuccess) }},
		{"closed without a time", RuleSettled, func(b *folio) { b.packet.ClosedAt = time.Time{} }},
		{"closed with open books", RuleSettled, func(b *folio) { b.packet.BooksClosedAt = time.Time{} }},
		{"open with closed books", RuleSettled, func(b *folio) { b.packet.Status = "open" }},
		{"paid without a time", RuleSettled, func(b *folio) { payment(b, StatusPaid).SettledAt = time.Time{} }},
		{"unknown with a time", RuleSettled, func(b *folio) { payment(b, StatusUnknown).SettledAt = booksAt }},
		{"unknown order number", RuleUnknown, func(b *folio) { find(b, PostPaid).OrderNo = "x" }},
		{"posted to another packet", RuleUnknown, func(b *folio) { find(b, PostPaid).PacketID = "00000000000000000002" }},
		{"number without an attempt", RuleUnknown, func(b *folio) { payment(b, StatusPaid).Attempts = nil }},
		{"payment of another packet", RuleUnknown, func(b *folio) { payment(b, StatusPaid).ID = ID(KindPayout, "00000000000000000002", 0) }},
	} {
		b := soundBooks()
		tc.tamper(b)
		if rules, _ := b.verify(); !slices.Contains(rules, tc.rule) {
			t.Errorf("%s: found %v, want %s", tc.name, rules, tc.rule)
		}
		caught[tc.rule] = true
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
			b.add(KindCharge, 0, 1000, StatusUnknown)
		}},
		{"funding, charged", func(b *folio) {
			b.packet = LedgerPacket{ID: booksID, Total: 1000, Shares: 10, Status: "funding"}
			b.transfers, b.payments = b.transfers[:1], b.payments[:1]
		}},
		{"rejected", func(b *folio) {
			b.packet = LedgerPacket{ID: booksID, Total: 1000, Shares: 10, Status: "rejected"}
			b.transfers, b.payments = nil, nil
			b.add(KindCharge, 0, 1000, StatusFailed)
		}},
		{"rejected, charged after all, on its way back", func(b *folio) {
			b.packet = LedgerPacket{ID: booksID, Total: 1000, Shares: 10, Status: "rejected"}
			b.transfers, b.payments = b.transfers[:1], b.payments[:1]
			b.post(PostClose, ID(KindRefund, booksID, 0), 1000)
			b.add(KindRefund, 0, 1000, StatusPending)
		}},
		{"charged, closed unopened", func(b *folio) {
			b.packet = LedgerPacket{ID: booksID, Total: 1000, Shares: 10, Status: "closing", BooksClosedAt: booksAt, Remainder: 1000}
			b.transfers, b.payments = b.transfers[:1], b.payments[:1]
			b.post(PostClose, ID(KindRefund, booksID, 0), 1000)
			b.add(KindRefund, 0, 1000, StatusPending)
		}},
		{"a share conflict that was not honoured", func(b *folio) { b.add(KindHonour, 1, 77, StatusFailed) }},
		{"a share conflict that the house honoured", func(b *folio) {
			id := ID(KindHonour, booksID, 1)
			b.post(PostHonoured, id, 77)
			b.post(PostPaid, OrderNo(id, 1), 77)
			b.add(KindHonour, 1, 77, StatusPaid, LedgerAttempt{OrderNo: OrderNo(id, 1), Booked: true})
		}},
		{"a refund made by other means", func(b *folio) {
			b.transfers = b.transfers[:len(b.transfers)-1]
			b.payments = b.payments[:len(b.payments)-1]
			id := ID(KindRefund, booksID, 0)
			b.post(PostRefundPaidOutside, id, 200)
			b.add(KindRefund, 0, 200, StatusPaidOutside, LedgerAttempt{OrderNo: OrderNo(id, 1)})
		}},
	} {
		b := soundBooks()
		tc.live(b)
		if rules, _ := b.verify(); len(rules) != 0 {
			t.Errorf("%s: breaks %v", tc.name, rules)
		}
	}
}
