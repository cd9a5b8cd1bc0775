package staff

import (
	"time"

	"hongbao/internal/payout"
)

// PacketStatement compares the movements of one packet in a provider's statements with those in the ledger. A line
// counts when its statement was read completely. Honoured share conflicts are outside the packet and not counted.
type PacketStatement struct {
	Stated payout.ProviderTotals // by the lines
	Booked payout.ProviderTotals // by the ledger
	Lines  int64
	// Missing counts the order numbers with a movement in the ledger that has no line.
	Missing int64
	// Differing counts the order numbers with other lines than movements in the ledger, Missing included. A number counts
	// once per operation.
	Differing int64
	// Day is the newest day with a line, and ReadAt the time up to which its statement was read; "" without a line.
	Day    payout.Day
	ReadAt time.Time
	// BookedAt is the time of the newest movement in the ledger; zero without one.
	BookedAt time.Time
}

// Covers reports whether every movement in the ledger has a line.
func (p PacketStatement) Covers() bool { return p.Lines > 0 && p.Missing == 0 }

// Agrees reports whether lines and ledger have the same movements with the same amounts.
func (p PacketStatement) Agrees() bool { return p.Covers() && p.Differing == 0 }

// Until is the time up to which the lines speak: the end of the newest day with a line, or the time when that day was
// read if it was not over. It is not the time of the reading after that: a statement says nothing about later days.
func (p PacketStatement) Until(zone *time.Location) time.Time {
	_, end := p.Day.Span(zone)
	if p.ReadAt.Before(end) {
		return p.ReadAt
	}
	return end
}
