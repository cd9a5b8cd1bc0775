package stacktest

import (
	"errors"
	"os"
	"strconv"
	"sync"
	"testing"

	"hongbao/internal/devstack"
)

// shared are the servers of this test binary.
var shared pool

// pool starts at most one server of a kind.
type pool struct {
	mu      sync.Mutex
	servers map[string]*slot
	closed  bool
}

// slot is started outside the pool's lock, so that different kinds start at the
// same time.
type slot struct {
	once   sync.Once
	server *Server
	dir    string
	err    error
}

// get returns the server of that kind and starts it first when there is none. A
// failed start fails this test and every later one that asks.
func (p *pool) get(t testing.TB, kind string, create func(devstack.Tools, string) (*Server, error)) *Server {
	t.Helper()
	tools := findTools(t)
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		t.Fatal("stacktest: the servers are already stopped")
	}
	if p.servers == nil {
		p.servers = map[string]*slot{}
	}
	s := p.servers[kind]
	if s == nil {
		s = &slot{}
		p.servers[kind] = s
	}
	p.mu.Unlock()

	s.once.Do(func() {
		if s.dir, s.err = newDir(); s.err != nil {
			return
		}
		server, err := create(tools, s.dir)
		if err == nil {
			err = server.start()
		}
		if err != nil {
			s.err = err
			return
		}
		s.server = server
	})
	if s.err != nil {
		t.Fatalf("start %s: %v", kind, s.err)
	}
	return s.server
}

// borrowable are the names of the servers for one test at a time that no test uses now.
var borrowable struct {
	mu    sync.Mutex
	free  map[string][]string // by kind
	count map[string]int      // names ever made, by kind
}

// borrow returns the name of a server that this test has for itself. It becomes free
// again when the test ends.
func borrow(t testing.TB, kind string) (name string) {
	t.Helper()
	u := &borrowable
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.free == nil {
		u.free, u.count = map[string][]string{}, map[string]int{}
	}
	if free := u.free[kind]; len(free) > 0 {
		name, u.free[kind] = free[len(free)-1], free[:len(free)-1]
	} else {
		name = kind + "-" + strconv.Itoa(u.count[kind])
		u.count[kind]++
	}
	t.Cleanup(func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.free[kind] = append(u.free[kind], name)
	})
	return name
}

// close stops all servers and removes their folders.
func (p *pool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	var all error
	for _, s := range p.servers {
		if s.server != nil {
			s.server.stop()
		}
		if s.dir != "" {
			all = errors.Join(all, os.RemoveAll(s.dir))
		}
	}
	return all
}
