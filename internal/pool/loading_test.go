package pool

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/test/wait"
)

// TestLoadingRedisIsUnavailable: a Redis that loads its file is unavailable, not
// misconfigured, although its INFO then says aof_enabled:0.
func TestLoadingRedisIsUnavailable(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t,
		"--key-load-delay", "100000", "--loading-process-events-interval-bytes", "1024", "--rdbcompression", "no")
	p := openAt(t, Config{Addr: server.Addr, Timeout: time.Second})
	pk := newPacket(t, 2000)
	openPacket(t, p, pk)
	c := admin(t, server.Addr)
	for n := range 100 { // read for ten seconds, unless the delay is removed
		must(t, c.Set(t.Context(), "more:"+strconv.Itoa(n), strings.Repeat("x", 2048), 0).Err())
	}
	must(t, c.BgRewriteAOF(t.Context()).Err())
	wait.Until(t, "the file is rewritten", func() bool { return !rewriting(t, c) })
	server.Kill()

	refused := make(chan bool, 1)
	go func() {
		refused <- wait.Reached(wait.Limit(), func() bool {
			before := loading(t, c)
			_, err := p.Grab(t.Context(), pk.ID, "bob", packet.Profile{})
			if err != nil && (!errors.Is(err, ErrUnavailable) || isLossy(err)) {
				t.Errorf("a grab while Redis loads: %v", err)
			}
			return before && err != nil && loading(t, c)
		})
		if err := c.ConfigSet(t.Context(), "key-load-delay", "0").Err(); err != nil {
			t.Error(err)
		}
	}()
	server.Restart(t)
	if !wait.For(t, "a grab is tried while Redis loads", refused) {
		t.Error("no grab was refused")
	}
	wait.Until(t, "Redis replies again", func() bool { return p.Ping(t.Context()) == nil })
}

func loading(t *testing.T, c *redis.Client) bool {
	t.Helper()
	info, err := readInfo(c.Info(t.Context(), "persistence"))
	return err == nil && info["loading"] == "1"
}
