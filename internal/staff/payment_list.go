package staff

import (
	"time"

	"hongbao/internal/money"
	"hongbao/internal/payout"
)

// PaymentFilter selects payments for a list, newest first. Zero members do not filter.
type PaymentFilter struct {
	Kind payout.Kind
	// IncludeHonours, with KindPayout: share conflicts too.
	IncludeHonours bool
	PacketID       string
	UserID         string
	OrderNo        string
	ProviderRef    string // the provider's reference, of any attempt
	Status         payout.Status
	FailureCode    string
	CreatedTo      time.Time // created at or before
	// LateBefore, with KindRefund: not final, and due by then. The refund of the remainder is due
	// when the packet expires or, if earlier, its books close; that of a cancelled payout at the
	// cancel.
	LateBefore time.Time
	AmountMin  money.Fen
	AmountMax  money.Fen
	// AfterTime and AfterID continue a list behind its last item.
	AfterTime time.Time
	AfterID   string
	Limit     int
}

// PaymentRow is a payment as lists show it.
type PaymentRow struct {
	payout.Payment
	OrderNo      string // of the current attempt, "" before the first
	ProviderRef  string
	AttemptCount int
}

// PaymentDetail is everything known about one payment.
type PaymentDetail struct {
	PaymentRow
	Attempts []payout.Attempt
	Events   []payout.Event
}

// RefusedCoupon reports whether this is a charge that was paid with a coupon, which is not accepted: its
// packet did not open, and the sender is refunded in full.
func (d PaymentDetail) RefusedCoupon() bool {
	return d.Status != payout.StatusFailed && d.Attempt > 0 && d.Attempt <= len(d.Attempts) &&
		d.Attempts[d.Attempt-1].Code == payout.FailureCouponNotAllowed
}
