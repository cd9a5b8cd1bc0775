package pool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync"

	"hongbao/crash"
	"hongbao/packet"
)

// maxBatch is the most grabs of one script call: one to two milliseconds of
// Redis' time, in which it shares one fsync.
const maxBatch = 512

// errPanicked is what callers get when the code that served them broke down.
var errPanicked = errors.New("panic while grabbing")

// grab is one caller that waits.
type grab struct {
	ctx                       context.Context // of the caller: nobody waits any more when it has ended
	packetID, userID, profile string
	done                      chan grabAnswer // takes one answer without blocking
}

type grabAnswer struct {
	grabbed packet.Grabbed
	err     error
}

// lane batches the grabs of one lane of this process. While a call is under way
// the others queue and go together with the next one, so the batch grows with
// the load by itself; without load nobody waits for anybody.
type lane struct {
	pool    *Pool
	handoff string
	claimed string

	mu       sync.Mutex
	queue    []*grab
	flushing bool // somebody takes from the queue until it is empty
	closed   bool
}

// add queues a grab and sees to it that somebody serves the queue.
func (l *lane) add(g *grab) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return fmt.Errorf("%w: pool is closed", ErrUnavailable)
	case len(l.queue) >= l.pool.cfg.MaxQueued:
		return ErrOverloaded
	}
	l.queue = append(l.queue, g)
	if !l.flushing {
		l.flushing = true
		l.pool.flushing.Go(l.serve)
	}
	return nil
}

// close refuses further grabs; what is queued is still served.
func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

// serve flushes until the queue is empty.
func (l *lane) serve() {
	for {
		// Twice: the callers that the last answer woke join this batch; after a single
		// yield another processor takes this goroutine up before they have run.
		runtime.Gosched()
		runtime.Gosched()
		batch := l.take()
		if batch == nil {
			return
		}
		l.flush(batch)
	}
}

// take returns up to maxBatch grabs, or nil and the end of serving when the
// queue is empty. Grabs whose callers have left are dropped: nothing was taken
// for them, and under overload that work would keep the others waiting.
func (l *lane) take() []*grab {
	l.mu.Lock()
	defer l.mu.Unlock()
	var batch []*grab
	n := 0
	for ; n < len(l.queue) && len(batch) < maxBatch; n++ {
		if l.queue[n].ctx.Err() == nil {
			batch = append(batch, l.queue[n])
		}
	}
	if l.queue = l.queue[n:]; len(l.queue) == 0 {
		l.queue = nil // lets the served grabs go
	}
	l.flushing = batch != nil
	return batch
}

// flush sends one batch to Redis and answers every caller in it. It has its own
// deadline: the context of one caller must not end the grabs of the others.
func (l *lane) flush(batch []*grab) {
	answered := 0
	defer func() {
		if r := recover(); r != nil {
			l.pool.cfg.Logger.Error("panic while grabbing", slog.Any("panic", r), slog.String("stack", string(debug.Stack())))
			for _, g := range batch[answered:] {
				g.done <- grabAnswer{err: fmt.Errorf("%w: %v", errPanicked, r)}
			}
		}
	}()
	ctx, cancel := context.WithTimeout(l.pool.base, (retries+1)*l.pool.cfg.Timeout)
	defer cancel()
	call := newGrabCall(l, batch)
	err := call.run(ctx)
	for i, g := range batch {
		g.done <- call.answer(i, err)
		answered++
	}
}

// who is one user at one packet.
type who struct{ packetID, userID string }

// grabCall is one call of grab.lua. A user who grabs one packet twice in a batch
// is asked for once.
type grabCall struct {
	lane  *lane
	batch []*grab
	keys  []string
	args  []any
	// asked is the number of each user's question in the call, first the batch
	// index of the caller who brought it.
	asked map[who]int
	first []int
	reply []any
}

func newGrabCall(l *lane, batch []*grab) *grabCall {
	c := &grabCall{lane: l, batch: batch, keys: []string{l.handoff, l.claimed}, asked: make(map[who]int, len(batch))}
	packets := map[string]int{} // number within KEYS, from 1
	for i, g := range batch {
		w := who{g.packetID, g.userID}
		if _, ok := c.asked[w]; ok {
			continue
		}
		n, ok := packets[g.packetID]
		if !ok {
			n = len(packets) + 1
			packets[g.packetID] = n
			k := l.pool.keys.of(g.packetID)
			c.keys = append(c.keys, k.packet, k.shares, k.winners, k.eligible, k.order)
		}
		c.asked[w] = len(c.first)
		c.first = append(c.first, i)
		c.args = append(c.args, n, g.userID, g.profile)
	}
	return c
}

func (c *grabCall) run(ctx context.Context) error {
	reply, err := change(ctx, crash.GrabTake, grabScript, c.lane.pool.rdb, c.keys, c.args...).Slice()
	if err != nil {
		return redisError("grab", err)
	}
	if len(reply) != 2*len(c.first) {
		return fmt.Errorf("%w: %d elements for %d grabs", ErrMalformed, len(reply), len(c.first))
	}
	c.reply = reply
	return nil
}

// answer returns what caller i of the batch gets; err is the call's error.
func (c *grabCall) answer(i int, err error) grabAnswer {
	if err != nil {
		return grabAnswer{err: err}
	}
	g := c.batch[i]
	q := c.asked[who{g.packetID, g.userID}]
	outcome, err := text(c.reply, 2*q)
	if err != nil {
		return grabAnswer{err: err}
	}
	detail, err := text(c.reply, 2*q+1)
	if err != nil {
		return grabAnswer{err: err}
	}
	grabbed, err := decodeGrabbed(g.packetID, g.userID, outcome, detail)
	if grabbed.Result == packet.GrabWon && c.first[q] != i {
		grabbed.Result = packet.GrabReplayed // won by the same user's other request
	}
	return grabAnswer{grabbed: grabbed, err: err}
}
