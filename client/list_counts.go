package client

import (
	"context"

	"hongbao/wire"
)

// SumPackets counts and sums the packets of all apps that a filter selects. Stored statuses
// are counted in MySQL; scheduled, open, sold_out and closing packets are read from Redis.
func (s *Staff) SumPackets(ctx context.Context, f wire.StaffPacketFilter) (*wire.ListSum, error) {
	return get[wire.ListSum](ctx, s.caller, wire.PathStaffPackets+"/sum", f)
}

// SumApprovals counts the decisions that need, or needed, a second person and sums the amounts
// of their payments.
func (s *Staff) SumApprovals(ctx context.Context, f wire.ApprovalFilter) (*wire.ListSum, error) {
	return get[wire.ListSum](ctx, s.caller, wire.PathApprovals+"/sum", f)
}

// CountBreaks counts the breaks that a filter selects.
func (s *Staff) CountBreaks(ctx context.Context, f wire.BreakFilter) (*wire.ListCount, error) {
	return get[wire.ListCount](ctx, s.caller, wire.PathBreaks+"/count", f)
}

// SumBreaks counts the breaks that a filter selects and sums their amounts, without one that
// of the payment. A payment counts in each of its breaks.
func (s *Staff) SumBreaks(ctx context.Context, f wire.BreakFilter) (*wire.BreakSum, error) {
	return get[wire.BreakSum](ctx, s.caller, wire.PathBreaks+"/sum", f)
}

// CountAudit counts the audit entries that a filter selects. It needs the role auditor.
func (s *Staff) CountAudit(ctx context.Context, f wire.AuditFilter) (*wire.ListCount, error) {
	return get[wire.ListCount](ctx, s.caller, wire.PathAudit+"/count", f)
}
