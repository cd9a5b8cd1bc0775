package api

import (
	"context"
	"errors"
	"net/http"
	"reflect"

	"hongbao/api/rest"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/wire"
)

// bindRecipient reads the members of a recipient.
var bindRecipient = rest.BinderOf(reflect.TypeFor[wire.Recipient]())

// readRecipient reads a recipient that is an account, or an object with more.
func readRecipient(o *rest.Object, name string) (out wire.Recipient) {
	value, ok := o.Get(name, false)
	switch {
	case !ok:
	case value.Kind() == '"':
		out.Account = rest.ValueOr(o.Text(name, false, rest.CheckID), "")
	case value.Kind() == '{':
		in := o.Object(name, false)
		bindRecipient(in, reflect.ValueOf(&out).Elem())
		in.RejectUnknown()
	default:
		o.Fault(name, rest.Fault{Code: rest.FaultType, Message: "must be a string or an object"})
	}
	return out
}

// providerLimits returns the limits of all providers, by name.
func providerLimits(providers *payout.Registry) map[string]payout.Limits {
	out := map[string]payout.Limits{}
	for _, p := range providers.All() {
		out[p.Name()] = p.Limits()
	}
	return out
}

// needsName reports whether a payout of up to this amount in the packet needs the recipient's name.
func (s *Server) needsName(p packet.Packet, most money.Fen) bool {
	return s.limits[p.PayoutProvider].NeedsName(most)
}

// recipientRequired is what a grab of the packet has to state about the recipient.
func (s *Server) recipientRequired(p packet.Packet) []string {
	if s.needsName(p, p.LargestShare()) {
		return []string{"name"}
	}
	return []string{}
}

// refuseNameless is the refusal of a recipient whose provider needs the name.
func refuseNameless(field string) *rest.Refusal {
	return &rest.Refusal{Code: wire.CodeRecipientIncomplete, Fields: []wire.FieldError{{Field: field, Code: rest.FaultRequired,
		Message: "is required: the provider asks for the recipient's real name for an amount like this"}}}
}

type recipientIn struct {
	grabIn
	Body wire.Recipient `in:"body"`
}

// setRecipient changes the recipient of a claim's payout.
func (s *Server) setRecipient(ctx context.Context, in *recipientIn) (*wire.Claim, error) {
	l, c, p, err := in.claim(ctx)
	if err != nil {
		return nil, err
	}
	if in.Body.Name == "" && s.needsName(l.snapshot().Packet, c.Amount) {
		return nil, refuseNameless("name")
	}
	c.Recipient = in.Body.Account
	to := payout.Recipient{Account: c.Account(), Authorization: in.Body.Authorization}
	if to.SealedName, err = packet.SealText(s.cfg.SeedKey, c.PacketID, in.Body.Name); err != nil {
		return nil, err
	}
	p, err = s.cfg.Store.SetRecipient(ctx, in.Caller.Key, p.ID, to, func(now payout.Recipient) bool {
		name, err := packet.OpenText(s.cfg.SeedKey, c.PacketID, now.SealedName)
		return err == nil && name == in.Body.Name && now.Account == to.Account && now.Authorization == to.Authorization
	})
	switch {
	case err == nil:
		return s.renderOwnClaim(ctx, l, c, p), nil
	case errors.Is(err, packet.ErrNotFound):
		return nil, rest.Unavailable(errors.New("the payout is not recorded yet"))
	case errors.Is(err, payout.ErrRecipientFixed):
		return nil, rest.Refuse(wire.CodeRecipientFixed)
	case rest.RefusedByState(err):
		return nil, rest.RefusedDecision(err)
	}
	return nil, err
}

func (s *Server) recipientRoutes() []*rest.Route {
	r := rest.Post(rest.Route{
		ID: "setRecipient", Path: wire.PathPackets + "/{id}/grabs/{user_id}/recipient", Tag: "claims", Summary: "Change the recipient of a claim",
		About: "Replaces the recipient of the payout: while it was not sent, and after it failed or was returned. When recipient_action is " +
			"fix_account or verify_identity, it is also sent again without staff, under another order number, up to three times; " +
			"after other failures finance decides. What is omitted is not kept. A repeated request changes nothing.",
		Problems: []wire.Code{wire.CodeClaimNotFound, wire.CodeRecipientFixed, wire.CodeRecipientIncomplete,
			wire.CodeDecisionPending, wire.CodeHeld},
		Answers: rest.OK("The claim."),
	}, s.setRecipient)
	r.Method = http.MethodPut
	return []*rest.Route{r}
}
