package api

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// conns knows the connections of a listener and which of them are quiet: no byte
// of a request has arrived since the last answer, or since they were opened. At
// shutdown quiet ones are closed at once; the HTTP server itself would wait for
// those that have never sent anything. It keeps at most max of them: who comes
// then is told to come again.
type conns struct {
	net.Listener
	base     context.Context // ends with the server
	max      int
	open     prometheus.Gauge
	refused  prometheus.Counter
	turnAway chan struct{} // a place for each connection that is being told
	mu       sync.Mutex
	all      map[*conn]struct{}
}

func watchConns(base context.Context, ln net.Listener, max int, open prometheus.Gauge, refused prometheus.Counter) *conns {
	return &conns{Listener: ln, base: base, max: max, open: open, refused: refused, turnAway: make(chan struct{}, maxTurnedAway),
		all: map[*conn]struct{}{}}
}

// Accept implements net.Listener. What passes by itself, such as no file
// descriptor being left, is waited for: the HTTP server would end with it.
func (w *conns) Accept() (net.Conn, error) {
	for {
		inner, err := w.Listener.Accept()
		switch {
		case err != nil && !passes(err):
			return nil, err
		case err != nil:
			unavailable(fmt.Errorf("accept a connection: %w", err)).log(w.base, "", "connection")
			<-time.After(acceptPause)
			continue
		}
		if c := w.admit(inner); c != nil {
			return c, nil
		}
		w.refuse(inner)
	}
}

// admit counts a connection in; nil: there is no room.
func (w *conns) admit(inner net.Conn) net.Conn {
	c := &conn{Conn: inner, watch: w}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.all) >= w.max {
		return nil
	}
	w.all[c] = struct{}{}
	w.open.Inc()
	return c
}

// closeQuiet closes quiet connections, now and as they become so, until done is closed.
func (w *conns) closeQuiet(done <-chan struct{}) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, c := range w.quiet() {
			_ = c.Close()
		}
		select {
		case <-done:
			return
		case <-tick.C:
		}
	}
}

func (w *conns) quiet() []*conn {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []*conn
	for c := range w.all {
		if !c.busy.Load() {
			out = append(out, c)
		}
	}
	return out
}

// conn is one connection.
type conn struct {
	net.Conn
	watch    *conns
	busy     atomic.Bool // bytes of a request have arrived, and it was not answered
	handling atomic.Bool // a handler runs
	answered atomic.Bool // it has ended; its answer is written before the next read
	last     []byte      // what was read last, in the buffer of who read it
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	if !c.handling.Load() && c.answered.CompareAndSwap(true, false) {
		c.busy.Store(false)
	}
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.busy.Store(true)
		c.last = b[:n]
	}
	return n, err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.watch.mu.Lock()
	if _, ok := c.watch.all[c]; ok {
		delete(c.watch.all, c)
		c.watch.open.Dec()
	}
	c.watch.mu.Unlock()
	return c.Conn.Close()
}

// begin notes that a handler runs as work of the connection.
func (c *conn) begin() {
	c.busy.Store(true)
	c.handling.Store(true)
}

// end notes that it has ended.
func (c *conn) end() {
	c.handling.Store(false)
	c.answered.Store(true)
}
