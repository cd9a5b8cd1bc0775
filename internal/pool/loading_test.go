package pool

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/test/wait"
)

// TestLoadingRedisIsUnavailable: a Redis that loads its file is unavailable, not
// misconfigured, although its INFO then says aof_enabled:0.
func TestLoadingRedisIsUnavailable(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t, "--key-load-delay", "2000", "--loading-process-events-interval-bytes", "1024")
	p := openAt(t, Config{Addr: server.Addr, Timeout: time.Second})
	pk := newPacket(t, 2000)
	openPacket(t, p, pk)
	c := admin(t, server.Addr)
	must(t, c.BgRewriteAOF(t.Context()).Err())
	wait.Until(t, "the file is rewritten", func() bool { return !rewriting(t, c) })

	crowd, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var refused atomic.Int32
	for n := range 4 {
		wg.Go(func() {
			for i := 0; crowd.Err() == nil; i++ {
				_, err := p.Grab(t.Context(), pk.ID, strconv.Itoa(n)+"-"+strconv.Itoa(i), packet.Profile{})
				if err == nil {
					continue
				}
				refused.Add(1)
				if !errors.Is(err, ErrUnavailable) || isLossy(err) {
					t.Errorf("a grab while Redis loads: %v", err)
				}
			}
		})
	}
	server.Kill()
	server.Restart(t)
	wait.Until(t, "Redis replies again", func() bool { return p.Ping(t.Context()) == nil })
	stop()
	wg.Wait()
	if refused.Load() == 0 {
		t.Error("no grab was refused")
	}
}
