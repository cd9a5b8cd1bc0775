package recovery

import (
	"context"
	"errors"
	"time"

	"hongbao/internal/pause"
	"hongbao/internal/payout"
)

const (
	// recoverTries bounds the queries until the provider gives a usable answer, and recoverAgain
	// is the pause between two.
	recoverTries = 10
	recoverAgain = 500 * time.Millisecond
	// recoverPause bounds a pause that the provider requests.
	recoverPause = 30 * time.Second
)

// query queries an order number until the answer is usable; never_received is.
func (r *Recovery) query(ctx context.Context, no string) (payout.Observation, error) {
	parts, err := payout.Parse(no)
	if err != nil {
		return payout.Observation{}, err
	}
	from, err := r.providerOf(ctx, parts)
	if errors.Is(err, payout.ErrProviderMissing) {
		return payout.Observation{}, unansweredOrder{no}
	}
	if err != nil {
		return payout.Observation{}, err
	}
	for range recoverTries {
		seen := from.Query(ctx, payout.OpOf(parts.Kind), no)
		r.updateReport(func(v *Report) { v.Asked++ })
		switch seen.Kind {
		case payout.ObsNoAnswer, payout.ObsNotSent, payout.ObsRetryAfter:
		default:
			return seen, nil
		}
		if !pause.For(ctx, min(max(recoverAgain, seen.RetryAfter), recoverPause)) {
			return payout.Observation{}, ctx.Err()
		}
	}
	return payout.Observation{}, unansweredOrder{no}
}

// providerOf returns the provider of a payment, by the row of its packet. Errors:
// payout.ErrProviderMissing, those of the store.
func (r *Recovery) providerOf(ctx context.Context, parts payout.Parts) (payout.Provider, error) {
	names, known := r.providers.Load(parts.PacketID)
	if !known {
		rec, err := r.Store.Packet(ctx, parts.PacketID)
		if err != nil {
			return nil, err
		}
		names = [2]string{rec.ChargeProvider, rec.PayoutProvider}
		r.providers.Store(parts.PacketID, names)
	}
	if name := names.([2]string); payout.OpOf(parts.Kind) == payout.OpTransfer {
		return r.Providers.Of(name[1])
	} else {
		return r.Providers.Of(name[0])
	}
}

// queryToSettle is query for an answer that is settled: its start is a time of MySQL's clock
// (rule R5).
func (r *Recovery) queryToSettle(ctx context.Context, no string) (payout.Observation, error) {
	asked, err := r.Store.Clock(ctx)
	if err != nil {
		return payout.Observation{}, err
	}
	seen, err := r.query(ctx, no)
	seen.StartedAt, seen.EndedAt = asked, asked.Add(seen.EndedAt.Sub(seen.StartedAt))
	return seen, err
}
