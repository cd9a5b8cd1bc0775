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

	"hongbao/api/rest"
)

// conns bounds the connections of a listener, and closes quiet ones at shutdown.
//
// Quiet: no byte of a request has arrived since the last answer, or since the connection was
// opened. The HTTP server itself would wait for those that never sent anything.
//
// Keyless: no request on the connection has shown a valid key. When max connections are open,
// the longest idle keyless one is closed for a new one, unless a handler runs for all of them;
// then the new one is answered 503. So connections without a key cannot keep out those with one.
type conns struct {
	net.Listener
	base       context.Context // ends with the server
	max        int
	perAddress int // of one network address; 0: no bound
	open       prometheus.Gauge
	refused    prometheus.Counter
	evicted    prometheus.Counter
	refusing   chan struct{} // one element for each connection that is answered 503 now
	mu         sync.Mutex
	all        map[*conn]struct{}
	keyless    *list.List     // of *conn without a handler, the longest idle one first
	addresses  map[string]int // connections per network address, if they are limited
}

func newConns(base context.Context, ln net.Listener, max, perAddress int, open prometheus.Gauge,
	refused, evicted prometheus.Counter) *conns {
	return &conns{Listener: ln, base: base, max: max, perAddress: perAddress, open: open, refused: refused, evicted: evicted,
		refusing: make(chan struct{}, maxTurnedAway), all: map[*conn]struct{}{}, keyless: list.New(), addresses: map[string]int{}}
}

// Accept implements net.Listener. It waits and retries after transient errors such as a lack
// of file descriptors: the HTTP server would end with them.
func (w *conns) Accept() (net.Conn, error) {
	for {
		inner, err := w.Listener.Accept()
		switch {
		case err != nil && !isTransientAcceptError(err):
			return nil, err
		case err != nil:
			logRefusal(w.base, rest.Unavailable(fmt.Errorf("accept a connection: %w", err)), "", "connection")
			<-time.After(acceptPause)
			continue
		}
		if c := w.admit(inner); c != nil {
			return c, nil
		}
		w.refuse(inner)
	}
}

// admit registers a connection; nil: no room.
func (w *conns) admit(inner net.Conn) net.Conn {
	c, evicted := w.place(inner)
	if evicted != nil {
		w.evicted.Inc()
		_ = evicted.Close()
	}
	if c == nil {
		return nil // not a net.Conn that holds a nil *conn
	}
	return c
}

// place registers a connection; nil: no room. For room it may evict another one, which the
// caller closes.
func (w *conns) place(inner net.Conn) (placed, evicted *conn) {
	c := &conn{Conn: inner, owner: w}
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

// remove forgets a registered connection.
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

// unlist removes a connection from those that may be evicted.
func (w *conns) unlist(c *conn) {
	if c.idle != nil {
		w.keyless.Remove(c.idle)
		c.idle = nil
	}
}

// addressOf returns the network address by which a connection is counted.
func addressOf(c net.Conn) string {
	if at, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return networkOf(at.IP)
	}
	return ""
}

// closeQuiet closes quiet connections, and others when they become quiet, until done is
// closed.
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
	owner    *conns
	busy     atomic.Bool   // bytes of a request arrived that is not answered
	handling atomic.Bool   // a handler runs
	answered atomic.Bool   // the handler ended; its answer is written before the next read
	lastRead []byte        // what arrived last; a view of the buffer of the reader, for hasInvalidKey
	keyed    atomic.Bool   // a request on it has shown a valid key
	address  string        // network address, if it is limited
	idle     *list.Element // in owner.keyless; nil: a handler runs, or it is keyed. Guarded by owner.mu
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	if !c.handling.Load() && c.answered.CompareAndSwap(true, false) {
		c.busy.Store(false)
	}
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.busy.Store(true)
		c.lastRead = b[:n]
	}
	return n, err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.owner.mu.Lock()
	if _, ok := c.owner.all[c]; ok {
		c.owner.remove(c)
	}
	c.owner.mu.Unlock()
	return c.Conn.Close()
}

// begin records that a handler runs.
func (c *conn) begin() {
	c.busy.Store(true)
	c.handling.Store(true)
	if !c.keyed.Load() {
		c.owner.mu.Lock()
		c.owner.unlist(c)
		c.owner.mu.Unlock()
	}
}

// end records that the handler ended. A keyless connection stays keyless until a request shows
// a key.
func (c *conn) end() {
	c.handling.Store(false)
	c.answered.Store(true)
	if !c.keyed.Load() {
		c.owner.mu.Lock()
		if _, ok := c.owner.all[c]; ok && c.idle == nil {
			c.idle = c.owner.keyless.PushBack(c)
		}
		c.owner.mu.Unlock()
	}
}
