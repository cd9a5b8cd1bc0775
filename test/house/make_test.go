package house

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestMakeRunForgetsFirst checks that make run removes the dev.env of a stopped stack before it
// builds, and refuses to start beside a running stack, whose dev.env stays.
func TestMakeRunForgetsFirst(t *testing.T) {
	home := t.TempDir()
	env, lock := filepath.Join(home, "dev.env"), filepath.Join(home, "lock")
	for _, path := range []string{env, lock} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := func(args ...string) (string, error) {
		cmd := exec.Command("make", append(args, "-s", "HONGBAO_HOME="+home)...)
		cmd.Env = append(os.Environ(), "HONGBAO_HOME="+home, "MAKEFLAGS=")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	plan, err := command("-n", "run")
	forgets, builds := strings.Index(plan, "dev.env"), strings.Index(plan, "go build")
	if err != nil || forgets < 0 || builds < forgets {
		t.Errorf("dev.env is not removed before the build: %v\n%s", err, plan)
	}
	file, err := os.Open(lock)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if out, err := command("forget"); err == nil || !strings.Contains(out, "already running in "+home) {
		t.Errorf("beside a stack that runs: %v\n%s", err, out)
	}
	if _, err := os.Stat(env); err != nil {
		t.Errorf("dev.env of a stack that runs: %v", err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	for _, there := range []bool{true, false} {
		out, err := command("forget")
		if _, left := os.Stat(env); err != nil || out != "" || !errors.Is(left, fs.ErrNotExist) {
			t.Errorf("dev.env there before: %v; %v, %q, left: %v", there, err, out, left)
		}
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if out, err := command("forget"); err != nil || out != "" {
		t.Errorf("a new home: %v, %q", err, out)
	}
	if _, err := os.Stat(lock); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was made in a new home: %v", err)
	}
}
