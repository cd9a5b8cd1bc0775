package api

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// ApprovalItem is a decision that needs, or needed, a second person.
type ApprovalItem struct {
	ID            string            `json:"id" doc:"The approval's id." example:"aKQ3X7M2P5R6T4V2W3Y7Z5B6CD"`
	Status        string            `json:"status" enum:"waiting,open,carried_out,overtaken,rejected,expired,withdrawn" doc:"The decision's status."`
	Decision      Decision          `json:"decision" doc:"The decision that waits."`
	Evidence      Nullable[string]  `json:"evidence" doc:"Of mark_paid: the evidence of the payment. Of moved and not_moved: that of the outcome. Of a retry of a payment that was not final: that its earlier order numbers will not pay."`
	Payout        Nullable[Payout]  `json:"payout" doc:"The current payout that the decision is about; null for a decision about a refund."`
	Refund        Nullable[Refund]  `json:"refund" doc:"The current refund that the decision is about; null for a decision about a payout."`
	Preview       Nullable[Preview] `json:"preview" doc:"What the decision would now do; null unless it waits and the state permits it."`
	Changed       bool              `json:"changed" doc:"The decision waits, and its payment has changed since it was made: it cannot be approved."`
	AnsweredBy    Nullable[string]  `json:"answered_by" doc:"The second person; null before the answer."`
	AnswerKeyID   Nullable[string]  `json:"answer_key_id" doc:"The id of the key that answered or withdrew it."`
	AnswerReason  Nullable[string]  `json:"answer_reason" doc:"The reason of the second person; of a withdrawn decision, why it was withdrawn."`
	CreatedAt     Stamp             `json:"created_at" doc:"When the decision was made."`
	ExpiresAt     Stamp             `json:"expires_at" doc:"Until when it can be approved."`
	DecisionEnded Nullable[Stamp]   `json:"ended_at" doc:"When the decision ended; null before."`
}

// Preview is the effect that a waiting decision would have now.
type Preview struct {
	Status       PayoutStatus     `json:"status" doc:"The status of the payout or refund."`
	Amount       Fen              `json:"amount" doc:"Its amount."`
	FailureCode  Nullable[string] `json:"failure_code" doc:"Of a failed or returned payment: the failure code."`
	AttemptCount int              `json:"attempt_count" minimum:"0" doc:"How many order numbers were used."`
	LastAnswer   Nullable[string] `json:"last_answer" doc:"The provider's last answer about the newest order number, as the outcome of an attempt; null before the first answer. An approval covers it: after another answer it is refused with decision_changed."`
	OrderNo      Nullable[string] `json:"order_no" doc:"Of a retry: the order number that would be sent after the queries; otherwise null."`
	SameOrderNo  bool             `json:"same_order_no" doc:"The order number is that of the last attempt, which the provider never received."`
}

func previewOf(v payout.Preview) *Preview {
	return &Preview{Status: PayoutStatus(v.Status), Amount: Fen(v.Amount), FailureCode: textOrNull(v.FailureCode),
		AttemptCount: v.AttemptCount, LastAnswer: answerOrNull(v.LastAnswer), OrderNo: textOrNull(v.OrderNo), SameOrderNo: v.SameOrderNo}
}

// Approvals is a page of approvals.
type Approvals struct {
	Items      []ApprovalItem   `json:"items" nullable:"false" doc:"Newest first."`
	NextCursor Nullable[string] `json:"next_cursor" doc:"The cursor of the next page; null on the last page."`
}

// Answered is the response to an approval, rejection or withdrawal.
type Answered struct {
	Decision Decision           `json:"decision" doc:"The decision after the answer."`
	Payout   Nullable[Payout]   `json:"payout" doc:"The payout after the answer; null for a decision about a refund."`
	Refund   Nullable[Refund]   `json:"refund" doc:"The refund after the answer; null for a decision about a payout."`
	Approval Nullable[Approval] `json:"approval" doc:"Always null: the decision was answered."`
}

// subject renders a payment as payout or as refund; the other value is null.
func (s *Server) subject(r staff.PaymentRow) (Nullable[Payout], Nullable[Refund]) {
	if r.Kind == payout.KindRefund {
		refund := s.renderRefund(r)
		return orNull[Payout](nil), orNull(&refund)
	}
	p := s.renderPayout(r)
	return orNull(&p), orNull[Refund](nil)
}

func (s *Server) renderApproval(a staff.Approval) ApprovalItem {
	d, _ := renderDecided(a.Decision)
	out := ApprovalItem{ID: a.Decision.ApprovalID, Status: d.Status, Decision: d, Evidence: textOrNull(a.Decision.Evidence),
		AnsweredBy: textOrNull(a.Decision.ApprovedBy), AnswerKeyID: textOrNull(a.Decision.ApproveKeyID),
		AnswerReason: textOrNull(a.Decision.ApproveReason), CreatedAt: Stamp(a.Decision.CreatedAt), ExpiresAt: Stamp(a.Decision.ExpiresAt),
		DecisionEnded: stampOrNull(a.Decision.EndedAt)}
	out.Payout, out.Refund = s.subject(a.Row)
	var preview *Preview
	if a.Preview != nil {
		preview = previewOf(*a.Preview)
	}
	out.Preview, out.Changed = orNull(preview), a.Changed
	return out
}

// approvalCursor is the last approval of a page, with the filters of the list.
type approvalCursor struct {
	Status    string    `json:"s"`
	PaymentID string    `json:"p,omitempty"`
	NotBy     string    `json:"n,omitempty"`
	At        time.Time `json:"at"`
	ID        string    `json:"id"`
}

// filter returns the filter of the next page. It returns false for a cursor that no page
// returned for this owner.
func (c approvalCursor) filter(asked staff.ApprovalFilter, owner string) (staff.ApprovalFilter, bool) {
	if c.ID == "" || !inMySQLRange(c.At) || c.Status != "" && checkDecisionStatus(c.Status) != nil || c.PaymentID != "" &&
		checkCode(c.PaymentID) != nil || c.NotBy != "" && c.NotBy != owner ||
		asked.Status != "" && string(asked.Status) != c.Status || asked.PaymentID != "" && asked.PaymentID != c.PaymentID || asked.NotBy != "" &&
		asked.NotBy != c.NotBy {
		return asked, false
	}
	return staff.ApprovalFilter{Status: payout.DecisionStatus(c.Status), PaymentID: c.PaymentID, NotBy: c.NotBy, AfterTime: c.At,
		AfterID: c.ID}, true
}

// DecisionStatus is payout.DecisionStatus with its schema.
type DecisionStatus payout.DecisionStatus

// decisionStatuses are the statuses by which decisions can be filtered.
var decisionStatuses = []payout.DecisionStatus{
	payout.DecisionWaiting, payout.DecisionOpen, payout.DecisionCarriedOut, payout.DecisionOvertaken, payout.DecisionRejected,
	payout.DecisionExpired, payout.DecisionWithdrawn,
}

// Schema implements huma.SchemaProvider.
func (DecisionStatus) Schema(huma.Registry) *huma.Schema { return enum(decisionStatuses) }

func checkDecisionStatus(s string) *fault {
	if slices.Contains(decisionStatuses, payout.DecisionStatus(s)) {
		return nil
	}
	return &fault{faultEnum, "is not a status of decisions"}
}

// readApprovalFilter reads the filter for the owner of the calling key.
func readApprovalFilter(q *query, owner string) staff.ApprovalFilter {
	f := staff.ApprovalFilter{Status: payout.DecisionStatus(q.text("status", checkDecisionStatus)),
		PaymentID: q.text("payment_id", checkCode)}
	if q.flag("by_others") {
		f.NotBy = owner
	}
	return f
}

func listApprovals(r *request) (answer, error) {
	q := readQuery(r)
	f := readApprovalFilter(q, r.caller.key.Owner)
	limit, text := q.page()
	if err := q.done(); err != nil {
		return answer{}, err
	}
	if text != "" {
		var c approvalCursor
		ok := decodeCursor(text, &c) == nil
		if ok {
			f, ok = c.filter(f, r.caller.key.Owner)
		}
		if !ok {
			return answer{}, badCursor()
		}
	}
	f.Limit = limit + 1
	ctx, cancel := context.WithTimeout(r.ctx, readTimeout)
	defer cancel()
	rows, err := r.server.cfg.Store.Approvals(ctx, f)
	if err != nil {
		return answer{}, err
	}
	page := Approvals{Items: []ApprovalItem{}}
	if len(rows) > limit {
		rows = rows[:limit]
		last := rows[limit-1].Decision
		page.NextCursor = encodeCursor(approvalCursor{Status: string(f.Status), PaymentID: f.PaymentID, NotBy: f.NotBy, At: last.CreatedAt,
			ID: last.ApprovalID})
	}
	for _, row := range rows {
		page.Items = append(page.Items, r.server.renderApproval(row))
	}
	return answer{status: http.StatusOK, body: page}, nil
}

// approvalWrite writes an approval, rejection or withdrawal.
type approvalWrite func(ctx context.Context, r *request, w staff.Write, id string) (staff.Answer, error)

// answerApproval handles the approval or rejection by a second person.
func answerApproval(agree bool) func(*request) (answer, error) {
	return writeApproval(func(ctx context.Context, r *request, w staff.Write, id string) (staff.Answer, error) {
		return r.server.cfg.Store.AnswerApproval(ctx, w, id, agree, r.renderAnswered)
	})
}

// withdrawApproval handles the withdrawal of a decision by its own maker.
func withdrawApproval() func(*request) (answer, error) {
	return writeApproval(func(ctx context.Context, r *request, w staff.Write, id string) (staff.Answer, error) {
		return r.server.cfg.Store.WithdrawApproval(ctx, w, id, r.renderAnswered)
	})
}

// writeApproval reads id and reason and calls do.
func writeApproval(do approvalWrite) func(*request) (answer, error) {
	return func(r *request) (answer, error) {
		id, idErr := url.PathUnescape(r.c.Params("id"))
		body, err := readReason(r.payload)
		if err != nil {
			return answer{}, err
		}
		w, err := r.staffWrite(body, body.Reason)
		if err != nil {
			return answer{}, err
		}
		if idErr != nil || !isVisible(id, maxApprovalID) {
			return answer{}, noSuch("approval")
		}
		w.Route = r.c.Method() + " " + r.route.on(id)
		stored, err := do(r.ctx, r, w, id)
		return staffAnswer(stored, err, noSuch("approval"))
	}
}

// maxApprovalID is the largest length of an approval id in bytes.
const maxApprovalID = 26

func (r *request) renderAnswered(d *staff.Decision, p staff.PaymentRow, refused error) (int, []byte) {
	if refused != nil {
		return r.renderRefusedDecision(refused)
	}
	var out Answered
	out.Decision, out.Approval = renderDecided(*d)
	out.Payout, out.Refund = r.server.subject(p)
	return accepted(out)
}
