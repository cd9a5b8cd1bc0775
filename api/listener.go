package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"hongbao/api/rest"
	"hongbao/wire"
)

const headerLimit = 16 << 10

var errAmbiguous = errors.New("ambiguous header lines")

// listener is one Fiber app with its address.
type listener struct {
	server *Server
	kind   rest.ListenerKind
	app    *fiber.App
	ln     *conns
	open   openPaths
	chain  fasthttp.RequestHandler // all requests pass through it, also those from within the process
	// refused are requests refused by their headers whose bodies have not arrived, by address
	// of their header.
	refused sync.Map
}

func newListener(s *Server, kind rest.ListenerKind) *listener {
	l := &listener{server: s, kind: kind, open: openPaths{exact: map[string]bool{}}}
	l.app = fiber.New(fiber.Config{
		AppName:       "hongbao " + kind.String(),
		CaseSensitive: true,
		StrictRouting: true,
		// Values of a request point into memory that the next request reuses. Copying them is
		// cheap compared with a call to the pool.
		Immutable:                    true,
		StreamRequestBody:            true, // so that a large body is refused after authentication and route
		DisablePreParseMultipartForm: true,
		BodyLimit:                    rest.CreateBodyLimit,
		ReadBufferSize:               headerLimit,
		ReadTimeout:                  s.cfg.ReadTimeout,
		WriteTimeout:                 s.cfg.WriteTimeout,
		IdleTimeout:                  s.cfg.IdleTimeout,
		DisableStartupMessage:        true,
		ErrorHandler:                 func(*fiber.Ctx, error) error { return nil }, // enter has rendered the error
	})
	web := l.app.Server()
	web.CloseOnShutdown = true
	web.ErrorHandler = l.transportError
	web.HeaderReceived = l.headerReceived
	l.chain = l.app.Handler()
	web.Handler = l.around(l.chain)
	l.app.Use(l.enter, l.authenticate)
	for _, r := range s.routes() {
		if r.Listener&kind != 0 {
			l.open.add(r)
			l.app.Add(r.Method, rest.FiberPath(r.Path), l.handler(r, r.Method))
			if r.Method == fiber.MethodGet {
				l.app.Head(rest.FiberPath(r.Path), l.handler(r, fiber.MethodHead))
			}
		}
	}
	return l
}

// take records a bound listener.
func (l *listener) take(ln net.Listener) {
	bound, perAddress := staffConns, 0
	if l.kind == rest.ListenPublic {
		bound, perAddress = l.server.cfg.MaxConns, l.server.cfg.ConnsPerAddress
	}
	m, kind := l.server.metrics, l.kind.String()
	l.ln = newConns(l.server.base, ln, bound, perAddress, m.conns.WithLabelValues(kind), m.turnedAway.WithLabelValues(kind),
		m.evicted.WithLabelValues(kind))
}

func (l *listener) serve() error {
	if err := l.app.Listener(l.ln); err != nil && !l.server.draining.Load() {
		return fmt.Errorf("serve %s: %w", l.ln.Addr(), err)
	}
	return nil
}

func (l *listener) shutdown(grace time.Duration) error {
	done := make(chan struct{})
	var closing sync.WaitGroup
	closing.Go(func() { l.ln.closeQuiet(done) })
	err := l.app.ShutdownWithTimeout(grace)
	close(done)
	closing.Wait()
	if closeErr := l.ln.Close(); closeErr != nil && !errors.Is(closeErr, net.ErrClosed) {
		err = errors.Join(err, closeErr)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s listener: requests under way did not end within %v: %w", l.kind, grace, err)
	case err != nil && !errors.Is(err, net.ErrClosed):
		return fmt.Errorf("%s listener: %w", l.kind, err)
	}
	return nil
}

// around receives a request from its connection. Requests with a method unknown to Fiber take
// the same path and get 401, 404 or 405.
func (l *listener) around(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	known := map[string]bool{}
	for _, m := range fiber.DefaultMethods {
		known[m] = true
	}
	return func(ctx *fasthttp.RequestCtx) {
		if !known[string(ctx.Method())] {
			ctx.Request.Header.SetMethod(fiber.MethodTrace)
		}
		if c, ok := ctx.Conn().(*conn); ok {
			c.begin()
			defer c.end()
		}
		if _, ok := l.refused.Load(&ctx.Request.Header); ok {
			l.refused.Delete(&ctx.Request.Header)
		}
		if hasFoldedLine(ctx.Request.Header.RawHeaders()) {
			l.transportError(ctx, errAmbiguous)
			ctx.SetConnectionClose()
			return
		}
		if l.kind == rest.ListenStaff && l.server.isConsole(string(ctx.Path())) {
			l.server.serveConsole(ctx)
			return
		}
		next(ctx)
	}
}

// transportError answers input that is not a complete request: malformed, too slow or too
// large. The connection is closed afterwards.
func (l *listener) transportError(ctx *fasthttp.RequestCtx, err error) {
	if l.refuseHead(ctx) {
		return
	}
	c := l.app.AcquireCtx(ctx)
	defer l.app.ReleaseCtx(c)
	id := rest.NewRequestID()
	c.Set(fiber.HeaderXRequestID, id)
	refused := fromTransport(err)
	if by, ok := ctx.Conn().(*conn); ok && refused.Code == wire.CodeMalformedRequest && hasInvalidKey(by.lastRead) {
		refused = rest.Refuse(wire.CodeKeyRequired)
	}
	writeProblem(c, refused, id)
}

// enter wraps every request: id, deadline, panics, errors, the rest of the body, and metrics.
func (l *listener) enter(c *fiber.Ctx) error {
	start := c.Context().Time()
	if start.IsZero() { // from within the process
		start = time.Now()
	}
	r := &request{server: l.server, Request: rest.Request{C: c, Ctx: l.server.deadlines.from(start), Host: &l.server.host, Caller: anonymous,
		ID: rest.RequestID(c)}}
	c.Set(fiber.HeaderXRequestID, r.ID)
	c.Locals(localRequest, r)
	span := r.trace(l.server.cfg.Tracer)
	if err := next(r); err != nil {
		refused := rest.AsRefusal(err)
		if refused.ServerError() {
			logRefusal(r.Named(), refused, r.ID, r.place())
		}
		writeProblem(c, refused, r.ID)
	}
	r.leaveBody()
	l.server.bodies.give(r.reserved)
	if status, took := c.Response().StatusCode(), time.Since(start); r.clock != nil {
		r.clock.observe(status, took)
	} else {
		l.server.metrics.unmatched(l.kind, c.Method(), status, took)
	}
	if span != nil {
		r.traced(span, c.Response().StatusCode())
	}
	return nil
}

// next runs the rest of the chain and turns a panic into an error.
func next(r *request) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &rest.Refusal{Code: wire.CodeInternal, Cause: fmt.Errorf("panic: %v", p)}
			slog.ErrorContext(r.Named(), "handler panicked", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
		}
	}()
	return r.C.Next()
}

// handler runs a route: role, body, then the route's handler.
func (l *listener) handler(r *rest.Route, method string) fiber.Handler {
	clock := l.server.metrics.clock(l.kind, method, r.Path)
	return func(c *fiber.Ctx) error {
		req := requestOf(c)
		req.Route, req.clock = r, clock
		if r.Realm != rest.RealmOpen {
			c.Set(fiber.HeaderCacheControl, "no-store") // what a payer or recipient needs works like a key
		}
		if r.Realm != rest.RealmOpen && !r.Allows(req.Caller.Key.Role) {
			return rest.RefuseRole(req.Caller.Key.Role, r.Roles)
		}
		if r.Body != nil || r.Method == fiber.MethodPost {
			if err := req.readBody(); err != nil {
				return err
			}
		}
		if r.Realm == rest.RealmApp && !r.Limited {
			if err := req.keyOverLimit(); err != nil {
				return err
			}
		}
		if r.Realm != rest.RealmOpen && len(c.Context().URI().QueryString()) > 0 {
			if err := req.CheckQuery(); err != nil {
				return err
			}
		}
		if l.kind == rest.ListenStaff { // on the public listener a context per request would cost throughput
			req.Ctx = req.Named()
		}
		a, err := r.Handle(&req.Request)
		if err != nil {
			return err
		}
		return a.Write(c)
	}
}
