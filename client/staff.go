package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"hongbao/internal/money"
	"hongbao/wire"
)

// PayoutFilter filters the list of payouts; zero members do not filter.
type PayoutFilter struct {
	Status               wire.PayoutStatus
	PacketID             string
	UserID               string
	OrderNo              string // used in any attempt
	FailureCode          string
	ProviderRef          string        // the provider's reference, of any attempt
	OlderThan            time.Duration // truncated to seconds
	AmountMin, AmountMax money.Fen
	Late                 bool // refunds only: unfinished and due for at least five minutes
}

func (f PayoutFilter) values() url.Values {
	v := url.Values{}
	put(v, "status", string(f.Status))
	put(v, "packet_id", f.PacketID)
	put(v, "user_id", f.UserID)
	put(v, "order_no", f.OrderNo)
	put(v, "failure_code", f.FailureCode)
	put(v, "provider_ref", f.ProviderRef)
	number := func(name string, n int64) {
		if n != 0 {
			v.Set(name, strconv.FormatInt(n, 10))
		}
	}
	number("older_than_seconds", int64(f.OlderThan/time.Second))
	number("amount_min", int64(f.AmountMin))
	number("amount_max", int64(f.AmountMax))
	if f.Late {
		v.Set("late", "true")
	}
	return v
}

// ListPayouts returns one page of payouts.
func (s *Staff) ListPayouts(ctx context.Context, f PayoutFilter, p Page) (*wire.List[wire.Payout], error) {
	return page[wire.Payout](ctx, s.caller, wire.PathPayouts, f.values(), p)
}

// Payouts iterates over payouts, newest first.
func (s *Staff) Payouts(ctx context.Context, f PayoutFilter) iter.Seq2[*wire.Payout, error] {
	return each[wire.Payout](ctx, s.caller, wire.PathPayouts, f.values())
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
	d := new(wire.PayoutDetail)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: wire.PathPayouts + "/" + segment(id)}, d); err != nil {
		return nil, err
	}
	return d, nil
}
