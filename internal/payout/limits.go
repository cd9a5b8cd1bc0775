package payout

import (
	"time"

	"hongbao/internal/money"
)

// Limits are the facts about a provider and our account there: what the state machine, the checks of
// a new packet and GET /v1/providers need.
type Limits struct {
	Adapter Adapter
	// LandingWindow is how long a send without a final answer may still take effect; at most
	// LongestPause.
	LandingWindow time.Duration
	// Remembers is how long the provider knows an order number. One day before its end sends stop,
	// and "never received" proves nothing from then on.
	Remembers time.Duration
	// RefundWindow is how long after a charge the provider still refunds it.
	RefundWindow time.Duration
	// RefundsPerCharge is how many refunds one charge may have, and RefundSpacing the pause between
	// two of them (CheckRefund). 0: unlimited, none.
	RefundsPerCharge int
	RefundSpacing    time.Duration
	// Methods are the ways in which a sender pays; the first is the default. Empty: the provider
	// does not charge.
	Methods []Method
	// MinPayout and MaxPayout bound one payout. 0: no bound.
	MinPayout, MaxPayout money.Fen
	// SendsPerSecond is the provider's own limit of sends of each kind. 0 or absent: unknown.
	SendsPerSecond map[Op]int
	// NameFrom is the payout from which the provider asks for the recipient's name. 0: never.
	NameFrom money.Fen
	// Authorizations: a recipient can agree at the provider to be paid without confirming each time.
	Authorizations bool
	// PayoutTexts: the requests of payouts hold the greeting of the packet or the name of its campaign.
	PayoutTexts bool
}

// NeedsName reports whether the provider asks for the recipient's name in payouts of up to this amount.
func (l Limits) NeedsName(most money.Fen) bool { return l.NameFrom > 0 && most >= l.NameFrom }

// Method is a way in which a sender pays.
type Method struct {
	Name string
	// NeedsPayer: the sender has to act in an app; else the charge has a final answer by itself.
	NeedsPayer bool
	// Payer lists the members of funding.payer that a charge needs.
	Payer []string
	// MinAmount and MaxAmount bound one charge. 0: no bound.
	MinAmount, MaxAmount money.Fen
}

// Method returns a method by its name, "" being the default.
func (l Limits) Method(name string) (Method, bool) {
	for _, m := range l.Methods {
		if name == "" || m.Name == name {
			return m, true
		}
	}
	return Method{}, false
}

// RefundMargin is the minimum rest of the refund window when a packet expires: for the remainder,
// for cancelled payouts, and for decisions about both.
const RefundMargin = 60 * 24 * time.Hour

// MaxOpensAhead is how long after its charge a packet of the given lifetime may open.
func (l Limits) MaxOpensAhead(life time.Duration) time.Duration {
	return l.RefundWindow - RefundMargin - life
}
