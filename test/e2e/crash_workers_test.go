package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// furtherWorkers run next to the stack's own worker and are restarted like it. While a killed
// worker restarts, another takes over its work.
const furtherWorkers = 1

// workers are the processes of the further workers.
type workers struct {
	mu   sync.Mutex
	pids map[int]int // by number; 0: being started
	over bool
	all  sync.WaitGroup
}

// startWorkers keeps the further workers running until the test ends.
func (c *crashes) startWorkers(t *testing.T) {
	t.Helper()
	env := c.workerEnv(t)
	c.workers = &workers{pids: map[int]int{}}
	for n := range furtherWorkers {
		c.workers.all.Go(func() {
			for c.workers.live(n, filepath.Join(c.home, fmt.Sprintf("worker%d.log", n+2)), env) == nil {
			}
		})
	}
	t.Cleanup(c.workers.end)
}

// live runs worker n once; an error means that it cannot be restarted.
func (w *workers) live(n int, log string, env []string) error {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	cmd := exec.Command("../../.cache/bin/hongbao", "worker")
	cmd.Env, cmd.Stdout, cmd.Stderr = env, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	w.mu.Lock()
	if w.over {
		err = os.ErrProcessDone
	} else if err = cmd.Start(); err == nil {
		w.pids[n] = cmd.Process.Pid
	}
	w.mu.Unlock()
	if err != nil {
		return err
	}
	_ = cmd.Wait() // it was killed, as intended
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pids[n] = 0
	return nil
}

// end kills the further workers and does not restart them.
func (w *workers) end() {
	w.mu.Lock()
	w.over = true
	for _, pid := range w.pids {
		if pid > 0 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	w.mu.Unlock()
	w.all.Wait()
}

// workerPIDs returns the process ids of all workers; ok is false while one is down.
func (c *crashes) workerPIDs(t *testing.T) (pids []int, ok bool) {
	t.Helper()
	pids = append(pids, c.pid(t, "WORKER"))
	c.workers.mu.Lock()
	defer c.workers.mu.Unlock()
	for n := range furtherWorkers {
		if c.workers.pids[n] == 0 {
			return nil, false
		}
		pids = append(pids, c.workers.pids[n])
	}
	return pids, true
}

// whileStopped stops all workers, acts, and kills them, so that nothing in their memory is done. It
// reports whether all stood still all the time.
func (c *crashes) whileStopped(t *testing.T, act func()) bool {
	t.Helper()
	before, ok := c.workerPIDs(t)
	if !ok {
		return false
	}
	for _, pid := range before {
		_ = syscall.Kill(pid, syscall.SIGSTOP) // one that is gone is noticed below
	}
	act()
	after, ok := c.workerPIDs(t)
	still := ok && fmt.Sprint(before) == fmt.Sprint(after)
	for _, pid := range before {
		still = still && strings.HasPrefix(stateOf(pid), "T")
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return still
}

// stateOf returns the State line of a process: T is stopped; "" when it is gone.
func stateOf(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, state, _ := strings.Cut(string(b), "\nState:\t")
	state, _, _ = strings.Cut(state, "\n")
	return state
}
