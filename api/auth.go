package api

import (
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"hongbao/access"
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
func (l *listener) realmOf(path string) realm {
	switch {
	case l.open.has(path):
		return realmOpen
	case path == staffPrefix || strings.HasPrefix(path, staffPrefix+"/"):
		return realmStaff
	case strings.HasPrefix(path, apiPrefix):
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

func (o *openPaths) has(path string) bool {
	return o.exact[path] || slices.ContainsFunc(o.prefixes, func(p string) bool { return strings.HasPrefix(path, p) })
}

// authenticate checks key and role before anything is told about the path.
func (l *listener) authenticate(c *fiber.Ctx) error {
	in := l.realmOf(string(c.Context().URI().PathOriginal()))
	if in == realmOpen {
		return c.Next()
	}
	token, ok := bearer(c)
	if !ok {
		return refuse(CodeUnauthenticated)
	}
	who, err := l.server.dir.find(c.UserContext(), token)
	if err != nil {
		return err
	}
	if in == realmStaff && !who.key.Role.Staff() || in == realmApp && who.key.Role != access.RoleApp {
		return refuse(CodeForbidden)
	}
	c.Locals(localCaller, who)
	return c.Next()
}

// bearer returns the token of the one Authorization header.
func bearer(c *fiber.Ctx) (string, bool) {
	values := c.Request().Header.PeekAll(fiber.HeaderAuthorization)
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(string(values[0]), " ")
	return strings.TrimLeft(token, " "), ok && strings.EqualFold(scheme, "Bearer")
}
