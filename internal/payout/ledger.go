package payout

import "hongbao/internal/money"

// Account of the ledger. Holding, owed, refunding, outside and suspense are kept per packet,
// provider per provider, house once (rule R12).
type Account string

// The accounts.
const (
	AccountProvider  Account = "provider"
	AccountHolding   Account = "holding"
	AccountOwed      Account = "owed"
	AccountRefunding Account = "refunding"
	AccountOutside   Account = "outside"
	AccountSuspense  Account = "suspense"
	AccountHouse     Account = "house"
)

// Accounts lists every account.
var Accounts = []Account{AccountProvider, AccountHolding, AccountOwed, AccountRefunding, AccountOutside, AccountSuspense, AccountHouse}

// TransferKind names why money moved between two accounts.
type TransferKind string

// The posting kinds of rule R12.
const (
	PostCharge         TransferKind = "charge"
	PostClaim          TransferKind = "claim"
	PostPaid           TransferKind = "paid"
	PostClose          TransferKind = "close"
	PostRefunded       TransferKind = "refunded"
	PostCancel         TransferKind = "cancel"
	PostReturned       TransferKind = "returned"
	PostRefundReturned TransferKind = "refund_returned"
	PostPaidOutside    TransferKind = "paid_outside"
	// PostRefundPaidOutside: a refund that was made by other means.
	PostRefundPaidOutside TransferKind = "refund_outside"
	PostHonoured          TransferKind = "honoured"
	// PostVoided: an honoured promise that was not paid and is given up (rule R10).
	PostVoided        TransferKind = "voided"
	PostSecondSuccess TransferKind = "second_success"
	// PostSecondReturned: what had moved as a second success came back.
	PostSecondReturned TransferKind = "second_returned"
)

// transferAccounts says from which account to which each kind moves money.
var transferAccounts = map[TransferKind][2]Account{
	PostCharge:            {AccountProvider, AccountHolding},
	PostClaim:             {AccountHolding, AccountOwed},
	PostPaid:              {AccountOwed, AccountProvider},
	PostClose:             {AccountHolding, AccountRefunding},
	PostRefunded:          {AccountRefunding, AccountProvider},
	PostCancel:            {AccountOwed, AccountRefunding},
	PostReturned:          {AccountProvider, AccountOwed},
	PostRefundReturned:    {AccountProvider, AccountRefunding},
	PostPaidOutside:       {AccountOwed, AccountOutside},
	PostRefundPaidOutside: {AccountRefunding, AccountOutside},
	PostHonoured:          {AccountHouse, AccountOwed},
	PostVoided:            {AccountOwed, AccountHouse},
	PostSecondSuccess:     {AccountSuspense, AccountProvider},
	PostSecondReturned:    {AccountProvider, AccountSuspense},
}

// Posting is one append-only transfer of the ledger. Its reference, order
// number and kind, is unique, so that it can be made only once.
type Transfer struct {
	Kind    TransferKind
	Debit   Account // the account the money leaves
	Credit  Account // the account it goes to
	Amount  money.Fen
	OrderNo string // or the payment id where no order number is involved
}

// NewTransfer returns the posting of a kind.
func NewTransfer(kind TransferKind, orderNo string, amount money.Fen) Transfer {
	a := transferAccounts[kind]
	return Transfer{Kind: kind, Debit: a[0], Credit: a[1], Amount: amount, OrderNo: orderNo}
}

// Reference returns what makes the posting unique.
func (p Transfer) Reference() string { return p.OrderNo + ":" + string(p.Kind) }

// successTransfer and returnTransfer of each kind of payment.
func successTransfer(k Kind) TransferKind {
	switch k {
	case KindCharge:
		return PostCharge
	case KindRefund:
		return PostRefunded
	default:
		return PostPaid
	}
}

func returnTransfer(k Kind) TransferKind {
	if k == KindRefund {
		return PostRefundReturned
	}
	return PostReturned
}

// Break (差异) is a disagreement that a person has to look at.
type Break struct {
	Kind    BreakKind
	OrderNo string
	UserID  string // of a promise that cannot be booked: whose
	Detail  string
}

// BreakKind names a disagreement.
type BreakKind string

// The breaks the machine can find.
const (
	// BreakMismatch: an answer about another order number, account or amount than the stored request.
	BreakMismatch BreakKind = "mismatch"
	// BreakContradiction: the provider's definite statements about one number disagree.
	BreakContradiction BreakKind = "contradiction"
	// BreakSecondSuccess: money moved under a number that was superseded, or after a cancel or mark-paid.
	BreakSecondSuccess BreakKind = "second_success"
	// BreakLateSuccess: money moved after the payment had been called failed.
	BreakLateSuccess BreakKind = "late_success"
	// BreakForgotten: the provider no longer knows a number it had accepted.
	BreakForgotten BreakKind = "forgotten"
	// BreakShareConflict: a claim of the pool that cannot be booked (rule R10).
	BreakShareConflict BreakKind = "share_conflict"
	// BreakRestored: after MySQL was restored the recovery could not decide about a
	// packet; until a person has resolved it, nothing of the packet is sent, closed or
	// decided (rule R13).
	BreakRestored BreakKind = "restored"
	// BreakPoolLost: Redis lost grabs that were acknowledged, and nobody knows whose (rule R9).
	BreakPoolLost BreakKind = "pool_lost"
)

// MachineBreaks lists the breaks that are found without a statement of the provider.
var MachineBreaks = []BreakKind{BreakMismatch, BreakContradiction, BreakSecondSuccess, BreakLateSuccess, BreakForgotten, BreakShareConflict,
	BreakRestored, BreakPoolLost}

// OrderBreaks lists the breaks about an order number, the most serious first. One bad
// order is one break, of the first kind that applies; its detail lists the other findings.
var OrderBreaks = []BreakKind{BreakSecondSuccess, BreakLateSuccess, BreakMismatch, BreakContradiction, BreakForgotten, BreakForeignOrder,
	BreakOpDiffers, BreakMovedTwice, BreakAccountDiffers, BreakAmountDiffers, BreakSuperseded, BreakReturnNotBooked, BreakNotBooked,
	BreakNotInStatement}

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
