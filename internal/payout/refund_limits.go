package payout

import "time"

// Codes of a refund that its provider does not make any more. Nothing is sent; two persons pay it by other means.
const (
	FailureRefundLimit      = "refund_limit"       // the charge has as many refunds as the provider makes
	FailureRefundWindowOver = "refund_window_over" // the charge was paid too long ago
)

// BoundsRefunds reports whether the refunds of one charge depend on each other: on their number, or on the time
// between two.
func (l Limits) BoundsRefunds() bool { return l.RefundsPerCharge > 0 || l.RefundSpacing > 0 }

// CheckRefund checks whether a refund may get an order number now. code: it was never sent, and fails with this
// code instead. from: it is deferred until then; zero or past: it is sent. paidAt is when its charge was paid
// (zero: not known), and sent are the order numbers of all refunds of that charge.
//
// Only an order number is checked that is sent for the first time. A repeat has its place at the provider, which
// refuses one that comes too early for now.
func (l Limits) CheckRefund(p Payment, paidAt time.Time, sent []Attempt, now time.Time) (code string, from time.Time) {
	switch {
	case !p.Unsent(): // retried under another number: the provider decides
	case l.RefundWindow > 0 && !paidAt.IsZero() && now.Sub(paidAt) > l.RefundWindow:
		return FailureRefundWindowOver, from
	case l.RefundsPerCharge > 0 && len(sent) >= l.RefundsPerCharge:
		return FailureRefundLimit, from
	}
	if l.RefundSpacing > 0 {
		for _, a := range sent {
			from = maxTime(from, a.refundFrom(l.RefundSpacing, now))
		}
	}
	return "", from
}

// refundFrom returns from when another refund of the charge may be sent: the spacing after the first send, which
// may leave until LeaveWithin; and not while a send without a final answer may still land. A send that can no
// longer land is passed by, so that an unknown outcome stops the other refunds for the landing window at most.
func (a Attempt) refundFrom(spacing time.Duration, now time.Time) time.Time {
	if TooFarAhead(a.StartedAt, now) { // sent by a clock ahead: nobody knows when
		return time.Time{}
	}
	at := a.StartedAt.Add(LeaveWithin + spacing)
	if a.EndedAt.IsZero() {
		at = maxTime(at, a.sendsUntil())
	}
	return at
}
