package devstack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// Names of the children.
const (
	childAPI      = "api"
	childWorker   = "worker"
	childProvider = "provider"
	childRedis    = "redis"
	childMySQL    = "mysql"
	childTemporal = "temporal"
)

// childNames lists the children in the order of dev.env.
var childNames = []string{childAPI, childWorker, childProvider, childRedis, childMySQL, childTemporal}

// stopOrder lists the children in the order of their stop: each before those that it uses. After its grace period a child
// is killed. The sum stays below stopLimit.
var stopOrder = []struct {
	name  string
	grace time.Duration
}{
	{childAPI, 4 * time.Second},
	{childWorker, 6 * time.Second},
	{childProvider, 2 * time.Second},
	{childTemporal, 4 * time.Second},
	{childMySQL, 7 * time.Second},
	{childRedis, 3 * time.Second},
}

const (
	// restartPause is the pause before a restart after a failed start: a child that cannot start must not occupy a core.
	// It is constant, without backoff, so that a child runs again within a second after its last obstacle is gone.
	restartPause = 300 * time.Millisecond
	// quickEnd is the run time below which the end of a child counts as a failed start.
	quickEnd = 5 * time.Second
	// quickEndsToReport is the number of failed starts in a row after which the end of the log is printed, and after which
	// the start of the whole stack fails.
	quickEndsToReport = 3
	// reportEvery is the number of failed starts after which the report is repeated.
	reportEvery = 60
)

// child is one supervised process.
type child struct {
	name     string
	part     Part
	log      string
	launched bool // supervise runs or has returned; used only by the supervisor's goroutine

	mu       sync.Mutex
	proc     *Process // nil while it is down
	restarts int
	stopped  bool // no further start

	ready    chan struct{} // closed when the child is ready for the first time
	failed   chan error    // receives one error after quickEndsToReport failed starts
	finished chan struct{} // closed when supervise has returned
}

func newChild(name string, part Part, log string) *child {
	return &child{
		name: name, part: part, log: log,
		ready:    make(chan struct{}),
		failed:   make(chan error, 1),
		finished: make(chan struct{}),
	}
}

// procID returns the current process, and false while the child is down.
func (c *child) procID() (procID, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.proc == nil {
		return procID{}, false
	}
	return identify(c.proc.PID())
}

// restartCount returns the number of restarts of the child.
func (c *child) restartCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.restarts
}

// errStopped means that the child was stopped and must not start again.
var errStopped = errors.New("stopped")

// start prepares and launches the child once.
func (c *child) start(ctx context.Context) (*Process, error) {
	cmd, err := c.part.Command(ctx)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open child log: %w", err)
	}
	defer log.Close() // the child has its own copy
	cmd.Stdout, cmd.Stderr = log, log
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped { // read under the lock of stop: no process may start after stop has read proc
		return nil, errStopped
	}
	proc, err := Launch(cmd)
	if err != nil {
		return nil, err
	}
	c.proc = proc
	return proc, nil
}

// supervise runs the child and restarts it when its process ends, until stop is called or ctx ends. It calls changed after
// each start and each end.
func (c *child) supervise(ctx context.Context, say func(string, ...any), changed func()) {
	defer close(c.finished)
	quick := 0
	for {
		began := time.Now()
		err := c.run(ctx, changed)
		c.mu.Lock()
		stopped := c.stopped
		if !stopped {
			c.restarts++
		}
		c.mu.Unlock()
		if stopped || ctx.Err() != nil {
			return
		}
		if time.Since(began) > quickEnd {
			quick = 0
		}
		quick++
		switch {
		case quick == 1:
			say("%s ended (%v); starting it again", c.name, err)
		case quick == quickEndsToReport:
			c.report(say, err)
			select {
			case c.failed <- fmt.Errorf("%s does not start: %w", c.name, err):
			default:
			}
		case quick%reportEvery == 0:
			c.report(say, err)
		}
		if quick > 1 {
			pause(ctx, restartPause)
		}
	}
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// run starts one process of the child, waits for its end and returns the reason of the end. The error is never nil.
func (c *child) run(ctx context.Context, changed func()) error {
	proc, err := c.start(ctx)
	if err != nil {
		return err
	}
	changed()
	watch, cancel := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		c.awaitFirstReady(watch, proc)
	}()
	<-proc.Done()
	cancel()
	<-watched
	c.mu.Lock()
	c.proc = nil
	c.mu.Unlock()
	changed()
	return exitError(proc.Err())
}

// awaitFirstReady closes ready when the child is ready for the first time. After a restart it does nothing. Processes of a
// child do not overlap, so ready cannot be closed twice.
func (c *child) awaitFirstReady(ctx context.Context, proc *Process) {
	select {
	case <-c.ready:
		return
	default:
	}
	if waitReady(ctx, proc, c.part) == nil {
		close(c.ready)
	}
}

// report prints the end of the child's log.
func (c *child) report(say func(string, ...any), err error) {
	say("%s keeps ending (%v); it is started again every %v", c.name, err, restartPause)
	text, readErr := os.ReadFile(c.log)
	if readErr != nil {
		return // the child failed before its log was created
	}
	say("the end of %s:\n%s", c.log, lastLines(text, 12))
}

// stop ends the child for good. It returns when the process is reaped, and false when the process had to be killed.
func (c *child) stop(grace time.Duration) (gracefully bool) {
	c.mu.Lock()
	c.stopped = true
	proc := c.proc
	c.mu.Unlock()
	gracefully = proc == nil || proc.Stop(grace)
	<-c.finished
	return gracefully
}

// kill sends SIGKILL to the process of the child.
func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.proc != nil {
		_ = c.proc.Signal(syscall.SIGKILL)
	}
}
