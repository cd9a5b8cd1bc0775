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
// It has its own process group, so a Ctrl-C in the terminal reaches only the supervisor, which then stops the children in
// order. The kernel kills it when the process that started it ends, for whatever reason.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // what Wait returned; valid once done is closed
}

// Launch starts cmd as a child process and returns when it runs. It sets the process group and the parent death signal of
// cmd; the caller sets everything else. The error is that of cmd.Start.
func Launch(cmd *exec.Cmd) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL

	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// Linux sends the parent death signal when the forking *thread* ends, and the Go runtime may end idle threads. So
		// this goroutine keeps its thread until the child ends.
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

// PID returns the process id of the child, also after the child has ended.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the child has ended and is reaped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the child ended: nil for exit status 0, otherwise an *exec.ExitError. It may be called only after Done is
// closed.
func (p *Process) Err() error { return p.err }

// Signal sends sig to the child. It returns nil when the child has already ended.
func (p *Process) Signal(sig syscall.Signal) error {
	err := p.cmd.Process.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Stop sends SIGTERM to the child, waits at most grace for its end and then kills it. It returns when the child is reaped,
// and false when the child had to be killed. SIGCONT follows, so that a child stopped by SIGSTOP handles the SIGTERM.
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

// Kill sends SIGKILL to the child and waits until it is reaped.
func (p *Process) Kill() {
	_ = p.Signal(syscall.SIGKILL)
	<-p.done
}

// Part is one process of the stack: its command and its readiness probe.
type Part interface {
	// Command creates the files that the process needs and returns the command. It is called before each start and must be
	// idempotent.
	Command(ctx context.Context) (*exec.Cmd, error)
	// Ready probes the process once. It returns nil when clients can use the part, and otherwise what is missing.
	Ready(ctx context.Context) error
}

// Start launches a part, whose output it appends to logPath, and waits until the part is ready. When ctx or the child ends
// earlier, Start kills the child and returns an error that names the cause.
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

// launchPart launches a part and does not wait until it is ready.
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

// readyPollInterval is the pause between two probes: short compared with the start of a part, and long enough to need
// little CPU time.
const readyPollInterval = 25 * time.Millisecond

// readyProbeTimeout bounds one probe. A part may accept a connection and send nothing.
const readyProbeTimeout = 2 * time.Second

// waitReady probes the part until it is ready, or its process or ctx ends.
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

// errExitZero is the error of a child that ended by itself with exit status 0.
var errExitZero = errors.New("exit status 0")

func exitError(err error) error {
	if err == nil {
		return errExitZero
	}
	return err
}
