// Package stacktest gives tests the real parts: Redis, MariaDB and Temporal.
//
// One server of a kind is started per test binary, at the first call, and shared
// by its tests, which keep apart by names (packet ids, databases, workflow ids).
// Tests that empty a server borrow one; tests that kill or configure a server take a
// Fresh one. A test binary calls Main from its TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(stacktest.Main(m)) }
//
// Servers and folders of a binary that does not, or that crashes, disappear too:
// the kernel kills the servers, and the next test binary removes the folders.
package stacktest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hongbao/internal/devstack"
	"hongbao/test/wait"
)

// startTimeout bounds the start of one server, on a busy machine too.
const startTimeout = time.Minute

// onDisk is set by OnDisk.
var onDisk bool

// OnDisk has the servers of this test binary wait for the disk where those of
// production do. Call it before Main, for measurements: tests never take away more
// than a process, and what that has written is in the page cache and survives it,
// so that waiting for the disk would only be slow.
func OnDisk() { onDisk = true }

// Runner is *testing.M, or what wraps it.
type Runner interface{ Run() int }

// Main runs the tests, stops the shared servers, removes their folders and
// returns the exit code.
func Main(m Runner) int {
	code := m.Run()
	if err := shared.close(); err != nil {
		fmt.Fprintln(os.Stderr, "stacktest:", err)
		if code == 0 {
			code = 1
		}
	}
	return code
}

// Wrap is Main in the form that goleak.VerifyTestMain takes:
//
//	goleak.VerifyTestMain(stacktest.Wrap(m))
func Wrap(m Runner) Runner { return wrapped{m} }

type wrapped struct{ Runner }

func (w wrapped) Run() int { return Main(w.Runner) }

// Server is one server of a test, which may be killed, paused and started again.
type Server struct {
	Addr string // host:port

	part devstack.Part
	lock Lock
	log  string
	mu   sync.Mutex
	proc *devstack.Process
}

// PID is the process id of the running server.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc.PID()
}

// Kill ends the server with SIGKILL and returns when it is gone.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proc.Kill()
}

// Pause stops the server with SIGSTOP: connections stay open and nothing answers. It
// returns when every thread stands still: until then one may answer.
func (s *Server) Pause(t testing.TB) {
	t.Helper()
	s.signal(t, syscall.SIGSTOP)
	wait.Until(t, fmt.Sprintf("process %d stops", s.proc.PID()), func() bool { return IsStopped(s.proc.PID()) })
}

// IsStopped reports whether all threads of a process are stopped.
func IsStopped(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, stat := range threads {
		text, rerr := os.ReadFile(stat)
		_, state, found := strings.Cut(string(text), ") ")
		if rerr != nil || !found || state[0] != 'T' {
			return false
		}
	}
	return err == nil && len(threads) > 0
}

// Resume ends a Pause.
func (s *Server) Resume(t testing.TB) { s.signal(t, syscall.SIGCONT) }

func (s *Server) signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.proc.Signal(sig); err != nil {
		t.Fatalf("%v: %v", sig, err)
	}
}

// Restart starts the server again after Kill, with the same port and data, and
// returns when it is ready.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
}

// LoseData ends the server with SIGKILL and deletes all that it has stored, as a lost
// disk does. Restart starts it again with nothing, as a first start does. Only a
// Temporal server can be lost.
func (s *Server) LoseData(t testing.TB) {
	t.Helper()
	files := s.stored(t)
	s.Kill()
	for _, file := range files {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}

// Backup copies what the server has stored as it is at one moment, and returns how to
// put it back: the server is killed then, and Restart starts it with the copy. Only a
// Temporal server can be.
func (s *Server) Backup(t testing.TB) (restore func()) {
	t.Helper()
	s.Pause(t)
	defer s.Resume(t)
	kept := map[string][]byte{}
	for _, file := range s.stored(t) {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		kept[file] = content
	}
	return func() {
		t.Helper()
		s.LoseData(t)
		for file, content := range kept {
			if err := os.WriteFile(file, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// stored are the files of a Temporal server: its database and that one's journal.
func (s *Server) stored(t testing.TB) []string {
	t.Helper()
	part, ok := s.part.(devstack.Temporal)
	if !ok {
		t.Fatalf("%T has no files that are known", s.part)
	}
	files, err := filepath.Glob(part.DB + "*")
	if err != nil || len(files) == 0 {
		t.Fatalf("nothing is stored in %s: %v", part.DB, err)
	}
	return files
}

func (s *Server) start() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	proc, err := devstack.Start(ctx, s.part, s.log)
	if err != nil {
		return withLog(err, s.log)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proc = proc
	return nil
}

// stop ends the server. A graceful end would only write what is deleted anyway.
func (s *Server) stop() { s.Kill() }

// withLog adds the end of a server's log to an error, for the reader of a failed
// test whose folder is gone.
func withLog(err error, path string) error {
	text, readErr := os.ReadFile(path)
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	return fmt.Errorf("%w\n%s", err, text[max(0, len(text)-2000):])
}

// Redis returns the address of the shared Redis server. It answers when a write is in
// its file, as in production (appendfsync always). Do not flush it: other tests use it.
func Redis(t testing.TB) string {
	t.Helper()
	return shared.get(t, "redis", newRedis).Addr
}

// BorrowRedis returns the address of a Redis server like that of Redis, which no other
// test borrows until this test has ended. The test may empty it, and must not kill or
// configure it. The server may hold what earlier tests have left.
func BorrowRedis(t testing.TB) string {
	t.Helper()
	return shared.get(t, borrow(t, "redis-borrowed"), newRedis).Addr
}

// FreshRedis starts a Redis server for this test alone, with further
// redis-server options such as "--appendfsync", "no". It ends with the test.
func FreshRedis(t testing.TB, flags ...string) *Server {
	t.Helper()
	return fresh(t, func(tools devstack.Tools, dir string) (*Server, error) {
		server, err := newRedis(tools, dir)
		if err != nil {
			return nil, err
		}
		part := server.part.(devstack.Redis)
		part.Flags = flags
		server.part = part
		return server, nil
	})
}

func newRedis(tools devstack.Tools, dir string) (*Server, error) {
	port, err := devstack.FreePort()
	if err != nil {
		return nil, err
	}
	part := devstack.Redis{Tools: tools, Dir: filepath.Join(dir, "redis"), Port: port}
	return &Server{Addr: part.Addr(), part: part, log: filepath.Join(dir, "redis.log")}, nil
}

// Namespace is the Temporal namespace of the test servers.
const Namespace = "hongbao"

// fresh starts a server that ends with the test.
func fresh(t testing.TB, create func(devstack.Tools, string) (*Server, error)) *Server {
	t.Helper()
	tools := findTools(t)
	dir, err := newDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		var err error
		// a child of the killed server may still write
		if !wait.Reached(wait.Limit(), func() bool { err = os.RemoveAll(dir); return err == nil }) {
			t.Error(err)
		}
	})
	server, err := create(tools, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.stop)
	return server
}

// findTools fails the test with the way to get them when servers are missing. A
// skipped test would look like a passed one.
func findTools(t testing.TB) devstack.Tools {
	t.Helper()
	checkout, err := devstack.FindCheckout(".")
	if err != nil {
		t.Fatal(err)
	}
	tools, err := devstack.FindTools(devstack.CacheDir(checkout))
	if err != nil {
		t.Fatalf("%v; `make test` installs and builds them", err)
	}
	return tools
}

// dirPrefix starts the name of every folder of the tests; the process id of its
// owner follows.
const dirPrefix = "hongbao-test-"

// newDir makes a folder that belongs to this process.
func newDir() (string, error) {
	sweep.Do(removeOrphans)
	return MkdirTemp(dirPrefix + strconv.Itoa(os.Getpid()) + "-")
}

// MkdirTemp makes a folder as os.MkdirTemp does, in memory if there is room and not OnDisk. The
// caller deletes it.
func MkdirTemp(prefix string) (string, error) {
	base := os.TempDir()
	if !onDisk && hasRoom(memoryDir) {
		base = memoryDir
	}
	return os.MkdirTemp(base, prefix)
}

// memoryDir is a file system in memory, where Redis and Temporal wait for no disk.
const memoryDir = "/dev/shm"

// hasRoom reports whether a file system has room for the servers of several test binaries;
// that of a container often has not.
func hasRoom(dir string) bool {
	var fs syscall.Statfs_t
	return syscall.Statfs(dir, &fs) == nil && fs.Bavail*uint64(fs.Bsize) >= 4<<30
}

var sweep sync.Once

// removeOrphans deletes the folders of test binaries that are gone. It is a
// courtesy: what it cannot read or delete is left alone.
func removeOrphans() {
	for _, base := range []string{os.TempDir(), memoryDir} {
		removeOrphansIn(base)
	}
}

func removeOrphansIn(base string) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return
	}
	for _, entry := range entries {
		rest, ours := strings.CutPrefix(entry.Name(), dirPrefix)
		owner, _, _ := strings.Cut(rest, "-")
		pid, err := strconv.Atoi(owner)
		if !ours || err != nil {
			continue
		}
		if _, err := os.Stat("/proc/" + owner); pid > 0 && errors.Is(err, fs.ErrNotExist) {
			_ = os.RemoveAll(filepath.Join(base, entry.Name()))
		}
	}
}
