package payout

import (
	"fmt"
	"slices"
)

// Fate is what has become of an order number, by what the provider has said and what is in the ledger.
// Two things are kept beside it: whether the provider still knows the number (Attempt.Forgotten), and
// whether two persons gave it up (Attempt.Consented).
type Fate string

// The fates.
const (
	// FateSilent: no statement yet; or, of a returned number, one that says nothing.
	FateSilent Fate = "silent"
	// FateNotFound: the provider does not know the number. It may be sent again.
	FateNotFound Fate = "not_found"
	// FateMoving: its money moves, or its success is reported and not confirmed.
	FateMoving Fate = "moving"
	// FateEnding: refused or returned, to be confirmed.
	FateEnding Fate = "ending"
	// FateEnded: refused or returned for good. No money moves under the number any more.
	FateEnded Fate = "ended"
	// FatePaid: its success is in the ledger.
	FatePaid Fate = "paid"
	// FatePaidAgain: its return is in the ledger, and the provider has reported success since.
	FatePaidAgain Fate = "paid_again"
)

// fate is the only reader of what the provider has said about an order number as a whole.
func (a Attempt) fate() Fate {
	switch said := a.Statement; {
	case a.Booked && !a.ReturnBooked:
		return FatePaid
	case a.Booked && said == ObsSucceeded:
		return FatePaidAgain
	case said.mayMove():
		return FateMoving
	case said == ObsDeclined || said == ObsReturned:
		if a.EndedAt.IsZero() {
			return FateEnding
		}
		return FateEnded
	case said == ObsNeverReceived && !a.Booked:
		return FateNotFound
	}
	return FateSilent
}

// in reports whether the fate is one of those.
func (f Fate) in(fates ...Fate) bool { return slices.Contains(fates, f) }

// The questions about an order number that decide about money.
var (
	// fatesPaid: the recipient has the money.
	fatesPaid = []Fate{FatePaid, FatePaidAgain}
	// fatesMoving: the provider last reported that money moves, or may.
	fatesMoving = []Fate{FateMoving, FatePaidAgain}
	// fatesUnsettled: money may still move.
	fatesUnsettled = []Fate{FateMoving, FatePaidAgain, FateEnding}
	// fatesRefused: no money moves, or it was returned, by the provider's last statement.
	fatesRefused = []Fate{FateEnding, FateEnded}
)

// shadow asserts that a predicate and the fate agree. They differ on purpose where the ledger has the
// money as paid, whatever was said since, and where a returned number is not found: nobody replaces it.
func (a Attempt) shadow(what string, was, is bool) bool {
	if was != is && a.fate() != FatePaid && !(a.Booked && a.Statement == ObsNeverReceived) {
		panic(fmt.Sprintf("%s was %t: %s %+v", what, was, a.fate(), a))
	}
	return was
}
