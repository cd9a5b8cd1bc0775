package pool_test

import (
	"errors"
	"testing"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/pool"
)

// TestExamine examines a server and a Cluster, and leaves no trace.
func TestExamine(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	t.Run("Single", func(t *testing.T) {
		addr := stacktest.FreshRedis(t).Addr
		for range 2 { // the second call finds no trace of the first
			seen, err := pool.Examine(ctx, pool.Config{Addr: addr})
			if err != nil || len(seen.Servers) != 1 || seen.Lanes != 0 || seen.BacklogErr != nil || seen.Handoffs.Waiting != 0 {
				t.Fatalf("%+v, %v", seen, err)
			}
			if s := seen.Servers[0]; s.Addr != addr || s.Version == "" || s.Err != nil || s.Volatile != nil || s.Replicas != nil ||
				s.ClockAhead.Abs() > 1e9 {
				t.Errorf("%+v", s)
			}
		}
		p, err := pool.Open(ctx, pool.Config{Addr: addr, Lanes: 8})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if seen, err := pool.Examine(ctx, pool.Config{Addr: addr, Replicas: 1}); err != nil || seen.Lanes != 8 ||
			!errors.Is(seen.Servers[0].Replicas, pool.ErrReplicas) {
			t.Errorf("%+v, %v", seen, err)
		}
	})
	t.Run("Volatile", func(t *testing.T) {
		seen, err := pool.Examine(ctx, pool.Config{Addr: stacktest.FreshRedis(t, "--appendfsync", "no").Addr})
		if err != nil || seen.Servers[0].Volatile == nil || seen.Servers[0].Volatile.AppendFsync != "no" {
			t.Errorf("%+v, %v", seen, err)
		}
	})
	t.Run("Cluster", func(t *testing.T) {
		servers := stacktest.FreshRedisCluster(t)
		cfg := pool.Config{Addr: stacktest.Addrs(servers)[0], Mode: pool.ModeCluster}
		seen, err := pool.Examine(ctx, cfg)
		if err != nil || len(seen.Servers) != len(servers) || seen.Lanes != 0 {
			t.Fatalf("%+v, %v", seen, err)
		}
		servers[2].Kill()
		seen, err = pool.Examine(ctx, cfg)
		away := 0
		for _, s := range seen.Servers {
			if s.Err != nil {
				away++
			}
		}
		if err != nil || away != 1 || seen.BacklogErr == nil {
			t.Errorf("one master away: %+v, %v", seen, err)
		}
	})
	t.Run("ErrUnavailable", func(t *testing.T) {
		if _, err := pool.Examine(ctx, pool.Config{Addr: "127.0.0.1:1"}); !errors.Is(err, pool.ErrUnavailable) {
			t.Error(err)
		}
	})
}
