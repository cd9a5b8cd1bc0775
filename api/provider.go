package api

import (
	"net/http"
	"strings"

	"hongbao/internal/staff"
	"hongbao/wire"
)

func (s *Server) renderProvider(p staff.ProviderState) wire.PaymentProvider {
	out := wire.PaymentProvider{Name: p.Name, Held: p.Hold != nil, ReleasedAt: timeOrNull(p.ReleasedAt)}
	if h := p.Hold; h != nil {
		out.Hold = &wire.ProviderHold{By: h.By, Role: h.Role, Reason: h.Reason, Since: wire.At(h.Since)}
	}
	if rate := s.cfg.ProviderRate; rate > 0 {
		out.RatePerSecond = &rate
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
	return answer{status: http.StatusOK,
		body: wire.List[wire.PaymentProvider]{Items: []wire.PaymentProvider{r.server.renderProvider(state)}}}, nil
}

func holdProvider(r *request) (answer, error)    { return r.decideHold(true) }
func releaseProvider(r *request) (answer, error) { return r.decideHold(false) }

// decideHold places or releases a hold.
func (r *request) decideHold(hold bool) (answer, error) {
	reason, err := readReason(r.payload)
	if err != nil {
		return answer{}, err
	}
	w, err := r.staffWrite(wire.HoldDecision(reason), reason.Reason)
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
