// Package rest is what every operation of the HTTP contract shares, of apps and of staff: how a request is bound and
// checked, how it is refused, how lists are paged and exported, and the table of routes with the OpenAPI document
// made from it. It knows neither the server nor a store.
package rest

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
	// CreateBodyLimit exceeds 10,000 users of 64 bytes, each byte escaped.
	CreateBodyLimit = 4 << 20
	BodyLimit       = 64 << 10
)

// ContentJSON is the content type of bodies.
const ContentJSON = "application/json"

// Request is a request to an operation.
type Request struct {
	C       *fiber.Ctx
	Ctx     context.Context
	Host    *Host
	Route   *Route  // nil: no route
	Caller  *Caller // without key and app where no key is needed
	ID      string  // X-Request-Id
	Payload []byte  // the body, read up to the route's limit
}

// Caller is the owner of a key.
type Caller struct {
	Key access.Key
	App access.App // only for a key of role app
}

// Host is what a request needs of the server that answers it.
type Host struct {
	Now          func() time.Time
	Base         context.Context // ends with the server
	Draining     func() bool
	WriteTimeout time.Duration
	Providers    *payout.Registry
}

// Answer is the result of a handler.
type Answer struct {
	Status   int
	Body     any    // encoded as JSON, unless Raw is set; nil: no body
	Raw      []byte // already encoded
	Kind     string // content type of Raw; "": JSON
	Replayed bool
	Header   map[string]string
	Written  bool // the handler wrote the answer itself
}

// Write answers with it.
func (a Answer) Write(c *fiber.Ctx) error {
	if a.Written {
		return nil
	}
	for name, value := range a.Header {
		c.Set(name, value)
	}
	if a.Replayed {
		c.Set(HeaderReplayed, "true")
	}
	raw := a.Raw
	if a.Body != nil {
		var err error
		if raw, err = Encode(a.Body); err != nil {
			return err
		}
	}
	c.Status(a.Status)
	if raw == nil {
		return nil
	}
	c.Response().Header.SetContentType(cmp.Or(a.Kind, ContentJSON))
	c.Response().SetBodyRaw(raw)
	return nil
}

// Encode returns JSON without HTML escapes.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// ContentProblem is the content type of errors.
const ContentProblem = "application/problem+json"

// InstanceOf returns the path of the request as a valid URI reference.
func InstanceOf(c *fiber.Ctx) string {
	path := string(c.Context().URI().PathOriginal())
	if PlainPath(path) {
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

// PlainPath reports whether a path has only characters without a special meaning, which is the
// common case.
func PlainPath(path string) bool {
	for i := range len(path) {
		switch c := path[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '/', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return path != ""
}

// MaxRequestID is how long a client's X-Request-Id may be.
const MaxRequestID = 128

// RequestID returns the client's id if it is valid, else a new one.
func RequestID(c *fiber.Ctx) string {
	if id := c.Get(fiber.HeaderXRequestID); IsVisible(id, MaxRequestID) {
		return id
	}
	return NewRequestID()
}

// NewRequestID returns an id of 130 random bits. It needs no cryptographic generator.
func NewRequestID() string {
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
	values := r.C.Request().Header.PeekAll(name)
	if len(values) != 1 {
		return "", false
	}
	return string(values[0]), true
}

// Named returns the request's context with log attributes: the ids of the request and of the
// packet or payment in its path.
func (r *Request) Named() context.Context {
	ids := []slog.Attr{slog.String(observe.LogRequest, r.ID)}
	if r.Route != nil && strings.Contains(r.Route.Path, "{id}") {
		id := strings.Clone(r.C.Params("id")) // the request's memory is reused
		if _, err := payout.Parse(id); err == nil {
			ids = append(ids, slog.String(observe.LogPayment, id))
		} else if packet.ValidID(id) {
			ids = append(ids, slog.String(observe.LogPacket, id))
		}
	}
	return observe.WithLogAttrs(r.Ctx, ids...)
}
