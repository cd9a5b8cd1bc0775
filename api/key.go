package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"hongbao/internal/access"
	"hongbao/internal/packet"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// Bounds of the durations of keys, in seconds.
const (
	maxGrace   = 30 * 24 * 3600
	minKeyLife = 60
	maxKeyLife = 10 * 366 * 24 * 3600
)

func (s *Server) renderKey(k access.KeyRecord) wire.APIKey {
	return wire.APIKey{
		ID: k.ID, Role: wire.Role(k.Role), AppID: textOrNull(k.AppID), Owner: k.Owner, Name: textOrNull(k.Name),
		Status: wire.KeyStatus(k.Status(s.cfg.Now())), CreatedAt: wire.At(k.CreatedAt), LastUsedAt: timeOrNull(k.LastUsedAt),
		ExpiresAt: timeOrNull(k.ExpiresAt), RevokedAt: timeOrNull(k.RevokedAt), ReplacedBy: textOrNull(k.ReplacedBy),
		MadeBy: textOrNull(k.MadeBy), ApprovedBy: textOrNull(k.ApprovedBy),
	}
}

func checkRole(s string) *fault {
	if !slices.Contains(access.Roles, access.Role(s)) {
		return &fault{faultEnum, "is not a role of keys"}
	}
	return nil
}

func checkAppID(s string) *fault {
	if !access.ValidAppID(s) {
		return &fault{faultFormat, "is not the id of an app"}
	}
	return nil
}

func checkOwner(s string) *fault {
	if !access.ValidOwner(s) {
		return &fault{faultCharacters, "must have 1 to 64 visible characters, no space at the ends"}
	}
	return nil
}

func readKeyFilter(q *query) access.KeyFilter {
	return access.KeyFilter{Role: access.Role(q.text("role", checkRole)), AppID: q.text("app_id", checkAppID)}
}

func listKeys(r *request) (answer, error) {
	filter, given, after, limit, err := readList(r, readKeyFilter)
	if err != nil {
		return answer{}, err
	}
	filter.AfterTime, filter.AfterID, filter.Limit = after.At, after.ID, limit+1
	ctx, cancel := context.WithTimeout(r.ctx, readTimeout)
	defer cancel()
	rows, err := r.server.cfg.Store.Keys(ctx, filter)
	if err != nil {
		return answer{}, err
	}
	var page wire.List[wire.APIKey]
	page.Items, page.NextCursor = pageOf(rows, limit, func(k access.KeyRecord) listCursor {
		return listCursor{Filters: given, At: k.CreatedAt, ID: k.ID}
	}, r.server.renderKey)
	return answer{status: http.StatusOK, body: page}, nil
}

func readCreateKey(body []byte) (wire.CreateKey, error) {
	o, err := readObject(body)
	if err != nil {
		return wire.CreateKey{}, err
	}
	role := o.text("role", true, checkRole)
	app, owner := o.text("app_id", false, checkAppID), o.text("owner", false, checkOwner)
	out := wire.CreateKey{
		Role: wire.Role(valueOr(role, "")), AppID: valueOr(app, ""), Owner: valueOr(owner, valueOr(app, "")),
		Name: valueOr(o.text("name", false, checkOwner), ""), ExpiresInSeconds: o.integer("expires_in_seconds", false, minKeyLife, maxKeyLife),
		Reason: valueOr(o.text("reason", true, checkReason), ""),
	}
	switch ofApp := out.Role == wire.Role(access.RoleApp); {
	case role == nil:
	case ofApp && app == nil && !o.faulty("app_id"):
		o.fault("app_id", fault{faultRequired, "is required with role app"})
	case !ofApp && app != nil:
		o.fault("app_id", fault{faultEnum, "is permitted with role app only"})
	case !ofApp && owner == nil && !o.faulty("owner"):
		o.fault("owner", fault{faultRequired, "is required for staff: the person who owns the key"})
	}
	return out, o.done()
}

func createKey(r *request) (answer, error) {
	body, err := readCreateKey(r.payload)
	if err != nil {
		return answer{}, err
	}
	w, err := r.staffWrite(body, body.Reason)
	if err != nil {
		return answer{}, err
	}
	w.Route = r.c.Method() + " " + r.route.path
	token, id := access.NewToken(access.Role(body.Role))
	k := access.KeyRecord{Name: body.Name, Key: access.Key{ID: id, Role: access.Role(body.Role), AppID: body.AppID, Owner: body.Owner,
		SecretHash: access.HashToken(token)}}
	var made wire.CreatedKey
	stored, err := r.server.cfg.Store.IssueKey(r.ctx, w, k, seconds(body.ExpiresInSeconds),
		func(k access.KeyRecord) (int, []byte) {
			made = wire.CreatedKey{Key: r.server.renderKey(k)}
			return http.StatusCreated, encodeBody(made) // the stored answer, without the token
		})
	if errors.Is(err, packet.ErrNotFound) {
		return answer{}, invalidField("app_id", faultEnum, "is not the id of an app that exists")
	}
	a, err := r.keyAnswer(stored, err, "key")
	if err == nil && !stored.Replayed {
		made.Token = &token
		a.body, a.raw = made, nil
	}
	return a, err
}

func rotateKey(r *request) (answer, error) {
	o, err := readObject(r.payload)
	if err != nil {
		return answer{}, err
	}
	body := wire.RotateKey{GraceSeconds: valueOr(o.integer("grace_seconds", true, 0, maxGrace), 0),
		ExpiresInSeconds: o.integer("expires_in_seconds", false, minKeyLife, maxKeyLife),
		Reason:           valueOr(o.text("reason", true, checkReason), "")}
	if err := o.done(); err != nil {
		return answer{}, err
	}
	w, id, err := r.keyWrite(body, body.Reason, "key")
	if err != nil {
		return answer{}, err
	}
	old, err := r.server.cfg.Store.FindKey(r.ctx, id) // for the role, which is part of the token and immutable
	if err != nil {
		return r.keyAnswer(staff.Answer{}, err, "key")
	}
	token, next := access.NewToken(old.Role)
	var made wire.RotatedKey
	stored, err := r.server.cfg.Store.RotateKey(r.ctx, w, id, access.Key{ID: next, SecretHash: access.HashToken(token)},
		time.Duration(body.GraceSeconds)*time.Second, seconds(body.ExpiresInSeconds), func(old, k access.KeyRecord, refused error) (int, []byte) {
			if refused != nil {
				return r.renderRefusedKey(old, refused)
			}
			made = wire.RotatedKey{Key: r.server.renderKey(k), Replaced: r.server.renderKey(old)}
			raw := encodeBody(made)
			return http.StatusCreated, raw
		})
	a, err := r.keyAnswer(stored, err, "key")
	if err == nil && !stored.Replayed && stored.Status == http.StatusCreated {
		made.Token = &token
		a.body, a.raw = made, nil
	}
	return a, err
}

func approveKey(r *request) (answer, error) { return r.onKey(r.server.cfg.Store.ApproveKey) }

func revokeKey(r *request) (answer, error) { return r.onKey(r.server.cfg.Store.EndKey) }

// keyChange changes a key, with a reason.
type keyChange func(ctx context.Context, w staff.Write, id string,
	render func(k access.KeyRecord, refused error) (status int, body []byte)) (staff.Answer, error)

func (r *request) onKey(change keyChange) (answer, error) {
	body, err := readReason(r.payload)
	if err != nil {
		return answer{}, err
	}
	w, id, err := r.keyWrite(body, body.Reason, "key")
	if err != nil {
		return answer{}, err
	}
	stored, err := change(r.ctx, w, id, func(k access.KeyRecord, refused error) (int, []byte) {
		if refused != nil {
			return r.renderRefusedKey(k, refused)
		}
		raw := encodeBody(r.server.renderKey(k))
		return http.StatusOK, raw
	})
	return r.keyAnswer(stored, err, "key")
}

// keyWrite is staffWrite for the API key or ticket key of the path. A malformed id is answered
// like an unknown id.
func (r *request) keyWrite(body any, reason, thing string) (staff.Write, string, error) {
	w, err := r.staffWrite(body, reason)
	if err != nil {
		return w, "", err
	}
	id, err := url.PathUnescape(r.c.Params("id"))
	if err != nil || !access.ValidKeyID(id) {
		return w, "", noSuch(thing)
	}
	id = strings.Clone(id)
	w.Route = r.c.Method() + " " + r.route.on(id)
	return w, id, nil
}

// keyAnswer is staffAnswer, and reloads the keys of this process so that a change applies at
// once.
func (r *request) keyAnswer(stored staff.Answer, err error, thing string) (answer, error) {
	if err == nil && !stored.Replayed {
		if err := r.server.dir.load(r.ctx, 0); err != nil {
			slog.WarnContext(r.ctx, "apps and keys were not read", slog.Any("error", err))
		}
	}
	return staffAnswer(stored, err, noSuch(thing))
}

func (r *request) renderRefusedKey(k access.KeyRecord, refused error) (int, []byte) {
	why := refuse(wire.CodeKeyEnded)
	switch {
	case errors.Is(refused, access.ErrOwnKey):
		why = refuse(wire.CodeOwnKey)
	case errors.Is(refused, access.ErrLastKey):
		why = refuse(wire.CodeLastAdminKey)
	case k.ReplacedBy != "":
		why.detail = fmt.Sprintf("The key was rotated already: its successor is %s.", k.ReplacedBy)
	}
	problem := why.problem(instanceOf(r.c), r.id)
	raw := encodeBody(problem)
	return problem.Status, raw
}

// seconds converts an optional number of seconds.
func seconds(n *int64) time.Duration { return time.Duration(valueOr(n, 0)) * time.Second }
