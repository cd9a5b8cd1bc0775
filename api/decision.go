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
	"hongbao/wire"
)

// maxReason is the longest reason, and the longest evidence, in characters.
const maxReason = 500

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
func readReason(body []byte) (wire.Reason, error) {
	o, err := readObject(body)
	if err != nil {
		return wire.Reason{}, err
	}
	return reasonFrom(o)
}

func reasonFrom(o *object) (wire.Reason, error) {
	reason := o.text("reason", true, checkReason)
	return wire.Reason{Reason: valueOr(reason, "")}, o.done()
}

func readRetry(body []byte) (wire.Retry, error) {
	o, err := readObject(body)
	if err != nil {
		return wire.Retry{}, err
	}
	return retryFrom(o)
}

func retryFrom(o *object) (wire.Retry, error) {
	reason, evidence := o.text("reason", true, checkReason), o.text("evidence", false, checkReason)
	return wire.Retry{Reason: valueOr(reason, ""), Evidence: valueOr(evidence, "")}, o.done()
}

func readMarkPaid(body []byte) (wire.MarkPaid, error) {
	o, err := readObject(body)
	if err != nil {
		return wire.MarkPaid{}, err
	}
	return markPaidFrom(o)
}

func markPaidFrom(o *object) (wire.MarkPaid, error) {
	reason, evidence := o.text("reason", true, checkReason), o.text("evidence", true, checkReason)
	return wire.MarkPaid{Reason: valueOr(reason, ""), Evidence: valueOr(evidence, "")}, o.done()
}

// missingPayment is the code of an unknown payment of a kind.
func missingPayment(about payout.Kind) wire.Code {
	if about == payout.KindRefund {
		return wire.CodeRefundNotFound
	}
	return wire.CodePayoutNotFound
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
		return answer{}, invalidField("evidence", faultRequired, "is required: the payment is not final")
	case errors.Is(err, staff.ErrKeyReused):
		return answer{}, refuse(wire.CodeKeyReused)
	case errors.Is(err, staff.ErrInProgress):
		return answer{}, &refusal{code: wire.CodeRequestInProgress, retryAfter: shortPause}
	case errors.Is(err, payout.ErrSelfApproval):
		return answer{}, &refusal{code: wire.CodeForbidden, detail: "The person who decided cannot approve or reject; another person has to."}
	case errors.Is(err, payout.ErrNotAuthor):
		return answer{}, &refusal{code: wire.CodeForbidden, detail: "Only the person who decided can withdraw a decision; others can reject it."}
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
		return accepted(wire.DecidedRefund{Decision: decision, Refund: r.server.renderRefund(p), Approval: approval})
	}
	return accepted(wire.Decided{Decision: decision, Payout: r.server.renderPayout(p), Approval: approval})
}

func (r *request) renderRefusedDecision(refused error) (int, []byte) {
	e := refuse(wire.CodeNotRetryable)
	switch {
	case errors.Is(refused, payout.ErrNoOpenCancel):
		e.detail = noOpenCancel
	case errors.Is(refused, payout.ErrNotShown):
		e.detail = notShown
	case errors.Is(refused, payout.ErrNoOrder):
		e.detail = "The break is resolved, or not about an order number of a payment: it can be resolved only with the outcome none."
	case errors.Is(refused, payout.ErrDecisionPending):
		e = refuse(wire.CodeDecisionPending)
	case errors.Is(refused, payout.ErrDecisionChanged):
		e = refuse(wire.CodeDecisionChanged)
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

func renderDecided(d staff.Decision) (wire.Decision, *wire.Approval) {
	var approval *wire.Approval
	if d.Status == payout.DecisionWaiting {
		approval = &wire.Approval{ID: d.ApprovalID, ExpiresAt: wire.At(d.ExpiresAt)}
	}
	out := wire.Decision{ID: d.ID, Kind: string(d.Kind), Reason: d.Reason, By: d.By, KeyID: textOrNull(d.KeyID), Status: string(d.Status),
		OrderNo: textOrNull(d.OrderNo)}
	if d.BreakID != 0 {
		out.BreakID = textOrNull(breakPrefix + strconv.FormatInt(d.BreakID, 10))
	}
	return out, approval
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
