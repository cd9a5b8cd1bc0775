package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"mime"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"hongbao/internal/observe"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/wire"
)

// localRequest is the Fiber key under which the chain stores its request.
const localRequest = "request"

// Limits of bodies in bytes. Fields are bounded in characters or in bytes of UTF-8. JSON may
// escape each: six bytes, or twelve beyond U+FFFF. A body with valid fields fits in any
// encoding.
const (
	// createBodyLimit exceeds 10,000 users of 64 bytes, each byte escaped.
	createBodyLimit = 4 << 20
	bodyLimit       = 64 << 10
	// smallBody is the size up to which a body does not use the budget for large bodies.
	smallBody = 4 << 10
	// drainLimit is how much of an unread body is discarded, so that the answer arrives before
	// the connection is reset.
	drainLimit = 8 << 20
)

const contentJSON = "application/json"

// request is the state of a request in the chain and the input of a handler.
type request struct {
	c       *fiber.Ctx
	ctx     context.Context
	server  *Server
	route   *route  // nil: no route
	caller  *caller // anonymous where no key is needed
	id      string  // X-Request-Id
	payload []byte  // the body, read up to the route's limit
	clock   *clock  // of the route
	// bodyRead: the body is read completely. A further read would consume the next request of
	// the connection.
	bodyRead bool
	reserved int // bytes reserved from the budget for large bodies
}

// anonymous is the caller without a key.
var anonymous = &caller{}

// requestOf returns the request that enter created.
func requestOf(c *fiber.Ctx) *request { return c.Locals(localRequest).(*request) }

// place is the route's path in logs and metrics.
func (r *request) place() string {
	if r.route == nil {
		return unmatchedPath
	}
	return r.route.path
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

func writeProblem(c *fiber.Ctx, r *refusal, requestID string) {
	status, raw := r.render(instanceOf(c), requestID)
	c.Response().ResetBody()
	c.Status(status)
	c.Response().Header.SetContentType(contentProblem)
	if r.code == wire.CodeUnauthenticated {
		c.Set(fiber.HeaderWWWAuthenticate, "Bearer")
	}
	if r.retryAfter > 0 {
		c.Set(fiber.HeaderRetryAfter, strconv.Itoa(retryAfterSeconds(r.retryAfter)))
	}
	if r.replayed {
		c.Set(headerReplayed, "true")
	}
	c.Response().SetBodyRaw(raw)
}

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

// isVisible reports whether s is 1 to max visible ASCII characters.
func isVisible(s string, max int) bool {
	if len(s) == 0 || len(s) > max {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
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
func (r *request) single(name string) (string, bool) {
	values := r.c.Request().Header.PeekAll(name)
	if len(values) != 1 {
		return "", false
	}
	return string(values[0]), true
}

// readBody reads the body up to the route's limit.
func (r *request) readBody() error {
	head := &r.c.Request().Header
	stream := r.c.Context().RequestBodyStream()
	if head.ContentLength() == 0 || stream == nil {
		return nil
	}
	if !r.isJSON() {
		return refuse(wire.CodeUnsupportedMedia)
	}
	limit := r.route.largest()
	if head.ContentLength() > limit {
		return refuse(wire.CodeBodyTooLarge)
	}
	b, err := r.readUpTo(stream, head.ContentLength(), limit)
	switch {
	case errors.Is(err, errNoRoomBody):
		// A body that is not complete by then closes the connection with the answer.
		_ = r.c.Context().Conn().SetReadDeadline(time.Now().Add(shedPatience))
		return unavailable(err)
	case err != nil:
		r.c.Context().SetConnectionClose()
		r.bodyRead = true
		refused := fromTransport(err)
		if refused.code == wire.CodeMalformedRequest || errors.Is(err, io.EOF) {
			refused = refuse(wire.CodeMalformedJSON)
		}
		return refused
	case len(b) > limit:
		return refuse(wire.CodeBodyTooLarge)
	}
	r.payload = b
	r.bodyRead = true
	return nil
}

// readUpTo reads a body of n bytes, or, when the length is not declared (n is negative), of up
// to one byte more than the limit.
func (r *request) readUpTo(stream io.Reader, n, limit int) ([]byte, error) {
	if n < 0 || n > smallBody {
		return r.readLarge(stream, n, limit+1)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(stream, b)
	return b, err
}

func (r *request) isJSON() bool {
	head := &r.c.Request().Header
	for _, coding := range head.PeekAll(fiber.HeaderContentEncoding) {
		if len(coding) > 0 && !strings.EqualFold(string(coding), "identity") {
			return false
		}
	}
	if countHeaderLines(head.RawHeaders(), fiber.HeaderContentType) > 1 {
		return false
	}
	kinds := head.PeekAll(fiber.HeaderContentType)
	if len(kinds) != 1 || string(kinds[0]) == contentJSON {
		return len(kinds) == 1
	}
	media, _, err := mime.ParseMediaType(string(kinds[0]))
	return err == nil && media == contentJSON
}

// leaveBody discards the rest of the body, so that the next request of the connection starts
// at the right byte; if there is too much, or it is broken, the connection is closed with the
// answer.
func (r *request) leaveBody() {
	stream := r.c.Context().RequestBodyStream()
	if stream == nil || r.bodyRead {
		return
	}
	n, err := io.Copy(io.Discard, io.LimitReader(stream, drainLimit))
	if err != nil || n == drainLimit {
		r.c.Context().SetConnectionClose()
	}
}

// packetID returns the packet id of the path. A malformed id is answered like an unknown one.
func (r *request) packetID() (string, error) {
	id, err := url.PathUnescape(r.c.Params("id"))
	if err != nil || !packet.ValidID(id) {
		return "", refuse(wire.CodePacketNotFound)
	}
	return id, nil
}

// fault is a fault of one value.
type fault struct{ code, message string }

// Codes of field errors.
const (
	faultRequired   = "required"
	faultUnknown    = "unknown_field"
	faultDuplicate  = "duplicate"
	faultType       = "wrong_type"
	faultInteger    = "not_an_integer"
	faultRange      = "out_of_range"
	faultLength     = "wrong_length"
	faultCharacters = "invalid_characters"
	faultFormat     = "invalid_format"
	faultEnum       = "not_allowed"
)

// checkID checks a user, sender, group or account id: 1 to 64 bytes of UTF-8
// without control characters.
func checkID(s string) *fault {
	switch {
	case len(s) == 0 || len(s) > packet.MaxUserIDBytes:
		return &fault{faultLength, fmt.Sprintf("must have 1 to %d bytes", packet.MaxUserIDBytes)}
	case !utf8.ValidString(s):
		return &fault{faultCharacters, "must be UTF-8"}
	case strings.ContainsFunc(s, unicode.IsControl):
		return &fault{faultCharacters, "must not contain control characters"}
	}
	return nil
}

// named returns the request's context with log attributes: the ids of the request and of the
// packet or payment in its path.
func (r *request) named() context.Context {
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
