package api

import (
	"cmp"
	"context"
	"errors"

	"hongbao/api/rest"
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
		return nil, rest.InvalidField("provider", rest.FaultEnum, "must be a provider whose payouts.authorizations is true")
	}
	who := payout.Authorizing{App: a.Caller.App.ID, User: user, Provider: name, Account: cmp.Or(of.Account, user)}
	got, err := who.Current(ctx, at, request)
	switch {
	case errors.Is(err, payout.ErrAuthorizationRefused):
		refused := rest.InvalidField("account", rest.FaultFormat, "the provider does not offer the agreement to this account")
		refused.Cause = err
		return nil, refused
	case err != nil:
		return nil, rest.Unavailable(err)
	}
	out := &wire.Authorization{UserID: user, Provider: name, Account: who.Account, Authorization: rest.TextOrNull(got.No),
		Status: wire.AuthorizationStatus(got.Status), Reason: rest.TextOrNull(got.Reason)}
	if action := got.Action; action != nil && action.ValidUntil.After(a.Now()) {
		out.Confirm = &wire.Confirm{Parameters: action.Parameters, ValidUntil: wire.At(action.ValidUntil)}
	}
	return out, nil
}

func (s *Server) authorizationRoutes() []*rest.Route {
	const path, tag = wire.PathRecipients + "/{user_id}/authorizations", "recipients"
	return []*rest.Route{
		rest.Get(rest.Route{
			ID: "getAuthorization", Path: path, Tag: tag, Summary: "Get the agreement of a recipient",
			About: "Whether the recipient has agreed with the provider to be paid without confirming each time. The provider is queried.",
			Limit: rest.RequestTimeout, Answers: rest.OK("The agreement."),
		}, s.getAuthorization),
		rest.Post(rest.Route{
			ID: "authorize", Path: path, Tag: tag, Summary: "Request the agreement of a recipient",
			About: "Requests the agreement from the provider, unless it has one that is pending or active. Give confirm to the recipient's app, " +
				"and get the agreement until it is active. A repeated request changes nothing. The body is optional: omit it or send an " +
				"empty object.",
			Optional: true, Answers: rest.OK("The agreement."),
		}, s.authorize),
	}
}
