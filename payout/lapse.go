package payout

import "time"

// FailureLapsed is the code of a charge whose packet expired before anything was sent.
const FailureLapsed = "expired_before_charge"

// Unsent reports whether this is a charge of which nothing was ever sent: it has no
// order number, so that no money can have moved. It is the only payment that fails
// without a word of the provider's (rule R4).
func (p Payment) Unsent() bool {
	return p.Kind == KindCharge && p.Status == StatusPending && p.Attempt == 0
}

// Lapse fails an unsent charge whose packet has expired (rule R2). Otherwise the sender would
// be charged for a packet that nobody can grab, only to be refunded. Errors: ErrTransition.
func Lapse(p *Payment, now time.Time) error {
	if err := p.Move(StatusFailed); err != nil {
		return err
	}
	p.Failure, p.UpdatedAt = FailureOf(p.Kind, FailureLapsed, ""), now
	return nil
}
