package payout

import "hongbao/internal/money"

// Account of the ledger. Holding, owed, refunding, outside and suspense are kept per packet,
// provider and fees per provider, prefunded per app, bank and house once (rule R12).
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
	// AccountFees holds the fees of providers; below zero: our expense.
	AccountFees Account = "fees"
	// AccountPrefunded is the money that an app has paid in and that is not in a packet.
	AccountPrefunded Account = "prefunded"
	// AccountBank is our bank account, over which apps pay in and are paid out.
	AccountBank Account = "bank"
)

// Accounts lists every account.
var Accounts = []Account{AccountProvider, AccountHolding, AccountOwed, AccountRefunding, AccountOutside, AccountSuspense, AccountHouse,
	AccountFees, AccountPrefunded, AccountBank}

// TransferKind names why money moved between two accounts.
type TransferKind string

// The transfer kinds of rule R12.
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
	// PostRefundPaidOutside: a refund was made by other means.
	PostRefundPaidOutside TransferKind = "refund_outside"
	PostHonoured          TransferKind = "honoured"
	// PostVoided: an honoured share conflict was not paid and is given up.
	PostVoided        TransferKind = "voided"
	PostSecondSuccess TransferKind = "second_success"
	// PostSecondReturned: the money of a second success was returned.
	PostSecondReturned TransferKind = "second_returned"
	// PostChargeReturned: the sender has the charge back. What is owed is paid by the house.
	PostChargeReturned TransferKind = "charge_returned"
	// PostRefundKept: the sender had the money of this refund back with the charge already.
	PostRefundKept TransferKind = "refund_kept"
	// PostRefundDropped: the cancelled payout of this refund has reached its recipient after all.
	PostRefundDropped TransferKind = "refund_dropped"
	// PostWrittenOff: the money of a second success is lost; it was our own.
	PostWrittenOff TransferKind = "written_off"
	// PostRecovered: the money of a second success was returned after it had been written off.
	PostRecovered TransferKind = "recovered"
	// PostCredit: an app has paid money in.
	PostCredit TransferKind = "credit"
	// PostDebit: an app was paid money out.
	PostDebit TransferKind = "debit"
	// PostReserve: a packet is paid from its app's balance. It is the charge of a merchant's packet.
	PostReserve TransferKind = "reserve"
	// PostRelease: money of a packet goes back to its app's balance. It is the refund of a merchant's packet.
	PostRelease TransferKind = "release"
	// PostFee: the provider has deducted a fee. This kind and the next three record the lines of a
	// statement without an order (Op.WithoutOrder).
	PostFee TransferKind = "fee"
	// PostFeeReturned: the provider has returned a fee, as after a refund.
	PostFeeReturned TransferKind = "fee_returned"
	// PostTopUp: money of our bank account is with the provider.
	PostTopUp TransferKind = "top_up"
	// PostWithdrawal: money of the provider is on our bank account.
	PostWithdrawal TransferKind = "withdrawal"
)

// transferAccounts are the debited and the credited account of each kind.
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
	PostChargeReturned:    {AccountHouse, AccountProvider},
	PostRefundKept:        {AccountRefunding, AccountHouse},
	PostRefundDropped:     {AccountRefunding, AccountSuspense},
	PostWrittenOff:        {AccountHouse, AccountSuspense},
	PostRecovered:         {AccountSuspense, AccountHouse},
	PostCredit:            {AccountBank, AccountPrefunded},
	PostDebit:             {AccountPrefunded, AccountBank},
	PostReserve:           {AccountPrefunded, AccountHolding},
	PostRelease:           {AccountRefunding, AccountPrefunded},
	PostFee:               {AccountFees, AccountProvider},
	PostFeeReturned:       {AccountProvider, AccountFees},
	PostTopUp:             {AccountProvider, AccountBank},
	PostWithdrawal:        {AccountBank, AccountProvider},
}

// TransferKinds lists every kind, in the order of a packet's life.
var TransferKinds = []TransferKind{PostCharge, PostClaim, PostPaid, PostReturned, PostPaidOutside, PostCancel, PostClose, PostRefunded,
	PostRefundReturned,
	PostRefundPaidOutside, PostHonoured, PostVoided, PostSecondSuccess, PostSecondReturned, PostChargeReturned, PostRefundKept,
	PostRefundDropped, PostWrittenOff, PostRecovered, PostCredit, PostDebit, PostReserve, PostRelease, PostFee, PostFeeReturned, PostTopUp,
	PostWithdrawal}

// Accounts returns the debited and the credited account of the kind.
func (k TransferKind) Accounts() (debit, credit Account) {
	return transferAccounts[k][0], transferAccounts[k][1]
}

// Op is the operation that a provider's statement lists for a transfer of this kind and a payment
// of the kind of; "": no movement at a provider.
func (k TransferKind) Op(of Kind) Op {
	switch k {
	case PostCharge, PostPaid, PostRefunded, PostSecondSuccess:
		return OpOf(of)
	case PostReturned, PostRefundReturned, PostSecondReturned, PostChargeReturned:
		return OpReturn
	case PostFee, PostFeeReturned, PostTopUp, PostWithdrawal:
		return Op(k)
	}
	return ""
}

// NeverNegative are the accounts that hold only what was put into them before.
var NeverNegative = []Account{AccountHolding, AccountOwed, AccountRefunding}

// Transfer is one append-only entry of the ledger. Its reference, order number and kind, is unique,
// so that it is recorded once.
type Transfer struct {
	Kind   TransferKind
	Debit  Account // the account that the money leaves
	Credit Account // the account that receives it
	Amount money.Fen
	// OrderNo is the payment id where no order number is involved, the movement's id of a credit or
	// debit, and LineID of what belongs to no order.
	OrderNo string
}

// NewTransfer returns a transfer of a kind.
func NewTransfer(kind TransferKind, orderNo string, amount money.Fen) Transfer {
	a := transferAccounts[kind]
	return Transfer{Kind: kind, Debit: a[0], Credit: a[1], Amount: amount, OrderNo: orderNo}
}

// AtProvider reports whether the transfer changes what a provider holds.
func (p Transfer) AtProvider() bool { return p.Debit == AccountProvider || p.Credit == AccountProvider }

// Reference returns the unique key of the transfer.
func (p Transfer) Reference() string { return p.OrderNo + ":" + string(p.Kind) }

// SuccessTransfer is the kind of ledger transfer when a payment of the kind succeeds at a provider.
func SuccessTransfer(k Kind, provider string) TransferKind {
	switch {
	case k == KindCharge && provider == BalanceProvider:
		return PostReserve
	case k == KindCharge:
		return PostCharge
	case k == KindRefund && provider == BalanceProvider:
		return PostRelease
	case k == KindRefund:
		return PostRefunded
	default:
		return PostPaid
	}
}

// ReturnTransfer is the kind of ledger transfer when a payment of the kind is returned.
func ReturnTransfer(k Kind) TransferKind {
	switch k {
	case KindCharge:
		return PostChargeReturned
	case KindRefund:
		return PostRefundReturned
	default:
		return PostReturned
	}
}

// Imbalanced reports whether a packet's balances cannot be right: an account of NeverNegative is
// below zero, or the parts do not sum to the whole.
func (b Balances) Imbalanced() bool {
	for _, account := range NeverNegative {
		if b.ByAccount[account] < 0 {
			return true
		}
	}
	return b.Parts() != b.Charged()+b.ByKind[PostHonoured]-b.ByKind[PostVoided]
}

// Parts is the sum of paid, owed, held, refunding and refunded money.
func (b Balances) Parts() money.Fen {
	return b.Paid() + b.Refunded() + b.ByAccount[AccountHolding] + b.ByAccount[AccountOwed] + b.ByAccount[AccountRefunding]
}

// Charged is the money that the packet was funded with: by its sender's charge, or from its app's balance.
func (b Balances) Charged() money.Fen { return b.ByKind[PostCharge] + b.ByKind[PostReserve] }

// Paid is the money that recipients have: by the provider and by other means, without returned
// amounts, and of cancelled payouts that have reached them after all.
func (b Balances) Paid() money.Fen {
	k := b.ByKind
	return k[PostPaid] - k[PostReturned] + k[PostPaidOutside] + k[PostRefundDropped]
}

// Refunded is the money that the sender has back: by a refund, by other means, or with the charge; or
// that the app's balance has back.
func (b Balances) Refunded() money.Fen {
	k := b.ByKind
	return k[PostRefunded] - k[PostRefundReturned] + k[PostRefundPaidOutside] + k[PostRefundKept] + k[PostRelease]
}
