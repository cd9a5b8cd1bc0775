package client

import (
	"context"
	"encoding/json"
	"net/http"

	"hongbao/internal/money"
)

// Proof is where the money of a packet is, by three independent sources: Total = Paid + Owed +
// Remaining + Refunding + Refunded.
type Proof struct {
	PacketID  string    `json:"packet_id"`
	Total     money.Fen `json:"total"`
	Paid      money.Fen `json:"paid"`
	Owed      money.Fen `json:"owed"`
	Remaining money.Fen `json:"remaining"`
	Refunding money.Fen `json:"refunding"`
	Refunded  money.Fen `json:"refunded"`
	Balanced  bool      `json:"balanced"`
	InFlight  money.Fen `json:"in_flight"` // what running steps explain

	Promises    ProofPromises `json:"promises"` // share conflicts; they count in no other figure
	Sources     ProofSources  `json:"sources"`
	Differences []Difference  `json:"differences"` // without an explanation; empty when balanced

	// Raw is the proof as received.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (p *Proof) UnmarshalJSON(text []byte) error {
	type plain Proof
	p.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(p))
}

// ProofPromises are share conflicts: acknowledged claims that could not be recorded. Honoured
// ones are paid with our own money: Honoured = Owed + Paid + Voided.
type ProofPromises struct {
	Count    int64     `json:"count"`
	Amount   money.Fen `json:"amount"`
	Honoured money.Fen `json:"honoured"`
	Owed     money.Fen `json:"owed"`
	Paid     money.Fen `json:"paid"`
	Voided   money.Fen `json:"voided"`
}

// ProofSources are the figures of each source.
type ProofSources struct {
	Ledger   LedgerFigures   `json:"ledger"`
	Redis    *PoolFigures    `json:"redis"` // nil: the pool is no longer in Redis
	Provider ProviderFigures `json:"provider"`
}

// LedgerFigures are balances of the packet's accounts and sums of its ledger entries.
type LedgerFigures struct {
	Holding   int64     `json:"holding"`
	Owed      int64     `json:"owed"`
	Refunding int64     `json:"refunding"`
	Outside   int64     `json:"outside"`
	Suspense  int64     `json:"suspense"`
	Provider  int64     `json:"provider"`
	Charged   money.Fen `json:"charged"`
	Claimed   money.Fen `json:"claimed"`
	Paid      money.Fen `json:"paid"`
	Returned  money.Fen `json:"returned"`
	Refunded  money.Fen `json:"refunded"`
}

// PoolFigures are the figures of Redis.
type PoolFigures struct {
	Claimed   money.Fen `json:"claimed"`
	Remaining money.Fen `json:"remaining"`
}

// ProviderFigures are sums of the provider's own movements.
type ProviderFigures struct {
	Charged     money.Fen `json:"charged"`
	Transferred money.Fen `json:"transferred"`
	Returned    money.Fen `json:"returned"`
	Refunded    money.Fen `json:"refunded"`
}

// Difference is a difference that no running step explains.
type Difference struct {
	What     string `json:"what"`
	Expected int64  `json:"expected"`
	Actual   int64  `json:"actual"`
}

// Proof computes the proof of a packet.
func (c *Client) Proof(ctx context.Context, packetID string) (*Proof, error) {
	p := new(Proof)
	if err := c.caller.do(ctx, call{method: http.MethodGet, path: "/v1/packets/" + segment(packetID) + "/proof"}, p); err != nil {
		return nil, err
	}
	return p, nil
}
