package payout

import "hongbao/money"

// Imbalanced reports whether a packet's balances cannot be right: an account that
// holds what was put into it is below zero, or the parts are not the whole.
func (b Balances) Imbalanced() bool {
	for _, account := range neverNegative {
		if b.ByAccount[account] < 0 {
			return true
		}
	}
	return b.parts() != b.ByKind[PostCharge]+b.ByKind[PostHonoured]-b.ByKind[PostVoided]
}

// parts is where the money is: paid, owed, still held, going back, gone back.
func (b Balances) parts() money.Fen {
	k := b.ByKind
	paid := k[PostPaid] - k[PostReturned] + b.ByAccount[AccountOutside]
	refunded := k[PostRefunded] - k[PostRefundReturned]
	return paid + refunded + b.ByAccount[AccountHolding] + b.ByAccount[AccountOwed] + b.ByAccount[AccountRefunding]
}
