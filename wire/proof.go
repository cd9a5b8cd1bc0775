package wire

import (
	"hongbao/internal/money"
)

// Proof is where the money of a packet is, by three independent sources.
type Proof struct {
	PacketID  string    `json:"packet_id" doc:"The packet."`
	Total     money.Fen `json:"total" doc:"The amount charged to the sender: total_amount, or 0 while the packet is funding or rejected." example:"10000"`
	Paid      money.Fen `json:"paid" doc:"Paid to recipients, including payments by other means and cancelled payouts that reached them after all, without returned amounts." example:"1288"`
	Owed      money.Fen `json:"owed" doc:"Claimed and not paid: pending, sending, unknown, awaiting_recipient, failed, returned."`
	Remaining money.Fen `json:"remaining" doc:"In the packet: not claimed, or claimed and not recorded yet (then also in in_flight)." example:"8712"`
	Refunding money.Fen `json:"refunding" doc:"Being refunded to the sender: remainder and cancelled payouts."`
	Refunded  money.Fen `json:"refunded" doc:"Refunded to the sender, or returned with the charge."`
	Balanced  bool      `json:"balanced" doc:"true: the ledger adds up to total, and Redis and the provider agree with it; differences is empty."`
	InFlight  money.Fen `json:"in_flight" doc:"What running steps explain: claims in Redis that are not recorded yet, money that the provider moved for payments without an answer, and returned amounts that are recent or being queried."`
	// Not part of balanced: our record alone proves nothing about the provider.
	ProviderConfirmed bool `json:"provider_confirmed" doc:"true: every provider's figures are its own, live or from its statements, and no statement differs from the ledger. false: some are our record of its answers, or a statement differs." example:"true"`

	Promises    ProofPromises `json:"promises" doc:"Share conflicts: acknowledged claims that could not be recorded. They are not money of the packet and count in no other figure."`
	Sources     ProofSources  `json:"sources" doc:"The figures of each source."`
	Differences []Difference  `json:"differences" nullable:"false" doc:"Differences that no running step explains; empty when balanced."`
}

// ProofPromises are the share conflicts of a packet: acknowledged claims that could not be
// recorded, because the share is taken or the books are closed. Honoured ones are paid with
// our own money: honoured = owed + paid + voided.
type ProofPromises struct {
	Count    int64     `json:"count" doc:"The count, in any status." example:"0"`
	Amount   money.Fen `json:"amount" doc:"The sum of the acknowledged amounts." example:"0"`
	Honoured money.Fen `json:"honoured" doc:"The part that is paid with our own money."`
	Owed     money.Fen `json:"owed" doc:"Of honoured: not paid yet."`
	Paid     money.Fen `json:"paid" doc:"Of honoured: paid, including payments by other means, without returned amounts."`
	Voided   money.Fen `json:"voided" doc:"Of honoured: voided later."`
}

// ProofSources are the figures of each source.
type ProofSources struct {
	Ledger   LedgerFigures   `json:"ledger" doc:"The ledger in MySQL."`
	Redis    *PoolFigures    `json:"redis" doc:"The pool; null: it is no longer in Redis."`
	Provider ProviderFigures `json:"provider" doc:"The provider's figures."`
}

// LedgerFigures are balances of the packet's accounts and sums of its ledger entries.
type LedgerFigures struct {
	Holding   int64     `json:"holding" doc:"Account balance: charged, neither claimed nor being refunded." example:"8712"`
	Owed      int64     `json:"owed" doc:"Account balance: claimed, neither paid nor cancelled."`
	Refunding int64     `json:"refunding" doc:"Account balance: being refunded."`
	Outside   int64     `json:"outside" doc:"Account balance: paid by other means."`
	Suspense  int64     `json:"suspense" doc:"Account balance: moved twice; 0, or negative with a break."`
	Provider  int64     `json:"provider" doc:"Account balance: minus the money that we hold." example:"-8712"`
	Charged   money.Fen `json:"charged" doc:"Sum of the ledger entries." example:"10000"`
	Claimed   money.Fen `json:"claimed" doc:"Sum of the ledger entries." example:"1288"`
	Paid      money.Fen `json:"paid" doc:"Sum of the ledger entries, by the provider." example:"1288"`
	Returned  money.Fen `json:"returned" doc:"Sum of the ledger entries: returned after success, including returned refunds and charges."`
	Refunded  money.Fen `json:"refunded" doc:"Sum of the ledger entries."`
}

// PoolFigures are the figures of Redis.
type PoolFigures struct {
	Claimed   money.Fen `json:"claimed" doc:"The sum of all claims."`
	Remaining money.Fen `json:"remaining" doc:"total_amount - claimed."`
}

// ProviderFigures are the sums of the provider's own movements.
type ProviderFigures struct {
	Charged     money.Fen `json:"charged" doc:"Charged to the sender." example:"10000"`
	Transferred money.Fen `json:"transferred" doc:"Paid to recipients." example:"1288"`
	Returned    money.Fen `json:"returned" doc:"Returned transfers, refunds and charges."`
	Refunded    money.Fen `json:"refunded" doc:"Refunded to the sender."`

	Parts []ProviderPart `json:"parts" nullable:"false" doc:"The same by provider: that of the charge, then that of the payouts if it is another one."`
}

// ProviderSource says where the figures of a provider are from.
type ProviderSource string

// The sources.
const (
	ProviderLive      ProviderSource = "live"      // the provider's own sums
	ProviderStatement ProviderSource = "statement" // the lines of its statements
	ProviderOrders    ProviderSource = "orders"    // our record of its answers about each order
)

// ProviderPart are the movements of a packet at one provider.
type ProviderPart struct {
	Provider    string         `json:"provider" doc:"The provider." example:"sandbox"`
	Source      ProviderSource `json:"source" enum:"live,statement,orders" doc:"live: the provider's own sums. For a provider without sums: statement, the lines of its statements, once they have every movement of the ledger; until then orders, our record of its answers about each order." example:"live"`
	AsOf        Time           `json:"as_of" doc:"live: when the figures were read. statement: the end of the newest statement day with a line about the packet, or when that day was read, if earlier. orders: when the newest movement was recorded; without one, when the packet was created."`
	Charged     money.Fen      `json:"charged" doc:"Charged to the sender." example:"10000"`
	Transferred money.Fen      `json:"transferred" doc:"Paid to recipients." example:"1288"`
	Returned    money.Fen      `json:"returned" doc:"Returned transfers, refunds and charges."`
	Refunded    money.Fen      `json:"refunded" doc:"Refunded to the sender."`
	Fees        money.Fen      `json:"fees" doc:"Fees that the provider has deducted from our account for the packet's orders, less returned ones, as its statements list them; negative while only the returned ones are listed. They are our expense: no figure of the packet includes them." fen:"net"`
}

// Difference is a difference that no running step explains.
type Difference struct {
	What     string `json:"what" doc:"The two figures." example:"provider transferred, ledger paid"`
	Expected int64  `json:"expected" doc:"The figure of the ledger, or the computed figure."`
	Actual   int64  `json:"actual" doc:"The figure found."`
}
