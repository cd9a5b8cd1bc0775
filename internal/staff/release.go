package staff

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"hongbao/internal/money"
	"hongbao/internal/payout"
)

// ReleaseCode says where a part of the money goes that the release of a hold lets go.
type ReleaseCode string

// The codes.
const (
	ReleaseCharge          ReleaseCode = "charge"            // the open charge of the sender
	ReleaseWinners         ReleaseCode = "winners"           // owed to recorded winners
	ReleaseRefunds         ReleaseCode = "refunds"           // being refunded to the sender
	ReleaseUnclaimed       ReleaseCode = "unclaimed"         // not claimed, and grabs may go on
	ReleaseRemainder       ReleaseCode = "remainder"         // not claimed, and grabs have ended
	ReleaseHouseWinners    ReleaseCode = "house_winners"     // owed to recorded winners after the charge was returned
	ReleaseHouseUnclaimed  ReleaseCode = "house_unclaimed"   // not claimed after the charge was returned
	ReleaseNothingToSender ReleaseCode = "nothing_to_sender" // together with the two above
	ReleaseHonours         ReleaseCode = "honours"           // honoured share conflicts
	ReleaseAfterRetry      ReleaseCode = "after_retry"       // a failed or returned payment
	ReleaseDecided         ReleaseCode = "decided"           // all payments of a provider, not added up
)

// ReleaseCodes are all codes, in the order of the parts of Releases.
var ReleaseCodes = []ReleaseCode{ReleaseCharge, ReleaseWinners, ReleaseRefunds, ReleaseUnclaimed, ReleaseRemainder, ReleaseHouseWinners,
	ReleaseHouseUnclaimed, ReleaseNothingToSender, ReleaseHonours, ReleaseAfterRetry, ReleaseDecided}

var releaseWords = map[ReleaseCode]string{
	ReleaseCharge:          "is charged to the sender",
	ReleaseWinners:         "is paid to winners",
	ReleaseRefunds:         "is refunded to the sender",
	ReleaseUnclaimed:       "goes to winners or back to the sender",
	ReleaseRemainder:       "goes back to the sender as the remainder",
	ReleaseHouseWinners:    "is paid by the house to winners",
	ReleaseHouseUnclaimed:  "is paid by the house to winners who are not recorded yet",
	ReleaseNothingToSender: "nothing goes to the sender",
	ReleaseHonours:         "is paid by the house for share conflicts",
	ReleaseAfterRetry:      "moves after a retry",
	ReleaseDecided:         "every payment that waits for the release; each was decided before",
}

// ReleasePart is a part of what a release lets go.
type ReleasePart struct {
	Code   ReleaseCode
	Count  int       // payments; 0: not counted
	Amount money.Fen // 0: not added up
}

// Releases is the money that may move when a hold is released: at most one part of each code, in the
// order of ReleaseCodes. Without parts nothing moves.
type Releases []ReleasePart

// Amount is the sum of the parts. It may be above money.Max.
func (r Releases) Amount() money.Fen {
	var sum money.Fen
	for _, p := range r {
		sum = sum.Plus(p.Amount)
	}
	return sum
}

// Plus adds the parts of another release.
func (r Releases) Plus(other Releases) Releases {
	sum := slices.Clone(r)
	for _, p := range other {
		i := slices.IndexFunc(sum, func(had ReleasePart) bool { return had.Code == p.Code })
		if i < 0 {
			sum = append(sum, p)
			continue
		}
		sum[i].Count += p.Count
		sum[i].Amount = sum[i].Amount.Plus(p.Amount)
	}
	slices.SortFunc(sum, func(a, b ReleasePart) int {
		return cmp.Compare(slices.Index(ReleaseCodes, a.Code), slices.Index(ReleaseCodes, b.Code))
	})
	return sum
}

// What is the English sentence about the parts.
func (r Releases) What() string {
	if len(r) == 0 {
		return "nothing moves now"
	}
	parts := make([]string, len(r))
	for i, p := range r {
		if p.Amount != 0 {
			parts[i] = p.Amount.String() + " "
		}
		switch {
		case p.Count == 1:
			parts[i] += "in 1 payment "
		case p.Count > 1:
			parts[i] += fmt.Sprintf("in %d payments ", p.Count)
		}
		parts[i] += cmp.Or(releaseWords[p.Code], string(p.Code)) // a newer server has other codes
	}
	return strings.Join(parts, "; ")
}

// Hash covers what a person is shown of a release.
func (r Releases) Hash() []byte {
	var text []byte
	for _, p := range r {
		text = fmt.Append(text, p.Code, " ", p.Count, " ", int64(p.Amount), "\n")
	}
	sum := sha256.Sum256(text)
	return sum[:]
}

// NeedSecondPerson reports whether the release of a hold needs two persons: it lets money of a packet or a
// payment go, or confirms the balances of apps after a recovery. A provider's payments all have been decided
// already.
func (r Releases) NeedSecondPerson(h payout.Hold) bool {
	return h.OfBalances() && h.ReleasedAt.IsZero() || (h.Scope == payout.HoldPacket || h.Scope == payout.HoldPayment) && r.Amount() > 0
}

// HeldPacket is what a packet's release is about.
type HeldPacket struct {
	Balances payout.Balances
	// GrabsEnded: what is not claimed is the remainder.
	GrabsEnded bool
	// Waiting are the count and sum of the packet's payments that have not ended, by kind. Of charges
	// and honours only those that continue by themselves.
	Waiting map[payout.Kind]ReleasePart
}

// Releases is what may move when the packet is released. After a return of the charge the house pays,
// and the sender gets nothing.
func (p HeldPacket) Releases() Releases {
	charge, honours := p.Waiting[payout.KindCharge], p.Waiting[payout.KindHonour]
	charge.Code, honours.Code = ReleaseCharge, ReleaseHonours
	owed := ReleasePart{ReleaseWinners, p.Waiting[payout.KindPayout].Count, p.Balances.ByAccount[payout.AccountOwed]}
	refunds := ReleasePart{ReleaseRefunds, p.Waiting[payout.KindRefund].Count, p.Balances.ByAccount[payout.AccountRefunding]}
	rest := ReleasePart{Code: ReleaseUnclaimed, Amount: p.Balances.ByAccount[payout.AccountHolding]}
	if p.GrabsEnded {
		rest.Code = ReleaseRemainder
	}
	if p.Balances.ByKind[payout.PostChargeReturned] > 0 { // nothing goes to the sender again
		charge, refunds = ReleasePart{}, ReleasePart{}
		owed.Code, rest.Code = ReleaseHouseWinners, ReleaseHouseUnclaimed
	}
	var out Releases
	for _, part := range []ReleasePart{charge, owed, refunds, rest, honours} {
		if part.Amount > 0 {
			out = out.Plus(Releases{part})
		}
	}
	if len(out) > 0 && p.Balances.ByKind[payout.PostChargeReturned] > 0 {
		out = out.Plus(Releases{{Code: ReleaseNothingToSender}})
	}
	return out
}

// PaymentReleases is what may move when a payment is released: its amount while it is not final, or
// may be retried. The zero Payment has no row yet.
func PaymentReleases(p payout.Payment) Releases {
	code := map[payout.Kind]ReleaseCode{payout.KindCharge: ReleaseCharge, payout.KindPayout: ReleaseWinners, payout.KindRefund: ReleaseRefunds,
		payout.KindHonour: ReleaseHonours}[p.Kind]
	switch {
	case p.Decidable() && p.Kind != payout.KindCharge:
		code = ReleaseAfterRetry
	case !p.Status.Open():
		return nil
	}
	return Releases{{Code: code, Amount: p.Amount}}
}
