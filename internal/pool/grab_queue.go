package pool

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"hongbao/internal/packet"
)

const (
	// maxBatch is the most grabs of one packet in one call: about a millisecond of
	// Redis' time, in which it shares one fsync.
	maxBatch = 512
	// maxPipelineGrabs is how many grabs go to one server together before it may answer the
	// first of them.
	maxPipelineGrabs = 2 * maxBatch
	// secondPipelineGrabs is how many grabs have to wait before a second flight takes off
	// while the first is under way: then Redis decides one while the answers of the
	// other are given out here. With fewer it would only make two small calls of one,
	// and Redis wait for the disk twice.
	secondPipelineGrabs = 32
	maxPipelines        = 2
	// gatherYields is how often nobody must have come before a flight takes off.
	gatherYields = 30
)

// errPanicked is what callers get when the code that served them broke down.
var errPanicked = errors.New("panic while grabbing")

// grab is what one caller wants.
type grab struct {
	ctx     context.Context // of the caller: nobody waits any more when it has ended
	user    string
	profile packet.Profile
	encoded string // profile as JSON; "": nothing was told
}

// lane is one lane of this process.
type lane struct {
	flusher *flusher
	number  int
	queued  int // grabs that wait; guarded by flusher.mu
}

// line is the grabs of one packet that wait, in questions of maxBatch at most.
type packetQueue struct {
	lane    *lane
	id      string
	batches []*grabBatch
}

// flusher sends the grabs that wait for one server, which decides one after the
// other anyway. While a flight is under way they queue and go together with the next
// one, so flights grow with the load by themselves; without load nobody waits for
// anybody. On a Cluster each lane has its own flusher, so that the lanes of a dead
// master hold up no others.
type flusher struct {
	pool *Pool

	mu        sync.Mutex
	queues    map[string]*packetQueue // by packet id
	turns     []*packetQueue          // the same, whose turn is next first
	queued    int                     // grabs in all of them
	batchSize int                     // for grabs in a new question: as many as the last one had
	lastSize  int                     // its callers, of whom many want more
	pipelines int                     // how many serve
	closed    bool
}

// add queues a grab and sees to it that somebody serves the queue. It returns the
// question that the grab belongs to, and its number there.
func (l *lane) enqueue(id string, g grab) (*grabBatch, int, error) {
	f := l.flusher
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return nil, 0, fmt.Errorf("%w: pool is closed", ErrUnavailable)
	case l.queued >= f.pool.cfg.MaxQueued:
		return nil, 0, ErrOverloaded
	}
	at := f.queues[id]
	if at == nil {
		at = &packetQueue{lane: l, id: strings.Clone(id)} // it may point into the memory of the caller's request
		f.queues[at.id] = at
		f.turns = append(f.turns, at)
	}
	if n := len(at.batches); n == 0 || len(at.batches[n-1].grabs) == maxBatch {
		at.batches = append(at.batches, newGrabBatch(at.id, f.batchSize))
	}
	q := at.batches[len(at.batches)-1]
	q.grabs = append(q.grabs, g)
	l.queued++
	f.queued++
	if f.pipelines == 0 || f.pipelines < maxPipelines && f.queued >= secondPipelineGrabs {
		f.pipelines++
		f.pool.flushing.Go(f.serve)
	}
	return q, len(q.grabs) - 1, nil
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
		f.gather()
		calls := f.next()
		if calls == nil {
			return
		}
		f.pool.serveCalls(calls)
	}
}

// gather waits for who is on the way: the callers that the last answers woke may want
// more. It yields until as many have come, or else as long as the queue grows and a
// little longer, because on another processor they may not have come so far. When
// nobody comes that costs microseconds.
func (f *flusher) gather() {
	for quiet, last := 0, -1; quiet < gatherYields; quiet++ {
		runtime.Gosched()
		n, expected := f.waiting()
		if n >= expected && last >= 0 {
			return
		}
		if n != last {
			quiet, last = 0, n
		}
	}
}

func (f *flusher) waiting() (queued, expected int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.queued, f.lastSize
}

// take returns up to maxPipelineGrabs grabs as one call for each lane, or nil and the end of
// serving when nothing waits. Packets take turns, one question each, so that a crowd
// on one does not keep the others waiting, not even those of its lane.
func (f *flusher) next() []*call {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.queued == 0 || f.pipelines > 1 && f.queued < secondPipelineGrabs {
		f.pipelines--
		return nil
	}
	var calls []*call
	of := map[*lane]*call{}
	n := 0
	for turns := len(f.turns); turns > 0 && n < maxPipelineGrabs; turns-- {
		at := f.turns[0]
		f.turns = f.turns[1:]
		q := at.batches[0]
		if at.batches = at.batches[1:]; len(at.batches) > 0 {
			f.turns = append(f.turns, at)
		} else {
			delete(f.queues, at.id)
		}
		c := of[at.lane]
		if c == nil {
			c = &call{lane: at.lane}
			of[at.lane] = c
			calls = append(calls, c)
		}
		c.batches = append(c.batches, q)
		at.lane.queued -= len(q.grabs)
		f.batchSize = len(q.grabs)
		n += len(q.grabs)
	}
	f.lastSize = n
	if f.queued -= n; f.queued == 0 {
		f.turns = nil // lets the served ones go
	}
	return calls
}
