package recovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"hongbao/internal/packet"
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
	// maxUnanswered is how many orders without a usable answer are left to staff. With more of them
	// the provider is away, and the recovery ends.
	maxUnanswered = 20
)

// ErrProviderAway means that the provider gave no usable answer about too many orders.
var ErrProviderAway = errors.New("the provider gives no usable answers")

// unansweredOrder means that the provider gave no usable answer about an order.
type unansweredOrder struct{ no string }

func (e unansweredOrder) Error() string {
	return "order " + e.no + ": the provider gives no usable answer"
}

// skipUnanswered lets the recovery continue after an unanswered order, which is left to staff in the
// end. Errors: ErrProviderAway; other errors are returned unchanged.
func (r *Recovery) skipUnanswered(err error) error {
	var about unansweredOrder
	if !errors.As(err, &about) {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unanswered[about.no] = true; len(r.unanswered) > maxUnanswered {
		return fmt.Errorf("%w: %s", ErrProviderAway, strings.Join(slices.Sorted(maps.Keys(r.unanswered)), ", "))
	}
	return nil
}

func (r *Recovery) isUnanswered(no string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unanswered[no]
}

// leaveUnanswered leaves the unanswered orders to staff. Their packets are held: what depends on the
// orders was not searched.
func (r *Recovery) leaveUnanswered(ctx context.Context) error {
	for _, no := range slices.Sorted(maps.Keys(r.unanswered)) {
		parts, err := payout.Parse(no)
		if err == nil {
			err = r.leaveToStaff(ctx, parts.PacketID, no, "the provider gives no usable answer about it")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// query queries an order number until the answer is usable; never_received is.
func (r *Recovery) query(ctx context.Context, no string) (payout.Observation, error) {
	parts, err := payout.Parse(no)
	if err != nil {
		return payout.Observation{}, err
	}
	for range recoverTries {
		seen := r.Provider.Query(ctx, payout.OpOf(parts.Kind), no)
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

// leaveToStaff leaves a subject to staff, once.
func (r *Recovery) leaveToStaff(ctx context.Context, packetID, subject, why string) error {
	r.mu.Lock()
	known := r.left[subject]
	r.left[subject], r.held[packetID] = true, true
	r.mu.Unlock()
	if known {
		return nil
	}
	r.Logger.WarnContext(ctx, "Recovery leaves a decision to staff.", slog.String("packet_id", packetID),
		slog.String("subject", subject), slog.String("why", why))
	r.updateReport(func(v *Report) { v.Undecided = append(v.Undecided, subject+": "+why) })
	return r.Store.NoteUndecided(ctx, packetID, subject, why)
}

// countHeld counts the packets that are held for what was left to staff. Some may be in no store.
func (r *Recovery) countHeld(ctx context.Context) error {
	for id := range r.held {
		rec, err := r.Store.Packet(ctx, id)
		if err != nil && !errors.Is(err, packet.ErrNotFound) {
			return err
		}
		r.report.Held++
		r.report.HeldAmount += rec.TotalAmount
	}
	return nil
}
