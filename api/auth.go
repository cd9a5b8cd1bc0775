package api

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"hongbao/internal/access"
)

// realmOf decides by the path alone, whether or not a route exists: without access the answer
// must not reveal which paths exist.
func (l *listener) realmOf(path []byte) realm {
	switch {
	case l.open.has(path):
		return realmOpen
	case string(path) == staffPrefix || startsWith(path, staffPrefix+"/"):
		return realmStaff
	case startsWith(path, apiPrefix):
		return realmApp
	default:
		return realmUnknown
	}
}

// openPaths are the paths of a listener that need no key.
type openPaths struct {
	exact    map[string]bool
	prefixes []string // of paths that end in a parameter
}

func (o *openPaths) add(r *route) {
	if r.realm != realmOpen {
		return
	}
	if prefix, _, ok := strings.Cut(r.path, "{"); ok {
		o.prefixes = append(o.prefixes, prefix)
		return
	}
	o.exact[r.path] = true
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
	if required == realmOpen {
		return c.Next()
	}
	r := requestOf(c)
	who, err := l.callerOf(r)
	if err = checkRealm(required, who, err); err != nil {
		return err
	}
	r.caller = &who.Caller
	if conn, ok := c.Context().Conn().(*conn); ok {
		conn.keyed.Store(true)
	}
	return c.Next()
}

// callerOf returns the caller of a request: the owner of the key in its headers. A request that
// the console makes within the process has the id of a key instead.
func (l *listener) callerOf(r *request) (*caller, error) {
	if id, ok := r.c.Context().UserValue(inProcessKeyContext{}).(string); ok {
		if who, ok := l.server.dir.byID(id, l.server.cfg.Now()); ok {
			return who, nil
		}
		if !l.server.dir.staffKnown() {
			return nil, unavailable(errors.New("keys of staff are not loaded yet"))
		}
		return nil, refuseKey(keyUnknown)
	}
	return l.keyHolder(r.ctx, &r.c.Request().Header)
}

// checkRealm refuses callers without access to the realm. err is why there is no caller; it is
// returned.
func checkRealm(m realm, who *caller, err error) error {
	switch {
	case err != nil:
		return err
	case m == realmStaff && !who.key.Role.Staff():
		return refuseRole(who.key.Role, staffRoles)
	case m == realmApp && who.key.Role != access.RoleApp:
		return refuseRole(who.key.Role, []access.Role{access.RoleApp})
	}
	return nil
}

// keyHolder returns the owner of the key in the headers of a request.
func (l *listener) keyHolder(ctx context.Context, h *fasthttp.RequestHeader) (*caller, error) {
	token, ok := bearer(h)
	if !ok {
		return nil, refuseKey(keyMissing)
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
