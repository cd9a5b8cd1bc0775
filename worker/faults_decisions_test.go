package worker_test

import (
	"net/http"

	"hongbao/internal/payout"
	"hongbao/test/wait"
)

// lies: the first order seems refused, and reaches the provider only on release.
func lies(s *scene) {
	s.line.between = func(x *exchange, forward func() reply) reply {
		if s.of(x) && x.Attempt == 1 && !s.isReleased() {
			if x.Send {
				s.held <- x
			}
			return s.declinedOrder(x)
		}
		return forward()
	}
}

// lands: the first number reaches the provider after all.
func lands(s *scene) {
	s.Helper()
	s.release()
	s.mustLand(s.heldSend(), "processing")
}

// refundOf waits until the money of a cancelled payout is back with the sender.
func (s *scene) refundOf() {
	s.Helper()
	id := payout.ID(payout.KindRefund, s.packet.ID, 1)
	wait.Until(s, "the money is back with the sender", func() bool {
		p, err := s.r.store.PaymentRow(s.Context(), id)
		return err == nil && p.Status == payout.StatusPaid && p.Account == "sender"
	})
	if moves := s.line.moved(s, s.packet.ID, id); moneyOf(moves) != "once" {
		s.Errorf("refund moved %v", moves)
	}
}

// oneOf checks that of two answers one was 202 and the other 409.
func (s *scene) oneOf(what string, a, b int) {
	s.Helper()
	if a+b != http.StatusAccepted+http.StatusConflict || a == b {
		s.Errorf("%s: answered %d and %d", what, a, b)
	}
}

// concurrently makes two calls at the same moment.
func concurrently(a, b func() int) (int, int) {
	other := make(chan int, 1)
	go func() { other <- b() }()
	return a(), <-other
}

const refusedTwice = "send declined; ask declined"

// decisionRows: decisions of staff, and concurrent events at the provider.
var decisionRows = []faultRow{
	{what: "a person retries what is under way: 409", ops: transfers, suffix: "~pending", rules: []rule{fault("", "notify_late", 1)},
		then: func(s *scene) {
			s.awaitCalls("send processing; ask processing*")
			for _, what := range []string{"retry", "cancel", "mark-paid"} {
				if got, _ := s.decide(0, what); got != http.StatusConflict {
					s.Errorf("%s of a payout under way was answered %d", what, got)
				}
			}
		},
		calls: "send processing; ask processing*; ask succeeded+", status: payout.StatusPaid, money: "once"},
	{what: "a person retries, cancels or marks what is paid: 409", ops: transfers,
		then: func(s *scene) {
			s.await(payout.StatusPaid)
			for _, what := range []string{"retry", "cancel", "mark-paid"} {
				if got, _ := s.decide(0, what); got != http.StatusConflict {
					s.Errorf("%s of a paid payout was answered %d", what, got)
				}
			}
		},
		calls: "send succeeded", status: payout.StatusPaid, money: "once"},
	{what: "a person asks about what is paid", ops: transfers,
		then: func(s *scene) {
			s.await(payout.StatusPaid)
			if got, _ := s.decide(0, "ask"); got != http.StatusAccepted {
				s.Errorf("ask was answered %d", got)
			}
		},
		calls: "send succeeded; ask succeeded", status: payout.StatusPaid, money: "once"},
	{what: "two people retry at once: one decision is carried out", ops: transfers, suffix: "~frozen",
		then: func(s *scene) {
			s.await(payout.StatusFailed)
			s.unfreeze()
			a, b := concurrently(func() int { return s.retry(0) }, func() int { return s.retry(1) })
			s.oneOf("two retries", a, b)
		},
		calls: refusedTwice + "; ask declined; #2 send succeeded", status: payout.StatusPaid, money: "once", tries: 2},
	{what: "one person retries while another cancels: one decision is taken", ops: transfers, suffix: "~frozen",
		then: func(s *scene) {
			s.await(payout.StatusFailed)
			s.unfreeze()
			var proposed decided
			a, b := concurrently(func() int { return s.retry(0) }, func() (status int) { status, proposed = s.decide(1, "cancel"); return status })
			s.oneOf("retry and cancel", a, b)
			if b == http.StatusAccepted {
				if got := s.answer(0, proposed.Approval.ID, "reject"); got != http.StatusAccepted {
					s.Errorf("rejection was answered %d", got)
				}
				s.mustRetry()
			}
		},
		calls: refusedTwice + "; ask declined; #2 send succeeded", status: payout.StatusPaid, money: "once", tries: 2},
	{what: "finance retries a refused refund", ops: refunds, rules: []rule{fault("", "decline", 1)},
		then:  func(s *scene) { s.await(payout.StatusFailed); s.mustRetry() },
		calls: refusedTwice + "; ask declined; #2 send succeeded", status: payout.StatusPaid, money: "once", tries: 2},
	{what: "finance marks a refused refund as paid", ops: refunds, rules: []rule{fault("", "decline", 1)},
		then:  func(s *scene) { s.await(payout.StatusFailed); s.agree("mark-paid") },
		calls: refusedTwice + "; ask declined", status: payout.StatusPaidOutside, money: "never"},
	{what: "two persons cancel: the money goes back to the sender", ops: transfers, suffix: "~declined",
		then:  func(s *scene) { s.await(payout.StatusFailed); s.agree("cancel"); s.refundOf() },
		calls: refusedTwice + "; ask declined", status: payout.StatusCancelled, money: "never"},
	{what: "two persons cancel a returned payout", ops: transfers, suffix: "~returned",
		then:  func(s *scene) { s.await(payout.StatusReturned); s.agree("cancel"); s.refundOf() },
		calls: "send succeeded; ask returned+", status: payout.StatusCancelled, money: "once, returned"},
	{what: "the second person agrees twice at once: carried out once", ops: transfers, suffix: "~declined",
		then: func(s *scene) {
			s.await(payout.StatusFailed)
			approval := s.propose("cancel")
			a, b := concurrently(func() int { return s.answer(1, approval, "approve") }, func() int { return s.answer(1, approval, "approve") })
			s.oneOf("two approvals", a, b)
			s.refundOf()
		},
		calls: refusedTwice + "; ask declined", status: payout.StatusCancelled, money: "never"},
	{what: "says refused twice though the money moved; two persons cancel: not carried out", ops: transfers,
		set: func(s *scene) {
			s.line.between = func(x *exchange, forward func() reply) reply {
				if a := forward(); !s.of(x) || s.isReleased() {
					return a
				}
				return s.declinedOrder(x)
			}
		},
		then:  func(s *scene) { s.await(payout.StatusFailed); s.release(); s.agree("cancel") },
		calls: refusedTwice + "; ask succeeded; ask succeeded", status: payout.StatusPaid, money: "once", breaks: "late_success"},
	{what: "the money moves while a cancel waits for the second person: the approval comes too late", ops: transfers, suffix: "~pending",
		set: lies,
		then: func(s *scene) {
			s.await(payout.StatusFailed)
			approval := s.propose("cancel")
			lands(s)
			s.await(payout.StatusPaid)
			if got := s.answer(1, approval, "approve"); got != http.StatusConflict {
				s.Errorf("the approval was answered %d", got)
			}
		},
		calls: refusedTwice + "; ask succeeded; ask succeeded+", status: payout.StatusPaid, money: "once", breaks: "late_success"},
	{what: "success after a cancel", ops: transfers, suffix: "~pending", set: lies,
		then: func(s *scene) {
			s.await(payout.StatusFailed)
			s.agree("cancel")
			s.await(payout.StatusCancelled)
			s.refundOf()
			lands(s)
			s.awaitBreak("second_success")
		},
		calls: refusedTwice + "; ask declined; ask succeeded+", status: payout.StatusCancelled, money: "once",
		breaks: "second_success"},
	{what: "success after mark-paid", ops: transfers, suffix: "~pending", set: lies,
		then: func(s *scene) {
			s.await(payout.StatusFailed)
			s.agree("mark-paid")
			s.awaitCalls(refusedTwice + "; ask declined")
			lands(s)
			s.awaitBreak("second_success")
		},
		calls: refusedTwice + "; ask declined; ask succeeded+", status: payout.StatusPaidOutside, money: "once",
		breaks: "second_success"},
	{what: "not found past `ask_until`; one person alone can do nothing, two mark it as paid", ops: transfers, limits: forgetting,
		set: loseSends, loose: true,
		then: func(s *scene) {
			askedAfterForgetting(s)
			if got, _ := s.decide(0, "cancel"); got != http.StatusConflict {
				s.Errorf("cancel of an unknown outcome was answered %d", got)
			}
			s.agree("mark-paid")
		},
		calls: "send internal; ...; ask order_not_found", status: payout.StatusPaidOutside, money: "never", breaks: "outcome_unknown"},
	{what: "not found past `ask_until`; two persons take a new number, then an earlier send lands", ops: transfers, limits: forgetting,
		set: loseFirst, loose: true,
		then: func(s *scene) {
			askedAfterForgetting(s)
			s.r.limits.Delete(s.packet.ID) // the new number is remembered as usual
			s.agree("retry")
			s.awaitNumber(payout.StatusPaid, 2)
			s.release()
			s.mustLand(s.heldSend(), "succeeded")
			if got, _ := s.decide(1, "ask"); got != http.StatusAccepted {
				s.Errorf("ask was answered %d", got)
			}
			s.awaitBreak("second_success")
		},
		calls: "send internal; ask order_not_found; ...; #2 send succeeded; ...", status: payout.StatusPaid, money: "twice",
		breaks: "second_success", tries: 2},
}

// loseFirst loses every send of the first number until release.
func loseFirst(s *scene) {
	loseSends(s)
	lose := s.line.between
	s.line.between = func(x *exchange, forward func() reply) reply {
		if x.Attempt > 1 {
			return forward()
		}
		return lose(x, forward)
	}
}

func (s *scene) awaitBreak(kind string) {
	s.Helper()
	s.until("break "+kind, func() bool {
		var n int
		err := s.r.db.QueryRowContext(s.Context(), "SELECT COUNT(*) FROM breaks WHERE payment_id = ? AND kind = ?", s.id, kind).Scan(&n)
		return err == nil && n > 0
	})
}
