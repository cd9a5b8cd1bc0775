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

// Options says what a local stack consists of.
type Options struct {
	Home   string // folder of its state
	Ports  Ports
	Tools  Tools
	Binary string // the hongbao program, whose commands api, worker and provider are run
	Links  Links  // how the programs reach the other parts; nil: directly

	// Withhold are environment variables of ours that the programs do not get: those that
	// they would refuse.
	DropVariables []string

	// Setup, unless it is nil, returns the Tools. It is called when the home belongs to
	// this process, an earlier dev.env is gone and the ports are free. The context ends
	// when the stack is to stop.
	Setup func(ctx context.Context) (Tools, error)

	// Prepare is called when MySQL is up and before worker and API start. It
	// brings the schema up to date and makes sure that the keys work. It gets
	// the keys of the last start (empty on a new home) and returns those that
	// dev.env will hold. It may be called again with keys that exist already.
	Prepare func(ctx context.Context, env Env) (Keys, error)

	// Ready is called once when everything answers and dev.env is written. first
	// is true until a call on this home has returned nil. An error is printed
	// and the stack stays up. The context ends when the stack is stopped.
	Ready func(ctx context.Context, env Env, first bool) error

	// Out gets lines for a person. Nil discards them.
	Out io.Writer
}

// Errors of Run beside *PortError.
var (
	// ErrRunning means that another supervisor uses the home folder.
	ErrRunning = errors.New("a stack is already running")
	// ErrNotReady means that the stack did not get ready in time.
	ErrNotReady = errors.New("the stack did not get ready")
)

// startLimit bounds the first start, from nothing to everything ready. It is
// generous: a slow disk may take half a minute for the MySQL data folder.
const startLimit = 3 * time.Minute

// stopLimit is when whatever is left is killed without further waiting.
const stopLimit = 27 * time.Second

// supervisor is one run of a stack.
type supervisor struct {
	options  Options
	home     Home
	secrets  secrets
	env      Env
	children map[string]*child
	sayMu    sync.Mutex

	mu        sync.Mutex // guards what follows and the files dev.env and stack.json
	published bool       // dev.env is to be written
	closed    bool       // neither file is to be written any more
	preparing processGroup
}

// Run starts the stack, keeps it running and stops it when ctx ends. It returns
// nil after such a stop, and otherwise why the stack could not be started; then
// nothing of it is left running either.
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
			return nil // as below
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
	cancel() // interrupts what is still being prepared
	s.stop()
	if ctx.Err() != nil {
		return nil // whatever the interruption broke
	}
	return startErr
}

// run starts everything and waits for the end of ctx.
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

// start brings the children up in the order of what they need.
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

// launch starts to keep one child running. The end of ctx stops no process, but
// nothing is started again and preparations, such as the creation of a data
// folder, are interrupted.
func (s *supervisor) launch(ctx context.Context, name string) {
	c := s.children[name]
	c.launched = true
	go c.supervise(ctx, s.printf, s.changed)
}

// await returns when the named children are ready, or why one cannot be.
func (s *supervisor) await(ctx context.Context, names ...string) error {
	for _, name := range names {
		c := s.children[name]
		select {
		case <-c.ready:
		case err := <-c.failed:
			select {
			case <-c.ready: // it has come up after all
			default:
				return err
			}
		case <-ctx.Done():
			return fmt.Errorf("%s: %w (log: %s)", name, context.Cause(ctx), c.log)
		}
	}
	return nil
}

// callReady runs the Ready hook and notes when a first start is complete.
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

// changed rewrites what other processes read about us.
func (s *supervisor) changed() {
	if err := s.publish(); err != nil {
		s.printf("%v", err)
	}
}

// publish writes stack.json and, once everything has been ready, dev.env.
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

// stop ends all children in order. It is called once, whatever start came to.
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

// say prints one line for the person at the terminal. A terminal that is gone is
// no reason to stop.
func (s *supervisor) printf(format string, args ...any) {
	s.sayMu.Lock()
	defer s.sayMu.Unlock()
	_, _ = fmt.Fprintf(s.options.Out, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}
