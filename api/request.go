package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"hongbao/internal/access"
	"hongbao/internal/observe"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// Limits of bodies in bytes. Fields are bounded in characters or in bytes of UTF-8. JSON may
// escape each: six bytes, or twelve beyond U+FFFF. A body with valid fields fits in any
// encoding.
const (
	// createBodyLimit exceeds 10,000 users of 64 bytes, each byte escaped.
	createBodyLimit = 4 << 20
	bodyLimit       = 64 << 10
)

const contentJSON = "application/json"

// Request is a request to an operation.
type Request struct {
	c       *fiber.Ctx
	ctx     context.Context
	host    *Host
	route   *route  // nil: no route
	caller  *Caller // without key and app where no key is needed
	id      string  // X-Request-Id
	payload []byte  // the body, read up to the route's limit
}

// Caller is the owner of a key.
type Caller struct {
	key access.Key
	app access.App // only for a key of role app
}

// Host is what a request needs of the server that answers it.
type Host struct {
	now          func() time.Time
	base         context.Context // ends with the server
	draining     func() bool
	writeTimeout time.Duration
	providers    *payout.Registry
}

// answer is the result of a handler.
type answer struct {
	status   int
	body     any    // encoded as JSON, unless raw is set; nil: no body
	raw      []byte // already encoded
	kind     string // content type of raw; "": JSON
	replayed bool
	header   map[string]string
	written  bool // the handler wrote the answer itself
}

func (a answer) write(c *fiber.Ctx) error {
	if a.written {
		return nil
	}
	for name, value := range a.header {
		c.Set(name, value)
	}
	if a.replayed {
		c.Set(headerReplayed, "true")
	}
	raw := a.raw
	if a.body != nil {
		var err error
		if raw, err = encode(a.body); err != nil {
			return err
		}
	}
	c.Status(a.status)
	if raw == nil {
		return nil
	}
	c.Response().Header.SetContentType(cmp.Or(a.kind, contentJSON))
	c.Response().SetBodyRaw(raw)
	return nil
}

// encode returns JSON without HTML escapes.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// contentProblem is the content type of errors.
const contentProblem = "application/problem+json"

// instanceOf returns the path of the request as a valid URI reference.
func instanceOf(c *fiber.Ctx) string {
	path := string(c.Context().URI().PathOriginal())
	if plainPath(path) {
		return path
	}
	if _, err := url.PathUnescape(path); err != nil || !utf8.ValidString(path) ||
		strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"<>\^{|}`+"`", r) }) {
		return (&url.URL{Path: string(bytes.ToValidUTF8([]byte(path), []byte("?")))}).EscapedPath()
	}
	if path == "" {
		return "/"
	}
	return path
}

// plainPath reports whether a path has only characters without a special meaning, which is the
// common case.
func plainPath(path string) bool {
	for i := range len(path) {
		switch c := path[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '/', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return path != ""
}

// maxRequestID is how long a client's X-Request-Id may be.
const maxRequestID = 128

// requestID returns the client's id if it is valid, else a new one.
func requestID(c *fiber.Ctx) string {
	if id := c.Get(fiber.HeaderXRequestID); isVisible(id, maxRequestID) {
		return id
	}
	return newRequestID()
}

// newRequestID returns an id of 130 random bits. It needs no cryptographic generator.
func newRequestID() string {
	const alphabet = "abcdefghijklmnopqrstuvwxyz234567"
	id := [4 + 26]byte{'r', 'e', 'q', '_'}
	low, high := rand.Uint64(), rand.Uint64()
	for i := range 13 {
		id[4+i], id[17+i] = alphabet[low>>(5*i)&31], alphabet[high>>(5*i)&31]
	}
	return string(id[:])
}

// single returns the value of a header that may occur once.
func (r *Request) single(name string) (string, bool) {
	values := r.c.Request().Header.PeekAll(name)
	if len(values) != 1 {
		return "", false
	}
	return string(values[0]), true
}

// named returns the request's context with log attributes: the ids of the request and of the
// packet or payment in its path.
func (r *Request) named() context.Context {
	ids := []slog.Attr{slog.String(observe.LogRequest, r.id)}
	if r.route != nil && strings.Contains(r.route.path, "{id}") {
		id := strings.Clone(r.c.Params("id")) // the request's memory is reused
		if _, err := payout.Parse(id); err == nil {
			ids = append(ids, slog.String(observe.LogPayment, id))
		} else if packet.ValidID(id) {
			ids = append(ids, slog.String(observe.LogPacket, id))
		}
	}
	return observe.WithLogAttrs(r.ctx, ids...)
}
