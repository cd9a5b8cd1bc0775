package devstack

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hongbao/test/wait"
)

// stack is a supervisor in its own process.
type stack struct {
	t       *testing.T
	home    Home
	options testOptions
	cmd     *exec.Cmd
	output  lockedBuffer
	ended   chan struct{}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// startStack starts a supervisor; it does not wait for anything.
func startStack(t *testing.T, options testOptions) *stack {
	t.Helper()
	home, err := NewHome(options.Home)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(options)
	if err != nil {
		t.Fatal(err)
	}
	s := &stack{t: t, home: home, options: options, ended: make(chan struct{})}
	s.cmd = exec.Command(os.Args[0], "supervise")
	s.cmd.Env = append(os.Environ(), testOptionsEnv+"="+string(encoded))
	s.cmd.Stdout, s.cmd.Stderr = &s.output, &s.output
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = s.cmd.Wait() // the tests look at cmd.ProcessState
		close(s.ended)
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.ended
		if t.Failed() {
			t.Logf("the supervisor printed:\n%s", s.output.String())
		}
	})
	return s
}

// awaitReady waits for dev.env.
func (s *stack) awaitReady() {
	s.t.Helper()
	wait.Until(s.t, "dev.env is written", func() bool {
		select {
		case <-s.ended:
			s.t.Fatal("the supervisor ended")
		default:
		}
		_, err := os.Stat(s.home.EnvFile())
		return err == nil
	})
}

// env reads dev.env as a shell does.
func (s *stack) env() map[string]string {
	s.t.Helper()
	script := `set -a; . "$1"; exec env -0`
	output, err := exec.Command("env", "-i", "PATH="+os.Getenv("PATH"), "sh", "-c", script, "sh", s.home.EnvFile()).Output()
	if err != nil {
		s.t.Fatal(err)
	}
	values := map[string]string{}
	for _, entry := range strings.Split(string(output), "\x00") {
		if name, value, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "HONGBAO_") {
			values[name] = value
		}
	}
	return values
}

// pid returns the process id of a child in dev.env; 0 while the child is down.
func (s *stack) pid(child string) int {
	s.t.Helper()
	text, err := os.ReadFile(s.home.EnvFile())
	if err != nil {
		s.t.Fatal(err)
	}
	if lines := bytes.Count(text, []byte("\n")); lines != 23 {
		s.t.Fatalf("dev.env has %d lines:\n%s", lines, text)
	}
	_, rest, _ := strings.Cut(string(text), "HONGBAO_PID_"+strings.ToUpper(child)+"='")
	digits, _, _ := strings.Cut(rest, "'")
	pid, _ := strconv.Atoi(digits)
	return pid
}

// terminate sends a signal to the supervisor and waits for its end.
func (s *stack) terminate(sig syscall.Signal) time.Duration {
	s.t.Helper()
	began := time.Now()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
	select {
	case <-s.ended:
	case <-time.After(wait.Limit()):
		s.t.Fatal("the supervisor does not end")
	}
	return time.Since(began)
}

func (s *stack) pids() []procID {
	s.t.Helper()
	now, err := s.home.loadState()
	if err != nil {
		s.t.Fatal(err)
	}
	if len(now.Children) != len(childNames) {
		s.t.Fatalf("children: %v", now.Children)
	}
	var list []procID
	for _, id := range now.Children {
		list = append(list, id)
	}
	return list
}

func anyAlive(list []procID) bool { return slices.ContainsFunc(list, procID.alive) }
