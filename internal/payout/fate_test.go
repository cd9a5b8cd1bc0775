package payout

import "testing"

// TestFate: what has become of an order number, from the provider's last statement and the ledger, and
// the answers that decide about money.
func TestFate(t *testing.T) {
	const yes, no = true, false
	for _, tc := range []struct {
		said                             ObservationKind
		booked, returned, ended          bool
		want                             Fate
		paid, moving, unsettled, refused bool
	}{
		{"", no, no, no, FateSilent, no, no, no, no},
		{ObsNeverReceived, no, no, no, FateNotFound, no, no, no, no},
		{ObsPending, no, no, no, FateMoving, no, yes, yes, no},
		{ObsNeedsRecipient, no, no, no, FateMoving, no, yes, yes, no},
		{ObsSucceeded, no, no, no, FateMoving, no, yes, yes, no}, // reported once, after a refusal
		{ObsDeclined, no, no, no, FateEnding, no, no, yes, yes},
		{ObsReturned, no, no, no, FateEnding, no, no, yes, yes},
		{ObsDeclined, no, no, yes, FateEnded, no, no, no, yes},
		{ObsReturned, no, no, yes, FateEnded, no, no, no, yes},
		// In the ledger: whatever the provider says, until its return is in the ledger as well.
		{ObsSucceeded, yes, no, yes, FatePaid, yes, no, no, no},
		{ObsReturned, yes, no, yes, FatePaid, yes, no, no, no},
		{ObsDeclined, yes, no, yes, FatePaid, yes, no, no, no},
		{ObsPending, yes, no, yes, FatePaid, yes, no, no, no},
		{ObsNeverReceived, yes, no, yes, FatePaid, yes, no, no, no},
		// Returned.
		{ObsReturned, yes, yes, yes, FateEnded, no, no, no, yes},
		{ObsDeclined, yes, yes, yes, FateEnded, no, no, no, yes},
		{ObsDeclined, yes, yes, no, FateEnding, no, no, yes, yes},
		{ObsPending, yes, yes, no, FateMoving, no, yes, yes, no},
		{ObsSucceeded, yes, yes, no, FatePaidAgain, yes, yes, yes, no},
		{ObsNeverReceived, yes, yes, yes, FateSilent, no, no, no, no},
	} {
		a := Attempt{Statement: tc.said, Booked: tc.booked, ReturnBooked: tc.returned}
		if tc.ended {
			a.EndedAt = t0
		}
		f := a.fate()
		if f != tc.want || f.paid() != tc.paid || f.moving() != tc.moving || f.unsettled() != tc.unsettled || f.refused() != tc.refused {
			t.Errorf("%s, booked %t, returned %t, ended %t: %s; paid %t, moving %t, unsettled %t, refused %t", tc.said, tc.booked, tc.returned,
				tc.ended, f, f.paid(), f.moving(), f.unsettled(), f.refused())
		}
	}
}
