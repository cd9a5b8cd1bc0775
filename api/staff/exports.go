package staff

import (
	"slices"

	"hongbao/api/rest"
)

// The columns of files are members of their items, followed by columns formatted for staff.

// approvalColumns are the members of an ApprovalItem, with the current payout or refund and
// the answer of the second person, followed by columns formatted for staff.
var approvalColumns = rest.FileColumns{Names: []string{
	"id", "status", "kind", "payment_id", "packet_id", "user_id", "amount", "payment_status", "decided_by", "reason", "evidence",
	"answered_by", "answer_reason", "created_at", "expires_at", "ended_at", "decision_id", "amount_yuan", "created_local", "expires_local",
	"ended_local", "local_zone", "key_id", "answer_key_id", "changed", "preview_status", "preview_amount", "preview_failure_code",
	"preview_attempt_count", "preview_order_no", "preview_same_order_no", "preview_last_answer", "app", "reference", "available",
}, Of: map[string][]string{
	"kind": {"decision_kind"}, "decided_by": {"decision_by"}, "reason": {"decision_reason"}, "key_id": {"decision_key_id"},
	"payment_id": {"payout_id", "refund_id", "movement_id"}, "packet_id": {"payout_packet_id", "refund_packet_id"},
	"user_id": {"payout_user_id", "refund_user_id"}, "amount": {"payout_amount", "refund_amount", "movement_amount"},
	"app": {"movement_app"}, "reference": {"movement_reference"}, "available": {"movement_available"},
	"payment_status": {"payout_status", "refund_status"},
}}

// auditColumns are the members of an AuditEntry, one per column, followed by columns formatted
// for staff.
var auditColumns = rest.FileColumns{Names: []string{"seq", "at", "actor", "role", "action", "subject", "reason", "before", "after", "hash",
	"at_local",
	"local_zone", "key_id"}}

// balanceEntryColumns are the members of a BalanceEntry, one per column, followed by columns formatted
// for staff.
var balanceEntryColumns = rest.FileColumns{Names: []string{"id", "at", "kind", "amount", "available", "currency", "packet_id", "reference",
	"amount_yuan", "available_yuan", "at_local", "local_zone"}}

// breakFileColumns are the members of a Break, one per column, followed by columns formatted
// for staff.
var breakFileColumns = rest.FileColumns{Names: []string{
	"id", "kind", "packet_id", "payment_id", "order_no", "user_id", "detail", "provider", "amount", "payment_amount", "reconciliation_id",
	"seen", "created_at", "last_seen_at", "age_seconds", "resolved_at", "resolved_by", "resolved_reason", "amount_yuan", "payment_amount_yuan",
	"created_local", "last_seen_local", "resolved_local", "local_zone",
}}

// payoutColumns, refundColumns and chargeColumns are the columns of the files of payments.
var (
	payoutColumns = rest.FileColumns{Names: slices.Concat([]string{"id", "packet_id", "user_id", "share_index"}, paymentColumns,
		[]string{"recipient_action"})}
	chargeColumns = rest.FileColumns{Names: slices.Concat([]string{"id", "packet_id", "user_id"}, paymentColumns)}
	refundColumns = rest.FileColumns{Names: slices.Concat([]string{"id", "packet_id", "kind", "payout_id", "user_id"}, paymentColumns)}
)

// paymentColumns are the columns that they share.
var paymentColumns = []string{
	"amount", "currency", "status", "order_no", "provider", "provider_ref",
	"failure_code", "failure_message", "failure_retryable", "failure_next_action", "attempt_count", "created_at", "updated_at", "workflow_id",
	"workflow_url", "amount_yuan", "created_local", "updated_local", "local_zone",
}

// PacketColumns are the members of a StaffPacket, one per column, followed by columns
// formatted for staff.
var PacketColumns = rest.FileColumns{Names: []string{
	"id", "app", "status", "stored_status", "close_reason", "sender_id", "currency", "total_amount", "share_count", "split", "min_share",
	"max_share", "greeting", "group_id", "metadata", "claimed_count", "claimed_amount", "remaining_count", "remaining_amount",
	"refunded_amount", "created_at", "opens_at", "expires_at", "closed_at", "failure_code", "failure_message", "fairness_algorithm",
	"fairness_commitment", "fairness_seed", "workflow_id", "workflow_url", "tickets", "total_amount_yuan", "claimed_amount_yuan",
	"remaining_amount_yuan", "refunded_amount_yuan", "created_local", "opens_local", "expires_local", "closed_local", "local_zone",
	"funding_source", "funding_provider", "funding_method", "funding_status", "funding_expires_at",
	"funding_failure_code", "funding_failure_message", "recipient_required",
}}

func (s *API) exportRoutes() []*rest.Route {
	const amount = "amount is in whole fen, amount_yuan in yuan, "
	return []*rest.Route{
		rest.ExportRoute(s.payouts().list(), "exportPayouts", amount, payoutColumns),
		rest.ExportRoute(s.refunds().list(), "exportRefunds", amount, refundColumns),
		rest.ExportRoute(s.charges().list(), "exportCharges", amount, chargeColumns),
		rest.ExportRoute(s.approvals(), "exportApprovals",
			"user_id, amount (in whole fen), amount_yuan and payment_status are those of the payout "+
				"or refund in payment_id, ", approvalColumns),
		rest.ExportRoute(s.breaks(), "exportBreaks", "amounts are in whole fen, columns that end in _yuan are in yuan, ", breakFileColumns),
		rest.ExportRoute(s.appBalanceEntries(), "exportBalanceMovements", "amounts are in whole fen, columns that end in _yuan are in yuan, ",
			balanceEntryColumns),
		rest.ExportRoute(s.audits(), "exportAudit", "before and after are JSON, ", auditColumns, auditReaders...),
	}
}
