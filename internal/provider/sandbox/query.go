package sandbox

import (
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"
)

// query answers the query of an order. It writes only if a rule of injected faults may affect the
// answer, or if the answer reports a final status for the first time; else a read is enough.
func (s *Server) query(orderNo string) (reply, error) {
	var answer reply
	answered := false
	if !s.faults.mayAffectQueries() {
		err := s.db.View(func(tx *bolt.Tx) error {
			rec, err := getOrder(tx, orderNo)
			if err != nil {
				return err
			}
			if rec == nil {
				answer, answered = refuse(problemOrderNotFound), true
				return nil
			}
			reported, view := s.currentView(rec)
			answer, answered = reply{order: view}, !reported.final() || reported == rec.Reported
			return nil
		})
		if err != nil {
			return reply{}, fmt.Errorf("query: %w", err)
		}
	}
	if answered {
		return answer, nil
	}
	err := s.writer.do(func(tx *txn) (err error) {
		answer, err = s.queryWithFaults(tx, orderNo)
		return err
	})
	return answer, err
}

// currentView returns the order as it is, or as processing while a rule pending_forever applies.
func (s *Server) currentView(rec *record) (Status, *orderView) {
	if s.faults.masks(rec) {
		return StatusProcessing, rec.viewAs(outcome{Status: StatusProcessing})
	}
	return rec.Status, rec.view()
}

// queryWithFaults answers with the first rule that applies, and notes that it was used.
func (s *Server) queryWithFaults(tx *txn, orderNo string) (reply, error) {
	rec, err := getOrder(tx.Tx, orderNo)
	if err != nil {
		return reply{}, err
	}
	rule, counted := s.faults.fire(func(r *Rule) bool { return canAffectQuery(r, rec) })
	if counted {
		if err := tx.put(bucketMeta, keyFaults, s.faults.snapshot()); err != nil {
			return reply{}, err
		}
	}
	if rule == nil {
		rule = &Rule{}
	}
	r, reported := s.answerQuery(rec, rule)
	r.delay = time.Duration(rule.DelayMS) * time.Millisecond
	if rec != nil && reported.final() && reported != rec.Reported {
		rec.Reported = reported
		return r, tx.putOrder(rec)
	}
	return r, nil
}

// canAffectQuery reports whether the rule can have an effect on this answer. An unknown order has
// no account: only rules without a prefix apply.
func canAffectQuery(r *Rule, rec *record) bool {
	if rec == nil {
		if r.Op != opQuery || r.AccountPrefix != "" {
			return false
		}
	} else if !r.matches(opQuery, rec.Account) && !(r.Kind == faultNotFoundYet && r.matches(rec.Op, rec.Account)) {
		return false
	}
	switch r.Kind {
	case faultErrorBefore, faultErrorAfter, faultTimeoutBefore, faultTimeoutAfter, faultRateLimit:
		return true
	case faultNotFoundYet, faultPending, faultPendingForever:
		return rec != nil
	case faultContradict:
		return rec != nil && (rec.Reported == StatusSucceeded || rec.Reported == StatusDeclined)
	}
	return false
}

// answerQuery returns the answer under a rule, and the final status in it, if any.
func (s *Server) answerQuery(rec *record, rule *Rule) (reply, Status) {
	switch rule.Kind {
	case faultErrorBefore, faultErrorAfter:
		return refuse(problemInternal), ""
	case faultTimeoutBefore, faultTimeoutAfter:
		return reply{spoil: spoilHold}, ""
	case faultRateLimit:
		return refuse(problemRateLimited), ""
	case faultNotFoundYet:
		return refuse(problemOrderNotFound), ""
	case faultPending, faultPendingForever:
		return reply{order: rec.viewAs(outcome{Status: StatusProcessing})}, ""
	case faultContradict:
		if rec.Reported == StatusSucceeded {
			return reply{order: rec.viewAs(contradiction)}, StatusDeclined
		}
		return reply{order: rec.viewAs(outcome{Status: StatusSucceeded})}, StatusSucceeded
	}
	if rec == nil {
		return refuse(problemOrderNotFound), ""
	}
	reported, view := s.currentView(rec)
	return reply{order: view}, reported
}
