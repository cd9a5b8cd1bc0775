package api

import (
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"hongbao/api/rest"
)

// The HTTP server waits for the beginning of a body before it calls a handler. So a client
// without a valid key could hold a connection by never sending its body. The key is therefore
// checked when the headers arrive: without a valid one the wait is short, and the refusal is
// sent even if no body arrives.

// refusedHead is a request that is refused by its headers before its body has arrived.
type refusedHead struct {
	refusal *rest.Refusal
	id      string // X-Request-Id
	target  string
}

// headerReceived is called when the headers of a request have arrived. For a request without a
// valid key it bounds the wait for the body to shedPatience. If the body arrives in time, or
// there is none, a handler refuses the request like all others.
func (l *listener) headerReceived(h *fasthttp.RequestHeader) (config fasthttp.RequestConfig) {
	if n := h.ContentLength(); n == 0 || n == noLength {
		return config
	}
	uri := fasthttp.AcquireURI()
	defer fasthttp.ReleaseURI(uri)
	if err := uri.Parse(h.Host(), h.RequestURI()); err != nil || l.kind == rest.ListenStaff && l.server.isConsole(string(uri.Path())) {
		return config
	}
	required := l.realmOf(uri.PathOriginal())
	if required == rest.RealmOpen {
		return config
	}
	who, err := l.keyHolder(l.server.deadlines.from(time.Now()), h)
	if err = checkRealm(required, who, err); err == nil {
		return config
	}
	l.refused.Store(h, refusedHead{rest.AsRefusal(err), string(h.Peek(fiber.HeaderXRequestID)), string(h.RequestURI())})
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
	if !rest.IsVisible(head.id, rest.MaxRequestID) {
		head.id = rest.NewRequestID()
	}
	c.Set(fiber.HeaderXRequestID, head.id)
	writeProblem(c, head.refusal, head.id)
	return true
}
