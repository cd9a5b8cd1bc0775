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

// stopOrder lists the children in the order in which they are stopped, each
// before what it needs, with the time each has before it is killed. The sum
// stays below the 30 s in which everything must be gone.
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
	// restartPause keeps a child that cannot start from taking all of a core.
	// It does not grow: a child is back within a second of any death. A child
	// that had lived for a while is started again at once.
	restartPause = 300 * time.Millisecond
	// quickEnd is the age below which the end of a child counts as a failed start.
	quickEnd = 5 * time.Second
	// quickEndsToReport is after how many failed starts in a row the end of the
	// log is shown, and after how many the very first start is given up.
	quickEndsToReport = 3
	// reportEvery repeats that report while it goes on.
	reportEvery = 60
)

// child is one supervised process.
type child struct {
	name     string
	part     Part
	log      string
	launched bool // keep has been started; set and read by the supervisor's goroutine

	mu       sync.Mutex
	proc     *Process // nil while it is down
	restarts int
	stopped  bool // no further start

	ready    chan struct{} // closed when it is ready for the first time
	failed   chan error    // gets one error after quickEndsToReport failed starts
	finished chan struct{} // closed when keep has returned
}

func newChild(name string, part Part, log string) *child {
	return &child{
		name: name, part: part, log: log,
		ready:    make(chan struct{}),
		failed:   make(chan error, 1),
		finished: make(chan struct{}),
	}
}

// id returns the process that runs now, and false while the child is down.
func (c *child) procID() (procID, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.proc == nil {
		return procID{}, false
	}
	return identify(c.proc.PID())
}

// restartCount is how often the child has been started again.
func (c *child) restartCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.restarts
}

// errStopped means that a child is not to be started any more.
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
	if c.stopped { // asked under the lock that stop takes
		return nil, errStopped
	}
	proc, err := Launch(cmd)
	if err != nil {
		return nil, err
	}
	c.proc = proc
	return proc, nil
}

// keep runs the child until stop is called, again and again. changed is called
// after each start and each end.
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

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// run is one life of the child, from start to end, and returns how it ended.
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

// awaitFirstReady closes ready once; later lives are not asked. Only one life
// runs at a time, so nobody else closes it.
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

// report shows the end of the child's log to the person at the terminal.
func (c *child) report(say func(string, ...any), err error) {
	say("%s keeps ending (%v); it is started again every %v", c.name, err, restartPause)
	text, readErr := os.ReadFile(c.log)
	if readErr != nil {
		return // it has not come as far as that
	}
	say("the end of %s:\n%s", c.log, lastLines(text, 12))
}

// stop ends the child for good and returns when it is gone, and whether it did
// so by itself.
func (c *child) stop(grace time.Duration) (gracefully bool) {
	c.mu.Lock()
	c.stopped = true
	proc := c.proc
	c.mu.Unlock()
	gracefully = proc == nil || proc.Stop(grace)
	<-c.finished
	return gracefully
}

// kill ends the child at once. For a stop that takes too long.
func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.proc != nil {
		_ = c.proc.Signal(syscall.SIGKILL)
	}
}
