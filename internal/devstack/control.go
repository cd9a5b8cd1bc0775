package devstack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"
)

// ErrNotRunning means that no supervisor uses the home folder.
var ErrNotRunning = errors.New("no stack is running")

// ChildStatus is one line of Status.
type ChildStatus struct {
	Name     string
	PID      int    // 0 while the child is down
	Addr     string // host:port at which the child is reached
	Restarts int    // since the start of the stack
	// Problem is the reason why the child cannot be used; nil for a healthy child.
	Problem error
}

// Status describes the running stack of a home folder.
type Status struct {
	Supervisor int // process id
	Ports      Ports
	Children   []ChildStatus
}

// Healthy reports whether every child can be used.
func (s Status) Healthy() bool {
	for _, c := range s.Children {
		if c.Problem != nil {
			return false
		}
	}
	return true
}

// errDown is the Problem of a child without a process.
var errDown = errors.New("down")

// ReadStatus returns the status of the stack in a home folder. It probes every child, each for at most 2 s. It returns
// ErrNotRunning when no stack runs.
func ReadStatus(ctx context.Context, home Home) (Status, error) {
	if err := home.running(); err != nil {
		return Status{}, err
	}
	now, err := home.loadState()
	if err != nil {
		return Status{}, err
	}
	secrets, err := home.loadSecrets()
	if err != nil {
		return Status{}, err
	}
	parts := makeParts(home, now.Ports, Tools{}, "", secrets, nil)
	addrs := map[string]string{
		childAPI: hostPort(now.Ports.API), childProvider: hostPort(now.Ports.Provider), childRedis: hostPort(now.Ports.Redis),
		childMySQL: hostPort(now.Ports.MySQL), childTemporal: hostPort(now.Ports.Temporal), childWorker: now.Health[childWorker],
	}
	if worker, ok := parts[childWorker].(*program); ok {
		worker.health = addrs[childWorker]
	}
	status := Status{Supervisor: now.Supervisor.PID, Ports: now.Ports, Children: make([]ChildStatus, len(childNames))}
	var wait sync.WaitGroup
	for i, name := range childNames {
		line := &status.Children[i]
		*line = ChildStatus{Name: name, PID: now.Children[name].PID, Addr: addrs[name], Restarts: now.Restarts[name]}
		if !now.Children[name].alive() {
			line.PID, line.Problem = 0, errDown
			continue
		}
		wait.Go(func() {
			probe, cancel := context.WithTimeout(ctx, readyProbeTimeout)
			defer cancel()
			line.Problem = parts[name].Ready(probe)
		})
	}
	wait.Wait()
	return status, nil
}

// running returns ErrNotRunning unless the supervisor that wrote the state of this home is alive. It does not take the
// lock of the home, so a start at the same time does not fail.
func (h Home) running() error {
	now, err := h.loadState()
	if err != nil {
		return err
	}
	if !now.Supervisor.alive() {
		return ErrNotRunning
	}
	return nil
}

// stopWait is the timeout of Stop: the supervisor's own limit and a margin.
const stopWait = stopLimit + 8*time.Second

// ErrStopTimeout means that the supervisor has not stopped in time after SIGTERM.
var ErrStopTimeout = errors.New("the stack does not stop")

// Stop sends SIGTERM to the supervisor of a home folder and waits until the supervisor and all its children have ended. It
// returns ErrNotRunning when no supervisor runs, and an error that wraps ErrStopTimeout after 35 s.
func Stop(ctx context.Context, home Home) error {
	if err := home.running(); err != nil {
		return err
	}
	now, err := home.loadState()
	if err != nil {
		return err
	}
	if err := syscall.Kill(now.Supervisor.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop process %d: %w", now.Supervisor.PID, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, stopWait, ErrStopTimeout)
	defer cancel()
	for home.running() == nil {
		pause(ctx, 2*readyPollInterval)
		if ctx.Err() != nil {
			return fmt.Errorf("process %d: %w", now.Supervisor.PID, context.Cause(ctx))
		}
	}
	return now.endLeftovers()
}

// Reset stops the stack of a home folder, if one runs, and deletes everything that Run has created there, and nothing
// else. It returns ErrNotAHome for a folder that Run has not created, and nil for a folder that does not exist.
func Reset(ctx context.Context, home Home) error {
	if _, err := os.Stat(home.dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := home.check(); err != nil {
		return err
	}
	if err := Stop(ctx, home); err != nil && !errors.Is(err, ErrNotRunning) {
		return err
	}
	lock, err := home.lock(ctx)
	if err != nil {
		return err
	}
	old, err := home.loadState()
	if err == nil {
		err = old.endLeftovers() // of a killed supervisor
	}
	if err == nil {
		err = home.remove()
	}
	return errors.Join(err, lock.Unlock())
}
