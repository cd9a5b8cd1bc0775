package api

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

func previewOf(v payout.Preview) *wire.Preview {
	return &wire.Preview{Status: wire.PayoutStatus(v.Status), Amount: v.Amount, FailureCode: textOrNull(v.FailureCode),
		AttemptCount: v.AttemptCount, LastAnswer: answerOrNull(v.LastAnswer), OrderNo: textOrNull(v.OrderNo), SameOrderNo: v.SameOrderNo}
}

// subject renders a payment as payout or as refund; the other value is null.
func (s *Server) subject(r staff.PaymentRow) (*wire.Payout, *wire.Refund) {
	if r.Kind == payout.KindRefund {
		refund := s.renderRefund(r)
		return nil, &refund
	}
	p := s.renderPayout(r)
	return &p, nil
}

func (s *Server) renderApproval(a staff.Approval) wire.ApprovalItem {
	d, _ := renderDecided(a.Decision)
	out := wire.ApprovalItem{ID: a.Decision.ApprovalID, Status: d.Status, Decision: d, Evidence: textOrNull(a.Decision.Evidence),
		AnsweredBy: textOrNull(a.Decision.ApprovedBy), AnswerKeyID: textOrNull(a.Decision.ApproveKeyID),
		AnswerReason: textOrNull(a.Decision.ApproveReason), CreatedAt: wire.At(a.Decision.CreatedAt), ExpiresAt: wire.At(a.Decision.ExpiresAt),
		EndedAt: timeOrNull(a.Decision.EndedAt)}
	out.Payout, out.Refund = s.subject(a.Row)
	var preview *wire.Preview
	if a.Preview != nil {
		preview = previewOf(*a.Preview)
	}
	out.Preview, out.Changed = preview, a.Changed
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

// decisionStatuses are the statuses by which decisions can be filtered.
var decisionStatuses = []payout.DecisionStatus{
	payout.DecisionWaiting, payout.DecisionOpen, payout.DecisionCarriedOut, payout.DecisionOvertaken, payout.DecisionRejected,
	payout.DecisionExpired, payout.DecisionWithdrawn,
}

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
	page := wire.List[wire.ApprovalItem]{Items: []wire.ApprovalItem{}}
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
	var out wire.Answered
	out.Decision, out.Approval = renderDecided(*d)
	out.Payout, out.Refund = r.server.subject(p)
	return accepted(out)
}
