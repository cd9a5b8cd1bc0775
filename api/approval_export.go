package api

import (
	"context"
	"strconv"

	"hongbao/internal/staff"
	"hongbao/wire"
)

// approvalColumns are the members of an ApprovalItem, with the current payout or refund and
// the answer of the second person, followed by columns formatted for people.
var approvalColumns = []string{
	"id", "status", "kind", "payment_id", "packet_id", "user_id", "amount", "payment_status", "decided_by", "reason", "evidence",
	"answered_by", "answer_reason", "created_at", "expires_at", "ended_at", "decision_id", "amount_yuan", "created_local", "expires_local",
	"ended_local", "local_zone", "key_id", "answer_key_id", "changed", "preview_status", "preview_amount", "preview_failure_code",
	"preview_attempt_count", "preview_order_no", "preview_same_order_no", "preview_last_answer",
}

func approvalLine(a staff.Approval, form fileForm) []string {
	item, _ := renderDecided(a.Decision)
	d, row := a.Decision, a.Row
	ended := ""
	if !d.EndedAt.IsZero() {
		ended = wire.At(d.EndedAt).String()
	}
	line := []string{
		cell(d.ApprovalID), item.Status, item.Kind, cell(row.ID), cell(row.PacketID), cell(row.UserID),
		fenCell(row.Amount), string(row.Status), cell(d.By), cell(d.Reason), cell(d.Evidence), cell(d.ApprovedBy),
		cell(d.ApproveReason), wire.At(d.CreatedAt).String(), wire.At(d.ExpiresAt).String(), ended, cell(item.ID), row.Amount.String(),
		form.local(d.CreatedAt), form.local(d.ExpiresAt), form.local(d.EndedAt), form.zone.String(), cell(d.KeyID),
		cell(d.ApproveKeyID), strconv.FormatBool(a.Changed),
	}
	v := a.Preview
	if v == nil {
		return append(line, "", "", "", "", "", "", "")
	}
	last := ""
	if answer := answerOrNull(v.LastAnswer); answer != nil {
		last = *answer
	}
	return append(line, string(v.Status), fenCell(v.Amount), cell(v.FailureCode), strconv.Itoa(v.AttemptCount), cell(v.OrderNo),
		strconv.FormatBool(v.SameOrderNo), last)
}

func exportApprovals(r *request) (answer, error) {
	q := readQuery(r)
	filter := readApprovalFilter(q, r.caller.key.Owner)
	form, err := q.fileForm()
	if err != nil {
		return answer{}, err
	}
	filter.Limit = exportStep
	store := r.server.cfg.Store
	return r.sendFile(form, listFile{name: "approvals", columns: approvalColumns, more: func(ctx context.Context) (lines [][]string, end bool,
		err error) {
		rows, err := store.Approvals(ctx, filter)
		if err != nil {
			return nil, false, err
		}
		for _, row := range rows {
			lines = append(lines, approvalLine(row, form))
			filter.AfterTime, filter.AfterID = row.Decision.CreatedAt, row.Decision.ApprovalID
		}
		return lines, len(rows) < exportStep, nil
	}})
}
