package payout

import (
	"errors"
	"time"
)

// ErrTransition is wrapped when a status change is not in Transitions.
var ErrTransition = errors.New("status change not allowed")

// ErrNotRetryable is returned when the payment's status does not permit the decision.
var ErrNotRetryable = errors.New("status does not allow this decision")

// ErrDecisionPending means that another decision about the payment waits for its approval.
var ErrDecisionPending = errors.New("another decision is waiting")

// Failure says why a payment failed or was returned, and what staff can do.
type Failure struct {
	Code       string `json:"code"`
	Message    string `json:"message"`
	Retryable  bool   `json:"retryable"`   // a retry without any change can succeed
	NextAction string `json:"next_action"` // what finance does next
}

// FailureCode is one row of the catalogue of failures.
type FailureCode struct {
	Code       string
	Message    string
	Retryable  bool
	NextAction string
	// RefundNextAction is the next action of a refund, whose recipient is the sender and which
	// cannot be cancelled. "": the same as NextAction.
	RefundNextAction string
}

// FailureShareConflict is the code of a share conflict.
const FailureShareConflict = "share_conflict"

// FailureCodes is the catalogue of final failures: data, not code paths. An unlisted code is shown
// unchanged, with the advice of "declined".
var FailureCodes = []FailureCode{
	{"declined", "The provider refused the order.", false, "Ask the provider why, then retry or cancel.",
		"Ask the provider why, then retry, or pay the sender yourself and mark it as paid; not if the charge was returned to the sender: " +
			"then nothing more is owed."},
	{"payee_declined", "The recipient's account refuses transfers.", false, "A retry pays the same account: pay another one of the " +
		"recipient yourself and mark it as paid, or cancel.",
		"A retry pays the same account: pay another one of the sender yourself and mark it as paid."},
	{"account_frozen", "The recipient's account is frozen.", true, "Retry once the recipient has had the account unfrozen.",
		"Retry once the sender has had the account unfrozen."},
	{"payer_declined", "The sender's account refuses the charge.", false, "The sender has to pay another way and create the packet again.",
		""},
	{"insufficient_sender_balance", "The sender's account does not cover the charge.", true,
		"The sender has to top up and create the packet again.", ""},
	{FailureExpiredBeforeCharge, "The packet expired before its charge was sent: nothing was taken.", true,
		"Create the packet again, under another Idempotency-Key.", ""},
	{FailureFundingExpired, "The sender did not pay in time: nothing was taken.", true,
		"Create the packet again, under another Idempotency-Key.", ""},
	{FailureFundingCancelled, "The packet was withdrawn before its sender paid: nothing was taken.", true,
		"Create the packet again, under another Idempotency-Key.", ""},
	{FailureCouponNotAllowed, "The sender paid a part with a coupon: everything is refunded.", true,
		"Create the packet again, under another Idempotency-Key; the sender has to pay without a coupon.", ""},
	{FailureRestoredBeforeCharge, "MySQL was restored from a backup before the charge was sent: nothing was taken.", true,
		"Create the packet again, under another Idempotency-Key.", ""},
	{"declined_by_rule", "The provider's rules refused the order.", true, "Retry later, or ask the provider.", ""},
	{"never_received", "The provider refused the request and does not know the order number.", true,
		"Correct the cause named in the message, then retry: the same order number is used.",
		"If the packet's charge was returned to the sender (its breaks say so), the sender has the money: pay nothing, and mark this as " +
			"paid with the number of the charge as evidence. Else correct the cause named in the message, then retry: the same order " +
			"number is used."},
	{"returned", "The money was returned after success.", true, "Check the recipient's account. If it can be paid, retry with a new order " +
		"number; if not, pay another one yourself and mark it as paid, or cancel.",
		"Check the sender's account. If it can be paid, retry with a new order number; if not, pay another one yourself and mark it as paid."},
	{FailureShareConflict, "The claim cannot be recorded: the share is taken, or the packet's books are closed.", true,
		"Retry to honour it with the house's money, or cancel to void it; both need two persons.", ""},
	{FailureNotMoved, "Two persons stated that the money has not moved.", true, "Retry, with a second person, or pay another way and mark " +
		"it as paid, or cancel.", "Retry, with a second person, or pay the sender yourself and mark it as paid."},
	{FailureNotConfirmed, "The recipient did not confirm in time.", true, "Ask the recipient, then retry.", "Ask the sender, then retry."},
	{"closed", "The charge was closed before it was paid: nothing was taken.", true, "Create the packet again, under another " +
		"Idempotency-Key.", ""},
	{"payee_unknown", "The provider does not know the recipient's account.", false, "Ask the recipient for the right account and pay it " +
		"yourself, then mark it as paid; or cancel.",
		"Ask the sender for the right account, pay it yourself and mark it as paid."},
	{"payee_not_verified", "The recipient's identity is not verified at the provider.", true, "Retry once the recipient has verified it.",
		"Retry once the sender has verified it."},
	{"payee_name_differs", "The recipient's name is not that of the account.", false, "Check the name with the recipient; pay another " +
		"way and mark it as paid, or cancel.", "Pay the sender another way and mark it as paid."},
	{"payee_limit_reached", "The recipient may receive no more in this day or month.", true, "Retry on another day.", ""},
	{"merchant_limit_reached", "Our limit at the provider is reached.", true, "Ask the provider for a higher limit, or retry on another day.",
		""},
	{"merchant_not_enabled", "Our account at the provider may not pay: a product or a setting is missing.", true,
		"Correct the setting at the provider, then retry.", ""},
	{"merchant_rejected", "The payment was rejected at the provider's merchant platform, or nobody approved it there.", true,
		"Ask who rejected it, then retry or cancel.", "Ask who rejected it, then retry."},
	{failureTransferCancelled, "The payment was cancelled at the provider before the recipient confirmed it.", true, "Ask who cancelled it, " +
		"then retry or cancel.", "Ask who stopped it, then retry."},
	{"refund_unfunded", "Our balance did not cover the refund for a week: the provider closed it.", true, "Top up, then retry with a new " +
		"order number.", ""},
	{FailureRefundLimit, "The charge has as many refunds as the provider makes: nothing was sent.", false,
		"Pay the sender another way and mark it as paid.", ""},
	{FailureRefundWindowOver, "The provider does not refund the charge any more, it is too old: nothing was sent.", false,
		"Pay the sender another way and mark it as paid.", ""},
	{"encryption_key_retired", "The recipient's name in the stored request is encrypted with a key that the provider no longer uses.", false,
		"Pay the recipient yourself and mark it as paid, or cancel.", "Pay the sender yourself and mark it as paid."},
}

// ChargeNextActions are the next actions of charges by code, where they differ: a charge is not retried.
var ChargeNextActions = map[string]string{
	"declined":         "Ask the provider why. The sender has to create the packet again, under another Idempotency-Key.",
	"declined_by_rule": "The sender has to create the packet again, under another Idempotency-Key.",
	"never_received": "Correct the cause named in the message. The sender has to create the packet again, under another " +
		"Idempotency-Key.",
	"returned":      "The sender has the money back. Decide about the break of this charge.",
	FailureNotMoved: "The sender has to create the packet again, under another Idempotency-Key.",
}

// NewFailure is FailureOf for payouts.
func NewFailure(code, message string) *Failure { return FailureOf(KindPayout, code, message) }

// FailureOf looks the code up in the catalogue. A message of the provider replaces ours.
func FailureOf(kind Kind, code, message string) *Failure {
	if code == "" {
		code = "declined"
	}
	row := FailureCodes[0]
	for _, c := range FailureCodes {
		if c.Code == code {
			row = c
			break
		}
	}
	if message == "" {
		message = row.Message
	}
	next := row.NextAction
	if kind == KindRefund && row.RefundNextAction != "" {
		next = row.RefundNextAction
	}
	if own := ChargeNextActions[row.Code]; kind == KindCharge && own != "" {
		next = own
	}
	return &Failure{Code: code, Message: message, Retryable: row.Retryable, NextAction: next}
}

// FailureExpiredBeforeCharge is the code of a charge whose packet expired before anything was sent.
const FailureExpiredBeforeCharge = "expired_before_charge"

// FailureRestoredBeforeCharge is the code of a charge from before a restore of MySQL that the provider
// never received.
const FailureRestoredBeforeCharge = "restored_before_charge"

// Unsent reports whether this is a charge or refund without any send. It has no order number, so no money can
// have moved. Such payments alone fail without an answer of the provider (rule R4).
func (p Payment) Unsent() bool {
	return (p.Kind == KindCharge || p.Kind == KindRefund) && p.Status == StatusPending && p.Attempt == 0
}

// FailUnsent fails an unsent charge or refund. Errors: ErrTransition.
func FailUnsent(p *Payment, code string, now time.Time) error {
	if err := p.Move(StatusFailed); err != nil {
		return err
	}
	p.Failure, p.UpdatedAt = FailureOf(p.Kind, code, ""), now
	return nil
}

// ExpireUnsent fails an unsent charge whose packet has expired (rule R2), or whose own deadline has passed,
// or which was withdrawn. Otherwise the sender
// would be charged and refunded for a packet that cannot be grabbed. Errors: ErrTransition.
func ExpireUnsent(p *Payment, now time.Time) error {
	code := FailureExpiredBeforeCharge
	switch {
	case p.closing():
		code = p.closeCode()
	case !p.mayPay(now):
		code = FailureFundingExpired
	}
	return FailUnsent(p, code, now)
}

// ChargeSucceededLate reports whether a charge succeeded after its packet may have been given up:
// the charge had failed, or a recovery set it back to unknown. If the packet was
// rejected, all of it is refunded (rule R2); a packet that is still funding continues.
func ChargeSucceededLate(was Status, now Payment) bool {
	return now.Kind == KindCharge && now.Status == StatusPaid && (was == StatusFailed || was == StatusUnknown)
}
