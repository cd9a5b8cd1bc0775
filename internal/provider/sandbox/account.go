package sandbox

import "strings"

// behaviour is the suffix of an account that selects the outcome of its orders.
type behaviour string

// The suffixes. Any other account simply succeeds.
const (
	plain       behaviour = ""
	declined    behaviour = "~declined"
	frozen      behaviour = "~frozen"
	flaky       behaviour = "~flaky"
	lostReply   behaviour = "~lost_reply"
	lostRequest behaviour = "~lost_request"
	pending     behaviour = "~pending"
	confirm     behaviour = "~confirm"
	returned    behaviour = "~returned"
	overdrawn   behaviour = "~broke"
)

// flakyFailures is how many sends of one order number fail for a ~flaky account.
const flakyFailures = 2

// behaviourOf returns the last suffix of an account.
func behaviourOf(account string) behaviour {
	i := strings.LastIndexByte(account, '~')
	if i < 0 {
		return plain
	}
	switch b := behaviour(account[i:]); b {
	case declined, frozen, flaky, lostReply, lostRequest, pending, confirm, returned, overdrawn:
		return b
	}
	return plain
}

// outcomeOf returns the final outcome of an order of this account.
func outcomeOf(op string, b behaviour, isUnfrozen bool) outcome {
	switch {
	case b == declined && op == opCharge:
		return outcome{StatusDeclined, "payer_declined", "The sender's account refuses to be charged."}
	case b == declined:
		return outcome{StatusDeclined, "payee_declined", "The account refuses to be paid."}
	case b == frozen && !isUnfrozen:
		return outcome{StatusDeclined, "account_frozen", "The account is frozen."}
	case b == overdrawn && op == opCharge:
		return outcome{StatusDeclined, "insufficient_sender_balance", "The sender's balance does not cover the charge."}
	case b == confirm:
		return outcome{Status: StatusAwaitingConfirmation}
	}
	return outcome{Status: StatusSucceeded}
}
