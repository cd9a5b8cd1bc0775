package api

import (
	"context"

	"hongbao/wire"
)

// approvalColumns are the members of an ApprovalItem, with the current payout or refund and
// the answer of the second person, followed by columns formatted for people.
var approvalColumns = fileColumns{names: []string{
	"id", "status", "kind", "payment_id", "packet_id", "user_id", "amount", "payment_status", "decided_by", "reason", "evidence",
	"answered_by", "answer_reason", "created_at", "expires_at", "ended_at", "decision_id", "amount_yuan", "created_local", "expires_local",
	"ended_local", "local_zone", "key_id", "answer_key_id", "changed", "preview_status", "preview_amount", "preview_failure_code",
	"preview_attempt_count", "preview_order_no", "preview_same_order_no", "preview_last_answer",
}, of: map[string][]string{
	"kind": {"decision_kind"}, "decided_by": {"decision_by"}, "reason": {"decision_reason"}, "key_id": {"decision_key_id"},
	"payment_id": {"payout_id", "refund_id"}, "packet_id": {"payout_packet_id", "refund_packet_id"},
	"user_id": {"payout_user_id", "refund_user_id"}, "amount": {"payout_amount", "refund_amount"},
	"payment_status": {"payout_status", "refund_status"},
}}

func exportApprovals(r *request) (answer, error) {
	q := readQuery(r)
	filter := readApprovalFilter(q, r.caller.key.Owner)
	form, err := q.fileForm()
	if err != nil {
		return answer{}, err
	}
	filter.Limit = exportStep
	server := r.server
	return exportItems(r, form, "approvals", approvalColumns, func(ctx context.Context) (items []wire.ApprovalItem, end bool, err error) {
		rows, err := server.cfg.Store.Approvals(ctx, filter)
		for _, row := range rows {
			items = append(items, server.renderApproval(row))
			filter.AfterTime, filter.AfterID = row.Decision.CreatedAt, row.Decision.ApprovalID
		}
		return items, len(rows) < exportStep, err
	})
}
