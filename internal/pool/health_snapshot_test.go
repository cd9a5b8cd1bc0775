package pool

import (
	"testing"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/observe"
)

// TestHealthSnapshotDurable: the snapshot reports Redis' real durability, also where
// volatile writes are allowed.
func TestHealthSnapshotDurable(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	c := admin(t, server.Addr)
	for _, allowed := range []bool{false, true} {
		p, err := Open(t.Context(), Config{Addr: server.Addr, Lanes: 2, AllowVolatile: allowed})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() })
		for _, fsync := range []string{"always", "everysec", "always"} {
			if err := c.ConfigSet(t.Context(), "appendfsync", fsync).Err(); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second call reads a server that is known as volatile
				var v observe.HealthSnapshot
				if err := p.HealthSnapshot(t.Context(), &v); err != nil || !v.FromRedis || v.Durable != (fsync == "always") {
					t.Errorf("volatile writes allowed: %t, appendfsync %s: %+v %v", allowed, fsync, v, err)
				}
			}
		}
	}
}
