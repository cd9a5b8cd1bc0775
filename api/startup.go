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

	"hongbao/api/rest"
	"hongbao/wire"
)

const (
	// startingConns bounds the connections of each listener that are answered while the server
	// starts; further ones wait.
	startingConns = 256
	// startingHeader bounds the headers of a request while starting, startingTime the whole
	// request and its answer: slow clients must not block /livez.
	startingHeader = time.Second
	startingTime   = 5 * time.Second
)

// Starting binds both addresses and answers while the server's dependencies are not available
// yet: the process runs and is not ready. So a process that waits for Redis differs from a
// dead one, and its clients know to retry. Config.Starting hands the listeners over to the
// server without closing them.
type Starting struct {
	doors   []*door // public, staff
	awaited atomic.Pointer[awaited]
}

// awaited is the dependency that the start waits for.
type awaited struct {
	name  string // of a dependency
	since time.Time
}

// door is a listener that can be handed over: closing it ends Accept, but not the listener.
type door struct {
	*net.TCPListener
	web    http.Server
	places chan struct{}
	closed chan struct{}
	close  sync.Once
	served chan error
	taken  bool
}

// NewStarting binds both addresses and starts to answer. End it with Close.
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
		d.web.SetKeepAlivesEnabled(false) // the next request belongs to the server
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
		kind rest.ListenerKind
		addr string
	}{{rest.ListenPublic, publicAddr}, {rest.ListenStaff, staffAddr}} {
		ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", by.addr)
		if err != nil {
			for _, ln := range bound {
				_ = ln.Close()
			}
			return nil, fmt.Errorf("%s listener: listen on %s: %w", by.kind, by.addr, err)
		}
		bound = append(bound, ln.(*net.TCPListener)) //nolint:forcetypeassert // "tcp" returns no other type
	}
	return bound, nil
}

// Awaits sets the dependency that the start waits for, for /readyz.
func (s *Starting) Awaits(dependency string) {
	s.awaited.Store(&awaited{dependency, time.Now()})
}

// handOver stops answering and returns the listeners, public and staff, still bound. Running
// requests end in parallel: http.Server.Shutdown would abort those that are being read.
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

// Close ends running requests and closes listeners that were not handed over.
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
			return nil, err //nolint:wrapcheck // the HTTP server checks its type
		}
	}
	return &placed{Conn: c, leave: sync.OnceFunc(func() { <-d.places })}, nil
}

// Close implements net.Listener. It ends Accept; the port stays bound.
func (d *door) Close() error {
	d.close.Do(func() { close(d.closed) })
	return d.SetDeadline(time.Now()) //nolint:wrapcheck // used by net/http only
}

// placed is a connection that holds a slot.
type placed struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *placed) Close() error {
	c.leave()
	return c.Conn.Close() //nolint:wrapcheck // the connection's error
}

// ServeHTTP answers /livez with 200, /readyz as not ready, and everything else with 503.
func (s *Starting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("X-Request-Id")
	if !rest.IsVisible(id, 128) {
		id = rest.NewRequestID()
	}
	status, kind, body := s.answer(r, id)
	h := w.Header()
	h.Set("X-Request-Id", id)
	h.Set("Content-Type", kind)
	if status == http.StatusServiceUnavailable {
		h.Set("Retry-After", strconv.Itoa(rest.RetryAfterSeconds(rest.ShortPause)))
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client has disconnected
}

func (s *Starting) answer(r *http.Request, id string) (status int, kind string, body []byte) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		var document any
		switch r.URL.Path {
		case "/livez":
			status, document = http.StatusOK, wire.Liveness{Status: "ok"}
		case "/readyz":
			status, document = http.StatusServiceUnavailable, s.readiness()
		}
		if body, err := rest.Encode(document); document != nil && err == nil {
			return status, rest.ContentJSON, body
		}
	}
	path := "/"
	if rest.PlainPath(r.URL.EscapedPath()) {
		path = r.URL.EscapedPath()
	}
	status, body = rest.Unavailable(nil).Render(path, id)
	return status, rest.ContentProblem, body
}

// readiness returns the state of the awaited dependency; others were not probed.
func (s *Starting) readiness() wire.Readiness {
	out := wire.Readiness{Status: "unavailable", Reason: "starting", Dependencies: map[string]wire.Dependency{}}
	if a := s.awaited.Load(); a != nil {
		out.Dependencies[a.name] = wire.Dependency{Status: "unavailable", LatencyMS: float64(time.Since(a.since).Microseconds()) / 1000}
	}
	return out
}
