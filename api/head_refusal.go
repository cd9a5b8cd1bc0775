package api

import (
	"bytes"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// The HTTP server reads the beginning of a body before it calls a handler. A request whose
// headers are refused must be answered even if its body never arrives.

// refusedHead is a request that is refused by its headers before its body has arrived.
type refusedHead struct {
	refusal *refusal
	id      string // X-Request-Id
	target  string
}

// headerReceived bounds the wait for the body of a request without a valid key to
// shedPatience. If the body arrives in time, or there is none, the request is refused like all
// others.
func (l *listener) headerReceived(h *fasthttp.RequestHeader) (config fasthttp.RequestConfig) {
	if n := h.ContentLength(); n == 0 || n == noLength {
		return config
	}
	uri := fasthttp.AcquireURI()
	defer fasthttp.ReleaseURI(uri)
	if err := uri.Parse(h.Host(), h.RequestURI()); err != nil || l.kind == listenStaff && l.server.isConsole(string(uri.Path())) {
		return config
	}
	in := l.realmOf(uri.PathOriginal())
	if in == realmOpen {
		return config
	}
	who, err := l.holderOf(l.server.deadlines.from(time.Now()), h)
	if err = in.check(who, err); err == nil {
		return config
	}
	l.refused.Store(h, refusedHead{asRefusal(err), string(h.Peek(fiber.HeaderXRequestID)), string(h.RequestURI())})
	config.ReadTimeout = shedPatience
	return config
}

// noLength is the length of a request without a declared length: it has no body.
const noLength = -2

// refuseHead answers a request that was refused by its headers and whose body did not arrive;
// false: it is another request.
func (l *listener) refuseHead(ctx *fasthttp.RequestCtx) bool {
	found, ok := l.refused.LoadAndDelete(&ctx.Request.Header)
	if !ok {
		return false
	}
	head := found.(refusedHead)
	ctx.Request.SetRequestURI(head.target) // the server dropped it with the body
	c := l.app.AcquireCtx(ctx)
	defer l.app.ReleaseCtx(c)
	if !visible(head.id, maxRequestID) {
		head.id = newRequestID()
	}
	c.Set(fiber.HeaderXRequestID, head.id)
	writeProblem(c, head.refusal, head.id)
	return true
}

// headerLines counts the raw lines of a header; the parsed header keeps one of some names.
func headerLines(raw []byte, name string) (n int) {
	for line := range bytes.Lines(raw) {
		if len(line) > len(name) && line[len(name)] == ':' && bytes.EqualFold(line[:len(name)], []byte(name)) {
			n++
		}
	}
	return n
}

// ambiguous reports whether a proxy may parse the headers differently: a line continues the
// previous one.
func ambiguous(raw []byte) bool {
	return bytes.HasPrefix(raw, []byte(" ")) || bytes.HasPrefix(raw, []byte("\t")) || bytes.Contains(raw, []byte("\n ")) ||
		bytes.Contains(raw, []byte("\n\t"))
}
