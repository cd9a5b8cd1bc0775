// Package campaign creates a packet every day from a template, opening at the same local time. A
// campaign holds no money. Each of its packets is created as if its app had requested it, with an
// id derived from campaign and day, so that concurrent or repeated creation makes one packet (rule
// R1).
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

// Status is the status of a campaign.
type Status string

// The statuses.
const (
	StatusActive Status = "active"
	StatusPaused Status = "paused" // days pass without packets
	StatusEnded  Status = "ended"  // final
)

// Statuses lists them in the order of a campaign's life.
var Statuses = []Status{StatusActive, StatusPaused, StatusEnded}

// DayStatus is the status of one day.
type DayStatus string

// The statuses of a day.
const (
	DayCreating DayStatus = "making" // the packet is being created, also if the campaign is paused or ended now
	DayCreated  DayStatus = "made"   // the packet was created; its own status shows whether it was charged
	DayMissed   DayStatus = "missed" // no packet could be created before it would have expired
)

// Limits.
const (
	// CreateAhead is how long before its opening a packet is created: time for the charge and for
	// writing the shares.
	CreateAhead = 10 * time.Minute
	// ClockSkew is how much earlier a packet may be created: the clock of a worker may be that much
	// ahead of MySQL's.
	ClockSkew = 5 * time.Second
	// OverdueAfter is how long after that moment a missing packet is reported as overdue.
	OverdueAfter = time.Minute
	// MaxRunning is how many campaigns that have not ended an app may have.
	MaxRunning = 1000
	// MaxName is the longest name, in characters.
	MaxName = 64
	// MinutesADay bounds Minute.
	MinutesADay = 24 * 60
)

// OverdueOpening returns the opening time of packets that became overdue at now.
func OverdueOpening(now time.Time) time.Time { return now.Add(CreateAhead - OverdueAfter) }

// Errors of campaigns.
var (
	// ErrEnded: the campaign has ended; create another one.
	ErrEnded = errors.New("campaign has ended")
	// ErrNoDay: no day is left on which a packet could open.
	ErrNoDay = errors.New("campaign has no day left")
	// ErrTooMany: the app has MaxRunning campaigns already.
	ErrTooMany = errors.New("too many campaigns")
)

// Template is the common content of the packets of all days. In Packet the members of a single
// packet are empty: id, app, hash, commitment and times. EligibleCount is the length of Eligible.
type Template struct {
	Packet   packet.Packet `json:"packet"`
	Life     int64         `json:"expires_in_seconds"`
	Eligible []string      `json:"-"` // nil: everybody; read only for a single campaign, not in lists
}

// Campaign is a template and the days on which a packet is created from it.
type Campaign struct {
	ID, App, Name string
	Salt          []byte // input of the ids of its packets
	Zone          string // IANA name
	Minute        int    // minute of the day at which packets open: 0 to 1439
	StartsOn      payout.Day
	EndsOn        payout.Day // "": no end
	Template      Template
	BodyHash      string // of the request that created it

	Status    Status
	NextDay   payout.Day // the next day to be decided; "": none
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
	PacketID  string // also set for a missed day, whose packet is never created
	OpensAt   time.Time
	DecidedAt time.Time // of a day in status making: when it was reserved
}

// OpensAt returns when the packet of a day opens. On a day that skips that time because clocks are
// put forward, it opens when that time would have come with unchanged clocks; on a day that has the
// time twice, at the first one (as RFC 5545, 3.3.5). Errors: the time zone is unknown on this
// machine.
func (c Campaign) OpensAt(day payout.Day) (time.Time, error) {
	zone, err := time.LoadLocation(c.Zone)
	if err != nil {
		return time.Time{}, fmt.Errorf("campaign %s: %w", c.ID, err)
	}
	date, err := time.Parse(time.DateOnly, string(day))
	if err != nil {
		return time.Time{}, fmt.Errorf("campaign %s: %w: %q", c.ID, payout.ErrBadDay, day)
	}
	wall := date.Add(time.Duration(c.Minute) * time.Minute) // as if the local clocks showed UTC
	ahead := func(t time.Time) time.Duration {
		_, seconds := t.In(zone).Zone()
		return time.Duration(seconds) * time.Second
	}
	// With the offset before any change of that day, and with the offset after it. The first result
	// is right except after the change.
	before, after := wall.Add(-ahead(wall.Add(-aDay))), wall.Add(-ahead(wall.Add(aDay)))
	if before.Add(ahead(before)).Equal(wall) || !after.Add(ahead(after)).Equal(wall) {
		return before, nil
	}
	return after, nil
}

// aDay is more than the largest offset of a time zone from UTC.
const aDay = 24 * time.Hour

// Next returns the first day of the campaign whose packet opens after a moment, and its opening
// time; "" when there is none. Errors: as OpensAt.
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

// DayAfter returns the day that follows one, as Next does.
func (c Campaign) DayAfter(day payout.Day) (payout.Day, time.Time, error) {
	next := day.Add(1)
	if c.EndsOn != "" && next > c.EndsOn {
		return "", time.Time{}, nil
	}
	opens, err := c.OpensAt(next)
	return next, opens, err
}

// RanOut reports whether a campaign ended because no day was left, not earlier.
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

// PacketOf returns the packet of a day, as its create request would have it. Redis sets its times.
func (c Campaign) PacketOf(day payout.Day, seedKey [32]byte) packet.Packet {
	p := c.Template.Packet
	p.ID, p.App = c.PacketID(day), c.App
	hash := sha256.Sum256([]byte(c.BodyHash + " " + string(day)))
	p.BodyHash = hex.EncodeToString(hash[:])
	p.Commitment = packet.Commitment(packet.DeriveSeed(seedKey, p.ID))
	return p
}

// NewID derives a campaign's id from the app's salt and the Idempotency-Key of the create request.
// It differs from every packet id of the app: keys of packets are visible ASCII.
func NewID(salt []byte, idempotencyKey string) string {
	return packet.NewID(salt, "\x00campaign\x00"+idempotencyKey)
}

// NewSalt derives the salt of a campaign's packet ids, which cannot be guessed without the app's
// salt.
func NewSalt(appSalt []byte, id string) []byte {
	mac := hmac.New(sha256.New, appSalt)
	mac.Write([]byte("\x00campaign salt\x00" + id))
	return mac.Sum(nil)
}
