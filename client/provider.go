package client

import (
	"context"
	"encoding/json"
	"net/url"
	"time"
)

// Provider is a payment provider as staff sees it.
type Provider struct {
	Name          string        `json:"name"`
	Held          bool          `json:"held"`
	Hold          *ProviderHold `json:"hold"`            // nil while payments go out
	ReleasedAt    *time.Time    `json:"released_at"`     // end of the last hold
	RatePerSecond *int64        `json:"rate_per_second"` // of all workers; nil: no limit

	// Raw is the answer as it came.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (p *Provider) UnmarshalJSON(text []byte) error {
	type plain Provider
	p.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(p))
}

// ProviderHold says who stopped a provider, and why.
type ProviderHold struct {
	By     string    `json:"by"`
	Role   string    `json:"role"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
}

// HoldRequest is a decision to stop a provider, or to let it go.
type HoldRequest struct {
	// IdempotencyKey names this decision; "": the call makes one for its own tries.
	IdempotencyKey string `json:"-"`
	Reason         string `json:"reason"` // for the audit
}

const providers = "/v1/staff/providers"

// ListProviders returns the payment providers.
func (s *Staff) ListProviders(ctx context.Context) (*List[Provider], error) {
	return page[Provider](ctx, s.caller, providers, url.Values{}, Page{})
}

// HoldProvider stops what is sent to a provider; asking goes on. Holding one
// that is held changes nothing. A name no provider has is a problem with CodeNotFound.
func (s *Staff) HoldProvider(ctx context.Context, name string, r HoldRequest) (*Provider, error) {
	return s.decideHold(ctx, name, "hold", r)
}

// ReleaseProvider lets go what a hold has kept waiting. Releasing one that is
// not held changes nothing. A name no provider has is a problem with CodeNotFound.
func (s *Staff) ReleaseProvider(ctx context.Context, name string, r HoldRequest) (*Provider, error) {
	return s.decideHold(ctx, name, "release", r)
}

func (s *Staff) decideHold(ctx context.Context, name, action string, r HoldRequest) (*Provider, error) {
	return decide[Provider](ctx, s, providers+"/"+segment(name)+"/"+action, r.IdempotencyKey, r)
}
