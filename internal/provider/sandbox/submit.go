package sandbox

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// spoil is a fault of the connection.
type spoil int

const (
	spoilNone spoil = iota
	spoilHold       // no answer; the connection is held, then closed
	spoilDrop       // no answer; the connection is closed at once
)

// reply is the answer to a call: an order, a problem, or nothing.
type reply struct {
	order   *orderView
	problem *problem
	spoil   spoil
	delay   time.Duration
}

func refuse(p *problem) reply { return reply{problem: p} }

// plan is the effect of a send without any fault rule.
type plan struct {
	existing *record  // the number is known
	refusal  *problem // the request is refused and nothing is stored
	outcome  outcome  // of a new order
	account  behaviour
	silent   bool // the account answers this send with an error or not at all
}

// submit carries out one send inside the writer, in this order: a rule that acts before the money,
// the account's behaviour, the order, and finally a rule that spoils the answer.
func (s *Server) submit(tx *txn, p params) (reply, error) {
	pl, err := s.plan(tx, p)
	if err != nil {
		return reply{}, err
	}
	rule, err := s.fireForSend(tx, p, pl)
	if err != nil {
		return reply{}, err
	}
	if rule == nil {
		rule = &Rule{}
	}
	delay := time.Duration(rule.DelayMS) * time.Millisecond
	if r, stop := answerBefore(rule); stop {
		r.delay = delay
		return r, nil
	}
	if rule.Kind == faultErrorLate {
		at, arrival := time.Now().Add(s.cfg.PendingAfter), dueEvent{Kind: dueArrive, OrderNo: p.OrderNo, Order: &p}
		return reply{problem: problemInternal, delay: delay}, tx.schedule(bucketDue, at, arrival)
	}
	r, err := s.process(tx, p, pl, rule)
	if err != nil {
		return reply{}, err
	}
	r.delay = delay
	switch rule.Kind {
	case faultErrorAfter:
		r = reply{problem: problemInternal, delay: delay}
	case faultTimeoutAfter:
		r = reply{spoil: spoilHold, delay: delay}
	}
	return r, nil
}

// plan reads the state and returns the plan.
func (s *Server) plan(tx *txn, p params) (plan, error) {
	pl := plan{account: behaviourOf(p.Account)}
	rec, err := getOrder(tx.Tx, p.OrderNo)
	if err != nil {
		return pl, err
	}
	if rec != nil {
		pl.existing = rec
		if rec.params != p {
			pl.refusal = problemOrderConflict
		}
		return pl, nil
	}
	unfrozen := tx.Bucket(bucketUnfrozen).Get([]byte(p.Account)) != nil
	pl.outcome = outcomeOf(p.Op, pl.account, unfrozen)
	switch pl.account {
	case flaky:
		pl.silent = sendsOf(tx.Tx, p.OrderNo) < flakyFailures
	case lostRequest:
		pl.silent = sendsOf(tx.Tx, p.OrderNo) == 0
	case lostReply:
		pl.silent = true
	}
	if p.ChargeOrderNo != "" && pl.outcome.Status != StatusDeclined {
		left, err := refundable(tx, p.ChargeOrderNo)
		if err != nil {
			return pl, err
		}
		if p.Amount > left {
			pl.refusal = problemRefundExceeds
		}
	}
	return pl, nil
}

// fireForSend selects the rule for a send. Rules without a possible effect here do not fire, so
// that their count is kept for a send that they can spoil.
func (s *Server) fireForSend(tx *txn, p params, pl plan) (*Rule, error) {
	fresh := pl.existing == nil && pl.refusal == nil
	rule, counted := s.faults.fire(func(r *Rule) bool {
		if !r.matches(p.Op, p.Account) {
			return false
		}
		switch r.Kind {
		case faultErrorBefore, faultErrorAfter, faultTimeoutBefore, faultTimeoutAfter, faultRateLimit:
			return true
		case faultDecline, faultLowBalance:
			return fresh
		case faultPending, faultErrorLate:
			return fresh && !pl.silent
		case faultNoAction:
			return p.needsPayer() && pl.refusal == nil && !pl.silent
		case faultPendingForever:
			return fresh && !pl.silent || pl.existing != nil && pl.refusal == nil && !pl.existing.Reported.final()
		case faultContradict:
			if pl.existing != nil {
				return pl.refusal == nil && pl.existing.Status == StatusSucceeded
			}
			return fresh && !pl.silent && pl.outcome.Status == StatusSucceeded && pl.account != pending
		}
		return false
	})
	if counted {
		return rule, tx.put(bucketMeta, keyFaults, s.faults.snapshot())
	}
	return rule, nil
}

// answerBefore returns the answer of rules that act before anything is stored.
func answerBefore(rule *Rule) (r reply, stop bool) {
	switch rule.Kind {
	case faultErrorBefore:
		return refuse(problemInternal), true
	case faultTimeoutBefore:
		return reply{spoil: spoilHold}, true
	case faultRateLimit:
		return refuse(problemRateLimited), true
	case faultLowBalance:
		return refuse(problemLowBalance), true
	}
	return reply{}, false
}

// process applies the account's behaviour, stores a new order and answers it.
func (s *Server) process(tx *txn, p params, pl plan, rule *Rule) (reply, error) {
	if pl.refusal != nil {
		return refuse(pl.refusal), nil
	}
	if pl.existing != nil {
		return s.answerSend(tx, pl.existing, rule)
	}
	if rule.Kind == faultDecline {
		pl.outcome = outcome{StatusDeclined, "declined_by_rule", "The provider's rules refused the order."}
		pl.account, pl.silent = plain, false
	}
	if pl.silent && pl.account == flaky {
		return refuse(problemInternal), tx.countSend(p.OrderNo)
	}
	if pl.silent && pl.account == lostRequest {
		return reply{spoil: spoilDrop}, tx.countSend(p.OrderNo)
	}
	rec, err := s.accept(tx, p, pl, rule)
	if err != nil {
		return reply{}, err
	}
	if pl.silent {
		return reply{spoil: spoilDrop}, tx.putOrder(rec)
	}
	return s.answerSend(tx, rec, rule)
}

// accept creates the order, moves the money if it moves at once, and schedules the rest. The caller
// stores the record.
func (s *Server) accept(tx *txn, p params, pl plan, rule *Rule) (*record, error) {
	now := time.Now()
	rec := &record{params: p, ProviderRef: newID("sbx"), CreatedMS: now.UnixMilli(), UpdatedMS: now.UnixMilli(),
		Returns: pl.account == returned}
	if p.ChargeOrderNo != "" && pl.outcome.Status != StatusDeclined {
		if err := tx.putRaw(bucketRefunds, append(indexKey(p.ChargeOrderNo), p.OrderNo...), present); err != nil {
			return nil, err
		}
	}
	if p.needsPayer() && pl.outcome.Status == StatusSucceeded {
		rec.await(&pl.outcome, now)
		return rec, nil
	}
	if pl.account == pending || rule.Kind == faultPending {
		rec.Status, rec.Next = StatusProcessing, &pl.outcome
		return rec, tx.schedule(bucketDue, now.Add(s.cfg.PendingAfter), dueEvent{Kind: dueComplete, OrderNo: p.OrderNo})
	}
	return rec, s.setStatus(tx, rec, pl.outcome, now)
}

// answerSend answers the order, subject to the rule, and stores the record with the status reported
// to the caller.
func (s *Server) answerSend(tx *txn, rec *record, rule *Rule) (reply, error) {
	before := *rec
	if rec.Status == StatusAwaitingPayment && tx.isStored(rec) {
		rec.await(rec.Next, time.Now()) // asked again: a new token, and the earlier one is void
	}
	if rule.Kind == faultPendingForever {
		rec.Masked = true
	}
	reported, view := rec.Status, rec.view()
	switch {
	case rule.Kind == faultErrorAfter || rule.Kind == faultTimeoutAfter:
		reported = "" // the answer does not reach the caller
	case s.faults.masks(rec):
		reported, view = StatusProcessing, rec.viewAs(outcome{Status: StatusProcessing})
	case rule.Kind == faultNoAction:
		view.PayToken = nil
	case rule.Kind == faultContradict && rec.Status == StatusSucceeded:
		reported, view = StatusDeclined, rec.viewAs(contradiction)
	}
	if reported.final() {
		rec.Reported = reported
	}
	if *rec != before || !tx.isStored(rec) {
		if err := tx.putOrder(rec); err != nil {
			return reply{}, err
		}
	}
	return reply{order: view}, nil
}

// contradiction is the false refusal of an order whose money moved.
var contradiction = outcome{StatusDeclined, "declined", "The order was refused."}

func (tx *txn) isStored(rec *record) bool {
	return tx.Bucket(bucketOrders).Get([]byte(rec.OrderNo)) != nil
}

// refundable returns the refundable rest of a charge: its amount, if it has succeeded, less the
// refunds that have moved or may still move money.
func refundable(tx *txn, chargeNo string) (int64, error) {
	charge, err := getOrder(tx.Tx, chargeNo)
	if err != nil || charge == nil || charge.Op != opCharge || charge.Status != StatusSucceeded {
		return 0, err
	}
	left := charge.Amount
	prefix := indexKey(chargeNo)
	cursor := tx.Bucket(bucketRefunds).Cursor()
	for key, _ := cursor.Seek(prefix); bytes.HasPrefix(key, prefix); key, _ = cursor.Next() {
		no := strings.TrimPrefix(string(key), string(prefix))
		refund, err := getOrder(tx.Tx, no)
		if err != nil {
			return 0, err
		}
		if refund == nil {
			return 0, fmt.Errorf("refund %s of charge %s is indexed but not stored", no, chargeNo)
		}
		if refund.Status != StatusDeclined && refund.Status != StatusReturned {
			left -= refund.Amount
		}
	}
	return left, nil
}
