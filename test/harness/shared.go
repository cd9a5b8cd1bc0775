package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"hongbao/api"
	"hongbao/internal/devstack/stacktest"
)

// shared is the one stack of the test binary.
var shared struct {
	once  sync.Once
	stack *Stack
	scope *scope
}

// Shared returns the stack that the tests of the binary share, and opens it at the first call.
// Callers must not end its parts or change its configuration, and take owners from NewOwners.
func Shared(t testing.TB) *Stack {
	t.Helper()
	shared.once.Do(func() {
		shared.scope = &scope{TB: t}
		shared.stack = Open(shared.scope, Options{API: func(c *api.Config) { c.Refresh = 50 * time.Millisecond }}) // each test makes new keys
	})
	if shared.stack == nil {
		t.Fatal("the shared stack did not open")
	}
	return shared.stack
}

// Main runs the tests, ends the shared stack and the shared servers, and returns the exit code.
func Main(m stacktest.Runner) int { return stacktest.Main(runner{m}) }

// Wrap is Main in the form that goleak.VerifyTestMain takes.
func Wrap(m stacktest.Runner) stacktest.Runner { return stacktest.Wrap(runner{m}) }

type runner struct{ stacktest.Runner }

// Run implements stacktest.Runner.
func (r runner) Run() int {
	code := r.Runner.Run()
	if shared.scope == nil {
		return code
	}
	if err := shared.scope.close(); err != nil {
		fmt.Fprintln(os.Stderr, "harness:", err)
		code = max(code, 1)
	}
	return code
}

// scope stands for the test binary in place of a test: its cleanups run at the end of Main. A
// failure before that fails the test that opened the stack.
type scope struct {
	testing.TB

	cleanups []func()
	closing  bool // all tests have ended
	errs     []error
}

// Cleanup implements testing.TB.
func (s *scope) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

// Context implements testing.TB.
func (s *scope) Context() context.Context { return context.WithoutCancel(s.TB.Context()) }

// Helper implements testing.TB.
func (s *scope) Helper() {}

// TempDir implements testing.TB.
func (s *scope) TempDir() string {
	dir, err := os.MkdirTemp("", "hongbao-harness-")
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			s.Error(err)
		}
	})
	return dir
}

// Error implements testing.TB.
func (s *scope) Error(args ...any) { s.Errorf("%s", fmt.Sprint(args...)) }

// Errorf implements testing.TB.
func (s *scope) Errorf(format string, args ...any) {
	if !s.closing {
		s.TB.Errorf(format, args...)
		return
	}
	s.errs = append(s.errs, fmt.Errorf(format, args...))
}

// Fatal implements testing.TB.
func (s *scope) Fatal(args ...any) {
	s.Error(args...)
	s.FailNow()
}

// Fatalf implements testing.TB.
func (s *scope) Fatalf(format string, args ...any) {
	s.Errorf(format, args...)
	s.FailNow()
}

// FailNow implements testing.TB.
func (s *scope) FailNow() {
	if !s.closing {
		s.TB.FailNow()
	}
	runtime.Goexit() // of a cleanup
}

// close runs the cleanups, the last one first, and returns what failed.
func (s *scope) close() error {
	s.closing = true
	for _, f := range slices.Backward(s.cleanups) {
		var done sync.WaitGroup
		done.Go(f)
		done.Wait()
	}
	return errors.Join(s.errs...)
}
