package pool

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"hongbao/packet"
)

const (
	// maxBatch is the most grabs of one script call: about a millisecond of Redis'
	// time, in which it shares one fsync.
	maxBatch = 512
	// maxFlight is how many grabs of several lanes go to one server together before
	// it may answer the first of them.
	maxFlight = 2 * maxBatch
	// secondFlight is how many grabs have to wait before a second flight takes off
	// while the first is under way: then Redis decides one while the answers of the
	// other are given out here. With fewer it would only make two small batches of one.
	secondFlight = 128
	maxFlights   = 2
)

// errPanicked is what callers get when the code that served them broke down.
var errPanicked = errors.New("panic while grabbing")

// grab is what one caller wants.
type grab struct {
	ctx              context.Context // of the caller: nobody waits any more when it has ended
	packetID, userID string
	profile          packet.Profile
	encoded          string // profile as JSON; "": nothing was told
}

// lane has the grabs of one lane of this process that wait. While a call is under
// way they queue and go together with the next one, so the batch grows with the
// load by itself; without load nobody waits for anybody.
type lane struct {
	flusher *flusher
	keys    laneKeys

	batches []*batch // the last one takes more; guarded by flusher.mu
	queued  int      // grabs in them
}

// laneKeys are what a call of grab.lua needs of its lane.
type laneKeys struct {
	handoff string
	packets keyspace
}

// add queues a grab and sees to it that somebody serves the queue. It returns the
// batch that the grab belongs to, and its number there.
func (l *lane) add(g grab) (*batch, int, error) {
	f := l.flusher
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return nil, 0, fmt.Errorf("%w: pool is closed", ErrUnavailable)
	case l.queued >= f.pool.cfg.MaxQueued:
		return nil, 0, ErrOverloaded
	}
	if len(l.batches) == 0 {
		f.waiting = append(f.waiting, l)
	}
	if n := len(l.batches); n == 0 || len(l.batches[n-1].grabs) == maxBatch {
		l.batches = append(l.batches, &batch{lane: l, grabs: make([]grab, 0, f.usual), done: make(chan struct{})})
	}
	b := l.batches[len(l.batches)-1]
	b.grabs = append(b.grabs, g)
	l.queued++
	f.queued++
	if f.flights == 0 || f.flights < maxFlights && f.queued >= secondFlight {
		f.flights++
		f.pool.flushing.Go(f.serve)
	}
	return b, len(b.grabs) - 1, nil
}

// flusher sends what waits in its lanes: those of one server, which decides one
// after the other anyway. On a Cluster each lane has its own, so that the lanes of a
// dead master hold up no others.
type flusher struct {
	pool *Pool

	mu      sync.Mutex
	waiting []*lane // with grabs, first come first served
	queued  int     // grabs in all of them
	usual   int     // size of the last batch: room for the next one
	flights int     // how many serve
	closed  bool
}

// close refuses further grabs; what is queued is still served.
func (f *flusher) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

// serve flushes until nothing waits; the second one, until too little waits for two.
func (f *flusher) serve() {
	for {
		// Twice: the callers that the last answer woke join this flight; after a single
		// yield another processor takes this goroutine up before they have run.
		runtime.Gosched()
		runtime.Gosched()
		flight := f.take()
		if flight == nil {
			return
		}
		f.pool.fly(flight)
	}
}

// take returns one batch of each lane that waits, up to maxFlight grabs, or nil and
// the end of serving when nothing waits. A lane that has more goes to the end, so
// that a crowd on one packet does not keep the others waiting.
func (f *flusher) take() []*batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.flights > 1 && f.queued < secondFlight {
		f.flights--
		return nil
	}
	var flight []*batch
	n := 0
	lanes := len(f.waiting)
	for ; lanes > 0 && n < maxFlight; lanes-- {
		l := f.waiting[0]
		f.waiting = f.waiting[1:]
		b := l.batches[0]
		l.batches = l.batches[1:]
		if len(l.batches) == 0 {
			l.batches = nil // lets the served grabs go
		} else {
			f.waiting = append(f.waiting, l)
		}
		l.queued -= len(b.grabs)
		n += len(b.grabs)
		f.usual = len(b.grabs)
		flight = append(flight, b)
	}
	if len(f.waiting) == 0 {
		f.waiting = nil
	}
	if f.queued -= n; flight == nil {
		f.flights--
	}
	return flight
}
