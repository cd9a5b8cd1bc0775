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

	"github.com/danielgtaylor/huma/v2"

	"hongbao/internal/access"
	"hongbao/internal/packet"
	"hongbao/internal/staff"
)

// Bounds of the durations of keys, in seconds.
const (
	maxGrace   = 30 * 24 * 3600
	minKeyLife = 60
	maxKeyLife = 10 * 366 * 24 * 3600
)

// KeyRole is access.Role with its schema.
type KeyRole access.Role

// Schema implements huma.SchemaProvider.
func (KeyRole) Schema(huma.Registry) *huma.Schema { return enum(access.Roles) }

// KeyStatus is access.KeyStatus with its schema.
type KeyStatus access.KeyStatus

// Schema implements huma.SchemaProvider.
func (KeyStatus) Schema(huma.Registry) *huma.Schema { return enum(access.KeyStatuses) }

// APIKey is a key in answers to staff, without its secret.
type APIKey struct {
	ID         string           `json:"id" doc:"The id, which is the third part of the token." example:"k3q5v2c7m4e2"`
	Role       KeyRole          `json:"role" doc:"The role, which decides what the key may do."`
	AppID      Nullable[string] `json:"app_id" doc:"With role app: the app whose packets the key can access."`
	Owner      string           `json:"owner" doc:"The owner: a member of staff, or the app. The audit names the owner; a person has the same owner on all keys." example:"li-na"`
	Name       Nullable[string] `json:"name" doc:"The purpose, as given by its creator."`
	Status     KeyStatus        `json:"status" doc:"active: accepted. waiting: accepted after the approval of a second person. expired: its time is over. revoked: ended by a person."`
	CreatedAt  Stamp            `json:"created_at" doc:"When it was created."`
	LastUsedAt Nullable[Stamp]  `json:"last_used_at" doc:"The minute of its last use; null when unknown. It is updated with a delay of seconds, and the last minute before a crash may be missing."`
	ExpiresAt  Nullable[Stamp]  `json:"expires_at" doc:"When it expires; null: never. A rotation sets it."`
	RevokedAt  Nullable[Stamp]  `json:"revoked_at" doc:"When it was revoked."`
	ReplacedBy Nullable[string] `json:"replaced_by" doc:"The id of the key that replaced it in a rotation."`
	MadeBy     Nullable[string] `json:"made_by" doc:"The person who created it, or rotated its predecessor; null for a command on one of our machines."`
	ApprovedBy Nullable[string] `json:"approved_by" doc:"The second person; null before the approval, and when none is needed."`
}

// APIKeys is a page of keys.
type APIKeys struct {
	Items      []APIKey         `json:"items" nullable:"false" doc:"Newest first."`
	NextCursor Nullable[string] `json:"next_cursor" doc:"The cursor of the next page; null on the last page."`
}

// CreateKey is the body of the creation of a key.
type CreateKey struct {
	Role             KeyRole `json:"role" doc:"The role, which decides what the key may do."`
	AppID            string  `json:"app_id,omitempty" doc:"The app whose packets the key can access; required with role app, not permitted otherwise." example:"mall"`
	Owner            string  `json:"owner,omitempty" minLength:"1" maxLength:"64" doc:"The owner. Required for staff; by default the app's id. Approvals compare owners, ignoring case and width: use one name per person." example:"li-na"`
	Name             string  `json:"name,omitempty" minLength:"1" maxLength:"64" doc:"The purpose." example:"checkout backend"`
	ExpiresInSeconds *int64  `json:"expires_in_seconds,omitempty" minimum:"60" maximum:"316224000" doc:"Seconds until it expires; by default it never expires."`
	Reason           string  `json:"reason" minLength:"1" maxLength:"500" doc:"The reason, for the audit: 1 to 500 characters." example:"new backend, see ticket 4711"`
}

// RotateKey is the body of a rotation.
type RotateKey struct {
	GraceSeconds     int64  `json:"grace_seconds" minimum:"0" maximum:"2592000" doc:"Seconds until the old key expires, up to 30 days. 0 revokes it at once. At least 60 for the calling key." example:"86400"`
	ExpiresInSeconds *int64 `json:"expires_in_seconds,omitempty" minimum:"60" maximum:"316224000" doc:"Seconds until the new key expires; by default it never expires."`
	Reason           string `json:"reason" minLength:"1" maxLength:"500" doc:"The reason, for the audit: 1 to 500 characters." example:"yearly rotation"`
}

// CreatedKey is the answer to the creation of a key.
type CreatedKey struct {
	Key   APIKey           `json:"key" doc:"The key."`
	Token Nullable[string] `json:"token" doc:"The bearer token. It is returned only once and not stored; null in a replayed answer."`
}

// RotatedKey is the answer to a rotation.
type RotatedKey struct {
	Key      APIKey           `json:"key" doc:"The new key."`
	Token    Nullable[string] `json:"token" doc:"The bearer token. It is returned only once and not stored; null in a replayed answer."`
	Replaced APIKey           `json:"replaced" doc:"The old key, which is accepted until its expires_at."`
}

func (s *Server) renderKey(k access.KeyRecord) APIKey {
	return APIKey{
		ID: k.ID, Role: KeyRole(k.Role), AppID: textOrNull(k.AppID), Owner: k.Owner, Name: textOrNull(k.Name),
		Status: KeyStatus(k.Status(s.cfg.Now())), CreatedAt: Stamp(k.CreatedAt), LastUsedAt: stampOrNull(k.LastUsedAt),
		ExpiresAt: stampOrNull(k.ExpiresAt), RevokedAt: stampOrNull(k.RevokedAt), ReplacedBy: textOrNull(k.ReplacedBy),
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
	var page APIKeys
	page.Items, page.NextCursor = pageOf(rows, limit, func(k access.KeyRecord) listCursor {
		return listCursor{Filters: given, At: k.CreatedAt, ID: k.ID}
	}, r.server.renderKey)
	return answer{status: http.StatusOK, body: page}, nil
}

func readCreateKey(body []byte) (CreateKey, error) {
	o, err := readObject(body)
	if err != nil {
		return CreateKey{}, err
	}
	role := o.text("role", true, checkRole)
	app, owner := o.text("app_id", false, checkAppID), o.text("owner", false, checkOwner)
	out := CreateKey{
		Role: KeyRole(valueOr(role, "")), AppID: valueOr(app, ""), Owner: valueOr(owner, valueOr(app, "")),
		Name: valueOr(o.text("name", false, checkOwner), ""), ExpiresInSeconds: o.integer("expires_in_seconds", false, minKeyLife, maxKeyLife),
		Reason: valueOr(o.text("reason", true, checkReason), ""),
	}
	switch ofApp := out.Role == KeyRole(access.RoleApp); {
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
	var made CreatedKey
	stored, err := r.server.cfg.Store.IssueKey(r.ctx, w, k, seconds(body.ExpiresInSeconds),
		func(k access.KeyRecord) (int, []byte) {
			made = CreatedKey{Key: r.server.renderKey(k)}
			return http.StatusCreated, encodeBody(made) // the stored answer, without the token
		})
	if errors.Is(err, packet.ErrNotFound) {
		return answer{}, invalid(FieldError{"app_id", faultEnum, "is not the id of an app that exists"})
	}
	a, err := r.keyAnswer(stored, err, "key")
	if err == nil && !stored.Replayed {
		made.Token = orNull(&token)
		a.body, a.raw = made, nil
	}
	return a, err
}

func rotateKey(r *request) (answer, error) {
	o, err := readObject(r.payload)
	if err != nil {
		return answer{}, err
	}
	body := RotateKey{GraceSeconds: valueOr(o.integer("grace_seconds", true, 0, maxGrace), 0),
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
	var made RotatedKey
	stored, err := r.server.cfg.Store.RotateKey(r.ctx, w, id, access.Key{ID: next, SecretHash: access.HashToken(token)},
		time.Duration(body.GraceSeconds)*time.Second, seconds(body.ExpiresInSeconds), func(old, k access.KeyRecord, refused error) (int, []byte) {
			if refused != nil {
				return r.renderRefusedKey(old, refused)
			}
			made = RotatedKey{Key: r.server.renderKey(k), Replaced: r.server.renderKey(old)}
			raw := encodeBody(made)
			return http.StatusCreated, raw
		})
	a, err := r.keyAnswer(stored, err, "key")
	if err == nil && !stored.Replayed && stored.Status == http.StatusCreated {
		made.Token = orNull(&token)
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
	why := refuse(CodeKeyEnded)
	switch {
	case errors.Is(refused, access.ErrOwnKey):
		why = refuse(CodeOwnKey)
	case errors.Is(refused, access.ErrLastKey):
		why = refuse(CodeLastAdminKey)
	case k.ReplacedBy != "":
		why.detail = fmt.Sprintf("The key was rotated already: its successor is %s.", k.ReplacedBy)
	}
	problem := why.problem(instanceOf(r.c), r.id)
	raw := encodeBody(problem)
	return problem.Status, raw
}

// seconds converts an optional number of seconds.
func seconds(n *int64) time.Duration { return time.Duration(valueOr(n, 0)) * time.Second }
