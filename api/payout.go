package api

import (
	"errors"
	"net/url"
	"strconv"

	"hongbao/internal/payout"
)

// Payout is a payout in answers to staff.
type Payout struct {
	ID           string                  `json:"id" doc:"The payout's id. Of a promise that could not be booked it begins with h." example:"p3q5k9v0c1m7e2u8h4r6t0003"`
	PacketID     string                  `json:"packet_id" doc:"The packet it pays a share of."`
	UserID       string                  `json:"user_id" doc:"Who is owed."`
	ShareIndex   Nullable[int]           `json:"share_index" minimum:"0" doc:"Which share it pays; null of a promise that could not be booked."`
	Amount       Fen                     `json:"amount" doc:"What is owed."`
	Currency     string                  `json:"currency" enum:"CNY" doc:"The amount is in its minor unit, fen."`
	Status       PayoutStatus            `json:"status" doc:"How far it has come; see the payout of a claim."`
	OrderNo      Nullable[string]        `json:"order_no" doc:"Of the current attempt; null before the first."`
	Provider     string                  `json:"provider" doc:"Who pays it." example:"sandbox"`
	ProviderRef  Nullable[string]        `json:"provider_ref" doc:"The provider's own number; null until it is known."`
	Failure      Nullable[PayoutFailure] `json:"failure" doc:"Set exactly while failed or returned."`
	AttemptCount int                     `json:"attempt_count" minimum:"0" doc:"How many order numbers were used."`
	CreatedAt    Stamp                   `json:"created_at" doc:"When it was booked."`
	UpdatedAt    Stamp                   `json:"updated_at" doc:"When it changed last."`
	Workflow     WorkflowLink            `json:"workflow" doc:"The workflow that pays it."`
}

// PayoutFailure says why a payout failed or came back, and what can be done.
type PayoutFailure struct {
	Code       string `json:"code" doc:"Why, for programs." example:"account_frozen"`
	Message    string `json:"message" doc:"For people; the provider's own words where it gave some."`
	Retryable  bool   `json:"retryable" doc:"Trying again without changing anything can help."`
	NextAction string `json:"next_action" doc:"What finance should do next."`
}

// WorkflowLink names a Temporal workflow and where to look at it.
type WorkflowLink struct {
	ID  string `json:"id" doc:"Its workflow id." example:"payout/3q5k9v0c1m7e2u8h4r6t/u2"`
	URL string `json:"url" format:"uri-reference" doc:"In the Temporal UI."`
}

// Attempt is one order number at the provider; sends and asks are its calls.
type Attempt struct {
	No        int              `json:"no" minimum:"1" doc:"1 for the first order number."`
	Op        string           `json:"op" enum:"charge,transfer,refund" doc:"What the provider is asked to do."`
	OrderNo   string           `json:"order_no" doc:"Our number at the provider."`
	Outcome   Nullable[string] `json:"outcome" doc:"The provider's last word about this number: succeeded, pending, needs_recipient, declined, returned, never_received; null before the first."`
	Code      Nullable[string] `json:"code" doc:"The provider's code, if it gave one."`
	StartedAt Nullable[Stamp]  `json:"started_at" doc:"First send; null before it."`
	EndedAt   Nullable[Stamp]  `json:"ended_at" doc:"When its outcome became final."`

	Message     Nullable[string] `json:"message" doc:"The provider's words to its last answer, if it gave some."`
	ProviderRef Nullable[string] `json:"provider_ref" doc:"The provider's own number; null until it is known."`
	Request     Nullable[string] `json:"request" doc:"The body that was sent, or will be, as it was stored before the first send; members that hold secrets are masked."`
	Sends       int              `json:"sends" minimum:"0" doc:"How often it was sent."`
	Asks        int              `json:"asks" minimum:"0" doc:"How often the provider was asked about it."`
}

// PayoutDetail is a payout with everything known about it.
type PayoutDetail struct {
	Payout
	Attempts []Attempt       `json:"attempts" nullable:"false" doc:"In the order they were made."`
	Timeline []TimelineEntry `json:"timeline" nullable:"false" doc:"Oldest first, from every source."`
	Temporal TemporalRuns    `json:"temporal" doc:"What Temporal tells of its workflow."`
	Retry    RetryPreview    `json:"retry" doc:"What a retry would do now."`
}

// RetryPreview says what a retry would do if it was decided now.
type RetryPreview struct {
	Possible     bool             `json:"possible" doc:"The state allows it."`
	Code         Nullable[string] `json:"code" doc:"Why not: not_retryable or decision_pending; null when it is possible."`
	Undecided    Nullable[string] `json:"undecided" doc:"What a recovery of restored books has left to people: packet, its break of kind restored is open, and nothing of it is decided; cancel, the refund of its cancel, so that it can be cancelled or marked as paid, not retried. null otherwise."`
	OrderNo      Nullable[string] `json:"order_no" doc:"The number that would be sent once asking has confirmed what is known; null when it is not possible."`
	SameOrderNo  bool             `json:"same_order_no" doc:"It is the number of the last attempt, which the provider never received."`
	SecondPerson bool             `json:"second_person" doc:"Somebody else would have to agree."`
}

// previewRetry asks what a retry of a payment would do.
func (r *request) previewRetry(id string) (RetryPreview, error) {
	v, err := r.server.cfg.Store.PreviewDecision(r.ctx, id,
		payout.DecisionRequest{Kind: payout.DecisionRetry, ApproveFrom: r.server.cfg.ApprovalAmount})
	if err != nil && !refusedByState(err) {
		return RetryPreview{}, err
	}
	if err != nil {
		return RetryPreview{Code: BulkItem{}.orSkipped(err).Code, Undecided: textOrNull(undecidedOf(err))}, nil
	}
	return RetryPreview{Possible: true, OrderNo: textOrNull(v.OrderNo), SameOrderNo: v.SameOrderNo, SecondPerson: v.NeedsApproval}, nil
}

// undecidedOf names what a recovery has left to people; "": nothing of it.
func undecidedOf(err error) string {
	switch {
	case errors.Is(err, payout.ErrCancelLeft):
		return "cancel"
	case errors.Is(err, payout.ErrUndecided):
		return "packet"
	}
	return ""
}

// Payouts is a page of payouts.
type Payouts struct {
	Items      []Payout         `json:"items" nullable:"false" doc:"Newest first."`
	NextCursor Nullable[string] `json:"next_cursor" doc:"Continues the list; null on its last page."`
}

// shareOf is the share that a payout pays: a promise that could not be booked has none.
func shareOf(r payout.Row) Nullable[int] {
	if r.ShareIndex < 0 {
		return orNull[int](nil)
	}
	return orNull(&r.ShareIndex)
}

func (s *Server) renderPayout(r payout.Row) Payout {
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

// payoutWorkflow is the workflow of a payout: of a promise that nobody has kept yet it is
// the one of its claim, which found that it could not be booked.
func payoutWorkflow(r payout.Row) string {
	if parts, err := payout.Parse(r.ID); err == nil && parts.Kind == payout.KindHonour && r.AttemptCount > 0 {
		return "honour/" + r.PacketID + "/" + strconv.Itoa(parts.Number)
	}
	return "payout/" + r.PacketID + "/" + r.UserID
}

// workflowLink builds the address of a workflow in the Temporal UI. The id may
// hold slashes and whatever users call themselves.
func (s *Server) workflowLink(id string) WorkflowLink {
	base := s.cfg.TemporalUIURL
	for len(base) > 0 && base[len(base)-1] == '/' {
		base = base[:len(base)-1]
	}
	return WorkflowLink{ID: id, URL: base + "/namespaces/" + url.PathEscape(s.cfg.TemporalNamespace) + "/workflows/" + url.PathEscape(id)}
}

func renderAttempts(d payout.Detail) []Attempt {
	out := []Attempt{}
	for _, a := range d.Attempts {
		out = append(out, Attempt{No: a.No, Op: string(a.Op), OrderNo: a.OrderNo, Outcome: textOrNull(string(a.Statement)),
			Code: textOrNull(a.Code), StartedAt: stampOrNull(a.StartedAt), EndedAt: stampOrNull(a.EndedAt), Message: textOrNull(a.Message),
			ProviderRef: textOrNull(a.ProviderRef), Request: textOrNull(masked(a.Request)), Sends: a.Sends, Asks: a.Queries})
	}
	return out
}
