package devstack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Process is one running child process.
//
// It has a process group of its own, so that a Ctrl-C in the terminal reaches
// only the supervisor, which then stops the children in order. The kernel
// kills it when the starting process ends for any reason.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // what Wait returned; valid once done is closed
}

// Launch starts cmd as a child and returns once it runs. Signals, process group
// and the link to our own life are set here; the caller sets everything else.
func Launch(cmd *exec.Cmd) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL

	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// Linux sends the parent death signal when the *thread* that forked
		// ends, and the Go runtime may end idle threads. So this goroutine
		// keeps its thread for as long as the child lives.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// PID is the process id of the child, also after it has ended.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended and has been reaped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how the child ended: nil for exit status 0, else an *exec.ExitError.
// It may only be called after Done is closed.
func (p *Process) Err() error { return p.err }

// Signal sends sig to the child. A child that has already ended is no error.
func (p *Process) Signal(sig syscall.Signal) error {
	err := p.cmd.Process.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Stop asks the child to end with SIGTERM, waits up to grace and then kills it.
// It returns when the child is reaped, and whether it ended by itself. SIGCONT
// follows the SIGTERM so that a stopped (SIGSTOP) child hears it.
func (p *Process) Stop(grace time.Duration) (gracefully bool) {
	_ = p.Signal(syscall.SIGTERM)
	_ = p.Signal(syscall.SIGCONT)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		p.Kill()
		return false
	}
}

// Kill ends the child with SIGKILL and waits until it is reaped.
func (p *Process) Kill() {
	_ = p.Signal(syscall.SIGKILL)
	<-p.done
}

// Part is one piece of the stack: how its process is started, and how to find
// out that it does its work.
type Part interface {
	// Command prepares what the process needs on disk and returns the command
	// to run. It is called before every start, so it must be repeatable.
	Command(ctx context.Context) (*exec.Cmd, error)
	// Ready returns nil when the part answers as its users need it, and an
	// error that says what is missing otherwise. It does not wait or retry.
	Ready(ctx context.Context) error
}

// Start launches a part with its output appended to logPath and waits until it
// is ready. When ctx ends or the child exits before that, the child is killed
// and the error says which of the two happened.
func Start(ctx context.Context, part Part, logPath string) (*Process, error) {
	p, err := launchPart(ctx, part, logPath)
	if err != nil {
		return nil, err
	}
	if err := waitReady(ctx, p, part); err != nil {
		p.Kill()
		return nil, fmt.Errorf("%w (log: %s)", err, logPath)
	}
	return p, nil
}

// launchPart prepares and launches a part without waiting for it.
func launchPart(ctx context.Context, part Part, logPath string) (*Process, error) {
	cmd, err := part.Command(ctx)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open child log: %w", err)
	}
	defer log.Close() // the child has its own copy
	cmd.Stdout, cmd.Stderr = log, log
	return Launch(cmd)
}

// readyPollInterval is short against every start time, and long enough to cost
// nothing.
const readyPollInterval = 25 * time.Millisecond

// readyProbeTimeout bounds one probe, so that a part that accepts a connection
// and then says nothing is asked again.
const readyProbeTimeout = 2 * time.Second

// waitReady polls the part until it is ready, its process ends or ctx is done.
func waitReady(ctx context.Context, p *Process, part Part) error {
	ticker := time.NewTicker(readyPollInterval)
	defer ticker.Stop()
	var last error
	for {
		probe, cancel := context.WithTimeout(ctx, readyProbeTimeout)
		last = part.Ready(probe)
		cancel()
		if last == nil {
			return nil
		}
		select {
		case <-p.Done():
			return fmt.Errorf("ended before it was ready: %w", exitError(p.Err()))
		case <-ctx.Done():
			return fmt.Errorf("not ready in time: %w", errors.Join(last, ctx.Err()))
		case <-ticker.C:
		}
	}
}

// errExitZero stands for a child that ended by itself without complaint.
var errExitZero = errors.New("exit status 0")

func exitError(err error) error {
	if err == nil {
		return errExitZero
	}
	return err
}
