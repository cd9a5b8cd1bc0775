package api

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"hongbao/api/rest"
	"hongbao/internal/access"
)

// realmOf decides by the path alone, whether or not a route exists: without access the answer
// must not reveal which paths exist.
func (l *listener) realmOf(path []byte) rest.Realm {
	switch {
	case l.open.has(path):
		return rest.RealmOpen
	case string(path) == rest.StaffPrefix || startsWith(path, rest.StaffPrefix+"/"):
		return rest.RealmStaff
	case startsWith(path, rest.APIPrefix):
		return rest.RealmApp
	default:
		return rest.RealmUnknown
	}
}

// openPaths are the paths of a listener that need no key.
type openPaths struct {
	exact    map[string]bool
	prefixes []string // of paths that end in a parameter
}

func (o *openPaths) add(r *rest.Route) {
	if r.Realm != rest.RealmOpen {
		return
	}
	if prefix, _, ok := strings.Cut(r.Path, "{"); ok {
		o.prefixes = append(o.prefixes, prefix)
		return
	}
	o.exact[r.Path] = true
}

func (o *openPaths) has(path []byte) bool {
	return o.exact[string(path)] || slices.ContainsFunc(o.prefixes, func(p string) bool { return startsWith(path, p) })
}

func startsWith(path []byte, prefix string) bool {
	return len(path) >= len(prefix) && string(path[:len(prefix)]) == prefix
}

// authenticate checks key and role before the answer reveals anything about the path.
func (l *listener) authenticate(c *fiber.Ctx) error {
	required := l.realmOf(c.Context().URI().PathOriginal())
	if required == rest.RealmOpen {
		return c.Next()
	}
	r := requestOf(c)
	who, err := l.callerOf(r)
	if err = checkRealm(required, who, err); err != nil {
		return err
	}
	r.Caller = &who.Caller
	if conn, ok := c.Context().Conn().(*conn); ok {
		conn.keyed.Store(true)
	}
	return c.Next()
}

// callerOf returns the caller of a request: the owner of the key in its headers. A request that
// the console makes within the process has the id of a key instead.
func (l *listener) callerOf(r *request) (*caller, error) {
	if id, ok := r.C.Context().UserValue(inProcessKeyContext{}).(string); ok {
		if who, ok := l.server.dir.byID(id, l.server.cfg.Now()); ok {
			return who, nil
		}
		if !l.server.dir.staffKnown() {
			return nil, rest.Unavailable(errors.New("keys of staff are not loaded yet"))
		}
		return nil, rest.RefuseKey(rest.KeyUnknown)
	}
	return l.keyHolder(r.Ctx, &r.C.Request().Header)
}

// checkRealm refuses callers without access to the realm. err is why there is no caller; it is
// returned.
func checkRealm(m rest.Realm, who *caller, err error) error {
	switch {
	case err != nil:
		return err
	case m == rest.RealmStaff && !who.Key.Role.Staff():
		return rest.RefuseRole(who.Key.Role, rest.StaffRoles)
	case m == rest.RealmApp && who.Key.Role != access.RoleApp:
		return rest.RefuseRole(who.Key.Role, []access.Role{access.RoleApp})
	}
	return nil
}

// keyHolder returns the owner of the key in the headers of a request.
func (l *listener) keyHolder(ctx context.Context, h *fasthttp.RequestHeader) (*caller, error) {
	token, ok := bearer(h)
	if !ok {
		return nil, rest.RefuseKey(rest.KeyMissing)
	}
	return l.server.dir.find(ctx, token)
}

// bearer returns the token of the only Authorization header. It is valid until the request is
// answered.
func bearer(h *fasthttp.RequestHeader) (token []byte, ok bool) {
	values := h.PeekAll(fiber.HeaderAuthorization)
	if len(values) != 1 {
		return nil, false
	}
	scheme, token, ok := bytes.Cut(values[0], []byte(" "))
	return bytes.TrimLeft(token, " "), ok && bytes.EqualFold(scheme, []byte("Bearer"))
}
