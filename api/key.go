package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"hongbao/internal/access"
	"hongbao/internal/packet"
	"hongbao/internal/staff"
	"hongbao/wire"
)

func (s *API) renderKey(k access.KeyRecord) wire.APIKey {
	return wire.APIKey{
		ID: k.ID, Role: wire.Role(k.Role), AppID: textOrNull(k.AppID), Owner: k.Owner, Name: textOrNull(k.Name),
		Status: wire.KeyStatus(k.Status(s.cfg.Now())), CreatedAt: wire.At(k.CreatedAt), LastUsedAt: timeOrNull(k.LastUsedAt),
		ExpiresAt: timeOrNull(k.ExpiresAt), RevokedAt: timeOrNull(k.RevokedAt), ReplacedBy: textOrNull(k.ReplacedBy),
		MadeBy: textOrNull(k.MadeBy), ApprovedBy: textOrNull(k.ApprovedBy),
	}
}

// keys is the list of keys.
func (s *API) keys() listing[wire.KeyFilter, wire.APIKey] {
	return listing[wire.KeyFilter, wire.APIKey]{"keys", "key",
		func(ctx context.Context, a selection[wire.KeyFilter]) ([]wire.APIKey, *position, error) {
			rows, err := s.cfg.Store.Keys(ctx, access.KeyFilter{Role: access.Role(a.filter.Role), AppID: a.filter.AppID,
				AfterTime: a.after.At, AfterID: a.after.ID, Limit: a.limit + 1})
			return cut(rows, err, a.limit, func(k access.KeyRecord) position { return position{k.CreatedAt, k.ID} }, s.renderKey)
		}}
}

type createKeyIn struct {
	Change
	Body wire.CreateKey `in:"body"`
}

func (in *createKeyIn) Check(o *object) {
	b := &in.Body
	switch ofApp := b.Role == wire.RoleApp; {
	case b.Role == "":
	case ofApp && b.AppID == "" && !o.faulty("app_id"):
		o.fault("app_id", fault{faultRequired, "is required with role app"})
	case !ofApp && b.AppID != "":
		o.fault("app_id", fault{faultEnum, "is permitted with role app only"})
	case !ofApp && b.Owner == "" && !o.faulty("owner"):
		o.fault("owner", fault{faultRequired, "is required for staff: the person who owns the key"})
	}
	b.Owner = cmp.Or(b.Owner, b.AppID)
}

func (s *API) createKey(ctx context.Context, in *createKeyIn) (*stored[wire.CreatedKey], error) {
	role := access.Role(in.Body.Role)
	token, id := access.NewToken(role)
	k := access.KeyRecord{Name: in.Body.Name, Key: access.Key{ID: id, Role: role, AppID: in.Body.AppID, Owner: in.Body.Owner,
		SecretHash: access.HashToken(token)}}
	var made wire.CreatedKey
	kept, err := s.cfg.Store.IssueKey(ctx, in.Write, k, seconds(in.Body.ExpiresInSeconds), func(k access.KeyRecord) (int, []byte) {
		made = wire.CreatedKey{Key: s.renderKey(k)}
		return http.StatusCreated, encodeBody(made) // the stored answer, without the token
	})
	if errors.Is(err, packet.ErrNotFound) {
		return nil, invalidField("app_id", faultEnum, "is not the id of an app that exists")
	}
	made.Token = &token
	return keyAnswer(s, ctx, kept, err, &made)
}

type rotateKeyIn struct {
	Change
	ID   string         `path:"id" of:"key"`
	Body wire.RotateKey `in:"body"`
}

func (s *API) rotateKey(ctx context.Context, in *rotateKeyIn) (*stored[wire.RotatedKey], error) {
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
			raw := encodeBody(made)
			made.Token = &token
			return http.StatusCreated, raw
		})
	return keyAnswer(s, ctx, kept, err, made)
}

// keyIn changes a key, with a reason.
type keyIn struct {
	Change
	ID   string      `path:"id" of:"key"`
	Body wire.Reason `in:"body"`
}

func (s *API) approveKey(ctx context.Context, in *keyIn) (*stored[wire.APIKey], error) {
	kept, err := s.cfg.Store.ApproveKey(ctx, in.Write, in.ID, s.renderChangedKey(in.Request))
	return keyAnswer[wire.APIKey](s, ctx, kept, err, nil)
}

func (s *API) revokeKey(ctx context.Context, in *keyIn) (*stored[wire.APIKey], error) {
	kept, err := s.cfg.Store.EndKey(ctx, in.Write, in.ID, s.renderChangedKey(in.Request))
	return keyAnswer[wire.APIKey](s, ctx, kept, err, nil)
}

// keyAnswer returns the kept answer, or the fresh one with a token unless it is a repeat. It reloads the keys of this
// process so that a change applies at once.
func keyAnswer[T any](s *API, ctx context.Context, kept staff.Answer, err error, fresh *T) (*stored[T], error) {
	out := &stored[T]{Answer: kept}
	if err != nil || kept.Replayed {
		return out, err
	}
	if err := s.cfg.ReloadKeys(ctx); err != nil {
		slog.WarnContext(ctx, "apps and keys were not read", slog.Any("error", err))
	}
	out.fresh = fresh
	return out, nil
}

func (s *API) renderChangedKey(r *Request) func(k access.KeyRecord, refused error) (int, []byte) {
	return func(k access.KeyRecord, refused error) (int, []byte) {
		if refused != nil {
			return renderRefusedKey(r, k, refused)
		}
		return http.StatusOK, encodeBody(s.renderKey(k))
	}
}

func renderRefusedKey(r *Request, k access.KeyRecord, refused error) (int, []byte) {
	why := refuse(wire.CodeKeyEnded)
	switch {
	case errors.Is(refused, access.ErrOwnKey):
		why = refuse(wire.CodeOwnKey)
	case errors.Is(refused, access.ErrLastKey):
		why = refuse(wire.CodeLastAdminKey)
	case k.ReplacedBy != "":
		why.detail = fmt.Sprintf("The key was rotated already: its successor is %s.", k.ReplacedBy)
	}
	return r.renderStored(why)
}

// seconds converts an optional number of seconds.
func seconds(n *int64) time.Duration { return time.Duration(valueOr(n, 0)) * time.Second }
