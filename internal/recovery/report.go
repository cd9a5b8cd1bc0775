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

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// Report is the report of a recovery or a dry run.
type Report struct {
	DryRun  bool      `json:"dry_run,omitempty"`
	Ended   bool      `json:"ended"`   // MySQL was restored, and is normal now
	Since   time.Time `json:"since"`   // start of the provider's statement that was read
	Lines   int       `json:"lines"`   // statement lines since then
	Unknown int       `json:"unknown"` // of them, order numbers that MySQL lacked or had not booked
	Packets int       `json:"packets"` // looked at
	Made    int       `json:"made"`    // packets that MySQL lacked
	Claims  int       `json:"claims"`  // claims that MySQL lacked
	Guessed int       `json:"guessed"` // of them, with a user known only by the account at the provider
	Asked   int       `json:"asked"`   // queries of the provider
	Numbers int       `json:"numbers"` // order numbers restored
	Cancels int       `json:"cancels"` // cancels restored
	Closed  int       `json:"closed"`  // packets whose closing was restored
	Raised  int       `json:"raised"`  // lanes with a later epoch in Redis than in MySQL
	Shut    int       `json:"shut"`    // lanes to be rebuilt from MySQL
	// Undecided is what staff must decide; each is a break of kind restored.
	Undecided []string `json:"undecided,omitempty"`
	// Held is the number of packets held for it, and HeldAmount the sum of their total amounts.
	Held       int               `json:"held"`
	HeldAmount money.Fen         `json:"held_amount"`
	MySQL      payout.MySQLState `json:"-"`
}

// updateReport changes the report under its lock.
func (r *Recovery) updateReport(count func(*Report)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	count(&r.report)
}

// maxUnanswered is how many orders without a usable answer are left to staff. With more of them the
// provider is away, and the recovery ends.
const maxUnanswered = 20

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
