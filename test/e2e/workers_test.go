package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hongbao/test/wait"
	"hongbao/wire"
)

// secondWorker starts another worker with the settings of the running one and
// waits until its relay works.
func (s *stack) secondWorker(t *testing.T) *exec.Cmd {
	t.Helper()
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", s.pid(t, "WORKER")))
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "worker2.log")
	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	cmd := exec.Command("../../.cache/bin/hongbao", "worker")
	for v := range strings.SplitSeq(strings.TrimRight(string(environ), "\x00"), "\x00") {
		if !strings.HasPrefix(v, "HONGBAO_WORKER_LISTEN=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _, _ = cmd.Process.Wait() })
	wait.Until(t, "the second worker relays", func() bool {
		b, _ := os.ReadFile(log)
		return strings.Contains(string(b), "Worker is ready") && strings.Contains(string(b), "Relay started")
	})
	return cmd
}

// TestTwoWorkers checks that two workers share the lanes, and that one takes over what the other
// had read when it was killed during a crowd.
func TestTwoWorkers(t *testing.T) {
	s := running
	second := s.secondWorker(t)
	const total = 60_000
	p := s.create(t, wire.CreatePacket{SenderID: "sender", TotalAmount: total, ShareCount: 80})
	won := map[string]claim{}
	for part := range 8 {
		for user, c := range s.crowd(t, p.ID, users(fmt.Sprintf("w%d-", part), 10), 1) {
			won[user] = c
		}
		if part == 4 {
			if err := second.Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(won) != 80 {
		t.Fatalf("%d winners of 80 shares", len(won))
	}
	s.settled(t, p.ID, total, won)
}
