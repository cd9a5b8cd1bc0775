package api

import (
	"errors"
	"io"
	"mime"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"hongbao/api/rest"
	"hongbao/internal/packet"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// localRequest is the Fiber key under which the chain stores its request.
const localRequest = "request"

// request is the state of a request in the chain and the input of a handler.
type request struct {
	rest.Request
	server *Server
	clock  *clock // of the route
	// bodyRead: the body is read completely. A further read would consume the next request of
	// the connection.
	bodyRead bool
	reserved int // bytes reserved from the budget for large bodies
}

// asked is the input of an operation that needs the chain's request.
type asked struct{ *request }

// By implements rest's input.
func (a *asked) By(r *rest.Request) { a.request = requestOf(r.C) }

// write is the same of an operation that changes something.
type write struct {
	asked
	staff.Write
}

// Sign implements rest's input.
func (w *write) Sign(as staff.Write) { w.Write = as }

// own makes the handler of a route that is no operation.
func own(do func(*request) (rest.Answer, error)) func(*rest.Request) (rest.Answer, error) {
	return func(r *rest.Request) (rest.Answer, error) { return do(requestOf(r.C)) }
}

// requestOf returns the request that enter created.
func requestOf(c *fiber.Ctx) *request { return c.Locals(localRequest).(*request) }

// place is the route's path in logs and metrics.
func (r *request) place() string {
	if r.Route == nil {
		return unmatchedPath
	}
	return r.Route.Path
}

func writeProblem(c *fiber.Ctx, r *rest.Refusal, requestID string) {
	status, raw := r.Render(rest.InstanceOf(c), requestID)
	c.Response().ResetBody()
	c.Status(status)
	c.Response().Header.SetContentType(rest.ContentProblem)
	if r.Code == wire.CodeUnauthenticated {
		c.Set(fiber.HeaderWWWAuthenticate, "Bearer")
	}
	if r.RetryAfter > 0 {
		c.Set(fiber.HeaderRetryAfter, strconv.Itoa(rest.RetryAfterSeconds(r.RetryAfter)))
	}
	if r.Replayed {
		c.Set(rest.HeaderReplayed, "true")
	}
	c.Response().SetBodyRaw(raw)
}

// readBody reads the body up to the route's limit.
func (r *request) readBody() error {
	head := &r.C.Request().Header
	stream := r.C.Context().RequestBodyStream()
	if head.ContentLength() == 0 || stream == nil {
		return nil
	}
	if !r.isJSON() {
		return rest.Refuse(wire.CodeUnsupportedMedia)
	}
	limit := r.Route.Largest()
	if head.ContentLength() > limit {
		return rest.Refuse(wire.CodeBodyTooLarge)
	}
	b, err := r.readUpTo(stream, head.ContentLength(), limit)
	switch {
	case errors.Is(err, errNoRoomBody):
		// A body that is not complete by then closes the connection with the answer.
		_ = r.C.Context().Conn().SetReadDeadline(time.Now().Add(shedPatience))
		return rest.Unavailable(err)
	case err != nil:
		r.C.Context().SetConnectionClose()
		r.bodyRead = true
		refused := fromTransport(err)
		if refused.Code == wire.CodeMalformedRequest || errors.Is(err, io.EOF) {
			refused = rest.Refuse(wire.CodeMalformedJSON)
		}
		return refused
	case len(b) > limit:
		return rest.Refuse(wire.CodeBodyTooLarge)
	}
	r.Payload = b
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
	head := &r.C.Request().Header
	for _, coding := range head.PeekAll(fiber.HeaderContentEncoding) {
		if len(coding) > 0 && !strings.EqualFold(string(coding), "identity") {
			return false
		}
	}
	if countHeaderLines(head.RawHeaders(), fiber.HeaderContentType) > 1 {
		return false
	}
	kinds := head.PeekAll(fiber.HeaderContentType)
	if len(kinds) != 1 || string(kinds[0]) == rest.ContentJSON {
		return len(kinds) == 1
	}
	media, _, err := mime.ParseMediaType(string(kinds[0]))
	return err == nil && media == rest.ContentJSON
}

// leaveBody discards the rest of the body, so that the next request of the connection starts
// at the right byte; if there is too much, or it is broken, the connection is closed with the
// answer.
func (r *request) leaveBody() {
	stream := r.C.Context().RequestBodyStream()
	if stream == nil || r.bodyRead {
		return
	}
	n, err := io.Copy(io.Discard, io.LimitReader(stream, drainLimit))
	if err != nil || n == drainLimit {
		r.C.Context().SetConnectionClose()
	}
}

// packetID returns the packet id of the path. A malformed id is answered like an unknown one.
func (r *request) packetID() (string, error) {
	id, err := url.PathUnescape(r.C.Params("id"))
	if err != nil || !packet.ValidID(id) {
		return "", rest.Refuse(wire.CodePacketNotFound)
	}
	return id, nil
}

const (
	// smallBody is the size up to which a body does not use the budget for large bodies.
	smallBody = 4 << 10
	// drainLimit is how much of an unread body is discarded, so that the answer arrives before
	// the connection is reset.
	drainLimit = 8 << 20
)

// anonymous is the caller without a key.
var anonymous = &rest.Caller{}
