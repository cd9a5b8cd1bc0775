package api

import (
	"cmp"
	"context"
	"errors"

	"hongbao/internal/payout"
	"hongbao/wire"
)

// The provider keeps the agreements of recipients to be paid without confirming each time, so these two routes call it,
// and nothing is stored.

type authorizationIn struct {
	asked
	User  string               `path:"user_id" of:"user"`
	Query wire.AuthorizationOf `in:"query"`
}

type authorizeIn struct {
	asked
	User string               `path:"user_id" of:"user"`
	Body wire.AuthorizationOf `in:"body"`
}

func (s *Server) getAuthorization(ctx context.Context, in *authorizationIn) (*wire.Authorization, error) {
	return in.authorization(ctx, in.User, in.Query, false)
}

func (s *Server) authorize(ctx context.Context, in *authorizeIn) (*wire.Authorization, error) {
	return in.authorization(ctx, in.User, in.Body, true)
}

func (a asked) authorization(ctx context.Context, user string, of wire.AuthorizationOf, request bool) (*wire.Authorization, error) {
	providers := a.server.cfg.Providers
	name := cmp.Or(of.Provider, providers.Payouts().Name())
	to, err := providers.Of(name)
	at, able := to.(payout.Authorizer)
	if err != nil || !able || !a.server.limits[name].Authorizations {
		return nil, invalidField("provider", faultEnum, "must be a provider whose payouts.authorizations is true")
	}
	who := payout.Authorizing{App: a.caller.app.ID, User: user, Provider: name, Account: cmp.Or(of.Account, user)}
	got, err := who.Current(ctx, at, request)
	switch {
	case errors.Is(err, payout.ErrAuthorizationRefused):
		refused := invalidField("account", faultFormat, "the provider does not offer the agreement to this account")
		refused.cause = err
		return nil, refused
	case err != nil:
		return nil, unavailable(err)
	}
	out := &wire.Authorization{UserID: user, Provider: name, Account: who.Account, Authorization: textOrNull(got.No),
		Status: wire.AuthorizationStatus(got.Status), Reason: textOrNull(got.Reason)}
	if action := got.Action; action != nil && action.ValidUntil.After(a.now()) {
		out.Confirm = &wire.Confirm{Parameters: action.Parameters, ValidUntil: wire.At(action.ValidUntil)}
	}
	return out, nil
}

func (s *Server) authorizationRoutes() []*route {
	const path, tag = wire.PathRecipients + "/{user_id}/authorizations", "recipients"
	return []*route{
		get(route{
			id: "getAuthorization", path: path, tag: tag, summary: "Get the agreement of a recipient",
			about: "Whether the recipient has agreed with the provider to be paid without confirming each time. The provider is queried.",
			limit: requestTimeout, answers: ok("The agreement."),
		}, s.getAuthorization),
		post(route{
			id: "authorize", path: path, tag: tag, summary: "Request the agreement of a recipient",
			about: "Requests the agreement from the provider, unless it has one that is pending or active. Give confirm to the recipient's app, " +
				"and get the agreement until it is active. A repeated request changes nothing. The body is optional: omit it or send an " +
				"empty object.",
			optional: true, answers: ok("The agreement."),
		}, s.authorize),
	}
}
