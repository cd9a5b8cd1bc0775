package relay

import (
	"context"
	"sync"
	"time"

	"hongbao/activities"
	"hongbao/internal/pause"
)

// job is one call on behalf of a packet: to Temporal, or to MySQL for an entry that cannot be
// decoded.
type job struct {
	packetID string
	do       func(ctx context.Context) error
	// failed is called after every failed attempt, before the job is queued again. stuck: other
	// jobs succeed, this one does not. nil: no callback.
	failed func(ctx context.Context, err error, stuck bool)

	tries  int    // failed attempts
	passed int    // of those, attempts since whose predecessor another job succeeded
	seen   uint64 // number of succeeded jobs at the last attempt
}

// Pauses of a failed job, doubled after each attempt.
const (
	retryJobFirst = 100 * time.Millisecond
	retryJobMax   = 2 * time.Second // the other side is unavailable, and may recover at any time
	// unavailablePauseMax bounds the pause of a worker while every attempt fails. It is short, so
	// that a job that would succeed gets its turn behind many that do not.
	unavailablePauseMax = 250 * time.Millisecond
	// retryStuckMax applies while other jobs succeed and this one fails for unknown reasons.
	retryStuckMax = 10 * time.Second
	// retryRejectedMax applies after a rejection, which repeats until a setting or the program
	// changes.
	retryRejectedMax = time.Minute
	// stuckAfter is the number of failed attempts beside successful jobs after which a job is
	// stuck.
	stuckAfter = 10
)

// scheduler distributes jobs to a fixed number of workers, packet by packet, so that a giant
// packet does not starve the others of its lane. A failed attempt frees its worker: the job is
// queued again after a pause.
type scheduler struct {
	mu     sync.Mutex
	wake   *sync.Cond
	queues map[string][]job
	turn   []string // packets with waiting jobs, in the order of their turns

	// workers is the number of consecutive failures, one per worker, after which the other side
	// counts as unavailable. From then on the workers pause: every job would fail.
	workers   int
	failing   int    // consecutive attempts without an answer
	succeeded uint64 // jobs
}

func newScheduler(workers int) *scheduler {
	s := &scheduler{queues: map[string][]job{}, workers: workers}
	s.wake = sync.NewCond(&s.mu)
	return s
}

func (s *scheduler) put(j job) {
	s.mu.Lock()
	if _, waiting := s.queues[j.packetID]; !waiting {
		s.turn = append(s.turn, j.packetID)
	}
	s.queues[j.packetID] = append(s.queues[j.packetID], j)
	s.mu.Unlock()
	s.wake.Signal()
}

// putAfter queues a job again after a time.
func (s *scheduler) putAfter(j job, wait time.Duration) {
	time.AfterFunc(wait, func() { s.put(j) })
}

// next waits for a job; false when ctx ended.
func (s *scheduler) next(ctx context.Context) (job, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.turn) == 0 {
		if ctx.Err() != nil {
			return job{}, false
		}
		s.wake.Wait()
	}
	if ctx.Err() != nil {
		return job{}, false
	}
	id := s.turn[0]
	s.turn = s.turn[1:]
	q := s.queues[id]
	j := q[0]
	if len(q) == 1 {
		delete(s.queues, id)
	} else {
		s.queues[id] = q[1:]
		s.turn = append(s.turn, id)
	}
	return j, true
}

// work runs jobs until ctx ends. A job has one attempt per turn, and turns until it succeeds: no
// failure drops a hand-off (rule R11).
func (s *scheduler) work(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.wake.Broadcast()
	})()
	for {
		j, ok := s.next(ctx)
		if !ok {
			return ctx.Err()
		}
		err := j.do(ctx)
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		if wait := s.tried(ctx, j, err); wait > 0 && !pause.For(ctx, wait) {
			return ctx.Err()
		}
	}
}

// tried records the result of an attempt, and returns how long its worker pauses.
func (s *scheduler) tried(ctx context.Context, j job, err error) time.Duration {
	s.mu.Lock()
	if err == nil {
		s.failing = 0
		s.succeeded++
		s.mu.Unlock()
		return 0
	}
	if j.tries > 0 && s.succeeded > j.seen {
		j.passed++
	}
	j.seen = s.succeeded
	refused, longest := activities.TemporalRefuses(err), retryJobMax
	stuck := refused || j.passed >= stuckAfter
	switch {
	case refused:
		s.failing, longest = 0, retryRejectedMax
	case stuck:
		s.failing, longest = s.failing+1, retryStuckMax
	default:
		s.failing++
	}
	away := time.Duration(0)
	if s.failing > s.workers {
		away = backoff((s.failing-1)/s.workers-1, unavailablePauseMax)
	}
	s.mu.Unlock()
	if j.failed != nil {
		j.failed(ctx, err, stuck)
	}
	wait := backoff(j.tries, longest)
	j.tries++
	s.putAfter(j, wait)
	return away
}

// backoff returns the pause after a number of failed attempts.
func backoff(tries int, longest time.Duration) time.Duration {
	return min(retryJobFirst<<min(tries, 20), longest)
}
