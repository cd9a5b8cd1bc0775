package staff

import (
	"fmt"
	"slices"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
)

// Rule names a rule that a ledger has to satisfy (rule R12).
type Rule string

// The rules that verification checks.
const (
	// RuleTransfer: the amount is above zero, and the two accounts are those of the kind.
	RuleTransfer Rule = "transfer"
	// RuleReference: the reference is order number and kind, and unique.
	RuleReference Rule = "reference"
	// RuleNegative: holding, owed and refunding are never below zero, at no moment.
	RuleNegative Rule = "negative"
	// RuleTotal: charge, shares and the parts in the accounts each sum to the total.
	RuleTotal Rule = "total"
	// RuleStatus: the packet's status agrees with its balances.
	RuleStatus Rule = "status"
	// RuleClaims: claimed shares, claims, claim transfers and payouts agree.
	RuleClaims Rule = "claims"
	// RuleRemainder: the remainder is total less claimed, and equals the close transfer.
	RuleRemainder Rule = "remainder"
	// RulePayment: a payment's status agrees with its transfers.
	RulePayment Rule = "payment"
	// RuleAttempt: an attempt is marked as booked if and only if its transfer exists.
	RuleAttempt Rule = "attempt"
	// RuleSettled: status and timestamp agree: a final status has its time.
	RuleSettled Rule = "settled"
	// RuleUnknown: a transfer belongs to an existing payment and to its packet.
	RuleUnknown Rule = "unknown"
	// RuleBalance: an app's balance is the sum of its transfers, of which each credit and debit is an
	// approved movement.
	RuleBalance Rule = "balance"
)

// Rules lists every rule in the order above.
var Rules = []Rule{RuleTransfer, RuleReference, RuleNegative, RuleTotal, RuleStatus, RuleClaims, RuleRemainder, RulePayment, RuleAttempt,
	RuleSettled, RuleUnknown, RuleBalance}

// Violation is one broken rule and its place.
type Violation struct {
	Rule     Rule   `json:"rule"`
	PacketID string `json:"packet_id"`
	// Subject is the payment, order number, transfer or app it is about; "": the packet.
	Subject string `json:"subject,omitempty"`
	Detail  string `json:"detail"`
}

// StoredTransfer is one row of the ledger.
type StoredTransfer struct {
	ID       int64
	PacketID string
	payout.Transfer
	Reference string
}

// violations collects the violations of one packet.
type violations struct {
	packetID string
	found    []Violation
}

func (f *violations) add(rule Rule, subject, format string, args ...any) {
	f.found = append(f.found, Violation{Rule: rule, PacketID: f.packetID, Subject: subject, Detail: fmt.Sprintf(format, args...)})
}

// LedgerPacket is what a packet's transfers are checked against.
type LedgerPacket struct {
	ID     string
	Total  money.Fen
	Shares int
	// Status is the stored one: funding, rejected, open, closing or closed.
	Status        string
	BooksClosedAt time.Time
	ClosedAt      time.Time
	// Remainder and RecordedClaims are the values stored when the packet's books were closed.
	Remainder      money.Fen
	RecordedClaims int
	// ShareRows and ShareSum are the split, ClaimedCount and ClaimedAmount the claimed part of it.
	ShareRows     int
	ShareSum      money.Fen
	ClaimedCount  int
	ClaimedAmount money.Fen
	// ClaimRows is the number of rows of claims, WrongClaims the number of those that disagree with
	// their share.
	ClaimRows, WrongClaims int
}

// PacketVerifier checks the ledger of one packet. Add every transfer of the packet in the order of
// their ids, then call End. It keeps sums only, whatever the size of the packet.
type PacketVerifier struct {
	violations
	packet  LedgerPacket
	balance map[payout.Account]money.Fen
	byKind  map[payout.TransferKind]money.Fen
	moved   bool
}

// NewPacketVerifier returns a verifier for one packet.
func NewPacketVerifier(p LedgerPacket) *PacketVerifier {
	return &PacketVerifier{violations: violations{packetID: p.ID}, packet: p, balance: map[payout.Account]money.Fen{},
		byKind: map[payout.TransferKind]money.Fen{}}
}

// Add checks the next transfer and the balances after it.
func (v *PacketVerifier) Add(t StoredTransfer) {
	subject := fmt.Sprintf("transfer %d", t.ID)
	debit, credit := t.Kind.Accounts()
	switch {
	case t.Amount <= 0:
		v.add(RuleTransfer, subject, "amount %d is not above zero", t.Amount)
	case t.Debit == t.Credit:
		v.add(RuleTransfer, subject, "debit and credit are both %s", t.Debit)
	case debit == "":
		v.add(RuleTransfer, subject, "unknown kind %q", t.Kind)
	case t.Debit != debit || t.Credit != credit:
		v.add(RuleTransfer, subject, "%s moves from %s to %s, want %s to %s", t.Kind, t.Debit, t.Credit, debit, credit)
	}
	if t.Reference != t.Transfer.Reference() {
		v.add(RuleReference, subject, "reference %q, want %q", t.Reference, t.Transfer.Reference())
	}
	if parts, err := payout.Parse(t.OrderNo); err != nil || parts.PacketID != v.packet.ID {
		v.add(RuleUnknown, subject, "order number %q is not one of this packet", t.OrderNo)
	}
	v.moved = true
	v.balance[t.Debit] -= t.Amount
	v.balance[t.Credit] += t.Amount
	v.byKind[t.Kind] += t.Amount
	if slices.Contains(payout.NeverNegative, t.Debit) && v.balance[t.Debit] < 0 {
		v.add(RuleNegative, subject, "%s is %d after it", t.Debit, v.balance[t.Debit])
	}
}

// End checks the sums of the transfers and returns every violation.
func (v *PacketVerifier) End() []Violation {
	v.totals()
	v.status()
	v.claims()
	return v.found
}

// Suspense is money that moved twice, in fen: no violation, but a break for staff.
func (v *PacketVerifier) Suspense() money.Fen { return -v.balance[payout.AccountSuspense] }

func (v *PacketVerifier) totals() {
	p, k := v.packet, v.byKind
	charged := p.Total
	found := payout.Balances{ByKind: k, ByAccount: v.balance}
	if found.Charged() == 0 && (p.Status == "rejected" || p.Status == "funding") { // while funding the charge may have succeeded
		charged = 0
	}
	if found.Charged() != charged {
		v.add(RuleTotal, "", "charged %d, want %d while %s", found.Charged(), charged, p.Status)
	}
	parts := found.Parts()
	if whole := found.Charged() + k[payout.PostHonoured] - k[payout.PostVoided]; parts != whole {
		v.add(RuleTotal, "", "the parts sum to %d of %d", parts, whole)
	}
	if p.ShareRows > 0 && (p.ShareRows != p.Shares || p.ShareSum != p.Total) {
		v.add(RuleTotal, "", "%d shares of %d in all, want %d of %d", p.ShareRows, p.ShareSum, p.Shares, p.Total)
	}
}

func (v *PacketVerifier) status() {
	p := v.packet
	if (p.Status == "closed") == p.ClosedAt.IsZero() {
		v.add(RuleSettled, "", "%s, and closed at %s", p.Status, stamp(p.ClosedAt))
	}
	switch p.Status {
	case "closed":
		if p.BooksClosedAt.IsZero() {
			v.add(RuleSettled, "", "closed, but its books are open")
		}
	case "closing":
	default:
		if !p.BooksClosedAt.IsZero() {
			v.add(RuleSettled, "", "%s, but its books are closed", p.Status)
		}
	}
	if p.Status == "rejected" && v.moved && !v.givenBack() {
		v.add(RuleStatus, "", "rejected, but money moved")
	}
	if p.Status == "open" && p.ShareRows == 0 {
		v.add(RuleStatus, "", "open, but it has no shares")
	}
	if !p.BooksClosedAt.IsZero() && v.balance[payout.AccountHolding] != 0 {
		v.add(RuleStatus, "", "its books are closed, and %d is still held", v.balance[payout.AccountHolding])
	}
}

// givenBack reports whether a charge succeeded after its packet was rejected, and all of it is
// refunded.
func (v *PacketVerifier) givenBack() bool {
	k := v.byKind
	return payout.Balances{ByKind: k}.Charged() == v.packet.Total && k[payout.PostClose] == v.packet.Total && k[payout.PostClaim] == 0
}

func (v *PacketVerifier) claims() {
	p, k := v.packet, v.byKind
	if k[payout.PostClaim] != p.ClaimedAmount {
		v.add(RuleClaims, "", "claimed shares sum to %d, claim postings to %d", p.ClaimedAmount, k[payout.PostClaim])
	}
	if p.ClaimRows != p.ClaimedCount || p.WrongClaims != 0 {
		v.add(RuleClaims, "", "%d claimed shares, %d listed as claims, %d of them wrongly", p.ClaimedCount, p.ClaimRows, p.WrongClaims)
	}
	if p.BooksClosedAt.IsZero() {
		if k[payout.PostClose] != 0 && !(p.Status == "rejected" && v.givenBack()) {
			v.add(RuleRemainder, "", "its books are open, but %d was posted as remainder", k[payout.PostClose])
		}
		return
	}
	if p.RecordedClaims != p.ClaimedCount {
		v.add(RuleClaims, "", "%d claimed shares, %d recorded when the books were closed", p.ClaimedCount, p.RecordedClaims)
	}
	if p.Remainder != p.Total-p.ClaimedAmount {
		v.add(RuleRemainder, "", "remainder %d, but total %d less claimed %d", p.Remainder, p.Total, p.ClaimedAmount)
	}
	if k[payout.PostClose] != p.Remainder {
		v.add(RuleRemainder, "", "remainder %d, posted %d", p.Remainder, k[payout.PostClose])
	}
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "no time"
	}
	return t.UTC().Format(time.RFC3339)
}

// VerifyReport is the result of verifying the whole ledger.
type VerifyReport struct {
	Packets   int64 `json:"packets"`
	Payments  int64 `json:"payments"`
	Attempts  int64 `json:"attempts"`
	Transfers int64 `json:"transfers"`
	// Violations counts the violations by rule; every rule is included.
	Violations map[Rule]int64 `json:"violations"`
	// Suspense is money that moved twice, in fen: no violation, but staff have to get it back.
	Suspense money.Fen `json:"suspense"`
	// OpenBreaks counts the open breaks, by kind.
	OpenBreaks map[payout.BreakKind]int64 `json:"open_breaks"`
}

// ViolationCount is the total number of violations.
func (v VerifyReport) ViolationCount() int64 {
	var n int64
	for _, of := range v.Violations {
		n += of
	}
	return n
}
