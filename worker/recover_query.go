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
	// recoverTries is how often the provider is asked until it gives a usable answer,
	// and recoverAgain the pause between.
	recoverTries = 10
	recoverAgain = 500 * time.Millisecond
	// recoverPause is the longest pause, also when the provider wants a longer one.
	recoverPause = 30 * time.Second
	// maxUnanswered is how many orders without an answer end a recovery at once: the provider
	// is down, rather than at a loss about one of them.
	maxUnanswered = 20
)

// ErrUnanswered means that the provider gave no usable answer about an order.
var ErrUnanswered = errors.New("the provider does not say what became of it")

// unansweredOrder is ErrUnanswered of one order.
type unansweredOrder struct{ no string }

func (e unansweredOrder) Error() string { return "order " + e.no + ": " + ErrUnanswered.Error() }
func (unansweredOrder) Unwrap() error   { return ErrUnanswered }

// silent goes on behind an order about which the provider says nothing: it is left to a
// person, if the operator has named it, and else ends the recovery when all the others
// have been asked about. Other errors are returned as they are.
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
		return r.undecided(ctx, parts.PacketID, about.no, "the provider gives no usable answer about it, and "+r.By+" has left it to a person")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.unanswered, about.no) { // about the same one it may be asked twice
		r.unanswered = append(r.unanswered, about.no)
	}
	if len(r.unanswered) >= maxUnanswered {
		return err
	}
	return nil
}

// waits reports whether something of a packet is unanswered: what would be made of it now
// may be wrong.
func (r *Recover) hasUnanswered(packetID string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.unanswered, func(no string) bool {
		parts, err := payout.Parse(no)
		return err != nil || parts.PacketID == packetID
	})
}

// unansweredError is the error of orders without an answer that nobody left to a person.
func (r *Recover) unansweredError() error {
	if len(r.unanswered) == 0 {
		return nil
	}
	slices.Sort(r.unanswered)
	return unansweredOrder{strings.Join(r.unanswered, ", ")}
}

// ask asks about a number until there is an answer: never_received is one.
func (r *Recover) query(ctx context.Context, no string) (payout.Observation, error) {
	parts, err := payout.Parse(no)
	if err != nil {
		return payout.Observation{}, err
	}
	for range recoverTries {
		seen := r.Provider.Query(ctx, payout.OpOf(parts.Kind), no)
		r.note(func(v *Recovery) { v.Asked++ })
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

// queryToSettle is ask for what is booked: it was put at a time of the books' clock (rule R5).
func (r *Recover) queryToSettle(ctx context.Context, no string) (payout.Observation, error) {
	asked, err := r.Store.Clock(ctx)
	if err != nil {
		return payout.Observation{}, err
	}
	seen, err := r.query(ctx, no)
	seen.StartedAt, seen.EndedAt = asked, asked.Add(seen.EndedAt.Sub(seen.StartedAt))
	return seen, err
}

// undecided leaves something to a person, once.
func (r *Recover) undecided(ctx context.Context, packetID, subject, why string) error {
	r.mu.Lock()
	told := r.left[subject]
	r.left[subject] = true
	r.mu.Unlock()
	if told {
		return nil
	}
	r.Logger.WarnContext(ctx, "The recovery leaves something to a person.", slog.String("packet_id", packetID),
		slog.String("subject", subject), slog.String("why", why))
	r.note(func(v *Recovery) { v.Undecided = append(v.Undecided, subject+": "+why) })
	return r.Store.NoteUndecided(ctx, packetID, subject, why)
}
