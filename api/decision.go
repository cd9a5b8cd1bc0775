package api

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"hongbao/internal/access"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// maxReason is the longest reason, and the longest evidence, in characters.
const maxReason = 500

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
	ID     string           `json:"id" doc:"The decision's id." example:"KQ3X7M2P5R6T4V2W3Y7Z5B6CDE"`
	Kind   string           `json:"kind" enum:"retry,cancel,mark_paid,ask,moved,not_moved" doc:"The decision; moved and not_moved state what became of the money of a break's order number."`
	Reason string           `json:"reason" doc:"The reason."`
	By     string           `json:"by" doc:"The person who decided."`
	KeyID  Nullable[string] `json:"key_id" doc:"The id of the key that decided."`
	// OrderNo and BreakID are null unless the decision resolves a break.
	OrderNo Nullable[string] `json:"order_no" doc:"Of moved and not_moved: the order number that they are about."`
	BreakID Nullable[string] `json:"break_id" doc:"Of moved and not_moved: the break that they resolve."`
	Status  string           `json:"status" enum:"waiting,open,carried_out,overtaken,rejected,expired,withdrawn" doc:"waiting: for a second person; nothing has moved. open: approved; every order number is queried first. carried_out: done. overtaken: an answer of the provider or another decision made it obsolete. rejected, expired, withdrawn: ended; the decision has moved nothing."`
}

// Approval is the pending approval of a decision.
type Approval struct {
	ID        string `json:"id" doc:"The approval's id."`
	ExpiresAt Stamp  `json:"expires_at" doc:"Until when it can be approved."`
}

// Decided is the answer to a decision about a payout.
type Decided struct {
	Decision Decision           `json:"decision" doc:"The decision."`
	Payout   Payout             `json:"payout" doc:"The payout after the decision."`
	Approval Nullable[Approval] `json:"approval" doc:"Set while a second person has to approve; nothing has moved yet."`
}

// DecidedRefund is the answer to a decision about a refund.
type DecidedRefund struct {
	Decision Decision           `json:"decision" doc:"The decision."`
	Refund   Refund             `json:"refund" doc:"The refund after the decision."`
	Approval Nullable[Approval] `json:"approval" doc:"Set while a second person has to approve; nothing has moved yet."`
}

// checkReason checks a reason or an evidence.
func checkReason(s string) *fault {
	switch n := utf8.RuneCountInString(s); {
	case strings.TrimSpace(s) == "" || n > maxReason:
		return &fault{faultLength, "must have 1 to 500 characters, not only spaces"}
	case strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }):
		return &fault{faultCharacters, "must not contain control characters"}
	}
	return nil
}

// readReason parses and checks the body of a decision.
func readReason(body []byte) (Reason, error) {
	o, err := readObject(body)
	if err != nil {
		return Reason{}, err
	}
	return reasonFrom(o)
}

func reasonFrom(o *object) (Reason, error) {
	reason := o.text("reason", true, checkReason)
	return Reason{Reason: valueOr(reason, "")}, o.done()
}

func readRetry(body []byte) (Retry, error) {
	o, err := readObject(body)
	if err != nil {
		return Retry{}, err
	}
	return retryFrom(o)
}

func retryFrom(o *object) (Retry, error) {
	reason, evidence := o.text("reason", true, checkReason), o.text("evidence", false, checkReason)
	return Retry{Reason: valueOr(reason, ""), Evidence: valueOr(evidence, "")}, o.done()
}

func readMarkPaid(body []byte) (MarkPaid, error) {
	o, err := readObject(body)
	if err != nil {
		return MarkPaid{}, err
	}
	return markPaidFrom(o)
}

func markPaidFrom(o *object) (MarkPaid, error) {
	reason, evidence := o.text("reason", true, checkReason), o.text("evidence", true, checkReason)
	return MarkPaid{Reason: valueOr(reason, ""), Evidence: valueOr(evidence, "")}, o.done()
}

// missingPayment is the code of an unknown payment of a kind.
func missingPayment(about payout.Kind) Code {
	if about == payout.KindRefund {
		return CodeRefundNotFound
	}
	return CodePayoutNotFound
}

// decide returns the handler of one kind of decision about one kind of payment: payouts or
// refunds.
func decide(kind payout.DecisionKind, about payout.Kind) func(*request) (answer, error) {
	missing := missingPayment(about)
	return func(r *request) (answer, error) {
		// A malformed id in the path is answered like an unknown id.
		id, idErr := r.paymentID(about, missing)
		wanted := payout.DecisionRequest{Kind: kind, ApproveFrom: r.server.cfg.ApprovalAmount}
		w, err := r.readDecision(&wanted)
		if err != nil {
			return answer{}, err
		}
		if idErr != nil {
			return answer{}, idErr
		}
		w.Route = r.c.Method() + " " + r.route.on(id)
		stored, err := r.server.cfg.Store.Decide(r.ctx, w, id, wanted, r.renderDecision)
		return staffAnswer(stored, err, refuse(missing))
	}
}

const notShown = "Neither a statement line nor the provider's last answer shows that the money of this order number has moved. " +
	"A payment by other means is recorded with mark-paid."

const noOpenCancel = "No cancel is open. A decision that waits for a second person is withdrawn by the person who " +
	"decided, with POST /v1/staff/approvals/{id}/withdraw."

// withdrawCancel returns the handler that withdraws the open cancel of a payout or refund.
func withdrawCancel(about payout.Kind) func(*request) (answer, error) {
	missing := missingPayment(about)
	return func(r *request) (answer, error) {
		id, idErr := r.paymentID(about, missing)
		w, err := r.readDecision(&payout.DecisionRequest{Kind: payout.DecisionCancel})
		if err != nil {
			return answer{}, err
		}
		if idErr != nil {
			return answer{}, idErr
		}
		w.Route = r.c.Method() + " " + r.route.on(id)
		stored, err := r.server.cfg.Store.WithdrawCancel(r.ctx, w, id, r.renderDecision)
		return staffAnswer(stored, err, refuse(missing))
	}
}

// readDecision reads the body and the Idempotency-Key of a decision. The evidence of a retry and of
// mark_paid is set in wanted.
func (r *request) readDecision(wanted *payout.DecisionRequest) (staff.Write, error) {
	switch wanted.Kind {
	case payout.DecisionRetry:
		body, err := readRetry(r.payload)
		if err != nil {
			return staff.Write{}, err
		}
		wanted.Evidence = body.Evidence
		return r.staffWrite(body, body.Reason)
	case payout.DecisionMarkPaid:
		body, err := readMarkPaid(r.payload)
		if err != nil {
			return staff.Write{}, err
		}
		wanted.Evidence = body.Evidence
		return r.staffWrite(body, body.Reason)
	}
	body, err := readReason(r.payload)
	if err != nil {
		return staff.Write{}, err
	}
	return r.staffWrite(body, body.Reason)
}

// staffWrite returns who writes, why, and under which Idempotency-Key. The caller sets the
// route.
func (r *request) staffWrite(body any, reason string) (staff.Write, error) {
	key, err := r.idempotencyKey()
	if err != nil {
		return staff.Write{}, err
	}
	hash, err := bodyHash(body)
	if err != nil {
		return staff.Write{}, err
	}
	owner := r.caller.key
	return staff.Write{Owner: owner.Owner, Role: string(owner.Role), KeyID: owner.ID, Key: key, BodyHash: hash, Reason: reason}, nil
}

// staffAnswer converts the stored answer of a staff write; missing is the refusal for an
// unknown id.
func staffAnswer(stored staff.Answer, err error, missing *refusal) (answer, error) {
	switch {
	case errors.Is(err, packet.ErrNotFound):
		return answer{}, missing
	case errors.Is(err, access.ErrActorKeyEnded):
		return answer{}, refuseKey(keyUnknown)
	case errors.Is(err, payout.ErrEvidenceRequired):
		return answer{}, invalid(FieldError{"evidence", faultRequired, "is required: the payment is not final"})
	case errors.Is(err, staff.ErrKeyReused):
		return answer{}, refuse(CodeKeyReused)
	case errors.Is(err, staff.ErrInProgress):
		return answer{}, &refusal{code: CodeRequestInProgress, retryAfter: shortPause}
	case errors.Is(err, payout.ErrSelfApproval):
		return answer{}, &refusal{code: CodeForbidden, detail: "The person who decided cannot approve or reject; another person has to."}
	case errors.Is(err, payout.ErrNotAuthor):
		return answer{}, &refusal{code: CodeForbidden, detail: "Only the person who decided can withdraw a decision; others can reject it."}
	case err != nil:
		return answer{}, err
	}
	a := answer{status: stored.Status, raw: stored.Body, replayed: stored.Replayed}
	if stored.Status >= http.StatusBadRequest {
		a.kind = contentProblem
	}
	return a, nil
}

// renderDecision returns the answer that is stored with the decision.
func (r *request) renderDecision(d *staff.Decision, p staff.PaymentRow, refused error) (int, []byte) {
	if refused != nil {
		return r.renderRefusedDecision(refused)
	}
	decision, approval := renderDecided(*d)
	if p.Kind == payout.KindRefund {
		return accepted(DecidedRefund{Decision: decision, Refund: r.server.renderRefund(p), Approval: approval})
	}
	return accepted(Decided{Decision: decision, Payout: r.server.renderPayout(p), Approval: approval})
}

func (r *request) renderRefusedDecision(refused error) (int, []byte) {
	e := refuse(CodeNotRetryable)
	switch {
	case errors.Is(refused, payout.ErrNoOpenCancel):
		e.detail = noOpenCancel
	case errors.Is(refused, payout.ErrNotShown):
		e.detail = notShown
	case errors.Is(refused, payout.ErrNoOrder):
		e.detail = "The break is resolved, or not about an order number of a payment: it can be resolved only with the outcome none."
	case errors.Is(refused, payout.ErrDecisionPending):
		e = refuse(CodeDecisionPending)
	case errors.Is(refused, payout.ErrDecisionChanged):
		e = refuse(CodeDecisionChanged)
	}
	if by, ok := errors.AsType[*payout.HeldError](refused); ok {
		e = refuseHeld(by.Hold)
	}
	problem := e.problem(instanceOf(r.c), r.id)
	if changed, ok := errors.AsType[*payout.ChangedError](refused); ok {
		problem.Preview = previewOf(changed.Now)
	}
	raw := encodeBody(problem)
	return problem.Status, raw
}

func renderDecided(d staff.Decision) (Decision, Nullable[Approval]) {
	var approval *Approval
	if d.Status == payout.DecisionWaiting {
		approval = &Approval{ID: d.ApprovalID, ExpiresAt: Stamp(d.ExpiresAt)}
	}
	out := Decision{ID: d.ID, Kind: string(d.Kind), Reason: d.Reason, By: d.By, KeyID: textOrNull(d.KeyID), Status: string(d.Status),
		OrderNo: textOrNull(d.OrderNo)}
	if d.BreakID != 0 {
		out.BreakID = textOrNull(breakPrefix + strconv.FormatInt(d.BreakID, 10))
	}
	return out, orNull(approval)
}

// accepted returns status 202 and a body.
func accepted(body any) (int, []byte) { return http.StatusAccepted, encodeBody(body) }

// encodeBody encodes an answer of this package, which cannot fail.
func encodeBody(body any) []byte {
	raw, err := encode(body)
	if err != nil {
		return []byte("{}")
	}
	return raw
}
