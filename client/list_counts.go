package client

import (
	"context"
	"net/http"
	"net/url"

	"hongbao/wire"
)

// SumPackets counts and sums the packets of all apps that a filter selects. Stored statuses
// are counted in MySQL; scheduled, open, sold_out and closing packets are read from Redis.
func (s *Staff) SumPackets(ctx context.Context, f StaffPacketFilter) (*wire.ListSum, error) {
	return readCount[wire.ListSum](ctx, s, wire.PathStaffPackets+"/sum", f.values())
}

// SumApprovals counts the decisions that need, or needed, a second person and sums the amounts
// of their payments.
func (s *Staff) SumApprovals(ctx context.Context, f ApprovalFilter) (*wire.ListSum, error) {
	return readCount[wire.ListSum](ctx, s, wire.PathApprovals+"/sum", f.values())
}

// CountBreaks counts the breaks that a filter selects.
func (s *Staff) CountBreaks(ctx context.Context, f BreakFilter) (*wire.ListCount, error) {
	return readCount[wire.ListCount](ctx, s, wire.PathBreaks+"/count", f.values())
}

// SumBreaks counts the breaks that a filter selects and sums their amounts, without one that
// of the payment. A payment counts in each of its breaks.
func (s *Staff) SumBreaks(ctx context.Context, f BreakFilter) (*wire.BreakSum, error) {
	return readCount[wire.BreakSum](ctx, s, wire.PathBreaks+"/sum", f.values())
}

// CountAudit counts the audit entries that a filter selects. It needs the role auditor.
func (s *Staff) CountAudit(ctx context.Context, f AuditFilter) (*wire.ListCount, error) {
	return readCount[wire.ListCount](ctx, s, wire.PathAudit+"/count", f.values())
}

func readCount[T any](ctx context.Context, s *Staff, path string, query url.Values) (*T, error) {
	out := new(T)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: path, query: query}, out); err != nil {
		return nil, err
	}
	return out, nil
}
