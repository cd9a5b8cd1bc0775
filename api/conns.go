package api

import (
	"container/list"
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
// those that have never sent anything. It keeps at most max of them. For one that comes
// then the longest idle keyless one is closed: no request on it has shown a valid key, and
// no handler works for it. Where there is none, the new one is told to come again. So
// connections that cost nothing cannot keep out those that have a key.
type conns struct {
	net.Listener
	base       context.Context // ends with the server
	max        int
	perAddress int // of one network address; 0: no bound
	open       prometheus.Gauge
	refused    prometheus.Counter
	evicted    prometheus.Counter
	turnAway   chan struct{} // a place for each connection that is being told
	mu         sync.Mutex
	all        map[*conn]struct{}
	keyless    *list.List     // of *conn without a handler, the longest idle one first
	addresses  map[string]int // connections of each network address, where they are bounded
}

func watchConns(base context.Context, ln net.Listener, max, perAddress int, open prometheus.Gauge,
	refused, evicted prometheus.Counter) *conns {
	return &conns{Listener: ln, base: base, max: max, perAddress: perAddress, open: open, refused: refused, evicted: evicted,
		turnAway: make(chan struct{}, maxTurnedAway), all: map[*conn]struct{}{}, keyless: list.New(), addresses: map[string]int{}}
}

// Accept implements net.Listener. What passes by itself, such as no file
// descriptor being left, is waited for: the HTTP server would end with it.
func (w *conns) Accept() (net.Conn, error) {
	for {
		inner, err := w.Listener.Accept()
		switch {
		case err != nil && !isTransientAcceptError(err):
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
	c, evicted := w.place(inner)
	if evicted != nil {
		w.evicted.Inc()
		_ = evicted.Close()
	}
	if c == nil {
		return nil
	}
	return c
}

// place makes a connection one of ours, if there is room or evicted makes some.
func (w *conns) place(inner net.Conn) (placed, evicted *conn) {
	c := &conn{Conn: inner, watch: w}
	if w.perAddress > 0 {
		c.address = addressOf(inner)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.perAddress > 0 && w.addresses[c.address] >= w.perAddress {
		return nil, nil
	}
	if len(w.all) >= w.max {
		if evicted = w.longestIdle(); evicted == nil {
			return nil, nil
		}
		w.remove(evicted)
	}
	w.all[c] = struct{}{}
	w.open.Inc()
	c.idle = w.keyless.PushBack(c)
	if w.perAddress > 0 {
		w.addresses[c.address]++
	}
	return c, evicted
}

func (w *conns) longestIdle() *conn {
	if first := w.keyless.Front(); first != nil {
		return first.Value.(*conn)
	}
	return nil
}

// remove forgets a connection that is among all.
func (w *conns) remove(c *conn) {
	delete(w.all, c)
	w.open.Dec()
	w.unlist(c)
	if w.perAddress > 0 {
		if w.addresses[c.address]--; w.addresses[c.address] == 0 {
			delete(w.addresses, c.address)
		}
	}
}

// unlist takes a connection out of those that may be closed for another one.
func (w *conns) unlist(c *conn) {
	if c.idle != nil {
		w.keyless.Remove(c.idle)
		c.idle = nil
	}
}

// addressOf is what is counted of where a connection comes from.
func addressOf(c net.Conn) string {
	if at, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return networkOf(at.IP)
	}
	return ""
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
	busy     atomic.Bool   // bytes of a request have arrived, and it was not answered
	handling atomic.Bool   // a handler runs
	answered atomic.Bool   // it has ended; its answer is written before the next read
	last     []byte        // what was read last, in the buffer of who read it
	keyed    atomic.Bool   // a request on it has shown a valid key
	address  string        // network address, where they are bounded
	idle     *list.Element // in watch.keyless; nil: a handler runs, or it is keyed. Guarded by watch.mu
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
		c.watch.remove(c)
	}
	c.watch.mu.Unlock()
	return c.Conn.Close()
}

// begin notes that a handler runs as work of the connection.
func (c *conn) begin() {
	c.busy.Store(true)
	c.handling.Store(true)
	if !c.keyed.Load() {
		c.watch.mu.Lock()
		c.watch.unlist(c)
		c.watch.mu.Unlock()
	}
}

// end notes that it has ended. One that was keyless stays so until a request shows a key.
func (c *conn) end() {
	c.handling.Store(false)
	c.answered.Store(true)
	if !c.keyed.Load() {
		c.watch.mu.Lock()
		if _, ok := c.watch.all[c]; ok && c.idle == nil {
			c.idle = c.watch.keyless.PushBack(c)
		}
		c.watch.mu.Unlock()
	}
}
