package api

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// conns knows the connections of a listener and which of them are quiet: no byte
// of a request has arrived since the last answer, or since they were opened. At
// shutdown quiet ones are closed at once; the HTTP server itself would wait for
// those that have never sent anything.
type conns struct {
	net.Listener
	mu  sync.Mutex
	all map[*conn]struct{}
}

func watchConns(ln net.Listener) *conns { return &conns{Listener: ln, all: map[*conn]struct{}{}} }

// Accept implements net.Listener.
func (w *conns) Accept() (net.Conn, error) {
	inner, err := w.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: inner, watch: w}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all[c] = struct{}{}
	return c, nil
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
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	if !c.handling.Load() && c.answered.CompareAndSwap(true, false) {
		c.busy.Store(false)
	}
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.busy.Store(true)
	}
	return n, err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.watch.mu.Lock()
	delete(c.watch.all, c)
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
