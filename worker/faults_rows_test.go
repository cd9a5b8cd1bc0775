package worker_test

import (
	"bytes"
	"fmt"
	"net/http"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/test/wait"
)

// sendRows: faults of the provider on the send.
var sendRows = []faultRow{
	{what: "error before the money moves", ops: everyOp, rules: []rule{fault("", "error_before", 1)},
		calls: "send internal; ask order_not_found; send succeeded", status: payout.StatusPaid, money: "once"},
	{what: "error before, twice", ops: everyOp, rules: []rule{fault("", "error_before", 2)},
		calls: "send internal; ask order_not_found; send internal; ask order_not_found; send succeeded", status: payout.StatusPaid,
		money: "once"},
	{what: "error before, five times", ops: transfers, rules: []rule{fault("", "error_before", 5)},
		calls: "send internal; ask order_not_found; send internal; ask order_not_found; send internal; ask order_not_found; send internal; " +
			"ask order_not_found; send internal; ask order_not_found; send succeeded",
		status: payout.StatusPaid, money: "once"},
	{what: "error after the money moved", ops: everyOp, rules: []rule{fault("", "error_after", 1)},
		calls: "send internal; ask succeeded", status: payout.StatusPaid, money: "once"},
	{what: "no answer, nothing moved", ops: everyOp, rules: []rule{fault("", "timeout_before", 1)},
		calls: "send silence; ask order_not_found; send succeeded", status: payout.StatusPaid, money: "once"},
	{what: "no answer, nothing moved, twice", ops: transfers, rules: []rule{fault("", "timeout_before", 2)},
		calls: "send silence; ask order_not_found; send silence; ask order_not_found; send succeeded", status: payout.StatusPaid, money: "once"},
	{what: "no answer, the money moved", ops: everyOp, rules: []rule{fault("", "timeout_after", 1)},
		calls: "send silence; ask succeeded", status: payout.StatusPaid, money: "once"},
	{what: "rate limit", ops: everyOp, rules: []rule{fault("", "rate_limit", 1)},
		calls: "send rate_limited; send succeeded", status: payout.StatusPaid, money: "once"},
	{what: "rate limit, three times", ops: transfers, rules: []rule{fault("", "rate_limit", 3)},
		calls: "send rate_limited; send rate_limited; send rate_limited; send succeeded", status: payout.StatusPaid, money: "once"},
	{what: "our balance is too low", ops: everyOp, rules: []rule{fault("", "low_balance", 1)},
		calls: "send low_balance; send succeeded", status: payout.StatusPaid, money: "once"},
	{what: "our balance is too low, three times", ops: transfers, rules: []rule{fault("", "low_balance", 3)},
		calls: "send low_balance; send low_balance; send low_balance; send succeeded", status: payout.StatusPaid, money: "once"},
	{what: "refused for good", ops: everyOp, rules: []rule{fault("", "decline", 1)},
		calls: "send declined; ask declined", status: payout.StatusFailed, money: "never", code: "declined_by_rule"},
	{what: "accepted, succeeds later", ops: everyOp, rules: []rule{fault("", "pending", 1)},
		calls: "send processing; ask processing*; ask succeeded+", status: payout.StatusPaid, money: "once"},
	{what: "accepted, shown as processing for ever", ops: everyOp, rules: []rule{fault("", "pending_forever", 0)},
		calls: "send processing; ask processing; ask processing; ask processing+", status: payout.StatusSending, money: "once"},
	{what: "accepted, shown as processing for long, then as it is", ops: everyOp, rules: []rule{fault("", "pending_forever", 0)},
		then: func(s *scene) {
			s.awaitCalls("send processing; ask processing; ask processing+")
			s.line.setRules(s, nil)
		},
		calls: "send processing; ask processing+; ask succeeded+", status: payout.StatusPaid, money: "once"},
	{what: "says refused, though the money moved", ops: everyOp, rules: []rule{fault("", "contradict", 1)},
		calls: "send declined; ask succeeded; ask succeeded", status: payout.StatusPaid, money: "once", breaks: "contradiction"},
	{what: "error before, then no answer after", ops: everyOp, rules: []rule{fault("", "error_before", 1), fault("", "timeout_after", 1)},
		calls: "send internal; ask order_not_found; send silence; ask succeeded", status: payout.StatusPaid, money: "once"},
	{what: "rate limit, low balance, then refused for good", ops: everyOp,
		rules: []rule{fault("", "rate_limit", 1), fault("", "low_balance", 1), fault("", "decline", 1)},
		calls: "send rate_limited; send low_balance; send declined; ask declined", status: payout.StatusFailed, money: "never",
		code: "declined_by_rule"},
}

// queryRows: faults on the query, after the answer to the send was lost.
var queryRows = []faultRow{
	{what: "query fails", ops: everyOp, rules: []rule{fault("", "error_after", 1), fault("query", "error_before", 1)},
		calls: "send internal; ask internal; ask succeeded", status: payout.StatusPaid, money: "once"},
	{what: "query fails three times", ops: transfers, rules: []rule{fault("", "error_after", 1), fault("query", "error_after", 3)},
		calls: "send internal; ask internal; ask internal; ask internal; ask succeeded", status: payout.StatusPaid, money: "once"},
	{what: "query gets no answer", ops: everyOp, rules: []rule{fault("", "error_after", 1), fault("query", "timeout_before", 1)},
		calls: "send internal; ask silence; ask succeeded", status: payout.StatusPaid, money: "once"},
	{what: "query gets no answer, twice", ops: transfers, rules: []rule{fault("", "timeout_after", 1), fault("query", "timeout_after", 2)},
		calls: "send silence; ask silence; ask silence; ask succeeded", status: payout.StatusPaid, money: "once"},
	{what: "query meets a rate limit", ops: everyOp, rules: []rule{fault("", "error_after", 1), fault("query", "rate_limit", 2)},
		calls: "send internal; ask rate_limited; ask rate_limited; ask succeeded", status: payout.StatusPaid, money: "once"},
	{what: "query is answered with processing, twice", ops: everyOp,
		rules: []rule{fault("", "error_after", 1), fault("query", "pending", 2)},
		calls: "send internal; ask processing; ask processing; ask succeeded", status: payout.StatusPaid, money: "once"},
	{what: "query is answered with processing for ever", ops: everyOp,
		rules: []rule{fault("", "error_after", 1), fault("query", "pending_forever", 0)},
		calls: "send internal; ask processing; ask processing; ask processing+", status: payout.StatusSending, money: "once"},
	{what: "query finds nothing, though the money moved", ops: everyOp,
		rules: []rule{fault("", "error_after", 1), fault("query", "not_found_yet", 1)},
		calls: "send internal; ask order_not_found; send succeeded", status: payout.StatusPaid, money: "once"},
	{what: "query finds nothing twice, though the money moved", ops: everyOp,
		rules: []rule{fault("", "error_after", 2), fault("", "not_found_yet", 2)},
		calls: "send internal; ask order_not_found; send internal; ask order_not_found; send succeeded", status: payout.StatusPaid,
		money: "once"},
	{what: "query says succeeded of what was refused", ops: everyOp,
		rules: []rule{fault("", "decline", 1), fault("query", "contradict", 1)},
		calls: "send declined; ask succeeded; ask declined; ask declined", status: payout.StatusFailed, money: "never", code: "declined_by_rule",
		breaks: "contradiction"},
	{what: "query contradicts itself from answer to answer, for ever", ops: transfers,
		rules: []rule{fault("", "decline", 1), fault("query", "contradict", 0)},
		calls: "send declined; ask succeeded; ask declined; ask succeeded; ...", status: payout.StatusUnknown, money: "never",
		breaks: "contradiction"},
	{what: "send says refused, then a query fails", ops: everyOp,
		rules: []rule{fault("", "contradict", 1), fault("query", "error_before", 1)},
		calls: "send declined; ask internal; ask succeeded; ask succeeded", status: payout.StatusPaid, money: "once", breaks: "contradiction"},
	{what: "the refusal is lost, and the only answer that is heard says succeeded", ops: transfers,
		rules: []rule{fault("", "decline", 1), fault("", "notify_never", 0), fault("query", "contradict", 1)},
		set: func(s *scene) {
			s.line.between = func(x *exchange, forward func() reply) reply {
				a := forward()
				if x.Send && x.OrderNo[:payout.IDLen] == s.id {
					<-x.gone
				}
				return a
			}
		},
		calls: "send silence; ask succeeded", status: payout.StatusPaid, money: "never", adrift: true},
}

// accountRows: what accounts do by their suffix.
var accountRows = []faultRow{
	{what: "`~declined` recipient", ops: transfers, suffix: "~declined",
		calls: "send declined; ask declined", status: payout.StatusFailed, money: "never", code: "payee_declined"},
	{what: "`~declined` sender", ops: charges, suffix: "~declined",
		calls: "send declined; ask declined", status: payout.StatusFailed, money: "never", code: "payer_declined"},
	{what: "`~frozen`", ops: []payout.Op{payout.OpCharge, payout.OpTransfer}, suffix: "~frozen",
		calls: "send declined; ask declined", status: payout.StatusFailed, money: "never", code: "account_frozen"},
	{what: "`~frozen`, unfrozen, finance retries", ops: transfers, suffix: "~frozen",
		then:  func(s *scene) { s.await(payout.StatusFailed); s.unfreeze(); s.mustRetry() },
		calls: "send declined; ask declined; ask declined; #2 send succeeded", status: payout.StatusPaid, money: "once", tries: 2},
	{what: "`~frozen`, still frozen, finance retries twice", ops: transfers, suffix: "~frozen",
		then: func(s *scene) {
			for n := 1; n <= 2; n++ {
				s.awaitNumber(payout.StatusFailed, n)
				s.mustRetry()
			}
		},
		calls: "send declined; ask declined; ask declined; #2 send declined; #2 ask declined; ask declined; #2 ask declined; #3 send " +
			"declined; #3 ask declined",
		status: payout.StatusFailed, money: "never", code: "account_frozen", tries: 3},
	{what: "`~flaky`: two errors, then fine", ops: everyOp, suffix: "~flaky",
		calls: "send internal; ask order_not_found; send internal; ask order_not_found; send succeeded", status: payout.StatusPaid,
		money: "once"},
	{what: "`~lost_reply`", ops: everyOp, suffix: "~lost_reply",
		calls: "send silence; ask succeeded", status: payout.StatusPaid, money: "once"},
	{what: "`~lost_request`", ops: everyOp, suffix: "~lost_request",
		calls: "send silence; ask order_not_found; send succeeded", status: payout.StatusPaid, money: "once"},
	{what: "`~pending`: succeeds later, by notification", ops: everyOp, suffix: "~pending",
		calls: "send processing; ask processing*; ask succeeded+", status: payout.StatusPaid, money: "once"},
	{what: "`~confirm`, not confirmed", ops: everyOp, suffix: "~confirm",
		calls: "send awaiting_confirmation; ask awaiting_confirmation*", status: payout.StatusAwaitingRecipient, money: "never"},
	{what: "`~confirm`, confirmed", ops: everyOp, suffix: "~confirm",
		then:  func(s *scene) { s.await(payout.StatusAwaitingRecipient); s.confirm() },
		calls: "send awaiting_confirmation; ask awaiting_confirmation*; ask succeeded+", status: payout.StatusPaid, money: "once"},
	{what: "`~returned` recipient", ops: transfers, suffix: "~returned",
		calls: "send succeeded; ask returned+", status: payout.StatusReturned, money: "once, returned", code: "returned"},
	{what: "`~returned` recipient, finance retries", ops: transfers, suffix: "~returned",
		then:  func(s *scene) { s.await(payout.StatusReturned); s.mustRetry() },
		calls: "send succeeded; ask returned+; #2 send succeeded; #2 ask returned+", status: payout.StatusReturned, money: "twice, returned",
		code: "returned", tries: 2},
	{what: "`~returned` sender: the charge is returned", ops: charges, suffix: "~returned",
		then: func(s *scene) {
			wait.Until(s, "the packet is held", func() bool {
				active := true
				held, err := s.r.store.Holds(s.Context(), staff.HoldFilter{Active: &active, Name: s.packet.ID, Limit: 1})
				return err == nil && len(held) == 1
			})
			s.r.releases(s, payout.HoldPacket, s.packet.ID)
		},
		calls: "send succeeded; ask returned; ask returned", status: payout.StatusReturned, money: "once, returned", code: "returned",
		breaks: "contradiction"},
	{what: "`~returned` sender: the refund is returned", ops: refunds, suffix: "~returned", set: chargedElsewhere,
		calls: "send succeeded; ask returned+", status: payout.StatusReturned, money: "once, returned", code: "returned"},
	{what: "`~returned` sender: the charge was returned, so the refund is above what is left of it", ops: refunds, suffix: "~returned",
		ready: func(s *scene) {
			wait.Until(s, "the charge is returned", func() bool { return len(s.r.movementsAt(s)) == 2 })
		},
		calls: "send refund_exceeds_charge; ask order_not_found", status: payout.StatusFailed, money: "never", code: "never_received"},
	{what: "`~broke` recipient", ops: transfers, suffix: "~broke",
		calls: "send succeeded", status: payout.StatusPaid, money: "once"},
	{what: "`~broke` sender", ops: charges, suffix: "~broke",
		calls: "send declined; ask declined", status: payout.StatusFailed, money: "never", code: "insufficient_sender_balance"},
	{what: "`~flaky`, then the answer is lost", ops: everyOp, suffix: "~flaky", rules: []rule{fault("", "not_found_yet", 1)},
		set: func(s *scene) { s.loseAnswer(3) },
		calls: "send internal; ask order_not_found; send internal; ask order_not_found; send succeeded, lost; ask order_not_found; send " +
			"succeeded",
		status: payout.StatusPaid, money: "once"},
	{what: "`~pending`, answer and notification lost", ops: everyOp, suffix: "~pending",
		rules: []rule{fault("", "error_after", 1), fault("", "notify_never", 0)},
		calls: "send internal; ask processing*; ask succeeded", status: payout.StatusPaid, money: "once"},
	{what: "`~lost_request`, then refused for good", ops: everyOp, suffix: "~lost_request", rules: []rule{},
		set: func(s *scene) {
			s.line.between = func(x *exchange, forward func() reply) reply {
				if x.Send && x.OrderNo[:payout.IDLen] == s.id && x.N == 2 {
					s.line.setRules(s, []rule{fault(string(s.op), "decline", 1)})
				}
				return forward()
			}
		},
		calls: "send silence; ask order_not_found; send declined; ask declined", status: payout.StatusFailed, money: "never",
		code: "declined_by_rule"},
}

// loseAnswer cuts the answer to the n-th send of the payment.
func (s *scene) loseAnswer(n int) {
	s.line.between = func(x *exchange, forward func() reply) reply {
		a := forward()
		if x.Send && x.OrderNo[:payout.IDLen] == s.id && x.N == n {
			a.silent, a.label = true, a.says()+", lost"
		}
		return a
	}
}

// awaitNumber waits until the payment has a status under attempt n.
func (s *scene) awaitNumber(status payout.Status, n int) {
	s.Helper()
	s.until(fmt.Sprintf("%s under attempt %d", status, n), func() bool {
		p := s.payment()
		return p.Status == status && p.Attempt == n
	})
}

// chargedElsewhere has the provider charge another account than the sender's, so
// that what the sender's account does befalls the refund alone.
func chargedElsewhere(s *scene) {
	s.line.between = func(x *exchange, forward func() reply) reply {
		if x.Kind != payout.KindCharge || !x.Send {
			return forward()
		}
		a := s.line.forward(s.Context(), http.MethodPost, x.path, bytes.ReplaceAll(x.Body, []byte(s.account), []byte("elsewhere")))
		a.body = bytes.ReplaceAll(a.body, []byte("elsewhere"), []byte(s.account))
		return a
	}
}
