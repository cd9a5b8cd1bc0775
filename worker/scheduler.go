package worker

import (
	"context"
	"sync"
	"time"

	"hongbao/activities"
)

// job is one call on behalf of a packet: to Temporal, or, for what cannot be decoded, to MySQL.
type job struct {
	packetID string
	do       func(ctx context.Context) error
	// failed hears of every try that failed, before the job waits for its next turn.
	// stuck: others get through, this one does not. nil: nobody asks.
	failed func(ctx context.Context, err error, stuck bool)

	tries  int    // that have failed
	passed int    // of those, how many had another job succeed since the one before
	seen   uint64 // how many jobs had succeeded at the last try
}

// How long a job that failed waits for its next turn: twice as long each time.
const (
	retryJobFirst = 100 * time.Millisecond
	retryJobMax   = 2 * time.Second // the other side is away, and may be back at any time
	// unavailablePauseMax is how long a worker pauses while every try fails: so short that a job which
	// would succeed, behind many that do not, has its turn soon.
	unavailablePauseMax = 250 * time.Millisecond
	// retryStuckMax: others get through, this job does not, and nobody has said why.
	retryStuckMax = 10 * time.Second
	// retryRejectedMax: the other side has answered, and the next answer will be the same
	// until somebody changes a setting, or the program.
	retryRejectedMax = time.Minute
	// stuckAfter is how many tries of a job have to fail beside others that succeed.
	stuckAfter = 10
)

// scheduler hands jobs to a fixed number of workers, one packet after the
// other: a giant packet does not starve the others of its lane. A try that fails
// frees its worker: the job goes back to the end of the line, after a pause.
type scheduler struct {
	mu     sync.Mutex
	wake   *sync.Cond
	queues map[string][]job
	turn   []string // packets with waiting jobs, in the order of their turns

	// workers is how many tries that fail in a row, one for each worker, say that the other
	// side is away. From then on the workers themselves pause: every job would fail.
	workers   int
	failing   int    // tries in a row that have failed without an answer
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

// putAfter puts a job back to the end of the line once a time has passed.
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

// work does jobs until ctx ends. A job has one try a turn, and turns until it succeeds:
// no kind of failure makes a hand-off go away (rule R11).
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
		if wait := s.tried(ctx, j, err); wait > 0 && !pause(ctx, wait) {
			return ctx.Err()
		}
	}
}

// tried takes what came of a try, and returns how long its worker pauses.
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

// backoff is the pause after some tries that failed.
func backoff(tries int, longest time.Duration) time.Duration {
	return min(retryJobFirst<<min(tries, 20), longest)
}
