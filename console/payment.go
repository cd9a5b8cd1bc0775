package console

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"hongbao/client"
	"hongbao/internal/money"
	"hongbao/wire"
)

// payment is a payout, refund or charge as pages show it.
type payment struct {
	Kind         string // payout, refund or charge
	ID           string
	PacketID     string
	UserID       string
	Share        *int // of a payout
	RefundKind   wire.RefundKind
	PayoutID     *string // of a refund: the cancelled payout
	Amount       money.Fen
	Status       wire.PayoutStatus
	OrderNo      *string
	Provider     string
	ProviderRef  *string
	Failure      *wire.PayoutFailure
	AttemptCount int
	CreatedAt    wire.Time
	UpdatedAt    wire.Time
	Workflow     wire.WorkflowLink
}

func paymentOf(kind string, p wire.Payment) payment {
	return payment{Kind: kind, ID: p.ID, PacketID: p.PacketID, UserID: p.UserID, Amount: p.Amount, Status: p.Status, OrderNo: p.OrderNo,
		Provider: p.Provider, ProviderRef: p.ProviderRef, Failure: p.Failure, AttemptCount: p.AttemptCount, CreatedAt: p.CreatedAt,
		UpdatedAt: p.UpdatedAt, Workflow: p.Workflow}
}

func paymentOfPayout(p wire.Payout) payment {
	out := paymentOf("payout", p.Payment)
	out.Share = p.ShareIndex
	return out
}

func paymentOfRefund(r wire.Refund) payment {
	out := paymentOf("refund", r.Payment)
	out.RefundKind, out.PayoutID = r.Kind, r.PayoutID
	return out
}

func paymentOfCharge(c wire.Payment) payment { return paymentOf("charge", c) }

// Open reports whether the platform still works on the payment without a decision.
func (p payment) Open() bool {
	switch p.Status {
	case wire.PayoutPending, wire.PayoutSending, wire.PayoutUnknown, wire.PayoutAwaitingRecipient, wire.PayoutAwaitingPayer:
		return true
	}
	return false
}

// Final reports whether no money of the payment moves any more.
func (p payment) Final() bool {
	return p.Status == wire.PayoutPaid || p.Status == wire.PayoutPaidOutside || p.Status == wire.PayoutCancelled
}

// Path is the address of the payment's page.
func (p payment) Path() string { return "/" + p.Kind + "s/" + p.ID }

// needsDecision reports whether the status waits for staff, or may.
func (p payment) needsDecision() bool {
	return p.Kind != "charge" && (p.Status == wire.PayoutFailed || p.Status == wire.PayoutReturned || p.Status == wire.PayoutUnknown)
}

// Cancellable reports whether a cancellation can be requested, if a retry is possible: only
// for a payout with a known outcome (payout.Permits).
func (p payment) Cancellable() bool {
	return p.Kind == "payout" && (p.Status == wire.PayoutFailed || p.Status == wire.PayoutReturned)
}

// Sent reports whether there is an order number to query.
func (p payment) Sent() bool { return p.AttemptCount > 0 }

// Queryable reports whether staff can have the order numbers queried.
func (p payment) Queryable() bool { return p.Kind != "refund" && p.Sent() }

// paymentPage is the data of a payment's page.
type paymentPage struct {
	Payment            payment
	Attempts           []wire.Attempt
	Timeline           []wire.TimelineSpan
	Temporal           wire.TemporalRuns
	Retry              wire.RetryPreview
	RefundCancellable  bool                // the sender must not get this refund
	Approvals          []wire.ApprovalItem // that wait for a second person
	OpenCancel         *wire.ApprovalItem  // that is being carried out, nil without one
	Holds              []hold              // active ones, of the payment or its packet
	Poll               string              // address that the page polls, with the digests of its content
	DecisionsUnchanged bool                // a poll leaves the decision forms as they are
}

// Holdable reports whether a hold of staff would stop something.
func (b paymentPage) Holdable() bool {
	return !b.Payment.Final() && !heldByStaff(b.Holds, b.Payment.ID)
}

// InProgress reports whether the payment can still change without input on this page: by the
// platform, by an open decision, or by an approval.
func (b paymentPage) InProgress() bool {
	return b.Payment.Open() || wire.Code(valueOr(b.Retry.Code, "")) == wire.CodeDecisionPending || b.OpenCancel != nil
}

// NeedsDecision reports whether staff can decide about the payment, or are shown why they cannot.
func (b paymentPage) NeedsDecision() bool { return b.Payment.needsDecision() || b.Retry.Possible }

// Correctable reports whether a cancellation or mark as paid may be possible. A held payment can be
// marked as paid.
func (b paymentPage) Correctable() bool { return b.Retry.Possible || b.Retry.Held != nil }

// Cancellable reports whether a cancellation can be requested.
func (b paymentPage) Cancellable() bool {
	return b.RefundCancellable || b.Payment.Cancellable() && b.Correctable()
}

// OrderNoReason is the reason why a retry uses its order number, as a key of retry_number.
func (b paymentPage) OrderNoReason() string {
	switch {
	case b.Retry.SameOrderNo:
		return "same"
	case b.Payment.Status == wire.PayoutReturned:
		return "returned"
	case b.Payment.Open():
		return "forgotten"
	case !b.Payment.Sent():
		return "first"
	}
	return "failed"
}

// RetryRefusal is the reason why the payment cannot be retried, as a key of retry_not; "" if
// the problem code explains it.
func (b paymentPage) RetryRefusal() string {
	switch {
	case b.Retry.Held != nil:
		return "held"
	case b.Payment.Status == wire.PayoutUnknown && wire.Code(valueOr(b.Retry.Code, "")) == wire.CodeNotRetryable:
		return "asked"
	}
	return ""
}

// outcome returns message and tone for a decision that was just made, updated to its current
// state: a retry may have ended, and an approval may have been given.
func (b paymentPage) outcome(done, tone string) (key, toneNow string) {
	decision, waits := strings.CutSuffix(done, "_waiting")
	switch {
	case waits && !slices.ContainsFunc(b.Approvals, func(a wire.ApprovalItem) bool { return "done."+a.Decision.Kind == decision }):
		return "", ""
	case done != "done.retry_carried_out" && done != "done.retry_open":
		return done, tone
	}
	switch b.Payment.Status {
	case wire.PayoutPaid, wire.PayoutPaidOutside:
		return "after.retry_paid", "good"
	case wire.PayoutUnknown:
		return "after.retry_unknown", "warn"
	case wire.PayoutFailed, wire.PayoutReturned:
		return "after.retry_failed", "bad"
	}
	return done, tone
}

// contentDigest identifies the content of the page. A poll sends it back, so an unchanged
// page is answered with 204.
func (b paymentPage) contentDigest() string {
	return digest(b.Payment, b.Attempts, b.Timeline, b.Temporal, b.Holds)
}

// decisionsDigest identifies the possible decisions and pending approvals.
func (b paymentPage) decisionsDigest() string {
	var waiting []string
	for _, a := range b.Approvals {
		waiting = append(waiting, a.ID, fmt.Sprint(a.Changed))
	}
	return digest(b.Payment.Status, b.Payment.Sent(), b.Retry, b.RefundCancellable, waiting, b.Holdable(), b.OpenCancel)
}

// digest returns a hash of values.
func digest(values ...any) string {
	text, err := json.Marshal(values)
	if err != nil {
		return rand.Text() // not reached with plain structs; a random digest never matches
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6])
}

func (v *visit) showPayout() error {
	d, err := v.staff.Payout(v.r.Context(), v.r.PathValue("id"))
	if err != nil {
		return err
	}
	return v.payment(paymentPage{Payment: paymentOfPayout(d.Payout), Attempts: d.Attempts, Timeline: wire.Spans(d.Timeline),
		Temporal: d.Temporal, Retry: d.Retry})
}

func (v *visit) showRefund() error {
	d, err := v.staff.Refund(v.r.Context(), v.r.PathValue("id"))
	if err != nil {
		return err
	}
	return v.payment(paymentPage{Payment: paymentOfRefund(d.Refund), Attempts: d.Attempts, Timeline: wire.Spans(d.Timeline),
		Temporal: d.Temporal, Retry: d.Retry, RefundCancellable: d.Cancellable})
}

func (v *visit) showCharge() error {
	d, err := v.staff.Charge(v.r.Context(), v.r.PathValue("id"))
	if err != nil {
		return err
	}
	return v.payment(paymentPage{Payment: paymentOfCharge(d.Payment), Attempts: d.Attempts, Timeline: wire.Spans(d.Timeline),
		Temporal: d.Temporal})
}

func (v *visit) payment(body paymentPage) error {
	approvals, err := v.staff.ListApprovals(v.r.Context(), wire.ApprovalFilter{PaymentID: body.Payment.ID}, client.Page{})
	if err != nil {
		return err
	}
	for _, a := range approvals.Items { // newest first: one that waits or is open is on the first page
		switch a.Status {
		case "waiting":
			body.Approvals = append(body.Approvals, a)
		case "open":
			body.OpenCancel = &a
		}
	}
	if body.Holds, err = v.activeHolds(body.Payment.ID, body.Payment.PacketID); err != nil {
		return err
	}
	shown, stands := body.contentDigest(), body.decisionsDigest()
	if body.DecisionsUnchanged = v.polls() && v.query.Get("stands") == stands; body.DecisionsUnchanged && v.query.Get("shown") == shown {
		v.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	poll := url.Values{"shown": {shown}, "stands": {stands}}
	if done := v.query.Get("done"); done != "" {
		poll.Set("done", done)
	}
	body.Poll = body.Payment.Path() + "?" + poll.Encode()
	v.show("payment", http.StatusOK, body)
	return nil
}

// decidePayout submits a decision about a payout.
func (v *visit) decidePayout() error {
	ctx, id, reason := v.r.Context(), v.r.PathValue("id"), v.reason()
	key, req := v.key(), wire.Reason{Reason: reason}
	evidence := v.r.PostFormValue("evidence")
	var made *wire.Decided
	var err error
	switch v.r.PathValue("action") {
	case "retry":
		made, err = v.staff.RetryPayout(ctx, id, wire.Retry{Reason: reason, Evidence: evidence}, key)
	case "cancel":
		made, err = v.staff.CancelPayout(ctx, id, req, key)
	case "withdraw":
		made, err = v.staff.WithdrawCancel(ctx, id, req, key)
	case "mark-paid":
		made, err = v.staff.MarkPayoutPaid(ctx, id,
			wire.MarkPaid{Reason: reason, Evidence: evidence}, key)
	case "ask":
		made, err = v.staff.AskPayout(ctx, id, req, key)
	case "hold":
		return v.placeHold("payment", "/payouts/")
	default:
		return &client.Problem{Problem: wire.Problem{Status: http.StatusNotFound, Code: wire.CodeNotFound}}
	}
	if err != nil {
		return v.showFormAgain(err)
	}
	return v.redirectDone("/payouts/"+made.Payout.ID, made.Decision.Kind+"_"+made.Decision.Status)
}

// decideRefund submits a decision about a refund.
func (v *visit) decideRefund() error {
	ctx, id, reason := v.r.Context(), v.r.PathValue("id"), v.reason()
	var made *wire.DecidedRefund
	var err error
	switch v.r.PathValue("action") {
	case "retry":
		made, err = v.staff.RetryRefund(ctx, id, wire.Retry{Reason: reason,
			Evidence: v.r.PostFormValue("evidence")}, v.key())
	case "withdraw":
		made, err = v.staff.WithdrawRefundCancel(ctx, id, wire.Reason{Reason: reason}, v.key())
	case "cancel":
		made, err = v.staff.CancelRefund(ctx, id, wire.Reason{Reason: reason}, v.key())
	case "mark-paid":
		made, err = v.staff.MarkRefundPaid(ctx, id, wire.MarkPaid{Reason: reason,
			Evidence: v.r.PostFormValue("evidence")}, v.key())
	case "hold":
		return v.placeHold("payment", "/refunds/")
	default:
		return &client.Problem{Problem: wire.Problem{Status: http.StatusNotFound, Code: wire.CodeNotFound}}
	}
	if err != nil {
		return v.showFormAgain(err)
	}
	return v.redirectDone("/refunds/"+made.Refund.ID, made.Decision.Kind+"_"+made.Decision.Status)
}

// decideCharge has a charge queried, or holds it: a charge is not retried.
func (v *visit) decideCharge() error {
	switch v.r.PathValue("action") {
	case "ask":
		made, err := v.staff.AskCharge(v.r.Context(), v.r.PathValue("id"), wire.Reason{Reason: v.reason()}, v.key())
		if err != nil {
			return v.showFormAgain(err)
		}
		return v.redirectDone("/charges/"+made.Charge.ID, made.Decision.Kind+"_"+made.Decision.Status)
	case "hold":
		return v.placeHold("payment", "/charges/")
	}
	return &client.Problem{Problem: wire.Problem{Status: http.StatusNotFound, Code: wire.CodeNotFound}}
}

// reason is the form's reason for the audit log.
func (v *visit) reason() string { return v.r.PostFormValue("reason") }
