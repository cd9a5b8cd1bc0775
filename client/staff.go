package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"hongbao/wire"
)

// ListPayouts returns one page of payouts.
func (s *Staff) ListPayouts(ctx context.Context, f wire.PayoutFilter, p Page) (*wire.List[wire.Payout], error) {
	return page[wire.Payout](ctx, s.caller, wire.PathPayouts, f, p)
}

// Payouts iterates over payouts, newest first.
func (s *Staff) Payouts(ctx context.Context, f wire.PayoutFilter) iter.Seq2[*wire.Payout, error] {
	return each[wire.Payout](ctx, s.caller, wire.PathPayouts, f)
}

// maxNamed is the largest number of ids in one request.
const maxNamed = 100

// PayoutStatuses returns the statuses of payouts by id, in as few requests as possible.
// Duplicate ids are not permitted; unknown ids are left out.
func (s *Staff) PayoutStatuses(ctx context.Context, ids []string) (map[string]wire.PayoutStatus, error) {
	return s.statuses(ctx, wire.PathPayouts, ids)
}

// RefundStatuses is PayoutStatuses for refunds.
func (s *Staff) RefundStatuses(ctx context.Context, ids []string) (map[string]wire.PayoutStatus, error) {
	return s.statuses(ctx, wire.PathRefunds, ids)
}

func (s *Staff) statuses(ctx context.Context, of string, ids []string) (map[string]wire.PayoutStatus, error) {
	out := make(map[string]wire.PayoutStatus, len(ids))
	for some := range slices.Chunk(ids, maxNamed) {
		found := new(wire.PayoutStatuses)
		query := url.Values{"ids": {strings.Join(some, ",")}}
		if err := s.caller.do(ctx, call{method: http.MethodGet, path: of + "/statuses", query: query}, found); err != nil {
			return nil, err
		}
		for _, p := range found.Items {
			out[p.ID] = p.Status
		}
	}
	return out, nil
}

// Payout returns a payout with its attempts and timeline.
func (s *Staff) Payout(ctx context.Context, id string) (*wire.PayoutDetail, error) {
	return get[wire.PayoutDetail](ctx, s.caller, wire.PathPayouts+"/"+segment(id), nil)
}
