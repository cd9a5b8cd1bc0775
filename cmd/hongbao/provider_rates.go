package main

import (
	"fmt"
	"log/slog"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"hongbao/activities"
	"hongbao/internal/payout"
	"hongbao/internal/pool"
)

// callRates are the maxima of calls per second to a provider, of all workers together; 0: no limit.
type callRates struct {
	all    int64 // of charges, payouts and refunds together; the others are 0 then
	Charge int64 `json:"charge"`
	Payout int64 `json:"payout"`
	Refund int64 `json:"refund"`
	Query  int64 `json:"query"`
}

// UnmarshalJSONFrom decodes one number for all sends together, or an object with one per kind of call.
func (r *callRates) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == '0' {
		return json.UnmarshalDecode(dec, &r.all)
	}
	type kinds callRates
	return json.UnmarshalDecode(dec, (*kinds)(r), json.RejectUnknownMembers(true))
}

// routinePart: a fourth of the queries per second is for routine ones, which therefore never delay the queries of
// unknown outcomes.
const routinePart = 4

// leastQueryRate has a query per second of either sort.
const leastQueryRate = 2

func (r callRates) check() error {
	for _, rate := range []int64{r.all, r.Charge, r.Payout, r.Refund, r.Query} {
		if rate < 0 || rate > pool.MaxThrottleRate {
			return fmt.Errorf("member rate is not from 0 to %d", pool.MaxThrottleRate)
		}
	}
	if r.Query != 0 && r.Query < leastQueryRate {
		return fmt.Errorf("member query of rate is not 0 or from %d", leastQueryRate)
	}
	return nil
}

// perOp are the rates of the operations that have one of their own.
func (r callRates) perOp() map[payout.Op]int64 {
	out := map[payout.Op]int64{payout.OpCharge: r.Charge, payout.OpTransfer: r.Payout, payout.OpRefund: r.Refund}
	if r.Query > 0 {
		out[activities.OpRoutineQuery] = max(1, r.Query/routinePart)
		out[activities.OpQuery] = r.Query - out[activities.OpRoutineQuery]
	}
	return out
}

// newAdmissions returns the admission of each provider, which defers payments. Without a rate it has no throttle and does not use
// Redis.
func newAdmissions(pays *providers, redis *pool.Pool, logger *slog.Logger) (activities.Admissions, error) {
	out := activities.Admissions{}
	for name, entry := range pays.entries {
		var all activities.Throttle
		if entry.Rate.all > 0 {
			throttle, err := pool.NewThrottle(redis, name, entry.Rate.all)
			if err != nil {
				return nil, err
			}
			all = throttle
		}
		out[name] = activities.NewAdmission(name, all, logger)
		for op, rate := range entry.Rate.perOp() {
			if rate == 0 {
				continue
			}
			throttle, err := pool.NewThrottle(redis, name+"/"+string(op), rate)
			if err != nil {
				return nil, err
			}
			out[name].Limit(op, throttle)
		}
	}
	return out, nil
}
