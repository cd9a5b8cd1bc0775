package devstack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hongbao/test/wait"
)

// claimedHome returns the home of a supervisor that was killed, with its dev.env.
func claimedHome(t *testing.T) Home {
	t.Helper()
	home, err := NewHome(filepath.Join(t.TempDir(), "home"))
	if err == nil {
		err = home.create()
	}
	if err == nil {
		err = os.WriteFile(home.EnvFile(), []byte("HONGBAO_PID_API='1'\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return home
}

func isGone(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// TestRunClaimsBeforeSetup: before it calls Setup, Run locks the home, removes the old dev.env, reports a busy port and
// publishes its process for status.
func TestRunClaimsBeforeSetup(t *testing.T) {
	home, ports := claimedHome(t), testPorts(t)
	errSetup := errors.New("no source")
	called := 0
	run := func(ctx context.Context, setup func(context.Context) (Tools, error)) error {
		return Run(ctx, Options{Home: home.Dir(), Ports: ports, Setup: func(ctx context.Context) (Tools, error) {
			called++
			if !isGone(home.EnvFile()) {
				t.Error("the old dev.env exists during setup")
			}
			return setup(ctx)
		}})
	}
	occupy := func() net.Listener {
		listener, err := net.Listen("tcp", hostPort(ports.Staff))
		if err != nil {
			t.Fatal(err)
		}
		return listener
	}
	busy := occupy()
	if err := run(t.Context(), func(context.Context) (Tools, error) { return Tools{}, nil }); !errors.Is(err, ErrPortBusy) || called != 0 ||
		!isGone(home.EnvFile()) {
		t.Errorf("busy port: %v, setup was called %d times, dev.env gone: %v", err, called, isGone(home.EnvFile()))
	}
	if err := busy.Close(); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), func(context.Context) (Tools, error) {
		if err := home.running(); err != nil {
			t.Errorf("status during setup: %v", err)
		}
		if err := os.WriteFile(home.EnvFile(), nil, 0o600); err != nil { // as of a running stack
			t.Error(err)
		}
		if err := Run(t.Context(), Options{Home: home.Dir(), Ports: testPorts(t)}); !errors.Is(err, ErrRunning) || isGone(home.EnvFile()) {
			t.Errorf("a second supervisor: %v, dev.env gone: %v", err, isGone(home.EnvFile()))
		}
		return Tools{}, errSetup
	})
	if !errors.Is(err, errSetup) || home.running() == nil {
		t.Errorf("setup failed: %v, and then %v", err, home.running())
	}
	err = run(t.Context(), func(context.Context) (Tools, error) { busy = occupy(); return Tools{}, nil })
	if !errors.Is(err, ErrPortBusy) {
		t.Errorf("a port that was taken during setup: %v", err)
	}
	if err := busy.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	if err := run(ctx, func(ctx context.Context) (Tools, error) { stop(); return Tools{}, ctx.Err() }); err != nil || home.running() == nil {
		t.Errorf("stopped during setup: %v, and then %v", err, home.running())
	}
	if called != 3 {
		t.Errorf("setup was called %d times", called)
	}
}

// TestSetupWaits: a setup that waits for another one prints this, and can be interrupted.
func TestSetupWaits(t *testing.T) {
	checkout := t.TempDir()
	if err := os.MkdirAll(CacheDir(checkout), 0o755); err != nil {
		t.Fatal(err)
	}
	other, err := LockFile(filepath.Join(filepath.Dir(CacheDir(checkout)), "setup.lock"), false)
	if err != nil {
		t.Fatal(err)
	}
	var out lockedBuffer
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := Setup{Checkout: checkout, NoInstall: true, Out: &out}.Run(ctx)
		ended <- err
	}()
	wait.Until(t, "setup prints that it waits", func() bool { return strings.Contains(out.String(), "waiting for it") })
	stop()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("stopped: %v", err)
		}
	case <-time.After(wait.Limit()):
		t.Error("the waiting setup cannot be interrupted")
	}
	if err := other.Unlock(); err != nil {
		t.Error(err)
	}
}

// TestRunKilledWhileInitialising: after a supervisor was killed during the creation of MariaDB's data folder, the next one
// starts, and ends the leftover mariadbd.
func TestRunKilledWhileInitialising(t *testing.T) {
	options := testOptions{Home: filepath.Join(t.TempDir(), "home"), Ports: testPorts(t), Tools: testTools(t)}
	s := startStack(t, options)
	var leader, server procID
	t.Cleanup(func() {
		for _, p := range []procID{leader, server} {
			if p.alive() {
				_ = syscall.Kill(p.PID, syscall.SIGKILL)
			}
		}
	})
	wait.Until(t, "mariadbd writes the data folder", func() bool {
		now, err := s.home.loadState()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range now.Preparing.members() {
			name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.PID))
			dir, linkErr := os.Readlink(fmt.Sprintf("/proc/%d/cwd", p.PID))
			if err == nil && linkErr == nil && strings.HasPrefix(string(name), "mariadbd") && strings.Contains(dir, ".init-") {
				leader, server = now.Preparing.Leader, p
			}
		}
		return server.PID != 0 && syscall.Kill(server.PID, syscall.SIGSTOP) == nil && server.alive()
	})
	s.terminate(syscall.SIGKILL)
	wait.Until(t, "the script has ended with the supervisor", func() bool { return !leader.alive() })
	if !server.alive() {
		t.Fatal("the stopped mariadbd has ended: the test has no leftover process")
	}
	s = startStack(t, options)
	s.awaitReady()
	if server.alive() {
		t.Error("the leftover mariadbd runs after the next start")
	}
	s.terminate(syscall.SIGTERM)
}
