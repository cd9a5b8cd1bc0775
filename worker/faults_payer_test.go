package worker_test

import (
	"net/http"
	"sync/atomic"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// unhurriedPayer is longer than any row; hurriedPayer is when an unpaid charge is closed, long after it was sent.
const (
	unhurriedPayer = 600
	hurriedPayer   = 25
)

const payersCharge = "send awaiting_payment; ask awaiting_payment*; "

// payerRows: a charge that its sender has to pay in an app.
var payerRows = []faultRow{
	{what: "paid in time", ops: charges, within: unhurriedPayer, then: (*scene).payWhenAsked,
		calls: payersCharge + "ask succeeded+", status: payout.StatusPaid, money: "once"},
	{what: "paid in time, without a notification", ops: charges, within: hurriedPayer, rules: []rule{fault("", "notify_never", 0)},
		then:  (*scene).payWhenAsked,
		calls: payersCharge + "close order_paid*; ask succeeded+", status: payout.StatusPaid, money: "once"},
	{what: "the first answer has nothing to pay with", ops: charges, within: unhurriedPayer,
		rules: []rule{fault("", "reply_without_action", 1)},
		then: func(s *scene) {
			s.awaitCalls("send awaiting_payment; ask awaiting_payment*; send awaiting_payment; ...")
			s.pay()
		},
		calls:  "send awaiting_payment; ask awaiting_payment*; send awaiting_payment; ask awaiting_payment*; ask succeeded+",
		status: payout.StatusPaid, money: "once"},
	{what: "no answer to the send", ops: charges, within: unhurriedPayer, rules: []rule{fault("", "timeout_after", 1)},
		then: func(s *scene) {
			s.awaitCalls("send silence; ask awaiting_payment+; send awaiting_payment; ...")
			s.pay()
		},
		calls:  "send silence; ask awaiting_payment+; send awaiting_payment; ask awaiting_payment*; ask succeeded+",
		status: payout.StatusPaid, money: "once"},
	{what: "not paid until the deadline", ops: charges, within: hurriedPayer,
		calls: payersCharge + "close declined; ask declined+", status: payout.StatusFailed, money: "never",
		code: payout.FailureFundingExpired, ends: packet.StatusRejected},
	{what: "withdrawn before it is paid", ops: charges, within: unhurriedPayer,
		then:  func(s *scene) { s.await(payout.StatusAwaitingPayer); s.withdraw() },
		calls: payersCharge + "close declined; ask declined+", status: payout.StatusFailed, money: "never",
		code: payout.FailureFundingCancelled, ends: packet.StatusRejected},
	{what: "withdrawn, the answer to the close is lost", ops: charges, within: unhurriedPayer, rules: []rule{fault("", "close_lost", 1)},
		then:  func(s *scene) { s.await(payout.StatusAwaitingPayer); s.withdraw() },
		calls: payersCharge + "close silence; close declined; ask declined+", status: payout.StatusFailed, money: "never",
		code: payout.FailureFundingCancelled, ends: packet.StatusRejected},
	{what: "paid, and withdrawn before that is known", ops: charges, within: unhurriedPayer, rules: []rule{fault("", "notify_never", 0)},
		then:  func(s *scene) { s.await(payout.StatusAwaitingPayer); s.pay(); s.withdraw() },
		calls: payersCharge + "close order_paid*; ask succeeded+", status: payout.StatusPaid, money: "once", ends: packet.StatusClosed},
	{what: "paid with a coupon, where coupons are refused", ops: charges, within: unhurriedPayer, rules: []rule{fault("", "coupon", 1)},
		then:  (*scene).payWhenAsked,
		calls: payersCharge + "ask succeeded+", status: payout.StatusPaid, money: "once", ends: packet.StatusClosed},
	{what: "paid twice", ops: charges, within: unhurriedPayer, rules: []rule{fault("", "paid_twice", 1)},
		then:  func(s *scene) { s.payWhenAsked(); s.awaitBreak("moved_twice") },
		calls: payersCharge + "ask succeeded+", status: payout.StatusPaid, money: "twice", breaks: "moved_twice", adrift: true},
	{what: "paid after the close: refunded in full", ops: charges, within: unhurriedPayer, rules: []rule{fault("", "pay_after_close", 1)},
		set: shownOnceRejected,
		then: func(s *scene) {
			s.await(payout.StatusAwaitingPayer)
			s.withdraw()
			s.awaitPacket(packet.StatusRejected)
			n := s.heldNotice()
			for n.Type != "order.succeeded" {
				n = s.heldNotice()
			}
			s.deliver(n, http.StatusNoContent)
		},
		calls: payersCharge + "close declined; ask declined+; ask succeeded+", status: payout.StatusPaid, money: "once",
		ends: packet.StatusRejected},
}

// shownOnceRejected hides a payment after the close until the packet is rejected: else it may be recalled.
func shownOnceRejected(s *scene) {
	keepNotices(s)
	var closed atomic.Pointer[reply]
	s.line.between = func(x *exchange, forward func() reply) reply {
		a := forward()
		switch {
		case x.verb == "close":
			closed.Store(&a)
		case x.Kind == payout.KindCharge && a.says() == "succeeded" && closed.Load() != nil:
			if rec, err := s.r.store.Packet(s.Context(), s.packet.ID); err != nil || rec.Stored != packet.StatusRejected {
				return *closed.Load()
			}
		}
		return a
	}
}

// payWhenAsked pays once the charge waits for its sender.
func (s *scene) payWhenAsked() {
	s.await(payout.StatusAwaitingPayer)
	s.pay()
}
