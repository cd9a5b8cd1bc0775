package sandbox

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
)

// Fault kinds. "before", "late" and "after" are relative to the movement of money: a before kind
// stores nothing, an after kind processes the order and then spoils the answer, a late kind answers
// at once and processes the order after PendingAfter. A rule without a possible effect on an event
// does not fire and keeps its count. On sends:
//
//   - decline, low_balance: new orders only; the first is stored, the second is not.
//   - error_late: new orders only; a repeat may create the order before it arrives.
//   - pending: new orders only; the account's outcome follows after PendingAfter.
//   - pending_forever: the account decides as usual, but the order is shown as processing, to
//     queries too, while such a rule exists, used up or not.
//   - contradict: answers declined for an order that succeeded; never the reverse.
//
// On charges that their payer has to pay:
//
//   - reply_without_action: the answer to a send has no token to pay with.
//   - wrong_amount: the payer pays one fen too much, and the order says so.
//   - coupon: a coupon pays one fen of the amount, and the order says so.
//   - paid_twice: the payer pays again, with another reference, PendingAfter after the first payment and once a query has
//     shown that.
//   - close_lost: the order is closed, and the answer to the close is lost.
//   - pay_after_close: the payment arrives PendingAfter after the close.
//
// On queries (op query): *_before, *_after and rate_limit as on sends; pending and pending_forever
// answer processing; not_found_yet answers 404 for an existing order, and may also name the op of
// the order; contradict answers the opposite of the final status reported last, and the true status
// when none was reported.
//
// notify_* refer to the op of the order that the notification is about.
const (
	faultErrorBefore    = "error_before"
	faultErrorAfter     = "error_after"
	faultErrorLate      = "error_late"
	faultTimeoutBefore  = "timeout_before"
	faultTimeoutAfter   = "timeout_after"
	faultRateLimit      = "rate_limit"
	faultDecline        = "decline"
	faultPending        = "pending"
	faultPendingForever = "pending_forever"
	faultNotifyNever    = "notify_never"
	faultNotifyTwice    = "notify_twice"
	faultNotifyLate     = "notify_late"
	faultNotFoundYet    = "not_found_yet"
	faultContradict     = "contradict"
	faultLowBalance     = "low_balance"

	faultNoAction      = "reply_without_action"
	faultWrongAmount   = "wrong_amount"
	faultCoupon        = "coupon"
	faultPaidTwice     = "paid_twice"
	faultCloseLost     = "close_lost"
	faultPayAfterClose = "pay_after_close"
)

var faultKinds = []string{faultErrorBefore, faultErrorAfter, faultErrorLate, faultTimeoutBefore, faultTimeoutAfter, faultRateLimit,
	faultDecline, faultPending, faultPendingForever, faultNotifyNever, faultNotifyTwice, faultNotifyLate,
	faultNotFoundYet, faultContradict, faultLowBalance, faultNoAction, faultWrongAmount, faultCoupon, faultPaidTwice, faultCloseLost,
	faultPayAfterClose}

var faultOps = []string{opTransfer, opCharge, opRefund, opQuery}

// Rule is an active fault rule.
type Rule struct {
	Op   string  `json:"op"`
	Kind string  `json:"kind"`
	Rate float64 `json:"rate"`
	// Times is how often it may still fire; nil: without limit. It counts down.
	Times         *int64 `json:"times"`
	AccountPrefix string `json:"account_prefix"`
	// DelayMS delays the answer when the rule fires; for notify_late and notify_twice it delays the
	// (second) notification.
	DelayMS int64 `json:"delay_ms"`
}

// matches reports whether the rule is about this kind of event.
func (r *Rule) matches(op, account string) bool {
	return r.Op == op && strings.HasPrefix(account, r.AccountPrefix)
}

// faultSet holds the rules. Only the writer changes it, inside the transaction that stores it;
// reads are concurrent.
type faultSet struct {
	mu    sync.RWMutex
	rules []Rule
}

func (f *faultSet) replace(rules []Rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = slices.Clone(rules)
}

func (f *faultSet) snapshot() []Rule {
	f.mu.RLock()
	defer f.mu.RUnlock()
	rules := slices.Clone(f.rules)
	for i := range rules {
		if rules[i].Times != nil {
			left := *rules[i].Times
			rules[i].Times = &left
		}
	}
	return rules
}

// fire returns the first rule that can have an effect here and whose random draw succeeds, and
// counts it down. counted reports that the set changed and has to be stored.
func (f *faultSet) fire(can func(*Rule) bool) (fired *Rule, counted bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.rules {
		r := &f.rules[i]
		if r.Times != nil && *r.Times <= 0 || !can(r) {
			continue
		}
		if r.Rate < 1 && rand.Float64() >= r.Rate {
			continue
		}
		if r.Times != nil {
			left := *r.Times - 1
			r.Times = &left
			counted = true
		}
		hit := *r
		return &hit, counted
	}
	return nil, false
}

// any reports whether a rule, used up or not, satisfies the condition.
func (f *faultSet) any(is func(*Rule) bool) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for i := range f.rules {
		if is(&f.rules[i]) {
			return true
		}
	}
	return false
}

// mayAffectQueries reports whether a rule may change the answer to a query.
func (f *faultSet) mayAffectQueries() bool {
	return f.any(func(r *Rule) bool { return r.Op == opQuery || r.Kind == faultNotFoundYet })
}

// masks reports whether a masked order has to look as if it were processing.
func (f *faultSet) masks(rec *record) bool {
	return rec.Masked && f.any(func(r *Rule) bool { return r.Kind == faultPendingForever && r.matches(rec.Op, rec.Account) })
}
