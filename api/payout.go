package api

import (
	"errors"
	"net/url"
	"strconv"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// Payout is a payout in answers to staff.
type Payout struct {
	ID           string                  `json:"id" doc:"The payout's id; for a share conflict it begins with h." example:"p3q5k9v0c1m7e2u8h4r6t0003"`
	PacketID     string                  `json:"packet_id" doc:"The packet of the share."`
	UserID       string                  `json:"user_id" doc:"The recipient."`
	ShareIndex   Nullable[int]           `json:"share_index" minimum:"0" doc:"The index of the share; null for a share conflict."`
	Amount       Fen                     `json:"amount" doc:"The amount owed."`
	Currency     string                  `json:"currency" enum:"CNY" doc:"The amount is in fen, the minor unit of CNY."`
	Status       PayoutStatus            `json:"status" doc:"The status; see the payout of a claim."`
	OrderNo      Nullable[string]        `json:"order_no" doc:"The order number of the current attempt; null before the first."`
	Provider     string                  `json:"provider" doc:"The provider." example:"sandbox"`
	ProviderRef  Nullable[string]        `json:"provider_ref" doc:"The provider's reference; null until it is known."`
	Failure      Nullable[PayoutFailure] `json:"failure" doc:"The failure; null unless the status is failed or returned."`
	AttemptCount int                     `json:"attempt_count" minimum:"0" doc:"The number of attempts; each has its own order number."`
	CreatedAt    Stamp                   `json:"created_at" doc:"When it was recorded."`
	UpdatedAt    Stamp                   `json:"updated_at" doc:"When it last changed."`
	Workflow     WorkflowLink            `json:"workflow" doc:"The Temporal workflow of the payment."`
}

// PayoutFailure is why a payout failed or was returned, with the next step.
type PayoutFailure struct {
	Code       string `json:"code" doc:"The failure code, for programs." example:"account_frozen"`
	Message    string `json:"message" doc:"A message for people; the provider's own if it gave one."`
	Retryable  bool   `json:"retryable" doc:"true: a retry without any change can succeed."`
	NextAction string `json:"next_action" doc:"The next step of finance."`
}

// WorkflowLink is a Temporal workflow and its page in the Temporal UI.
type WorkflowLink struct {
	ID  string `json:"id" doc:"The workflow id." example:"payout/3q5k9v0c1m7e2u8h4r6t/u2"`
	URL string `json:"url" format:"uri-reference" doc:"The page in the Temporal UI." example:"https://temporal.example.com/namespaces/default/workflows/payout%2F3q5k9v0c1m7e2u8h4r6t%2Fu2"`
}

// Attempt is one order number at the provider; sends and asks count its calls.
type Attempt struct {
	No        int              `json:"no" minimum:"1" doc:"The number of the attempt, 1 for the first order number."`
	Op        string           `json:"op" enum:"charge,transfer,refund" doc:"The provider's operation."`
	OrderNo   string           `json:"order_no" doc:"The order number: the idempotency key at the provider."`
	Outcome   Nullable[string] `json:"outcome" doc:"The provider's last answer about this order number: succeeded, pending, needs_recipient, declined, returned or never_received; null before the first answer."`
	Code      Nullable[string] `json:"code" doc:"The provider's code, or null."`
	StartedAt Nullable[Stamp]  `json:"started_at" doc:"When it was first sent; null before."`
	EndedAt   Nullable[Stamp]  `json:"ended_at" doc:"When its outcome became final."`

	Message     Nullable[string] `json:"message" doc:"The provider's message in its last answer, or null."`
	ProviderRef Nullable[string] `json:"provider_ref" doc:"The provider's reference; null until it is known."`
	Request     Nullable[string] `json:"request" doc:"The request body, as stored before the first send; members with secrets are masked."`
	Sends       int              `json:"sends" minimum:"0" doc:"How many times it was sent."`
	Asks        int              `json:"asks" minimum:"0" doc:"How many times the provider was queried about it."`
}

// PayoutDetail is a payout with its attempts, history and workflow.
type PayoutDetail struct {
	Payout
	Attempts []Attempt       `json:"attempts" nullable:"false" doc:"Oldest first."`
	Timeline []TimelineEntry `json:"timeline" nullable:"false" doc:"Oldest first, merged from all sources."`
	Temporal TemporalRuns    `json:"temporal" doc:"The runs of its workflow, from Temporal."`
	Retry    RetryPreview    `json:"retry" doc:"What a retry would now do."`
}

// RetryPreview is the effect that a retry would have now.
type RetryPreview struct {
	Possible     bool             `json:"possible" doc:"true: the status permits a retry."`
	Code         Nullable[string] `json:"code" doc:"Why a retry is not possible: not_retryable, decision_pending or held; null when it is possible."`
	Held         Nullable[string] `json:"held" doc:"Why a hold stops a retry: its reason; null without a hold."`
	OrderNo      Nullable[string] `json:"order_no" doc:"The order number that would be sent after the queries; null when a retry is not possible."`
	SameOrderNo  bool             `json:"same_order_no" doc:"The order number is that of the last attempt, which the provider never received."`
	SecondPerson bool             `json:"second_person" doc:"true: a second person would have to approve."`
	Evidence     bool             `json:"evidence_required" doc:"true: the retry has to have evidence."`
}

// previewRetry returns the effect of a retry of a payment.
func (r *request) previewRetry(id string) (RetryPreview, error) {
	v, err := r.server.cfg.Store.PreviewDecision(r.ctx, id,
		payout.DecisionRequest{Kind: payout.DecisionRetry, ApproveFrom: r.server.cfg.ApprovalAmount})
	if err != nil && !refusedByState(err) {
		return RetryPreview{}, err
	}
	if err != nil {
		return RetryPreview{Code: BulkItem{}.orSkipped(err).Code, Held: textOrNull(heldBy(err))}, nil
	}
	return RetryPreview{Possible: true, OrderNo: textOrNull(v.OrderNo), SameOrderNo: v.SameOrderNo, SecondPerson: v.NeedsApproval,
		Evidence: v.NeedsEvidence}, nil
}

// answerOrNull returns the provider's last answer about an order number; null without one.
func answerOrNull(last payout.ObservationKind) Nullable[string] {
	if last == payout.ObsNoAnswer {
		last = ""
	}
	return textOrNull(string(last))
}

// heldBy returns the reason of the hold that refused something; "": none did.
func heldBy(err error) string {
	if by, ok := errors.AsType[*payout.HeldError](err); ok {
		return by.Hold.Reason
	}
	return ""
}

// Payouts is a page of payouts.
type Payouts struct {
	Items      []Payout         `json:"items" nullable:"false" doc:"Newest first."`
	NextCursor Nullable[string] `json:"next_cursor" doc:"The cursor of the next page; null on the last page."`
}

// shareOf returns the share of a payout; null for a share conflict.
func shareOf(r staff.PaymentRow) Nullable[int] {
	if r.ShareIndex < 0 {
		return orNull[int](nil)
	}
	return orNull(&r.ShareIndex)
}

func (s *Server) renderPayout(r staff.PaymentRow) Payout {
	out := Payout{
		ID: r.ID, PacketID: r.PacketID, UserID: r.UserID, ShareIndex: shareOf(r), Amount: Fen(r.Amount), Currency: r.Currency,
		Status: PayoutStatus(r.Status), OrderNo: textOrNull(r.OrderNo), Provider: r.Provider, ProviderRef: textOrNull(r.ProviderRef),
		AttemptCount: r.AttemptCount, CreatedAt: Stamp(r.CreatedAt), UpdatedAt: Stamp(r.UpdatedAt),
		Workflow: s.workflowLink(payoutWorkflow(r)),
	}
	if f := r.Failure; f != nil {
		out.Failure = orNull(&PayoutFailure{Code: f.Code, Message: f.Message, Retryable: f.Retryable, NextAction: f.NextAction})
	}
	return out
}

// payoutWorkflow returns the workflow id of a payout: for a share conflict that is not
// honoured yet, that of its claim.
func payoutWorkflow(r staff.PaymentRow) string {
	if parts, err := payout.Parse(r.ID); err == nil && parts.Kind == payout.KindHonour && r.AttemptCount > 0 {
		return "honour/" + r.PacketID + "/" + strconv.Itoa(parts.Number)
	}
	return "payout/" + r.PacketID + "/" + r.UserID
}

// workflowLink builds the address of a workflow in the Temporal UI. The id may contain slashes
// and any user id.
func (s *Server) workflowLink(id string) WorkflowLink {
	base := s.cfg.TemporalUIURL
	for len(base) > 0 && base[len(base)-1] == '/' {
		base = base[:len(base)-1]
	}
	return WorkflowLink{ID: id, URL: base + "/namespaces/" + url.PathEscape(s.cfg.TemporalNamespace) + "/workflows/" + url.PathEscape(id)}
}

func renderAttempts(d staff.PaymentDetail) []Attempt {
	out := []Attempt{}
	for _, a := range d.Attempts {
		out = append(out, Attempt{No: a.No, Op: string(a.Op), OrderNo: a.OrderNo, Outcome: answerOrNull(a.LastAnswer()),
			Code: textOrNull(a.Code), StartedAt: stampOrNull(a.StartedAt), EndedAt: stampOrNull(a.EndedAt), Message: textOrNull(a.Message),
			ProviderRef: textOrNull(a.ProviderRef), Request: textOrNull(masked(a.Request)), Sends: a.Sends, Asks: a.Queries})
	}
	return out
}
