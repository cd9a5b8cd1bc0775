package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"
)

// faults applies a schedule to a stack.
type faults struct {
	stack *stack
	began time.Time

	mu      sync.Mutex
	stopped map[int]string // process id -> part, of what has been stopped and not continued
	broken  error

	kills, stops, network int
	log                   []string // what was applied, and when
}

func newFaults(s *stack) *faults { return &faults{stack: s, stopped: map[int]string{}} }

func (f *faults) note(format string, args ...any) {
	f.log = append(f.log, fmt.Sprintf("%7.1fs  ", time.Since(f.began).Seconds())+fmt.Sprintf(format, args...))
}

// run applies the schedule until it or ctx ends.
func (f *faults) run(ctx context.Context, schedule []fault) {
	f.began = time.Now()
	var ending sync.WaitGroup
	defer ending.Wait()
	for _, next := range schedule {
		if !wait(ctx, time.Until(f.began.Add(next.at))) {
			return
		}
		switch {
		case next.action == misbehave:
			ending.Go(func() {
				// A provider that stays down keeps its old rules.
				soon, cancel := context.WithTimeout(ctx, 5*time.Second)
				defer cancel()
				if err := f.stack.setRules(soon, next.target, rulesOf(next)); err != nil && soon.Err() == nil {
					f.fail(err)
				}
			})
		case slices.Contains(linkFaults, next.action):
			f.breakLink(ctx, &ending, next)
		default:
			f.hit(ctx, &ending, next)
		}
	}
}

func (f *faults) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken = errors.Join(f.broken, err)
}

func (f *faults) breakLink(ctx context.Context, ending *sync.WaitGroup, next fault) {
	mend, err := f.stack.network.breaks(next)
	if err != nil {
		f.fail(err)
		return
	}
	f.mu.Lock()
	f.network++
	f.note("%s", next)
	f.mu.Unlock()
	ending.Go(func() {
		wait(ctx, next.length)
		if err := mend(); err != nil {
			f.fail(err)
		}
	})
}

// hit kills or stops the current process of a part. It waits shortly for one that is being started.
func (f *faults) hit(ctx context.Context, ending *sync.WaitGroup, next fault) {
	pid := 0
	for until := time.Now().Add(1500 * time.Millisecond); pid == 0 && time.Now().Before(until) && wait(ctx, 20*time.Millisecond); {
		pid = f.stack.pid(next.target)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if pid == 0 {
		f.note("%s: it is down", next)
		return
	}
	signal := syscall.SIGKILL
	if next.action == stop {
		signal = syscall.SIGSTOP
		f.stopped[pid] = next.target
	}
	if err := syscall.Kill(pid, signal); err != nil {
		f.note("%s, process %d: %v", next, pid, err)
		return
	}
	f.note("%s, process %d", next, pid)
	if next.action == kill {
		f.kills++
		return
	}
	f.stops++
	ending.Go(func() {
		wait(ctx, next.length)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.resume(pid)
	})
}

// resume continues a stopped process, unless it was killed since.
func (f *faults) resume(pid int) {
	if part, ok := f.stopped[pid]; ok && f.stack.pid(part) == pid {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	delete(f.stopped, pid)
}

// lift ends every fault.
func (f *faults) lift(ctx context.Context) error {
	f.mu.Lock()
	for pid := range f.stopped {
		f.resume(pid)
	}
	all := f.broken
	f.mu.Unlock()
	all = errors.Join(all, f.stack.network.heal())
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	if f.stack.wechat != nil {
		all = errors.Join(all, f.stack.setRules(ctx, "wechat", nil))
	}
	return errors.Join(all, f.stack.setRules(ctx, "provider", nil))
}
