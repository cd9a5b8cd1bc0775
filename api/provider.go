package api

import (
	"net/http"
	"strings"

	"hongbao/internal/staff"
)

// PaymentProvider is a payment provider in answers to staff.
type PaymentProvider struct {
	Name string `json:"name" doc:"The name, as in the provider member of payouts." example:"sandbox"`
	Held bool   `json:"held" doc:"true: a hold stops sending to the provider."`
	// Most providers are never held: Hold and ReleasedAt may stay null.
	Hold          Nullable[ProviderHold] `json:"hold" doc:"The hold; null without one."`
	ReleasedAt    Nullable[Stamp]        `json:"released_at" doc:"When the last hold was released; null if there was none."`
	RatePerSecond Nullable[int64]        `json:"rate_per_second" doc:"The rate limit of all workers together, in charges, payouts and refunds per second; null without a limit."`
}

// ProviderHold is the hold on a provider.
type ProviderHold struct {
	By     string `json:"by" doc:"The owner of the key that acted." example:"li.na"`
	Role   string `json:"role" enum:"finance,ops" doc:"The role of the key."`
	Reason string `json:"reason" doc:"The reason." example:"statement of yesterday does not match"`
	Since  Stamp  `json:"since" doc:"When the hold was placed."`
}

// PaymentProviders is a page of providers.
type PaymentProviders struct {
	Items      []PaymentProvider `json:"items" nullable:"false" doc:"Sorted by name."`
	NextCursor Nullable[string]  `json:"next_cursor" doc:"Always null: all providers are on one page."`
}

// HoldDecision is the body of a hold or a release.
type HoldDecision struct {
	Reason string `json:"reason" minLength:"1" maxLength:"500" doc:"The reason, for the audit: 1 to 500 characters." example:"statement of yesterday does not match"`
}

func (s *Server) renderProvider(p staff.ProviderState) PaymentProvider {
	out := PaymentProvider{Name: p.Name, Held: p.Hold != nil, ReleasedAt: stampOrNull(p.ReleasedAt)}
	if h := p.Hold; h != nil {
		out.Hold = orNull(&ProviderHold{By: h.By, Role: h.Role, Reason: h.Reason, Since: Stamp(h.Since)})
	}
	if rate := s.cfg.ProviderRate; rate > 0 {
		out.RatePerSecond = orNull(&rate)
	}
	return out
}

func listProviders(r *request) (answer, error) {
	q := readQuery(r)
	if err := q.done(); err != nil {
		return answer{}, err
	}
	state, err := r.server.cfg.Store.ProviderState(r.ctx, r.server.cfg.Provider.Name())
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: PaymentProviders{Items: []PaymentProvider{r.server.renderProvider(state)}}}, nil
}

func holdProvider(r *request) (answer, error)    { return r.decideHold(true) }
func releaseProvider(r *request) (answer, error) { return r.decideHold(false) }

// decideHold places or releases a hold.
func (r *request) decideHold(hold bool) (answer, error) {
	reason, err := readReason(r.payload)
	if err != nil {
		return answer{}, err
	}
	w, err := r.staffWrite(HoldDecision(reason), reason.Reason)
	if err != nil {
		return answer{}, err
	}
	// An unknown provider in the path is not found.
	name := r.c.Params("name")
	if name != r.server.cfg.Provider.Name() {
		return answer{}, noSuch("provider")
	}
	w.Route = r.c.Method() + " " + strings.Replace(r.route.path, "{name}", name, 1)
	stored, err := r.server.cfg.Store.HoldProvider(r.ctx, w, strings.Clone(name), hold, func(p staff.ProviderState) (int, []byte) {
		raw := encodeBody(r.server.renderProvider(p))
		return http.StatusOK, raw
	})
	return staffAnswer(stored, err, noSuch("provider"))
}
