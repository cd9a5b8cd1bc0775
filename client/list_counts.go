package client

import (
	"context"
	"net/http"
	"net/url"

	"hongbao/internal/money"
)

// ListCount says how long a list is.
type ListCount struct {
	Count int64 `json:"count"` // with More: at least
	More  bool  `json:"more"`  // there are more to be looked at than were: more than 10,000, or than can be in two seconds
}

// ListSum says how long a list is, and what it comes to.
type ListSum struct {
	ListCount
	Amount *money.Fen `json:"amount"` // nil with More
}

// BreakSum says how long a list of breaks is, and how much it is about.
type BreakSum struct {
	ListSum
	WithoutAmount int64 `json:"without_amount"` // of Count: about no amount; with More: at least
}

// SumPackets counts the packets of all apps that a filter selects and adds up their
// totals, as MySQL has them; those scheduled, open, sold out or closing as Redis does.
func (s *Staff) SumPackets(ctx context.Context, f StaffPacketFilter) (*ListSum, error) {
	return tally[ListSum](ctx, s, staffPackets+"/sum", f.values())
}

// SumApprovals counts the decisions that need, or needed, a second person and adds up
// the amounts of their payments.
func (s *Staff) SumApprovals(ctx context.Context, f ApprovalFilter) (*ListSum, error) {
	return tally[ListSum](ctx, s, approvals+"/sum", f.values())
}

// CountBreaks counts the breaks that a filter selects.
func (s *Staff) CountBreaks(ctx context.Context, f BreakFilter) (*ListCount, error) {
	return tally[ListCount](ctx, s, breaks+"/count", f.values())
}

// SumBreaks counts the breaks that a filter selects and adds up what they are about: the
// amount of each, where it has one, else its payment's. A payment counts in each break
// that is about it.
func (s *Staff) SumBreaks(ctx context.Context, f BreakFilter) (*BreakSum, error) {
	return tally[BreakSum](ctx, s, breaks+"/sum", f.values())
}

// CountAudit counts the entries of the audit that a filter selects. Only auditors may.
func (s *Staff) CountAudit(ctx context.Context, f AuditFilter) (*ListCount, error) {
	return tally[ListCount](ctx, s, audit+"/count", f.values())
}

func tally[T any](ctx context.Context, s *Staff, path string, query url.Values) (*T, error) {
	out := new(T)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: path, query: query}, out); err != nil {
		return nil, err
	}
	return out, nil
}
