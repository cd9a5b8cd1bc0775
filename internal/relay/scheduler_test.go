package relay

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/api/serviceerror"

	"hongbao/internal/pause"
)

// working runs the workers of a scheduler until the returned function is called.
func (s *scheduler) working(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	for range s.workers {
		go func() {
			if err := s.work(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("a worker ended: %v", err)
			}
		}()
	}
	return func() {
		cancel()
		synctest.Wait()
	}
}

// TestR11_StartIsRetriedUntilTemporalAnswers: a start that Temporal did not accept is retried after
// every error; only an answer, or the worker's own end, ends the retries.
func TestR11_StartIsRetriedUntilTemporalAnswers(t *testing.T) {
	t.Parallel()
	for _, fault := range []error{errors.New("not now"), serviceerror.NewInvalidArgument("too long"), serviceerror.NewUnavailable("away")} {
		synctest.Test(t, func(t *testing.T) {
			s := newScheduler(3)
			tries, failures := 0, 0
			s.put(job{packetID: "p", do: func(context.Context) error {
				if tries++; tries < 20 {
					return fmt.Errorf("start: %w", fault)
				}
				return nil
			}, failed: func(_ context.Context, err error, _ bool) {
				if failures++; !errors.Is(err, fault) {
					t.Errorf("it hears of %v", err)
				}
			}})
			stop := s.working(t)
			pause.For(t.Context(), 20*retryRejectedMax) // of the bubble
			synctest.Wait()
			if tries != 20 || failures != 19 {
				t.Errorf("%v: %d tries, %d failed; the twentieth was answered", fault, tries, failures)
			}
			stop()
		})
	}
}

// TestR11_StuckJobsKeepNoWorker: many more permanently failing jobs than workers have one attempt
// per turn. All others are done at once, and the failing ones once Temporal accepts them.
func TestR11_StuckJobsKeepNoWorker(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]error{"refused": serviceerror.NewInvalidArgument("too long"),
		"defect":  serviceerror.NewInternal("defect"),
		"unknown": errors.New("what")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const workers, bad, good = 4, 50, 200
				s := newScheduler(workers)
				var tries, stuck, cured, done atomic.Int64
				for n := range bad {
					known := false
					s.put(job{packetID: fmt.Sprint("bad", n%7), do: func(context.Context) error {
						tries.Add(1)
						if cured.Load() == 0 {
							return fault
						}
						done.Add(1)
						return nil
					}, failed: func(_ context.Context, _ error, is bool) {
						if is && !known {
							known = true
							stuck.Add(1)
						}
					}})
				}
				stop := s.working(t)
				for n := range good { // a second of a steady stream
					finished := make(chan struct{})
					s.put(job{packetID: fmt.Sprint("good", n%3), do: func(context.Context) error { close(finished); return nil }})
					select {
					case <-finished:
					case <-time.After(retryJobMax):
						t.Fatal("a job waits behind those that are stuck")
					}
					pause.For(t.Context(), time.Second)
				}
				if stuck.Load() != bad {
					t.Errorf("%d of %d jobs are known to be stuck", stuck.Load(), bad)
				}
				tries.Store(0)
				pause.For(t.Context(), time.Hour)
				if n := tries.Load(); n < bad || n > bad*int64(time.Hour/retryStuckMax)+bad {
					t.Errorf("%d tries of %d jobs in an hour", n, bad)
				}
				cured.Store(1)
				pause.For(t.Context(), retryRejectedMax+retryJobMax)
				synctest.Wait()
				if done.Load() != bad {
					t.Errorf("%d of %d jobs are done after the cure", done.Load(), bad)
				}
				stop()
			})
		})
	}
}

// TestR11_TemporalAwayIsNotHammered: while every start fails, attempts are few however many jobs
// wait. No job counts as stuck, and all are done soon after Temporal recovers.
func TestR11_TemporalAwayIsNotHammered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const workers, jobs = 8, 5000
		s := newScheduler(workers)
		var tries, done, back atomic.Int64
		for n := range jobs {
			s.put(job{packetID: fmt.Sprint(n % 100), do: func(context.Context) error {
				tries.Add(1)
				if back.Load() == 0 {
					return serviceerror.NewUnavailable("away")
				}
				done.Add(1)
				return nil
			}, failed: func(_ context.Context, _ error, stuck bool) {
				if stuck {
					t.Error("a job counts as stuck while every job fails")
				}
			}})
		}
		stop := s.working(t)
		pause.For(t.Context(), time.Hour)
		if n, most := tries.Load(), int64(workers*(time.Hour/unavailablePauseMax))+20*workers; n > most {
			t.Errorf("%d tries in an hour, want %d at most", n, most)
		}
		back.Store(1)
		pause.For(t.Context(), unavailablePauseMax+retryJobMax)
		synctest.Wait()
		if done.Load() != jobs {
			t.Errorf("%d of %d jobs are done soon after Temporal is back", done.Load(), jobs)
		}
		stop()
	})
}
