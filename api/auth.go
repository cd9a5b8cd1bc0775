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

// realm says whose keys a path takes.
type realm int

const (
	realmOpen  realm = iota // no key needed
	realmApp                // apps, their own packets
	realmStaff              // people of the platform
	realmAny                // nothing is there, but only for those who show a key
)

const (
	apiPrefix   = "/v1/"
	staffPrefix = "/v1/staff"
)

// realmOf decides by the path alone, whether or not there is a route: who may
// not look somewhere is not told what is there.
func (l *listener) realmOf(path []byte) realm {
	switch {
	case l.open.has(path):
		return realmOpen
	case string(path) == staffPrefix || startsWith(path, staffPrefix+"/"):
		return realmStaff
	case startsWith(path, apiPrefix):
		return realmApp
	default:
		return realmAny
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

// authenticate checks key and role before anything is told about the path.
func (l *listener) authenticate(c *fiber.Ctx) error {
	in := l.realmOf(c.Context().URI().PathOriginal())
	if in == realmOpen {
		return c.Next()
	}
	r := requestOf(c)
	who, err := l.callerOf(r)
	if err = in.check(who, err); err != nil {
		return err
	}
	r.caller = who
	if conn, ok := c.Context().Conn().(*conn); ok {
		conn.keyed.Store(true)
	}
	return c.Next()
}

// callerOf finds who makes a request: the owner of the key that it shows, or, of a
// request from inside, of the key that it acts for.
func (l *listener) callerOf(r *request) (*caller, error) {
	if id, ok := r.c.Context().UserValue(inProcessKeyContext{}).(string); ok {
		if who, ok := l.server.dir.byID(id, l.server.cfg.Now()); ok {
			return who, nil
		}
		if !l.server.dir.staffKnown() {
			return nil, unavailable(errors.New("keys of staff are not loaded yet"))
		}
		return nil, refuse(CodeUnauthenticated)
	}
	return l.holderOf(r.ctx, &r.c.Request().Header)
}

// check refuses who may not come to paths of the realm; err is why nobody was found.
func (in realm) check(who *caller, err error) error {
	if err == nil && (in == realmStaff && !who.key.Role.Staff() || in == realmApp && who.key.Role != access.RoleApp) {
		return refuse(CodeForbidden)
	}
	return err
}

// holderOf finds the owner of the key that a request shows.
func (l *listener) holderOf(ctx context.Context, h *fasthttp.RequestHeader) (*caller, error) {
	token, ok := bearer(h)
	if !ok {
		return nil, refuse(CodeUnauthenticated)
	}
	return l.server.dir.find(ctx, token)
}

// bearer returns the token of the one Authorization header. It is good until the
// request has been answered.
func bearer(h *fasthttp.RequestHeader) (token []byte, ok bool) {
	values := h.PeekAll(fiber.HeaderAuthorization)
	if len(values) != 1 {
		return nil, false
	}
	scheme, token, ok := bytes.Cut(values[0], []byte(" "))
	return bytes.TrimLeft(token, " "), ok && bytes.EqualFold(scheme, []byte("Bearer"))
}
