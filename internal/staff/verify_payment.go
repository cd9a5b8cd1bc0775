package staff

import (
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
)

// LedgerPayment is a payment, its attempts, and every transfer under its order numbers.
type LedgerPayment struct {
	ID        string
	PacketID  string
	Kind      payout.Kind
	Provider  string
	UserID    string
	Amount    money.Fen
	Status    payout.Status
	SettledAt time.Time
	// ShareUser and ShareAmount are those of the share of a payout; "": unclaimed.
	ShareUser   string
	ShareAmount money.Fen
	// CancelRefund is the amount of the refund of a cancelled payout; 0: none.
	CancelRefund money.Fen
	Attempts     []LedgerAttempt
	Transfers    []StoredTransfer
}

// LedgerAttempt is the booking state of an attempt.
type LedgerAttempt struct {
	OrderNo      string
	Booked       bool
	ReturnBooked bool
}

// VerifyPayment checks that a payment agrees with its transfers.
func VerifyPayment(p LedgerPayment) []Violation {
	v := paymentVerifier{violations: violations{packetID: p.PacketID}, payment: p, posted: map[string]money.Fen{},
		byKind: map[payout.TransferKind]money.Fen{}}
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
	byKind  map[payout.TransferKind]money.Fen
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

// moved checks that the payment is paid if and only if its money went to the provider and was not
// returned.
func (v *paymentVerifier) moved() {
	p := v.payment
	success, back := payout.SuccessTransfer(p.Kind, p.Provider), payout.ReturnTransfer(p.Kind)
	net, want := v.byKind[success]-v.byKind[back], money.Fen(0)
	if p.Status == payout.StatusPaid {
		want = p.Amount
	}
	if net != want {
		v.add(RulePayment, p.ID, "%s, but %d %s less %d returned", p.Status, v.byKind[success], success, v.byKind[back])
	}
}

// decided checks that a decision of staff has its transfers, and nothing else has.
func (v *paymentVerifier) decided() {
	p := v.payment
	cancelled := p.Status == payout.StatusCancelled
	v.posts(payout.PostCancel, cancelled && p.Kind == payout.KindPayout)
	v.posts(payout.PostVoided, cancelled && p.Kind == payout.KindHonour && v.honoured())
	dropped := v.byKind[payout.PostRefundDropped] > 0 // for one of two reasons
	v.posts(payout.PostRefundDropped, cancelled && p.Kind == payout.KindRefund && dropped)
	v.posts(payout.PostRefundKept, cancelled && p.Kind == payout.KindRefund && !dropped)
	v.posts(payout.OutsideTransfer(p.Kind), p.Status == payout.StatusPaidOutside)
	want := money.Fen(0)
	if cancelled && p.Kind == payout.KindPayout { // a share conflict was never the sender's money
		want = p.Amount
	}
	if p.CancelRefund != want {
		v.add(RulePayment, p.ID, "%s, and a refund of %d for it", p.Status, p.CancelRefund)
	}
}

// owed checks that the payment's obligation was booked when it was made.
func (v *paymentVerifier) owed() {
	p := v.payment
	parts, err := payout.Parse(p.ID)
	if err != nil || parts.PacketID != p.PacketID || parts.Kind != p.Kind {
		v.add(RuleUnknown, p.ID, "its id is not one of packet %s", p.PacketID)
		return
	}
	claimed := p.Kind == payout.KindPayout
	v.posts(payout.PostClaim, claimed)
	v.posts(payout.PostHonoured, v.honoured())
	v.posts(payout.PostClose, p.Kind == payout.KindRefund && parts.Number == 0)
	if claimed {
		if p.ShareUser != p.UserID || p.ShareAmount != p.Amount {
			v.add(RuleClaims, p.ID, "its share is of %d to %q, the payment of %d to %q", p.ShareAmount, p.ShareUser, p.Amount, p.UserID)
		}
	}
}

// honoured reports whether the house has paid a share conflict, or pays it. It has an
// order number, or is about to get one, or was paid by other means; for any other share conflict
// nothing is owed.
func (v *paymentVerifier) honoured() bool {
	p := v.payment
	untouched := len(p.Attempts) == 0 && (p.Status == payout.StatusFailed || p.Status == payout.StatusCancelled)
	return p.Kind == payout.KindHonour && !untouched
}

// posts checks that the whole amount is transferred as kind, or nothing.
func (v *paymentVerifier) posts(kind payout.TransferKind, should bool) {
	want := money.Fen(0)
	if should {
		want = v.payment.Amount
	}
	if v.byKind[kind] != want {
		v.add(RulePayment, v.payment.ID, "%s, and %d posted as %s, want %d", v.payment.Status, v.byKind[kind], kind, want)
	}
}

// attempts checks that attempts are marked as booked if and only if their transfers exist.
func (v *paymentVerifier) attempts() {
	p := v.payment
	known := map[string]bool{p.ID: true}
	for _, a := range p.Attempts {
		known[a.OrderNo] = true
		success := v.under(a.OrderNo, payout.SuccessTransfer(p.Kind, p.Provider))
		second := v.under(a.OrderNo, payout.PostSecondSuccess)
		if success && second {
			v.add(RuleAttempt, a.OrderNo, "its success is posted, and as a second one too")
		}
		if a.Booked != (success || second) {
			v.add(RuleAttempt, a.OrderNo, "booked %t, posted %t", a.Booked, success || second)
		}
		back, secondBack := v.under(a.OrderNo, payout.ReturnTransfer(p.Kind)), v.under(a.OrderNo, payout.PostSecondReturned)
		if secondBack && !second {
			v.add(RuleAttempt, a.OrderNo, "its return is posted as that of a second success, which is not posted")
		}
		off := v.under(a.OrderNo, payout.PostWrittenOff)
		if off && !second || v.under(a.OrderNo, payout.PostRecovered) && !(off && secondBack) {
			v.add(RuleAttempt, a.OrderNo, "written off or recovered, without a second success or its return")
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

func (v *paymentVerifier) under(orderNo string, kind payout.TransferKind) bool {
	_, ok := v.posted[payout.Transfer{Kind: kind, OrderNo: orderNo}.Reference()]
	return ok
}
