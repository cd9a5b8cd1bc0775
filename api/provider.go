package api

import (
	"net/http"
	"strings"

	"hongbao/internal/payout"
)

// PaymentProvider is a payment provider in answers to staff.
type PaymentProvider struct {
	Name string `json:"name" doc:"Its name, as payouts carry it." example:"sandbox"`
	Held bool   `json:"held" doc:"Whether a person has stopped what is sent to it."`
	// Hold and ReleasedAt may be null for ever: most providers are never held.
	Hold          Nullable[ProviderHold] `json:"hold" doc:"Who stopped it and why; null while payments go out."`
	ReleasedAt    Nullable[Stamp]        `json:"released_at" doc:"When the last hold ended; null if there was none."`
	RatePerSecond Nullable[int64]        `json:"rate_per_second" doc:"How many charges, payouts and refunds a second all workers together may send; null without a limit."`
}

// ProviderHold says who stopped a provider, and why.
type ProviderHold struct {
	By     string `json:"by" doc:"Who: the owner of the key." example:"li.na"`
	Role   string `json:"role" enum:"finance,ops" doc:"In which role."`
	Reason string `json:"reason" doc:"Why, in their words." example:"statement of yesterday does not tie"`
	Since  Stamp  `json:"since" doc:"Since when."`
}

// PaymentProviders is a page of providers.
type PaymentProviders struct {
	Items      []PaymentProvider `json:"items" nullable:"false" doc:"By name."`
	NextCursor Nullable[string]  `json:"next_cursor" doc:"null: there are few providers, they fit on one page."`
}

// HoldDecision is the body of a hold or a release.
type HoldDecision struct {
	Reason string `json:"reason" minLength:"1" maxLength:"500" doc:"Why, for the audit: 1 to 500 characters." example:"statement of yesterday does not tie"`
}

func (s *Server) renderProvider(p payout.ProviderState) PaymentProvider {
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

// decideHold carries out a hold or a release.
func (r *request) decideHold(hold bool) (answer, error) {
	reason, err := readReason(r.payload)
	if err != nil {
		return answer{}, err
	}
	w, err := r.staffWrite(HoldDecision(reason), reason.Reason)
	if err != nil {
		return answer{}, err
	}
	// The path is part of the route: a name that no provider has is not found.
	name := r.c.Params("name")
	if name != r.server.cfg.Provider.Name() {
		return answer{}, noSuch("provider")
	}
	w.Route = r.c.Method() + " " + strings.Replace(r.route.path, "{name}", name, 1)
	stored, err := r.server.cfg.Store.HoldProvider(r.ctx, w, strings.Clone(name), hold, func(p payout.ProviderState) (int, []byte) {
		_, raw := rendered(r.server.renderProvider(p))
		return http.StatusOK, raw
	})
	return staffAnswer(stored, err, noSuch("provider"))
}
