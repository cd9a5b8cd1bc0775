package stacktest

import (
	_ "embed"
	"encoding/binary"
	"os"
	osexec "os/exec"
	"path/filepath"
	"testing"
	"time"

	"hongbao/internal/devstack"
)

//go:embed testdata/clock.c
var clockSource []byte

// ShiftedRedis is a Redis server whose clock can be stepped while it runs.
type ShiftedRedis struct {
	*Server
	off *os.File // how far its clock is off, in nanoseconds
}

// FreshShiftedRedis starts a Redis server for this test alone whose clock a test can
// step. It ends with the test. It needs the C compiler that the race detector needs.
func FreshShiftedRedis(t testing.TB) *ShiftedRedis {
	t.Helper()
	dir := t.TempDir()
	source, library := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so")
	if err := os.WriteFile(source, clockSource, 0o600); err != nil {
		t.Fatal(err)
	}
	compiler := os.Getenv("CC")
	for _, name := range []string{"gcc", "clang"} {
		if _, err := osexec.LookPath(name); compiler == "" && err == nil {
			compiler = name
		}
	}
	if out, err := osexec.Command(compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library,
		source).CombinedOutput(); err != nil {
		t.Fatalf("compile the clock: %v\n%s", err, out)
	}
	off, err := os.Create(filepath.Join(dir, "off"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = off.Close() })
	s := &ShiftedRedis{off: off}
	s.Step(t, 0)
	s.Server = fresh(t, func(tools devstack.Tools, dir string) (*Server, error) {
		server, err := newRedis(tools, dir)
		if err != nil {
			return nil, err
		}
		part := server.part.(devstack.Redis)
		// jemalloc's threads sleep until a time of day, which the kernel compares with its
		// own: behind it they would never sleep.
		part.Flags = append(part.Flags, "--jemalloc-bg-thread", "no")
		part.Env = []string{"LD_PRELOAD=" + library, "CLOCK_OFF_FILE=" + off.Name()}
		server.part = part
		return server, nil
	})
	return s
}

// Step sets the server's clock off the machine's by so much, from now on.
func (s *ShiftedRedis) Step(t testing.TB, off time.Duration) {
	t.Helper()
	var ns [8]byte
	binary.NativeEndian.PutUint64(ns[:], uint64(off))
	if _, err := s.off.WriteAt(ns[:], 0); err != nil {
		t.Fatal(err)
	}
}
