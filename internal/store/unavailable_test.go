package store

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/staff"
	"hongbao/test/wait"
)

// TestMySQLDown: MySQL is killed. Every call returns ErrUnavailable within moments, and works again
// afterwards.
func TestMySQLDown(t *testing.T) {
	t.Parallel()
	server, dsn := stacktest.FreshMariaDB(t)
	s, _, _ := newStoreAt(t, dsn)
	p := funded(t, s, 100, 2)
	server.Kill()
	for name, call := range map[string]func(context.Context) error{
		"Ping": s.Ping,
		"RecordPacket": func(ctx context.Context) error {
			_, err := s.RecordPacket(ctx, p, []byte("x"), nil)
			return err
		},
		"RecordClaim": func(ctx context.Context) error {
			_, err := s.RecordClaim(ctx, claimOf(p, 0, "u"))
			return err
		},
		"BeginSend":    func(ctx context.Context) error { _, err := s.BeginSend(ctx, chargeID(p), limits, encode); return err },
		"Packet":       func(ctx context.Context) error { _, err := s.Packet(ctx, p.ID); return err },
		"PaymentState": func(ctx context.Context) error { _, err := s.PaymentState(ctx, chargeID(p)); return err },
		"Payments": func(ctx context.Context) error {
			_, err := s.Payments(ctx, staff.PaymentFilter{Kind: 'p', Limit: 1})
			return err
		},
		"DueOutbox":    func(ctx context.Context) error { _, err := s.DueOutbox(ctx, 1); return err },
		"Notification": func(ctx context.Context) error { return s.RecordNotification(ctx, adapter, "e", "o", nil) },
		"Access":       func(ctx context.Context) error { _, _, err := s.AppsAndKeys(ctx); return err },
		"CloseBooks":   func(ctx context.Context) error { _, err := s.CloseBooks(ctx, p.ID, ""); return err },
		"Balances":     func(ctx context.Context) error { _, err := s.Balances(ctx, p.ID); return err },
	} {
		begun := time.Now()
		err := call(t.Context())
		if !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(begun); took > wait.Bound(5*time.Second) {
			t.Errorf("%s took %v", name, took)
		}
		secretFree(t, name, err)
	}
	server.Restart(t)
	claim(t, s, p, 0, "u")
	// Paused, not stopped: the caller's deadline counts.
	server.Pause(t)
	defer server.Resume(t)
	var err error
	for begun := time.Now(); err == nil; { // stopping takes effect a moment later
		if time.Since(begun) > wait.Bound(20*time.Second) {
			t.Fatal("a frozen server answers")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, err = s.Packet(ctx, p.ID)
		cancel()
	}
	wantErr(t, err, ErrUnavailable)
}

const password = "only-for-tests" // of package stacktest

func secretFree(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil && strings.Contains(err.Error(), password) {
		t.Errorf("%s contains the password: %v", what, err)
	}
}

func TestErrorsHideDSN(t *testing.T) {
	t.Parallel()
	dsn := stacktest.MariaDB(t)
	for name, bad := range map[string]string{
		"malformed":     strings.Replace(dsn, "tcp(", "tcp", 1),
		"port":          strings.Replace(dsn, "tcp(127.0.0.1:", "tcp(127.0.0.1:1", 1),
		"user":          strings.Replace(dsn, "hongbao:", "nobody:", 1),
		"database":      strings.Replace(dsn, "/t_", "/none_", 1),
		"unknown value": dsn + "&tls=" + password,
	} {
		s, err := Open(Config{DSN: bad})
		if err == nil {
			err = s.Ping(t.Context())
			must(t, s.Close())
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		if name != "unknown value" { // the caller put it there
			secretFree(t, name, err)
		}
		if raw, err := OpenSQL(bad); err != nil {
			if name != "unknown value" {
				secretFree(t, name, err)
			}
		} else {
			must(t, raw.Close())
		}
	}
}
