// Package campaign is packets that make themselves: one every day, from a template,
// that opens at the same local time. A campaign holds no money. Each of its packets is
// created as if its app had asked for it, under an id that campaign and day decide, so
// that whoever makes it, and however often, makes one (rule R1).
package campaign

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
	_ "time/tzdata" // the time zones, whatever the machine has

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// Status is how a campaign is doing.
type Status string

// The statuses.
const (
	StatusActive Status = "active"
	StatusPaused Status = "paused" // its days pass without packets
	StatusEnded  Status = "ended"  // for ever
)

// Statuses lists them in the order of a campaign's life.
var Statuses = []Status{StatusActive, StatusPaused, StatusEnded}

// DayStatus is what became of one day.
type DayStatus string

// What can become of a day.
const (
	DayMaking DayStatus = "making" // its packet is being created, also when the campaign is paused or ended now
	DayMade   DayStatus = "made"   // its packet was created; whether its sender was charged is told by the packet
	DayMissed DayStatus = "missed" // nothing could be created until its packet would have expired
)

// Limits.
const (
	// Lead is how long before it opens a packet is made, so that its sender is charged
	// and its shares are written when the crowd comes.
	CreateAhead = 10 * time.Minute
	// Early is by how much it may be made before that: the clock of whoever looks on time
	// may be that much ahead of MySQL's.
	ClockSkew = 5 * time.Second
	// Late is how long after that moment somebody looks why it was not made.
	OverdueAfter = time.Minute
	// MaxRunning is how many campaigns that have not ended an app may have.
	MaxRunning = 1000
	// MaxName is the longest name, in characters.
	MaxName = 64
	// MinutesADay bounds Minute.
	MinutesADay = 24 * 60
)

// Errors of campaigns.
var (
	// ErrEnded: the campaign has ended; another one has to be made.
	ErrEnded = errors.New("campaign has ended")
	// ErrNoDay: no day is left on which a packet could open.
	ErrNoDay = errors.New("campaign has no day left")
	// ErrTooMany: the app has MaxRunning campaigns already.
	ErrTooMany = errors.New("too many campaigns")
)

// Template is what the packets of all days have in common. Of Packet what is of one
// packet alone is empty: id, app, hash, commitment and times; EligibleCount says how many
// are in Eligible.
type Template struct {
	Packet   packet.Packet `json:"packet"`
	Life     int64         `json:"expires_in_seconds"`
	Eligible []string      `json:"-"` // nil: everybody; read for one campaign alone, and with lists left out
}

// Campaign is a template and the days on which a packet is made from it.
type Campaign struct {
	ID, App, Name string
	Salt          []byte // decides the ids of its packets
	Zone          string // IANA name
	Minute        int    // of the day, at which packets open: 0 to 1439
	StartsOn      payout.Day
	EndsOn        payout.Day // "": it goes on until somebody ends it
	Template      Template
	BodyHash      string // of the request that created it

	Status    Status
	NextDay   payout.Day // the day that is to be decided next; "": none
	NextOpens time.Time  // when its packet opens; zero: none
	CreatedAt time.Time
	UpdatedAt time.Time
	EndedAt   time.Time // zero while it has not ended
	Revision  int       // rises with every change of Status
}

// Day is a day that was decided.
type Day struct {
	Day       payout.Day
	Status    DayStatus
	PacketID  string // also of a day that was missed, which nobody will make
	OpensAt   time.Time
	DecidedAt time.Time // of one that is being made: when it was reserved
}

// Opening returns when the packet of a day opens. On a day that skips that time of day,
// because clocks are put forward, it opens when that time would have come with clocks
// left alone; on one that has it twice, the first time (as RFC 5545, 3.3.5, has it).
// Errors: the time zone is not known to this machine.
func (c Campaign) OpensAt(day payout.Day) (time.Time, error) {
	zone, err := time.LoadLocation(c.Zone)
	if err != nil {
		return time.Time{}, fmt.Errorf("campaign %s: %w", c.ID, err)
	}
	date, err := time.Parse(time.DateOnly, string(day))
	if err != nil {
		return time.Time{}, fmt.Errorf("campaign %s: %w: %q", c.ID, payout.ErrBadDay, day)
	}
	wall := date.Add(time.Duration(c.Minute) * time.Minute) // as if the clocks there showed UTC
	ahead := func(t time.Time) time.Duration {
		_, seconds := t.In(zone).Zone()
		return time.Duration(seconds) * time.Second
	}
	// As the clocks are before any change of that day, and as they are after it. What the
	// first says is right on all days but those after the change.
	before, after := wall.Add(-ahead(wall.Add(-aDay))), wall.Add(-ahead(wall.Add(aDay)))
	if before.Add(ahead(before)).Equal(wall) || !after.Add(ahead(after)).Equal(wall) {
		return before, nil
	}
	return after, nil
}

// aDay is more than any time zone is ahead of UTC, or behind it.
const aDay = 24 * time.Hour

// Next returns the first day of the campaign whose packet opens after a moment, and when
// it does; "" when there is none. Errors are Opening's.
func (c Campaign) Next(after time.Time) (payout.Day, time.Time, error) {
	zone, err := time.LoadLocation(c.Zone)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("campaign %s: %w", c.ID, err)
	}
	day := max(c.StartsOn, payout.DayOf(after, zone))
	for {
		opens, err := c.OpensAt(day)
		switch {
		case err != nil || c.EndsOn != "" && day > c.EndsOn:
			return "", time.Time{}, err
		case opens.After(after):
			return day, opens, nil
		}
		day = day.Add(1)
	}
}

// After returns the day that follows one, as Next does.
func (c Campaign) DayAfter(day payout.Day) (payout.Day, time.Time, error) {
	next := day.Add(1)
	if c.EndsOn != "" && next > c.EndsOn {
		return "", time.Time{}, nil
	}
	opens, err := c.OpensAt(next)
	return next, opens, err
}

// RanOut reports whether a campaign ended because no day was left, and not before.
func (c Campaign) RanOut() bool {
	if c.Status != StatusEnded || c.EndsOn == "" {
		return false
	}
	last, err := c.OpensAt(c.EndsOn)
	return err == nil && !c.EndedAt.Before(last.Add(-CreateAhead-ClockSkew))
}

// PacketID derives the id of a day's packet.
func (c Campaign) PacketID(day payout.Day) string {
	return packet.NewCampaignPacketID(c.ID, c.Salt, string(day))
}

// PacketOf returns the packet of a day, as its create request would have it. Its times
// are Redis' business.
func (c Campaign) PacketOf(day payout.Day, seedKey [32]byte) packet.Packet {
	p := c.Template.Packet
	p.ID, p.App = c.PacketID(day), c.App
	hash := sha256.Sum256([]byte(c.BodyHash + " " + string(day)))
	p.BodyHash = hex.EncodeToString(hash[:])
	p.Commitment = packet.Commitment(packet.DeriveSeed(seedKey, p.ID))
	return p
}

// NewID derives a campaign's id from the app's salt and the Idempotency-Key of the
// request that creates it. No packet of the app has the same: their keys are visible ASCII.
func NewID(salt []byte, idempotencyKey string) string {
	return packet.NewID(salt, "\x00campaign\x00"+idempotencyKey)
}

// NewSalt derives what decides the ids of a campaign's packets, which nobody can guess
// who does not know the app's salt.
func NewSalt(appSalt []byte, id string) []byte {
	mac := hmac.New(sha256.New, appSalt)
	mac.Write([]byte("\x00campaign salt\x00" + id))
	return mac.Sum(nil)
}
