// Package history makes up the past of an installation: packets that were opened,
// grabbed, paid, mended by people and closed. Nothing in it is drawn as a result:
// it draws what senders, users, the provider and the staff do, and lets the rules
// of packet and payout decide what comes of it, so that books filled with it stand
// every check that real ones stand. The same Config makes the same history.
//
// All of it is over: what is not at its end has failed, or came back, and waits
// for a person. It is for local stacks, tests and measurements.
package history

import (
	"errors"
	"fmt"
	"time"

	"hongbao/money"
	"hongbao/packet"
	"hongbao/payout"
)

// ErrConfig is wrapped by errors about a Config that no history can be made of.
var ErrConfig = errors.New("history")

// Limits of a Config.
const (
	MaxPayouts = 10_000_000
	MaxDays    = 366
)

// Config says what a history is like. All of it is required.
type Config struct {
	Payouts int       // at least so many, 1 to MaxPayouts; the last packet may add some
	Days    int       // over which packets were created, 1 to MaxDays
	Number  uint64    // of the history: another number, another history
	Until   time.Time // nothing happens later

	App      string
	Salt     []byte   // of the app: packet ids derive from it
	SeedKey  [32]byte // seals the seeds
	Provider string
	Limits   payout.Limits // of the provider
	// Encode makes the provider's request of an instruction.
	Encode func(payout.Instruction) ([]byte, error)
	// Staff are persons who decide, at least two; a decision that needs a second
	// person gets another one.
	Staff []string
	// ApproveFrom is the amount in fen from which a retry needs a second person.
	ApproveFrom money.Fen
}

func (c Config) check() error {
	switch {
	case c.Payouts < 1 || c.Payouts > MaxPayouts:
		return fmt.Errorf("%w: payouts must be 1 to %d", ErrConfig, MaxPayouts)
	case c.Days < 1 || c.Days > MaxDays:
		return fmt.Errorf("%w: days must be 1 to %d", ErrConfig, MaxDays)
	case len(c.Staff) < 2:
		return fmt.Errorf("%w: two members of staff are needed", ErrConfig)
	case c.Until.IsZero() || c.App == "" || c.Provider == "" || c.Encode == nil || c.ApproveFrom <= 0:
		return fmt.Errorf("%w: incomplete", ErrConfig)
	}
	return nil
}

// Packet is a packet with everything that ever happened to it. It is closed, or
// was rejected.
type Packet struct {
	packet.Packet
	SealedSeed []byte
	Status     packet.Status
	Reason     packet.CloseReason // of a closed one
	Failure    *packet.Failure    // of a rejected one
	First      packet.FirstAnswer
	Shares     []money.Fen
	Claims     []packet.Claim // in the order of their shares
	Remainder  money.Fen
	// BestShare and LastShare are nil when nobody claimed anything.
	BestShare, LastShare                *int
	BooksClosedAt, ClosedAt, LastMoveAt time.Time
	// Payments are the charge, the payouts and the refunds.
	Payments []*Payment
}

// Payment is a payment with everything that ever happened to it.
type Payment struct {
	payout.Payment
	Version   int       // how often its row was written after it was made
	SettledAt time.Time // since when it is where it is
	Attempts  []payout.Attempt
	Events    []payout.Event
	Postings  []Posting
	Decisions []payout.Decision
	Audit     []payout.AuditEntry // without number and hash, which the chain gives
	Orders    []Order             // one an attempt
}

// Posting is a posting and when it was made.
type Posting struct {
	payout.Posting
	At time.Time
}

// Outcome is what the provider has come to with an order.
type Outcome string

// The outcomes.
const (
	OutcomeSucceeded Outcome = "succeeded"
	OutcomeDeclined  Outcome = "declined"
	OutcomeReturned  Outcome = "returned"
)

// Order is what the provider has on record.
type Order struct {
	payout.Instruction
	Outcome       Outcome
	Code, Message string
	Ref           string
	CreatedAt     time.Time
	UpdatedAt     time.Time
	MovedAt       time.Time // zero: no money ever moved
	ReturnedAt    time.Time // zero: none came back
}

// History makes packets one after the other, in the order of their creation. It
// is not safe for concurrent use.
type History struct {
	cfg     Config
	packets int // estimated, to spread them over the days
	made    int
	payouts int
}

// New prepares a history. Errors wrap ErrConfig.
func New(cfg Config) (*History, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.Until = cfg.Until.UTC().Truncate(time.Millisecond)
	return &History{cfg: cfg, packets: max(1, int(float64(cfg.Payouts)/meanClaims))}, nil
}

// Payouts is how many payouts were made so far.
func (h *History) Payouts() int { return h.payouts }

// Next makes the next packet, nil after the last one. An error is a defect: the
// rules refused what was drawn.
func (h *History) Next() (*Packet, error) {
	if h.payouts >= h.cfg.Payouts {
		return nil, nil //nolint:nilnil // the end
	}
	m := &maker{Config: h.cfg, chance: newChance(h.cfg.Number, uint64(h.made)), left: h.cfg.Payouts - h.payouts}
	p, err := m.live(fmt.Sprintf("history-%d-%d", h.cfg.Number, h.made), h.createdAt())
	if err != nil {
		return nil, fmt.Errorf("packet %d of history %d: %w", h.made, h.cfg.Number, err)
	}
	h.made++
	h.payouts += len(p.Claims)
	return p, nil
}

// createdAt spreads packets evenly over the days: what there are more of than was
// estimated is squeezed into the rest of the time.
func (h *History) createdAt() time.Time {
	span := time.Duration(h.cfg.Days) * 24 * time.Hour
	part := float64(h.made) / float64(h.packets)
	if part >= squeezed {
		part = 1 - (1-squeezed)*squeezed/part
	}
	// The last minutes are left for what follows a creation.
	return h.cfg.Until.Add(-span).Add(time.Duration(part * float64(span-recent))).Truncate(time.Millisecond)
}

const (
	squeezed = 0.9
	recent   = 10 * time.Minute
)
