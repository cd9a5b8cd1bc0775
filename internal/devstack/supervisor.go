package devstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"
)

// Options configures a local stack.
type Options struct {
	Home   string // folder of the state, created when missing
	Ports  Ports
	Tools  Tools
	Binary string // path of the hongbao binary, which runs as api, worker and provider
	Links  Links  // how these three reach the other parts; nil: directly

	// DropVariables are the names of environment variables that the programs do not inherit, because they would refuse them.
	DropVariables []string

	// Setup, unless nil, returns the Tools. Run calls it when the home is locked, an earlier dev.env is removed and the ports
	// are free. The context ends when the stack has to stop.
	Setup func(ctx context.Context) (Tools, error)

	// Prepare, unless nil, migrates the schema and creates the keys that do not exist. Run calls it when MySQL is ready, before
	// worker and API start. env holds the keys of the last start, empty in a new home. Prepare returns the keys for dev.env. It
	// must be idempotent.
	Prepare func(ctx context.Context, env Env) (Keys, error)

	// Ready, unless nil, is called once, when all children are ready and dev.env is written. first is true until a call in this
	// home has returned nil. Run prints an error of Ready; the stack continues to run. The context ends when the stack has to
	// stop.
	Ready func(ctx context.Context, env Env, first bool) error

	// Out receives lines about the progress and about failures of children; nil discards them.
	Out io.Writer
}

// Errors of Run, besides *PortError.
var (
	// ErrRunning means that another supervisor uses the home folder.
	ErrRunning = errors.New("a stack is already running")
	// ErrNotReady means that not all children were ready within 3 minutes.
	ErrNotReady = errors.New("the stack did not get ready")
)

// startLimit bounds the time until all children are ready for the first time. On a slow disk the creation of the MySQL data
// folder alone may take half a minute.
const startLimit = 3 * time.Minute

// stopLimit is the time after which a stop kills the remaining children.
const stopLimit = 27 * time.Second

// supervisor is one run of a stack.
type supervisor struct {
	options  Options
	home     Home
	secrets  secrets
	env      Env
	children map[string]*child
	sayMu    sync.Mutex

	mu        sync.Mutex // guards the fields below and the files dev.env and stack.json
	published bool       // dev.env is written from now on
	closed    bool       // neither file is written any more
	preparing processGroup
}

// Run starts the stack, restarts children that end, and stops the stack when ctx ends. It returns nil after such a stop. It
// returns an error when the stack could not be started, after it has stopped all children: ErrRunning, ErrNotReady,
// ErrLeftover, *PortError or an error of a part.
func Run(ctx context.Context, options Options) (err error) {
	if options.Out == nil {
		options.Out = io.Discard
	}
	home, err := NewHome(options.Home)
	if err != nil {
		return err
	}
	if err := home.create(); err != nil {
		return err
	}
	lock, err := home.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()

	s := &supervisor{options: options, home: home, children: map[string]*child{}}
	if err := s.claimHome(); err != nil {
		return err
	}
	if err := s.setUp(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // an interrupted start is no failure
		}
		return err
	}
	s.makeChildren()
	if err := s.publish(); err != nil {
		return err
	}
	living, cancel := context.WithCancel(ctx)
	defer cancel()
	startErr := s.run(living)
	cancel() // interrupts Command of children, such as the creation of a data folder
	s.stop()
	if ctx.Err() != nil {
		return nil // an interrupted start is no failure
	}
	return startErr
}

// run starts all children and waits until ctx ends.
func (s *supervisor) run(ctx context.Context) error {
	if err := s.start(ctx); err != nil {
		return err
	}
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		s.callReady(ctx)
	}()
	<-ctx.Done()
	<-ready
	s.printf("stopping")
	return nil
}

// start starts the children, each after those that it uses, and returns when all are ready.
func (s *supervisor) start(ctx context.Context) error {
	began := time.Now()
	limited, cancel := context.WithTimeoutCause(ctx, startLimit, ErrNotReady)
	defer cancel()
	s.printf("starting Redis, MariaDB, Temporal and the sandbox provider")
	for _, name := range []string{childRedis, childMySQL, childTemporal, childProvider} {
		s.launch(ctx, name)
	}
	if err := s.await(limited, childMySQL); err != nil {
		return err
	}
	if s.options.Prepare != nil {
		s.printf("preparing the database")
		keys, err := s.options.Prepare(limited, s.env)
		if err != nil {
			return fmt.Errorf("prepare the database: %w", err)
		}
		s.env.Keys, s.secrets.Keys = keys, keys
		if err := s.home.saveSecrets(s.secrets); err != nil {
			return err
		}
	}
	if err := s.await(limited, childRedis, childTemporal); err != nil {
		return err
	}
	s.printf("starting worker and API")
	s.launch(ctx, childWorker)
	s.launch(ctx, childAPI)
	if err := s.await(limited, childProvider, childWorker, childAPI); err != nil {
		return err
	}
	s.mu.Lock()
	s.published = true
	s.mu.Unlock()
	if err := s.publish(); err != nil {
		return err
	}
	s.printf("ready after %.1f s", time.Since(began).Seconds())
	return nil
}

// launch starts a child and its supervision. When ctx ends, the process continues to run but is not restarted, and a
// preparation, such as the creation of a data folder, is interrupted.
func (s *supervisor) launch(ctx context.Context, name string) {
	c := s.children[name]
	c.launched = true
	go c.supervise(ctx, s.printf, s.changed)
}

// await returns nil when the named children are ready, and an error when one does not start or ctx ends.
func (s *supervisor) await(ctx context.Context, names ...string) error {
	for _, name := range names {
		c := s.children[name]
		select {
		case <-c.ready:
		case err := <-c.failed:
			select {
			case <-c.ready: // ready after the failed starts
			default:
				return err
			}
		case <-ctx.Done():
			return fmt.Errorf("%s: %w (log: %s)", name, context.Cause(ctx), c.log)
		}
	}
	return nil
}

// callReady calls Options.Ready and records its first success in the home.
func (s *supervisor) callReady(ctx context.Context) {
	if s.options.Ready == nil {
		return
	}
	_, err := os.Stat(s.home.path(homeFirstStart))
	first := errors.Is(err, fs.ErrNotExist)
	if err := s.options.Ready(ctx, s.env, first); err != nil {
		if ctx.Err() == nil {
			s.printf("%v", err)
		}
		return
	}
	if !first {
		return
	}
	if err := os.WriteFile(s.home.path(homeFirstStart), nil, 0o600); err != nil {
		s.printf("%v", err)
	}
}

// changed publishes the children after a change. It prints an error, because the stack can run without the files.
func (s *supervisor) changed() {
	if err := s.publish(); err != nil {
		s.printf("%v", err)
	}
}

// publish writes stack.json and, as soon as all children have been ready, dev.env.
func (s *supervisor) publish() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	now := state{
		Ports:    s.options.Ports,
		Children: map[string]procID{},
		Restarts: map[string]int{},
		Health:   map[string]string{},

		Preparing: s.preparing,
	}
	now.Supervisor, _ = identify(os.Getpid())
	pids := map[string]int{}
	for name, c := range s.children {
		if id, ok := c.procID(); ok {
			now.Children[name] = id
			pids[name] = id.PID
		}
		now.Restarts[name] = c.restartCount()
		if p, ok := c.part.(*program); ok {
			now.Health[name] = p.healthAddr()
		}
	}
	if err := s.home.saveState(now); err != nil {
		return err
	}
	if !s.published {
		return nil
	}
	if err := replaceFile(s.home.EnvFile(), formatEnv(s.env.variables(pids))); err != nil {
		return fmt.Errorf("dev.env: %w", err)
	}
	return nil
}

// stop stops all children in stopOrder and removes dev.env and stack.json. It is called once, also after a failed start.
func (s *supervisor) stop() {
	s.mu.Lock()
	s.closed = true
	err := removeFile(s.home.EnvFile())
	s.mu.Unlock()
	if err != nil {
		s.printf("%v", err)
	}
	hurry := time.AfterFunc(stopLimit, func() {
		for _, c := range s.children {
			c.kill()
		}
	})
	defer hurry.Stop()
	for _, step := range stopOrder {
		c := s.children[step.name]
		if c.launched && !c.stop(step.grace) {
			s.printf("%s did not end within %v and was killed", c.name, step.grace)
		}
	}
	if err := removeFile(s.home.path(homeState)); err != nil {
		s.printf("%v", err)
	}
	s.printf("stopped")
}

// printf prints a line with the time. It ignores errors: the stack runs on when its terminal is closed.
func (s *supervisor) printf(format string, args ...any) {
	s.sayMu.Lock()
	defer s.sayMu.Unlock()
	_, _ = fmt.Fprintf(s.options.Out, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}
