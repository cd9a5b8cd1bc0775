package e2e

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"hongbao/test/wait"
	"hongbao/wire"
)

// repeatCreate repeats a create with the same key until there is a final answer.
func (s *stack) repeatCreate(t *testing.T, key string, body map[string]any) answer {
	t.Helper()
	var a answer
	wait.Until(t, "create is answered", func() bool {
		var err error
		a, err = s.try(t.Context(), "POST", s.api("/v1/packets"), s.env("HONGBAO_APP_KEY"), body, "Idempotency-Key", key)
		if err != nil || a.status == 503 || a.status == 409 && a.str("code") == "request_in_progress" {
			return false
		}
		return true
	})
	return a
}

// interrupted starts a create, does harm a moment later, and waits for the end of the create.
func (s *stack) interrupted(t *testing.T, key string, body map[string]any, after time.Duration, harm func()) {
	t.Helper()
	done, due := make(chan struct{}), time.Now().Add(after)
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, _ = s.try(ctx, "POST", s.api("/v1/packets"), s.env("HONGBAO_APP_KEY"), body, "Idempotency-Key", key)
	}()
	wait.Until(t, "the moment has come", func() bool { return !time.Now().Before(due) })
	harm()
	<-done
}

// flushAll empties Redis. An operator must never do that, and it must not cause a second charge.
func (s *stack) flushAll(t *testing.T) {
	t.Helper()
	conn, err := net.Dial("tcp", s.env("HONGBAO_REDIS_ADDR"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte("FLUSHALL\r\n")); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 5)
	if _, err := conn.Read(answer); err != nil || string(answer) != "+OK\r\n" {
		t.Fatalf("FLUSHALL: %q %v", answer, err)
	}
}

// TestR1_CreateInterruptedAndRepeated checks that a create makes one packet and one charge when it
// is interrupted at any step, by a killed process or the loss of Redis, and repeated with the same
// key.
func TestR1_CreateInterruptedAndRepeated(t *testing.T) {
	t.Parallel() // with TestCrashPoints and TestCrashPointsOfRebuilds, which have their own stacks
	s := running
	kill := func(child string) func() {
		return func() { _ = syscall.Kill(s.pid(t, child), syscall.SIGKILL) }
	}
	for _, harm := range []struct {
		name string
		do   func()
	}{
		{"API", kill("API")}, {"WORKER", kill("WORKER")}, {"PROVIDER", kill("PROVIDER")}, {"FLUSHALL", func() { s.flushAll(t) }},
	} {
		t.Run(harm.name, func(t *testing.T) {
			for i, after := range []time.Duration{0, 8 * time.Millisecond, 25 * time.Millisecond, 70 * time.Millisecond} {
				key := rand.Text()
				body := map[string]any{"sender_id": fmt.Sprintf("sender%d", i), "total_amount": 1000, "share_count": 4}
				s.interrupted(t, key, body, after, harm.do)
				a := s.repeatCreate(t, key, body)
				if a.status != 201 && a.status != 202 {
					t.Fatalf("after %v: %d %s", after, a.status, a.raw)
				}
				id := a.str("id")
				again := s.repeatCreate(t, key, body)
				if again.str("id") != id || again.status != a.status {
					t.Errorf("repeat: %d %s, before: %d %s", again.status, again.raw, a.status, a.raw)
				}
				wait.Until(t, "charged once", func() bool {
					charges := 0
					for _, m := range s.movements(t, id) {
						if m.str("op") == "charge" {
							charges++
						}
					}
					if charges > 1 {
						t.Fatalf("after %v: %d charges", after, charges)
					}
					return charges == 1
				})
				wait.Until(t, "opens", func() bool { return s.packet(t, id).Status == wire.PacketOpen })
			}
		})
	}
}
