package client

import (
	"context"
	"encoding/json"
	"net/url"
	"time"
)

// Provider is a payment provider in answers to staff.
type Provider struct {
	Name          string        `json:"name"`
	Held          bool          `json:"held"`
	Hold          *ProviderHold `json:"hold"`            // nil without a hold
	ReleasedAt    *time.Time    `json:"released_at"`     // end of the last hold
	RatePerSecond *int64        `json:"rate_per_second"` // of all workers; nil: no limit

	// Raw is the answer as received.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (p *Provider) UnmarshalJSON(text []byte) error {
	type plain Provider
	p.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(p))
}

// ProviderHold is the hold on a provider.
type ProviderHold struct {
	By     string    `json:"by"`
	Role   string    `json:"role"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
}

// HoldRequest is a decision to hold or release a provider.
type HoldRequest struct {
	// IdempotencyKey identifies this decision; "": the call generates one for its own tries.
	IdempotencyKey string `json:"-"`
	Reason         string `json:"reason"` // for the audit
}

const providers = "/v1/staff/providers"

// ListProviders returns the payment providers.
func (s *Staff) ListProviders(ctx context.Context) (*List[Provider], error) {
	return page[Provider](ctx, s.caller, providers, url.Values{}, Page{})
}

// HoldProvider stops sending to a provider; queries continue. Holding a held provider changes
// nothing. An unknown name is a problem with CodeNotFound.
func (s *Staff) HoldProvider(ctx context.Context, name string, r HoldRequest) (*Provider, error) {
	return s.decideHold(ctx, name, "hold", r)
}

// ReleaseProvider ends a hold, and deferred payments are sent. Releasing a provider without a
// hold changes nothing. An unknown name is a problem with CodeNotFound.
func (s *Staff) ReleaseProvider(ctx context.Context, name string, r HoldRequest) (*Provider, error) {
	return s.decideHold(ctx, name, "release", r)
}

func (s *Staff) decideHold(ctx context.Context, name, action string, r HoldRequest) (*Provider, error) {
	return decide[Provider](ctx, s, providers+"/"+segment(name)+"/"+action, r.IdempotencyKey, r)
}
