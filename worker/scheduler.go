package worker

import (
	"context"
	"sync"
)

// job is one call to Temporal on behalf of a packet.
type job struct {
	packetID string
	do       func(ctx context.Context) error
}

// scheduler hands jobs to a fixed number of workers, one packet after the
// other: a giant packet does not starve the others of its lane.
type scheduler struct {
	mu     sync.Mutex
	wake   *sync.Cond
	queues map[string][]job
	turn   []string // packets with waiting jobs, in the order of their turns
}

func newScheduler() *scheduler {
	s := &scheduler{queues: map[string][]job{}}
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

// work does jobs until ctx ends. A job repeats itself until it is done.
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
		if err := j.do(ctx); err != nil {
			return err
		}
	}
}
