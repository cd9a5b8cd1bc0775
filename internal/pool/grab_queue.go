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
	// maxBatch is the maximum number of grabs in one call: about a millisecond of Redis' time,
	// with one fsync.
	maxBatch = 512
	// maxPipelineGrabs is the maximum number of grabs in one pipeline to one server.
	maxPipelineGrabs = 2 * maxBatch
	// secondPipelineGrabs is the number of waiting grabs that start a second pipeline: Redis
	// decides one while this process hands out the results of the other. With fewer grabs
	// it would only split one call into two, with two fsyncs.
	secondPipelineGrabs = 32
	maxPipelines        = 2
	// gatherYields is the number of yields without a new grab after which a pipeline starts.
	gatherYields = 30
)

// errPanicked is the error of callers whose call panicked.
var errPanicked = errors.New("panic while grabbing")

// grab is one caller's grab.
type grab struct {
	ctx     context.Context // of the caller, who may cancel
	user    string
	profile packet.Profile
	encoded string // profile as JSON; "": none
}

// lane is one lane of this process.
type lane struct {
	flusher *flusher
	number  int
	queued  int // waiting grabs; guarded by flusher.mu
}

// packetQueue is the waiting grabs of one packet, in batches of at most maxBatch.
type packetQueue struct {
	lane    *lane
	id      string
	batches []*grabBatch
}

// flusher sends the waiting grabs of one server, which executes them one by one anyway.
// Grabs that arrive during a pipeline wait for the next one, so pipelines grow with the
// load, and without load a grab does not wait. On a Cluster each lane has its own flusher,
// so that the lanes of a dead master do not block others.
type flusher struct {
	pool *Pool

	mu        sync.Mutex
	queues    map[string]*packetQueue // by packet id
	turns     []*packetQueue          // the same queues, in the order of their turns
	queued    int                     // grabs in all queues
	batchSize int                     // capacity of a new batch: the size of the last one
	lastSize  int                     // grabs of the last pipeline
	pipelines int                     // number of running pipelines
	closed    bool
}

// enqueue queues a grab and starts a pipeline when needed. It returns the batch of the grab,
// and the grab's index in it.
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
	queue := f.queues[id]
	if queue == nil {
		queue = &packetQueue{lane: l, id: strings.Clone(id)} // the id may point into the memory of the caller's request
		f.queues[queue.id] = queue
		f.turns = append(f.turns, queue)
	}
	if n := len(queue.batches); n == 0 || len(queue.batches[n-1].grabs) == maxBatch {
		queue.batches = append(queue.batches, newGrabBatch(queue.id, f.batchSize))
	}
	q := queue.batches[len(queue.batches)-1]
	q.grabs = append(q.grabs, g)
	l.queued++
	f.queued++
	if f.pipelines == 0 || f.pipelines < maxPipelines && f.queued >= secondPipelineGrabs {
		f.pipelines++
		f.pool.flushing.Go(f.serve)
	}
	return q, len(q.grabs) - 1, nil
}

// close refuses further grabs; queued ones are still served.
func (f *flusher) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

// serve sends pipelines until no grab waits; a second pipeline ends when too few wait for
// two.
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

// gather yields to the callers that the last results woke, because many grab again. It ends
// when as many as before are queued, or after gatherYields yields without a new grab:
// callers on another processor may need longer. Without new grabs it costs microseconds.
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

// next returns up to maxPipelineGrabs grabs as one call of up to maxBatch grabs for each lane, or several, or nil when no grab
// waits, which ends the pipeline. Packets take turns by batch, so that a crowd on one packet
// delays no other, not even of the same lane.
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
		if c == nil || c.grabs+len(q.grabs) > maxBatch {
			c = &call{lane: at.lane}
			of[at.lane] = c
			calls = append(calls, c)
		}
		c.batches = append(c.batches, q)
		c.grabs += len(q.grabs)
		at.lane.queued -= len(q.grabs)
		f.batchSize = len(q.grabs)
		n += len(q.grabs)
	}
	f.lastSize = n
	if f.queued -= n; f.queued == 0 {
		f.turns = nil // frees the served queues
	}
	return calls
}
