package sandbox

import (
	"net/http"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// ruleBody is a rule in the request; nil members take their defaults.
type ruleBody struct {
	Op            *string  `json:"op"`
	Kind          *string  `json:"kind"`
	Rate          *float64 `json:"rate"`
	Times         *int64   `json:"times"`
	AccountPrefix *string  `json:"account_prefix"`
	DelayMS       *int64   `json:"delay_ms"`
}

type faultsBody struct {
	Rules *[]ruleBody `json:"rules"`
}

type faultsView struct {
	Rules []Rule `json:"rules"`
}

// decodeFaults reads and checks a set of rules; one bad rule rejects the set.
func decodeFaults(body []byte) ([]Rule, *problem) {
	var b faultsBody
	if p := decode(body, &b); p != nil {
		return nil, p
	}
	if b.Rules == nil {
		return nil, invalid("rules", "required", "is required")
	}
	if len(*b.Rules) > maxRules {
		return nil, invalid("rules", "out_of_range", "must be at most 200 rules")
	}
	rules := make([]Rule, 0, len(*b.Rules))
	for i, body := range *b.Rules {
		rule, wrong := body.rule()
		if wrong != nil {
			return nil, invalid("rules/"+strconv.Itoa(i)+"/"+wrong.Field, wrong.Code, wrong.Message)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

func (b ruleBody) rule() (Rule, *fieldError) {
	rule := Rule{Rate: 1}
	if b.Op == nil || !slices.Contains(faultOps, *b.Op) {
		return rule, &fieldError{"op", "invalid", "must be transfer, charge, refund or query"}
	}
	if b.Kind == nil || !slices.Contains(faultKinds, *b.Kind) {
		return rule, &fieldError{"kind", "invalid", "is not a known kind of fault"}
	}
	rule.Op, rule.Kind = *b.Op, *b.Kind
	if b.Rate != nil {
		rule.Rate = *b.Rate
	}
	if !(rule.Rate >= 0 && rule.Rate <= 1) {
		return rule, &fieldError{"rate", "out_of_range", "must be 0 to 1"}
	}
	if b.Times != nil && (*b.Times < 0 || *b.Times > maxTimes) {
		return rule, &fieldError{"times", "out_of_range", "must be null or 0 to 2^31"}
	}
	rule.Times = b.Times
	if b.AccountPrefix != nil {
		rule.AccountPrefix = *b.AccountPrefix
	}
	if len(rule.AccountPrefix) > maxAccount || !utf8.ValidString(rule.AccountPrefix) {
		return rule, &fieldError{"account_prefix", "invalid", "must be at most 64 bytes of UTF-8"}
	}
	if b.DelayMS != nil {
		rule.DelayMS = *b.DelayMS
	}
	if rule.DelayMS < 0 || rule.DelayMS > maxDelayMS {
		return rule, &fieldError{"delay_ms", "out_of_range", "must be 0 to 600000"}
	}
	return rule, nil
}

// handlePutFaults replaces all rules; calls that begin after its answer see the new ones.
func (s *Server) handlePutFaults(w http.ResponseWriter, r *http.Request) {
	body, p := readBody(w, r, maxFaultsBody)
	if p != nil {
		s.writeProblem(w, r, p)
		return
	}
	rules, p := decodeFaults(body)
	if p != nil {
		s.writeProblem(w, r, p)
		return
	}
	err := s.writer.do(func(tx *txn) error {
		if err := tx.put(bucketMeta, keyFaults, rules); err != nil {
			return err
		}
		s.faults.replace(rules)
		return nil
	})
	s.answerEmpty(w, r, err)
}

func (s *Server) handleGetFaults(w http.ResponseWriter, r *http.Request) {
	s.writeJSON(w, http.StatusOK, faultsView{Rules: s.faults.snapshot()})
}

// handleUnfreeze unfreezes a ~frozen account for later sends. Stored refusals stay.
func (s *Server) handleUnfreeze(w http.ResponseWriter, r *http.Request) {
	account, ok := rest(r, "/_unfreeze/")
	if !ok || !validAccount(account) {
		s.writeProblem(w, r, invalid("account", "invalid", "must be 1 to 64 bytes of UTF-8"))
		return
	}
	err := s.writer.do(func(tx *txn) error { return tx.putRaw(bucketUnfrozen, []byte(account), present) })
	s.answerEmpty(w, r, err)
}

// handleConfirm is the confirmation by the recipient. It is idempotent.
func (s *Server) handleConfirm(w http.ResponseWriter, r *http.Request) {
	orderNo, ok := rest(r, "/_confirm/")
	if !ok || !validOrderNo(orderNo) {
		s.writeProblem(w, r, problemOrderNotFound)
		return
	}
	var refused *problem
	err := s.writer.do(func(tx *txn) error {
		rec, err := getOrder(tx.Tx, orderNo)
		switch {
		case err != nil:
			return err
		case rec == nil:
			refused = problemOrderNotFound
		case rec.Status == StatusAwaitingConfirmation:
			return s.setStatusAndNotify(tx, rec, outcome{Status: StatusSucceeded}, time.Now())
		case rec.ConfirmToken == "" || rec.Status != StatusSucceeded:
			refused = problemNotAwaiting
		}
		return nil
	})
	if refused != nil && err == nil {
		s.writeProblem(w, r, refused)
		return
	}
	s.answerEmpty(w, r, err)
}
