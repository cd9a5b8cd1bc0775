package main

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/pool"
)

// TestOpenPoolRefused: a start fails when Redis refuses the process. The error says what to correct and holds no password.
func TestOpenPoolRefused(t *testing.T) {
	authority := stacktest.NewAuthority(t)
	const secret = "only-for-tests-redis"
	server := stacktest.FreshLockedRedis(t, stacktest.Lock{Password: secret, Authority: authority})
	right := pool.Access{Password: secret, TLS: true, Authorities: authority.Pool}
	wrong := func(change func(a *pool.Access)) pool.Access {
		a := right
		change(&a)
		return a
	}
	for name, c := range map[string]struct {
		access pool.Access
		why    error
		do     string
	}{
		"password": {wrong(func(a *pool.Access) { a.Password = "only-for-tests-wrong" }), pool.ErrAuth,
			"Correct HONGBAO_REDIS_USERNAME and HONGBAO_REDIS_PASSWORD"},
		"unknown": {wrong(func(a *pool.Access) { a.Authorities = nil }), pool.ErrTLS, "HONGBAO_REDIS_CA_FILE"},
		"no TLS":  {pool.Access{Password: secret}, pool.ErrTLS, "Set HONGBAO_REDIS_TLS"},
	} {
		var log bytes.Buffer
		redis, err := openPool(t.Context(), pool.Config{Addr: server.Addr, Access: c.access}, nil,
			slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
		if err == nil {
			_ = redis.Close()
		}
		if !errors.Is(err, c.why) || !strings.Contains(err.Error(), c.do) {
			t.Errorf("%s: %v, want %v, %q", name, err, c.why, c.do)
		}
		if strings.Contains(log.String()+err.Error(), "only-for-tests") {
			t.Errorf("%s: a password is printed: %v\n%s", name, err, &log)
		}
	}
	redis, err := openPool(t.Context(), pool.Config{Addr: server.Addr, Access: right}, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := redis.Close(); err != nil {
		t.Error(err)
	}
}
