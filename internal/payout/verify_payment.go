package payout

import (
	"time"

	"hongbao/internal/money"
)

// LedgerPayment is a payment, its attempts, and every posting under its numbers.
type LedgerPayment struct {
	ID        string
	PacketID  string
	Kind      Kind
	UserID    string
	Amount    money.Fen
	Status    Status
	SettledAt time.Time
	// ShareUser and ShareAmount are those of the share of a payout; "" while nobody has it.
	ShareUser   string
	ShareAmount money.Fen
	// CancelRefund is the amount of the refund of a cancelled payout; 0: there is none.
	CancelRefund money.Fen
	Attempts     []LedgerAttempt
	Transfers    []StoredTransfer
}

// LedgerAttempt is what an attempt says of the ledger.
type LedgerAttempt struct {
	OrderNo      string
	Booked       bool
	ReturnBooked bool
}

// VerifyPayment checks that a payment says what its postings say.
func VerifyPayment(p LedgerPayment) []Violation {
	v := paymentVerifier{violations: violations{packetID: p.PacketID}, payment: p, posted: map[string]money.Fen{}, byKind: map[TransferKind]money.Fen{}}
	for _, t := range p.Transfers {
		v.addTransfer(t)
	}
	v.moved()
	v.decided()
	v.owed()
	v.attempts()
	if p.Status.Open() != p.SettledAt.IsZero() {
		v.add(RuleSettled, p.ID, "%s, and settled at %s", p.Status, stamp(p.SettledAt))
	}
	return v.found
}

type paymentVerifier struct {
	violations
	payment LedgerPayment
	posted  map[string]money.Fen // by reference
	byKind  map[TransferKind]money.Fen
}

func (v *paymentVerifier) addTransfer(t StoredTransfer) {
	p, ref := v.payment, t.Transfer.Reference()
	if t.PacketID != p.PacketID {
		v.add(RuleUnknown, t.OrderNo, "%s is posted to packet %s", t.Kind, t.PacketID)
	}
	if t.Amount != p.Amount {
		v.add(RulePayment, t.OrderNo, "%s of %d, but the payment is of %d", t.Kind, t.Amount, p.Amount)
	}
	if _, twice := v.posted[ref]; twice {
		v.add(RuleReference, t.OrderNo, "%s is posted twice", t.Kind)
	}
	v.posted[ref] += t.Amount
	v.byKind[t.Kind] += t.Amount
}

// moved: what went to the provider, less what came back, is there exactly while
// the payment is paid.
func (v *paymentVerifier) moved() {
	p := v.payment
	success, back := successTransfer(p.Kind), returnTransfer(p.Kind)
	net, want := v.byKind[success]-v.byKind[back], money.Fen(0)
	if p.Kind == KindCharge {
		net = v.byKind[success]
	}
	if p.Status == StatusPaid {
		want = p.Amount
	}
	if net != want {
		v.add(RulePayment, p.ID, "%s, but %d %s less %d that came back", p.Status, v.byKind[success], success, v.byKind[back])
	}
}

// decided: what a person decided is posted, and nothing else is.
func (v *paymentVerifier) decided() {
	p := v.payment
	cancelled, promise := p.Status == StatusCancelled, p.Kind == KindHonour
	v.posts(PostCancel, cancelled && !promise)
	v.posts(PostVoided, cancelled && promise && v.honoured())
	v.posts(outsideTransfer(p.Kind), p.Status == StatusPaidOutside)
	want := money.Fen(0)
	if cancelled && !promise { // a promise was never the sender's money
		want = p.Amount
	}
	if p.CancelRefund != want {
		v.add(RulePayment, p.ID, "%s, and a refund of %d for it", p.Status, p.CancelRefund)
	}
}

// owed: what a payment is for was booked when it was made.
func (v *paymentVerifier) owed() {
	p := v.payment
	parts, err := Parse(p.ID)
	if err != nil || parts.PacketID != p.PacketID || parts.Kind != p.Kind {
		v.add(RuleUnknown, p.ID, "its id is not one of packet %s", p.PacketID)
		return
	}
	claimed := p.Kind == KindPayout
	v.posts(PostClaim, claimed)
	v.posts(PostHonoured, v.honoured())
	v.posts(PostClose, p.Kind == KindRefund && parts.Number == 0)
	if claimed {
		if p.ShareUser != p.UserID || p.ShareAmount != p.Amount {
			v.add(RuleClaims, p.ID, "its share is of %d to %q, the payment of %d to %q", p.ShareAmount, p.ShareUser, p.Amount, p.UserID)
		}
	}
}

// honoured: a promise that could not be booked, and that the house has paid, or
// pays (rule R10). It has a number, or is about to get one, or was paid by other
// means; for any other promise nothing is owed.
func (v *paymentVerifier) honoured() bool {
	p := v.payment
	untouched := len(p.Attempts) == 0 && (p.Status == StatusFailed || p.Status == StatusCancelled)
	return p.Kind == KindHonour && !untouched
}

// posts: the whole amount is posted as kind, or nothing is.
func (v *paymentVerifier) posts(kind TransferKind, should bool) {
	want := money.Fen(0)
	if should {
		want = v.payment.Amount
	}
	if v.byKind[kind] != want {
		v.add(RulePayment, v.payment.ID, "%s, and %d posted as %s, want %d", v.payment.Status, v.byKind[kind], kind, want)
	}
}

// attempts: what an attempt says it booked is posted under its number, and the
// other way round.
func (v *paymentVerifier) attempts() {
	p := v.payment
	known := map[string]bool{p.ID: true}
	for _, a := range p.Attempts {
		known[a.OrderNo] = true
		success := v.under(a.OrderNo, successTransfer(p.Kind))
		second := v.under(a.OrderNo, PostSecondSuccess)
		if success && second {
			v.add(RuleAttempt, a.OrderNo, "its success is posted, and as a second one too")
		}
		if a.Booked != (success || second) {
			v.add(RuleAttempt, a.OrderNo, "booked %t, posted %t", a.Booked, success || second)
		}
		back, secondBack := v.under(a.OrderNo, returnTransfer(p.Kind)), v.under(a.OrderNo, PostSecondReturned)
		if secondBack && !second {
			v.add(RuleAttempt, a.OrderNo, "came back as a second success, and was posted as none")
		}
		if back = back || secondBack; a.ReturnBooked != back {
			v.add(RuleAttempt, a.OrderNo, "return booked %t, posted %t", a.ReturnBooked, back)
		}
	}
	for _, t := range p.Transfers {
		if !known[t.OrderNo] {
			v.add(RuleUnknown, t.OrderNo, "%s is posted under a number without an attempt", t.Kind)
		}
	}
}

func (v *paymentVerifier) under(orderNo string, kind TransferKind) bool {
	_, ok := v.posted[Transfer{Kind: kind, OrderNo: orderNo}.Reference()]
	return ok
}
