package staff

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"hongbao/api/rest"
	"hongbao/internal/access"
	"hongbao/internal/packet"
	"hongbao/internal/staff"
	"hongbao/wire"
)

func (s *API) renderKey(k access.KeyRecord) wire.APIKey {
	return wire.APIKey{
		ID: k.ID, Role: wire.Role(k.Role), AppID: rest.TextOrNull(k.AppID), Owner: k.Owner, Name: rest.TextOrNull(k.Name),
		Status: wire.KeyStatus(k.Status(s.cfg.Now())), CreatedAt: wire.At(k.CreatedAt), LastUsedAt: rest.TimeOrNull(k.LastUsedAt),
		ExpiresAt: rest.TimeOrNull(k.ExpiresAt), RevokedAt: rest.TimeOrNull(k.RevokedAt), ReplacedBy: rest.TextOrNull(k.ReplacedBy),
		MadeBy: rest.TextOrNull(k.MadeBy), ApprovedBy: rest.TextOrNull(k.ApprovedBy),
	}
}

// keys is the list of keys.
func (s *API) keys() rest.Listing[wire.KeyFilter, wire.APIKey] {
	return rest.Listing[wire.KeyFilter, wire.APIKey]{Name: "keys", ID: "key",
		Read: func(ctx context.Context, a rest.Selection[wire.KeyFilter]) ([]wire.APIKey, *rest.Position, error) {
			rows, err := s.cfg.Store.Keys(ctx, access.KeyFilter{Role: access.Role(a.Filter.Role), AppID: a.Filter.AppID,
				AfterTime: a.After.At, AfterID: a.After.ID, Limit: a.Limit + 1})
			return rest.Cut(rows, err, a.Limit, func(k access.KeyRecord) rest.Position {
				return rest.Position{At: k.CreatedAt, ID: k.ID}
			}, s.renderKey)
		}}
}

type createKeyIn struct {
	rest.Change
	Body wire.CreateKey `in:"body"`
}

func (in *createKeyIn) Check(o *rest.Object) {
	b := &in.Body
	switch ofApp := b.Role == wire.RoleApp; {
	case b.Role == "":
	case ofApp && b.AppID == "" && !o.Faulty("app_id"):
		o.Fault("app_id", rest.Fault{Code: rest.FaultRequired, Message: "is required with role app"})
	case !ofApp && b.AppID != "":
		o.Fault("app_id", rest.Fault{Code: rest.FaultEnum, Message: "is permitted with role app only"})
	case !ofApp && b.Owner == "" && !o.Faulty("owner"):
		o.Fault("owner", rest.Fault{Code: rest.FaultRequired, Message: "is required for staff: the person who owns the key"})
	}
	b.Owner = cmp.Or(b.Owner, b.AppID)
}

func (s *API) createKey(ctx context.Context, in *createKeyIn) (*rest.Stored[wire.CreatedKey], error) {
	role := access.Role(in.Body.Role)
	token, id := access.NewToken(role)
	k := access.KeyRecord{Name: in.Body.Name, Key: access.Key{ID: id, Role: role, AppID: in.Body.AppID, Owner: in.Body.Owner,
		SecretHash: access.HashToken(token)}}
	var made wire.CreatedKey
	kept, err := s.cfg.Store.IssueKey(ctx, in.Write, k, seconds(in.Body.ExpiresInSeconds), func(k access.KeyRecord) (int, []byte) {
		made = wire.CreatedKey{Key: s.renderKey(k)}
		return http.StatusCreated, rest.EncodeBody(made) // the stored answer, without the token
	})
	if errors.Is(err, packet.ErrNotFound) {
		return nil, rest.InvalidField("app_id", rest.FaultEnum, "is not the id of an app that exists")
	}
	made.Token = &token
	return keyAnswer(s, ctx, kept, err, &made)
}

type rotateKeyIn struct {
	rest.Change
	ID   string         `path:"id" of:"key"`
	Body wire.RotateKey `in:"body"`
}

func (s *API) rotateKey(ctx context.Context, in *rotateKeyIn) (*rest.Stored[wire.RotatedKey], error) {
	old, err := s.cfg.Store.FindKey(ctx, in.ID) // for the role, which is part of the token and immutable
	if err != nil {
		return nil, err
	}
	token, next := access.NewToken(old.Role)
	var made *wire.RotatedKey
	kept, err := s.cfg.Store.RotateKey(ctx, in.Write, in.ID, access.Key{ID: next, SecretHash: access.HashToken(token)},
		seconds(&in.Body.GraceSeconds), seconds(in.Body.ExpiresInSeconds), func(old, k access.KeyRecord, refused error) (int, []byte) {
			if refused != nil {
				return renderRefusedKey(in.Request, old, refused)
			}
			made = &wire.RotatedKey{Key: s.renderKey(k), Replaced: s.renderKey(old)}
			raw := rest.EncodeBody(made)
			made.Token = &token
			return http.StatusCreated, raw
		})
	return keyAnswer(s, ctx, kept, err, made)
}

// keyIn changes a key, with a reason.
type keyIn struct {
	rest.Change
	ID   string      `path:"id" of:"key"`
	Body wire.Reason `in:"body"`
}

func (s *API) approveKey(ctx context.Context, in *keyIn) (*rest.Stored[wire.APIKey], error) {
	kept, err := s.cfg.Store.ApproveKey(ctx, in.Write, in.ID, s.renderChangedKey(in.Request))
	return keyAnswer[wire.APIKey](s, ctx, kept, err, nil)
}

func (s *API) revokeKey(ctx context.Context, in *keyIn) (*rest.Stored[wire.APIKey], error) {
	kept, err := s.cfg.Store.EndKey(ctx, in.Write, in.ID, s.renderChangedKey(in.Request))
	return keyAnswer[wire.APIKey](s, ctx, kept, err, nil)
}

// keyAnswer returns the kept answer, or the fresh one with a token unless it is a repeat. It reloads the keys of this
// process so that a change applies at once.
func keyAnswer[T any](s *API, ctx context.Context, kept staff.Answer, err error, fresh *T) (*rest.Stored[T], error) {
	out := &rest.Stored[T]{Answer: kept}
	if err != nil || kept.Replayed {
		return out, err
	}
	if err := s.cfg.ReloadKeys(ctx); err != nil {
		slog.WarnContext(ctx, "apps and keys were not read", slog.Any("error", err))
	}
	out.Fresh = fresh
	return out, nil
}

func (s *API) renderChangedKey(r *rest.Request) func(k access.KeyRecord, refused error) (int, []byte) {
	return func(k access.KeyRecord, refused error) (int, []byte) {
		if refused != nil {
			return renderRefusedKey(r, k, refused)
		}
		return http.StatusOK, rest.EncodeBody(s.renderKey(k))
	}
}

func renderRefusedKey(r *rest.Request, k access.KeyRecord, refused error) (int, []byte) {
	why := rest.Refuse(wire.CodeKeyEnded)
	switch {
	case errors.Is(refused, access.ErrOwnKey):
		why = rest.Refuse(wire.CodeOwnKey)
	case errors.Is(refused, access.ErrLastKey):
		why = rest.Refuse(wire.CodeLastAdminKey)
	case k.ReplacedBy != "":
		why.Detail = fmt.Sprintf("The key was rotated already: its successor is %s.", k.ReplacedBy)
	}
	return r.RenderStored(why)
}

// seconds converts an optional number of seconds.
func seconds(n *int64) time.Duration { return time.Duration(rest.ValueOr(n, 0)) * time.Second }

// keyRoutes returns the routes to administer keys and ticket keys and, for all staff, to list them.
func (s *API) keyRoutes() []*rest.Route {
	const tag = "staff keys"
	admin := []access.Role{access.RoleAdmin}
	const once = " The token is returned in this answer only: a repeat with the same Idempotency-Key creates no second key and returns " +
		"`token` null. If the first answer was lost, rotate the new key with grace_seconds 0; its id is in the answer to the repeat."
	const second = " A key of role finance, and a key of role admin for another person than the caller, is `waiting`: it is refused " +
		"until another administrator or a member of finance approves it (`POST /v1/staff/keys/{id}/approve`)."
	return []*rest.Route{
		rest.Get(rest.Route{
			ID: "listKeys", Path: wire.PathKeys, Tag: tag, Summary: "List API keys",
			About:   "Newest first, ended keys included. Secrets are never returned. Filters are combined with AND.",
			Answers: rest.OK("A page of keys."),
		}, s.keys().Page()),
		rest.Post(rest.Route{
			ID: "createKey", Path: wire.PathKeys, Roles: admin, Tag: tag, Summary: "Create an API key",
			About: "For an existing app or for a member of staff. Only the hash is stored. The key works in this process at " +
				"once, in the others within a second of its first use." + second + once,
			Answers: rest.Created("The key is created."),
		}, s.createKey),
		rest.Post(rest.Route{
			ID: "rotateKey", Path: wire.PathKeys + "/{id}/rotate", Roles: admin, Tag: tag, Summary: "Rotate an API key",
			About: "Creates a key of the same role, app, owner and name. The old key works until the grace period ends; then " +
				"every process refuses it by its own clock. Grace 0 revokes it at once. 409 `key_ended`: the key has ended or " +
				"was rotated before. 409 `own_key`: the calling key was given less than 60 seconds. 409 `last_admin_key`: every " +
				"admin key would expire or wait for a second person." + second + once,
			Answers:  rest.Created("The new key is created; the old key ends after the grace period."),
			Problems: []wire.Code{wire.CodeOwnKey, wire.CodeLastAdminKey, wire.CodeKeyEnded},
		}, s.rotateKey),
		rest.Post(rest.Route{
			ID: "approveKey", Path: wire.PathKeys + "/{id}/approve", Roles: []access.Role{access.RoleAdmin, access.RoleFinance}, Tag: tag,
			Summary: "Approve an API key",
			About: "Activates a key that another person created. The person who created or rotated it is refused with 403, also " +
				"under another spelling of the name. Approving an active key changes nothing. 409 `key_ended`: the key has ended " +
				"or was rotated. To reject a key, have an administrator revoke it.",
			Answers: rest.OK("The key is active."), Problems: []wire.Code{wire.CodeKeyEnded},
		}, s.approveKey),
		rest.Post(rest.Route{
			ID: "revokeKey", Path: wire.PathKeys + "/{id}/revoke", Roles: admin, Tag: tag, Summary: "Revoke an API key",
			About: "Ends the key for ever. This process refuses it from the answer on, every other process that reaches MySQL " +
				"within 3 seconds. Revoking a revoked key changes nothing. 409 `own_key`: it is the calling key. 409 " +
				"`last_admin_key`: no other admin key without an expiry would remain.",
			Answers: rest.OK("The key is revoked."), Problems: []wire.Code{wire.CodeOwnKey, wire.CodeLastAdminKey},
		}, s.revokeKey),
		rest.Get(rest.Route{
			ID: "listTicketKeys", Path: wire.PathTicketKeys, Tag: tag, Summary: "List ticket keys",
			About:   "Newest first, revoked keys included. Only public keys are stored.",
			Answers: rest.OK("A page of keys."),
		}, s.ticketKeys().Page()),
		rest.Post(rest.Route{
			ID: "addTicketKey", Path: wire.PathTicketKeys, Roles: admin, Tag: tag, Summary: "Add a ticket key",
			About: "Adds the public key with which tickets of an app are verified. An app may have several keys, so that a new " +
				"one is known everywhere before its backend switches. This process accepts its tickets at once, every other " +
				"process that reaches MySQL within 3 seconds. A public key can be added once only: a second time is 422 " +
				"`invalid_request` on `public_key`, also after it was revoked.",
			Answers: rest.Created("The key is added."),
		}, s.addTicketKey),
		rest.Post(rest.Route{
			ID: "revokeTicketKey", Path: wire.PathTicketKeys + "/{id}/revoke", Roles: admin, Tag: tag, Summary: "Revoke a ticket key",
			About: "Revokes the key and all its tickets for ever. This process refuses them from the answer on, every other " +
				"process that reaches MySQL within 3 seconds. Claims won with them remain. Revoking a revoked key changes " +
				"nothing.",
			Answers: rest.OK("The key is revoked."),
		}, s.revokeTicketKey),
	}
}
