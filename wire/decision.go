package wire

import (
	"fmt"

	"hongbao/internal/money"
)

// Reason is the body of most decisions.
type Reason struct {
	Reason string `json:"reason" minLength:"1" maxLength:"500" doc:"The reason, for the audit: 1 to 500 characters." example:"account unfrozen, see ticket 4711"`
}

// Retry is the body of a decision to retry a payment.
type Retry struct {
	Reason   string `json:"reason" minLength:"1" maxLength:"500" doc:"The reason, for the audit: 1 to 500 characters." example:"account unfrozen, see ticket 4711"`
	Evidence string `json:"evidence,omitempty" minLength:"1" maxLength:"500" doc:"The evidence that the earlier order numbers will not pay: 1 to 500 characters. Required for a payment that is not final, unless the provider no longer knows its order number." example:"letter of the provider, 2026-04-02"`
}

// MarkPaid is the body of a decision to mark a payment as paid by other means.
type MarkPaid struct {
	Reason   string `json:"reason" minLength:"1" maxLength:"500" doc:"The reason, for the audit: 1 to 500 characters." example:"paid by bank transfer after the account was closed"`
	Evidence string `json:"evidence" minLength:"1" maxLength:"500" doc:"The evidence of the payment: 1 to 500 characters." example:"bank slip 2026-03-01/4711"`
}

// Decision is a decision of a member of staff.
type Decision struct {
	ID     string  `json:"id" doc:"The decision's id." example:"KQ3X7M2P5R6T4V2W3Y7Z5B6CDE"`
	Kind   string  `json:"kind" enum:"retry,cancel,mark_paid,ask,moved,not_moved,written_off,credit,debit" doc:"The decision; moved, not_moved and written_off state what became of the money of a break's order number, credit and debit move an app's balance."`
	Reason string  `json:"reason" doc:"The reason."`
	By     string  `json:"by" doc:"The person who decided."`
	KeyID  *string `json:"key_id" doc:"The id of the key that decided."`
	// OrderNo and BreakID are null unless the decision resolves a break.
	OrderNo *string `json:"order_no" doc:"Of moved, not_moved and written_off: the order number that they are about."`
	BreakID *string `json:"break_id" doc:"Of moved, not_moved and written_off: the break that they resolve."`
	Status  string  `json:"status" enum:"waiting,open,carried_out,overtaken,rejected,expired,withdrawn" doc:"waiting: for a second person; nothing has moved. open: approved; every order number is queried first. carried_out: done. overtaken: an answer of the provider or another decision made it obsolete. rejected, expired, withdrawn: ended; the decision has moved nothing."`
}

// Approval is the pending approval of a decision.
type Approval struct {
	ID        string `json:"id" doc:"The approval's id."`
	ExpiresAt Time   `json:"expires_at" doc:"Until when it can be approved."`
}

// Decided is the answer to a decision about a payout.
type Decided struct {
	Decision Decision  `json:"decision" doc:"The decision."`
	Payout   Payout    `json:"payout" doc:"The payout after the decision."`
	Approval *Approval `json:"approval" doc:"Set while a second person has to approve; nothing has moved yet."`
}

// DecidedRefund is the answer to a decision about a refund.
type DecidedRefund struct {
	Decision Decision  `json:"decision" doc:"The decision."`
	Refund   Refund    `json:"refund" doc:"The refund after the decision."`
	Approval *Approval `json:"approval" doc:"Set while a second person has to approve; nothing has moved yet."`
}

// ApprovalFilter selects decisions that need, or needed, a second person; zero members select all.
type ApprovalFilter struct {
	Status    string `json:"status,omitempty" enum:"waiting,open,carried_out,overtaken,rejected,expired,withdrawn" doc:"Decisions in this status." example:"waiting"`
	PaymentID string `json:"payment_id,omitempty" check:"code" doc:"Decisions about this payout or refund." example:"p3q5k9v0c1m7e2u8h4r6t0003"`
	ByOthers  bool   `json:"by_others,omitempty" doc:"true: only decisions of other people, thus of the waiting ones those that the caller may approve or reject. false: all, the default." example:"true"`
}

// ApprovalItem is a decision that needs, or needed, a second person.
type ApprovalItem struct {
	ID           string           `json:"id" doc:"The approval's id." example:"aKQ3X7M2P5R6T4V2W3Y7Z5B6CD"`
	Status       string           `json:"status" enum:"waiting,open,carried_out,overtaken,rejected,expired,withdrawn" doc:"The decision's status."`
	Decision     Decision         `json:"decision" doc:"The decision that waits."`
	Evidence     *string          `json:"evidence" doc:"Of mark_paid: the evidence of the payment. Of moved, not_moved and written_off: that of the outcome. Of a retry of a payment that was not final: that its earlier order numbers will not pay. Of credit and debit: that of the money at the bank."`
	Payout       *Payout          `json:"payout" doc:"The current payout that the decision is about; null for another decision."`
	Refund       *Refund          `json:"refund" doc:"The current refund that the decision is about; null for another decision."`
	Movement     *BalanceMovement `json:"movement" doc:"The credit or debit that the decision is about; null for another decision."`
	Preview      *Preview         `json:"preview" doc:"What the decision would now do; null unless it waits and the state permits it."`
	Changed      bool             `json:"changed" doc:"The decision waits, and its payment has changed since it was made: it cannot be approved."`
	AnsweredBy   *string          `json:"answered_by" doc:"The second person; null before the answer."`
	AnswerKeyID  *string          `json:"answer_key_id" doc:"The id of the key that answered or withdrew it."`
	AnswerReason *string          `json:"answer_reason" doc:"The reason of the second person; of a withdrawn decision, why it was withdrawn."`
	CreatedAt    Time             `json:"created_at" doc:"When the decision was made."`
	ExpiresAt    Time             `json:"expires_at" doc:"Until when it can be approved."`
	EndedAt      *Time            `json:"ended_at" doc:"When the decision ended; null before."`
}

// Preview is the effect that a waiting decision would have now.
type Preview struct {
	Status       PayoutStatus `json:"status" doc:"The status of the payout or refund."`
	Amount       money.Fen    `json:"amount" doc:"Its amount."`
	FailureCode  *string      `json:"failure_code" doc:"Of a failed or returned payment: the failure code."`
	AttemptCount int          `json:"attempt_count" minimum:"0" doc:"How many order numbers were used."`
	LastAnswer   *string      `json:"last_answer" doc:"The provider's last answer about the newest order number, as the outcome of an attempt; null before the first answer. An approval covers it: after another answer it is refused with decision_changed."`
	OrderNo      *string      `json:"order_no" doc:"Of a retry: the order number that would be sent after the queries; otherwise null."`
	SameOrderNo  bool         `json:"same_order_no" doc:"The order number is that of the last attempt, which the provider never received."`
}

// Answered is the response to an approval, rejection or withdrawal.
type Answered struct {
	Decision Decision         `json:"decision" doc:"The decision after the answer."`
	Payout   *Payout          `json:"payout" doc:"The payout after the answer; null for another decision."`
	Refund   *Refund          `json:"refund" doc:"The refund after the answer; null for another decision."`
	Movement *BalanceMovement `json:"movement" doc:"The credit or debit after the answer; null for another decision."`
	Approval *Approval        `json:"approval" doc:"Always null: the decision was answered."`
}

// String implements fmt.Stringer.
func (v *Preview) String() string {
	text := fmt.Sprintf("%s, amount %d, %d order numbers used", v.Status, v.Amount, v.AttemptCount)
	if v.FailureCode != nil {
		text += ", " + *v.FailureCode
	}
	if v.LastAnswer != nil {
		text += ", last answer " + *v.LastAnswer
	}
	if v.OrderNo != nil {
		text += ", would send " + *v.OrderNo
	}
	return text
}
