package payout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrProviderMissing means that no adapter is configured for the provider of a payment. The payment
// waits; it is never sent elsewhere.
var ErrProviderMissing = errors.New("provider is not configured")

// Provider is an adapter to a payment API with one merchant account there. Send and Query never
// return an error: silence and unusable answers are observations too.
type Provider interface {
	// Name is the name in rows, metrics and paths.
	Name() string
	Limits() Limits
	EncodeRequest(Instruction) ([]byte, error)
	Send(ctx context.Context, o Order) Observation
	Query(ctx context.Context, op Op, orderNo string) Observation
}

// OrderCloser is a provider whose orders may wait for a person: a charge for the sender (Method.NeedsPayer), a
// transfer for the recipient. A repeated send of an unpaid charge renews its action.
type OrderCloser interface {
	// CloseOrder asks the provider to end an order that waits. nil means that it answered, also "already paid",
	// "unknown" or that it cannot end such an order; only a query says what has become of it. It may be repeated.
	CloseOrder(ctx context.Context, op Op, orderNo string) error
}

// Registry holds the configured providers by name and the defaults of new packets. A payment keeps
// the provider of its packet: other defaults change no payment.
type Registry struct {
	all              []Provider // by name
	charges, payouts Provider
}

// NewRegistry returns the registry of providers. charges and payouts name the defaults. Errors: a
// default that is not configured, a name that two providers have or that is reserved (BalanceProvider).
func NewRegistry(charges, payouts string, providers ...Provider) (*Registry, error) {
	r := &Registry{all: slices.Clone(providers)}
	slices.SortFunc(r.all, func(a, b Provider) int { return strings.Compare(a.Name(), b.Name()) })
	names := r.Names()
	for i := 1; i < len(names); i++ {
		if names[i] == names[i-1] {
			return nil, fmt.Errorf("provider %q is configured twice, or its name is reserved", names[i])
		}
	}
	var err error
	if r.charges, err = r.Of(charges); err != nil {
		return nil, err
	}
	r.payouts, err = r.Of(payouts)
	return r, err
}

// OnlyProvider returns the registry of one provider.
func OnlyProvider(p Provider) *Registry {
	return &Registry{all: []Provider{p}, charges: p, payouts: p}
}

// Of returns a provider by its name, also BalanceProvider. Errors: ErrProviderMissing.
func (r *Registry) Of(name string) (Provider, error) {
	if name == BalanceProvider {
		return balance{}, nil
	}
	for _, p := range r.all {
		if p.Name() == name {
			return p, nil
		}
	}
	return nil, fmt.Errorf("%q: %w", name, ErrProviderMissing)
}

// All returns the configured providers, sorted by name.
func (r *Registry) All() []Provider { return slices.Clone(r.all) }

// Stated returns the providers with statements, sorted by name.
func (r *Registry) Stated() (out []Stated) {
	for _, p := range r.all {
		if s, is := p.(Stated); is {
			out = append(out, s)
		}
	}
	return out
}

// Closing returns the provider whose statement the day-end close is matched with: that of new payouts,
// or else the first with statements; nil without one.
func (r *Registry) Closing() Stated {
	if s, is := r.payouts.(Stated); is {
		return s
	}
	if all := r.Stated(); len(all) > 0 {
		return all[0]
	}
	return nil
}

// Names returns the names of all providers that a payment may have, sorted: the configured ones and
// BalanceProvider.
func (r *Registry) Names() []string {
	names := []string{BalanceProvider}
	for _, p := range r.all {
		names = append(names, p.Name())
	}
	slices.Sort(names)
	return names
}

// Charges returns the provider that charges and refunds the senders of new packets.
func (r *Registry) Charges() Provider { return r.charges }

// Payouts returns the provider that pays the recipients of new packets.
func (r *Registry) Payouts() Provider { return r.payouts }
