package payout

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

// fate returns what has become of the order number.
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

// paid reports whether the recipient has the money, or the provider says so after its return.
func (f Fate) paid() bool { return f == FatePaid || f == FatePaidAgain }

// moving reports whether the provider last said that money moves, or may; no success is in the ledger,
// or it was returned.
func (f Fate) moving() bool { return f == FateMoving || f == FatePaidAgain }

// unsettled reports whether money may still move: the provider says so, or has reported the end once.
func (f Fate) unsettled() bool { return f.moving() || f == FateEnding }

// refused reports whether the provider last said that no money moves, or that it was returned.
func (f Fate) refused() bool { return f == FateEnding || f == FateEnded }
