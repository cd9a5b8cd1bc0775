package worker

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"hongbao/internal/payout"
)

const (
	// recoverTries bounds the queries until the provider gives a usable answer, and recoverAgain
	// is the pause between two.
	recoverTries = 10
	recoverAgain = 500 * time.Millisecond
	// recoverPause bounds a pause that the provider requests.
	recoverPause = 30 * time.Second
	// maxUnanswered ends a recovery at once: with so many unanswered orders the provider is down.
	maxUnanswered = 20
)

// ErrUnanswered means that the provider gave no usable answer about an order.
var ErrUnanswered = errors.New("the provider gives no usable answer")

// unansweredOrder is ErrUnanswered for one order.
type unansweredOrder struct{ no string }

func (e unansweredOrder) Error() string { return "order " + e.no + ": " + ErrUnanswered.Error() }
func (unansweredOrder) Unwrap() error   { return ErrUnanswered }

// postponeUnanswered lets the recovery continue after an unanswered order. If the operator named
// the order in Leave, it is left to staff; otherwise it fails the recovery after all other orders
// were queried. Other errors are returned unchanged.
func (r *Recover) postponeUnanswered(ctx context.Context, err error) error {
	var about unansweredOrder
	if !errors.As(err, &about) {
		return err
	}
	if slices.Contains(r.Leave, about.no) {
		parts, parseErr := payout.Parse(about.no)
		if parseErr != nil {
			return parseErr
		}
		return r.leaveToStaff(ctx, parts.PacketID, about.no, "the provider gives no usable answer about it, and "+r.By+" has left it to staff")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.unanswered, about.no) { // an order may be queried twice
		r.unanswered = append(r.unanswered, about.no)
	}
	if len(r.unanswered) >= maxUnanswered {
		return err
	}
	return nil
}

// hasUnanswered reports whether an order of a packet is unanswered, which makes further
// conclusions about the packet unsafe.
func (r *Recover) hasUnanswered(packetID string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.unanswered, func(no string) bool {
		parts, err := payout.Parse(no)
		return err != nil || parts.PacketID == packetID
	})
}

// unansweredError returns the error of the unanswered orders that are not left to staff.
func (r *Recover) unansweredError() error {
	if len(r.unanswered) == 0 {
		return nil
	}
	slices.Sort(r.unanswered)
	return unansweredOrder{strings.Join(r.unanswered, ", ")}
}

// query queries an order number until the answer is usable; never_received is.
func (r *Recover) query(ctx context.Context, no string) (payout.Observation, error) {
	parts, err := payout.Parse(no)
	if err != nil {
		return payout.Observation{}, err
	}
	for range recoverTries {
		seen := r.Provider.Query(ctx, payout.OpOf(parts.Kind), no)
		r.updateReport(func(v *Recovery) { v.Asked++ })
		switch seen.Kind {
		case payout.ObsUnknown, payout.ObsNoAnswer, payout.ObsNotSent, payout.ObsRetryAfter:
		default:
			return seen, nil
		}
		if !pause(ctx, min(max(recoverAgain, seen.RetryAfter), recoverPause)) {
			return payout.Observation{}, ctx.Err()
		}
	}
	return payout.Observation{}, unansweredOrder{no}
}

// queryToSettle is query for an answer that is settled: its start is a time of MySQL's clock
// (rule R5).
func (r *Recover) queryToSettle(ctx context.Context, no string) (payout.Observation, error) {
	asked, err := r.Store.Clock(ctx)
	if err != nil {
		return payout.Observation{}, err
	}
	seen, err := r.query(ctx, no)
	seen.StartedAt, seen.EndedAt = asked, asked.Add(seen.EndedAt.Sub(seen.StartedAt))
	return seen, err
}

// leaveToStaff leaves a subject to staff, once.
func (r *Recover) leaveToStaff(ctx context.Context, packetID, subject, why string) error {
	r.mu.Lock()
	known := r.left[subject]
	r.left[subject] = true
	r.mu.Unlock()
	if known {
		return nil
	}
	r.Logger.WarnContext(ctx, "Recovery leaves a decision to staff.", slog.String("packet_id", packetID),
		slog.String("subject", subject), slog.String("why", why))
	r.updateReport(func(v *Recovery) { v.Undecided = append(v.Undecided, subject+": "+why) })
	return r.Store.NoteUndecided(ctx, packetID, subject, why)
}
