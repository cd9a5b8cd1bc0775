package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// startingConns bounds the connections of each listener that are answered at once
	// while the server starts; who comes then waits for a place.
	startingConns = 256
	// startingHeader bounds the head of a request meanwhile, and startingTime all of it and
	// its answer: who is slow to ask must not keep /livez from others for long.
	startingHeader = time.Second
	startingTime   = 5 * time.Second
)

// Starting has both addresses bound, and answers for a server whose parts are not there
// yet: that the process lives, and that it can do nothing so far. A process that waits for
// a Redis that hangs can be told from a dead one then, and its clients know to come again.
// Config.Starting hands the listeners over to the server without closing them.
type Starting struct {
	doors   []*door // public, staff
	awaited atomic.Pointer[awaited]
}

// awaited is what a start waits for.
type awaited struct {
	name  string // of a dependency
	since time.Time
}

// door is a listener that can be handed over: closing it ends Accept, not the listener.
type door struct {
	*net.TCPListener
	web    http.Server
	places chan struct{}
	closed chan struct{}
	close  sync.Once
	served chan error
	taken  bool
}

// NewStarting binds both addresses and answers from now on. End it with Close.
func NewStarting(ctx context.Context, publicAddr, staffAddr string) (*Starting, error) {
	bound, err := bind(ctx, publicAddr, staffAddr)
	if err != nil {
		return nil, err
	}
	s := &Starting{}
	for _, ln := range bound {
		d := &door{TCPListener: ln, places: make(chan struct{}, startingConns), closed: make(chan struct{}), served: make(chan error, 1)}
		d.web = http.Server{Handler: s, ReadHeaderTimeout: startingHeader, ReadTimeout: startingTime, WriteTimeout: startingTime,
			MaxHeaderBytes: headerLimit,
			ErrorLog:       slog.NewLogLogger(slog.Default().Handler(), slog.LevelDebug)}
		d.web.SetKeepAlivesEnabled(false) // the next request is the server's
		s.doors = append(s.doors, d)
	}
	for _, d := range s.doors {
		go func() { d.served <- d.web.Serve(d) }()
	}
	return s, nil
}

// bind binds the addresses of the public and of the staff listener.
func bind(ctx context.Context, publicAddr, staffAddr string) (bound []*net.TCPListener, err error) {
	for _, by := range []struct {
		kind listenerKind
		addr string
	}{{listenPublic, publicAddr}, {listenStaff, staffAddr}} {
		ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", by.addr)
		if err != nil {
			for _, ln := range bound {
				_ = ln.Close()
			}
			return nil, fmt.Errorf("%s listener: listen on %s: %w", by.kind, by.addr, err)
		}
		bound = append(bound, ln.(*net.TCPListener)) //nolint:forcetypeassert // "tcp" makes no other
	}
	return bound, nil
}

// Awaits says which dependency the start waits for from now on, for /readyz.
func (s *Starting) Awaits(dependency string) {
	s.awaited.Store(&awaited{dependency, time.Now()})
}

// handOver ends the answering and returns the listeners, public and staff, still bound.
// Requests under way are answered beside the server's: http.Server.Shutdown would cut off
// those that are just being read.
func (s *Starting) handOver() ([]*net.TCPListener, error) {
	out := make([]*net.TCPListener, len(s.doors))
	for i, d := range s.doors {
		if err := d.Close(); err != nil {
			return nil, fmt.Errorf("hand over %s: %w", d.Addr(), err)
		}
		if err := <-d.served; !errors.Is(err, net.ErrClosed) {
			return nil, fmt.Errorf("serve while starting: %w", err)
		}
		if err := d.SetDeadline(time.Time{}); err != nil {
			return nil, fmt.Errorf("hand over %s: %w", d.Addr(), err)
		}
		d.taken, out[i] = true, d.TCPListener
	}
	return out, nil
}

// Close ends what is under way, and the listeners that were not handed over.
func (s *Starting) Close() {
	for _, d := range s.doors {
		_ = d.web.Close()
		if !d.taken {
			_ = d.TCPListener.Close()
		}
	}
}

// Accept implements net.Listener.
func (d *door) Accept() (net.Conn, error) {
	select {
	case d.places <- struct{}{}:
	case <-d.closed:
		return nil, net.ErrClosed
	}
	c, err := d.TCPListener.Accept()
	if err != nil {
		<-d.places
		select {
		case <-d.closed:
			return nil, net.ErrClosed
		default:
			return nil, err //nolint:wrapcheck // the HTTP server tells by its type whether it passes
		}
	}
	return &placed{Conn: c, leave: sync.OnceFunc(func() { <-d.places })}, nil
}

// Close implements net.Listener: nothing is accepted any more, and the port stays bound.
func (d *door) Close() error {
	d.close.Do(func() { close(d.closed) })
	return d.SetDeadline(time.Now()) //nolint:wrapcheck // told by net/http alone
}

// placed is a connection that has a place.
type placed struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *placed) Close() error {
	c.leave()
	return c.Conn.Close() //nolint:wrapcheck // as the connection does
}

// ServeHTTP answers that the process lives, that it is not ready, and all else with 503.
func (s *Starting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("X-Request-Id")
	if !visible(id, 128) {
		id = newRequestID()
	}
	status, kind, body := s.answer(r, id)
	h := w.Header()
	h.Set("X-Request-Id", id)
	h.Set("Content-Type", kind)
	if status == http.StatusServiceUnavailable {
		h.Set("Retry-After", strconv.Itoa(retryAfterSeconds(shortPause)))
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // who does not listen has gone
}

func (s *Starting) answer(r *http.Request, id string) (status int, kind string, body []byte) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		var told any
		switch r.URL.Path {
		case "/livez":
			status, told = http.StatusOK, Liveness{Status: "ok"}
		case "/readyz":
			status, told = http.StatusServiceUnavailable, s.readiness()
		}
		if body, err := encode(told); told != nil && err == nil {
			return status, contentJSON, body
		}
	}
	path := "/"
	if plainPath(r.URL.EscapedPath()) {
		path = r.URL.EscapedPath()
	}
	status, body = unavailable(nil).render(path, id)
	return status, contentProblem, body
}

// readiness tells of the one dependency that the start waits for; the others were not asked.
func (s *Starting) readiness() Readiness {
	out := Readiness{Status: "unavailable", Reason: "starting", Dependencies: map[string]Dependency{}}
	if a := s.awaited.Load(); a != nil {
		out.Dependencies[a.name] = Dependency{Status: "unavailable", LatencyMS: float64(time.Since(a.since).Microseconds()) / 1000}
	}
	return out
}
