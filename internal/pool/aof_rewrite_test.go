package pool

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/test/wait"
)

// TestRewriteAfterStart: after a crash in the middle of a script's effects, no later start
// applies a part of them.
func TestRewriteAfterStart(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	p := openAt(t, Config{Addr: server.Addr})
	h := handoffs(t, p)
	ctx := t.Context()
	pk := newPacket(t, 50)
	openPacket(t, p, pk)
	lane := packet.Lane(pk.ID, p.cfg.Lanes)
	mustGrab(t, p, pk.ID, "kept")
	mustGrab(t, p, pk.ID, "torn")
	whole := p.rdb.XLen(ctx, p.keys.handoff(lane)).Val()
	dir := p.rdb.ConfigGet(ctx, "dir").Val()["dir"]
	server.Kill()
	tearLast(t, filepath.Join(dir, "appendonlydir"), "XADD")
	restart := func() (entries int64) {
		t.Helper()
		server.Restart(t)
		wait.Until(t, "Redis answers", func() bool { return p.Ping(ctx) == nil })
		return p.rdb.XLen(ctx, p.keys.handoff(lane)).Val()
	}
	written := func() bool { // exactly once, and complete
		info := p.rdb.Info(ctx, "persistence").Val()
		due, err := rewriteDue(ctx, p.rdb)
		return err == nil && !due && strings.Contains(info, "aof_rewrites:1\r") && strings.Contains(info, "aof_rewrite_in_progress:0\r")
	}
	before := restart()
	must(t, h.RewriteAfterStart(ctx))
	wait.Until(t, "rewritten", written)
	must(t, h.RewriteAfterStart(ctx))
	if !written() {
		t.Error("rewritten twice")
	}
	_, err := p.rdb.TxPipelined(ctx, func(tx redis.Pipeliner) error { // completes what the file left open
		tx.Set(ctx, "one", 1, 0)
		return tx.Set(ctx, "two", 2, 0).Err()
	})
	must(t, err)
	server.Kill()
	if after := restart(); before != whole-1 || after != before {
		t.Errorf("%d hand-offs, %d after the first start, %d after the second", whole, before, after)
	}
}

// racingRewrite lets another worker start the rewrite between the check and the command.
type racingRewrite struct {
	another *redis.Client
	once    sync.Once
}

func (o *racingRewrite) DialHook(next redis.DialHook) redis.DialHook { return next }

func (o *racingRewrite) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (o *racingRewrite) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil && cmd.Name() == "info" {
			o.once.Do(func() { err = o.another.BgRewriteAOF(ctx).Err() })
		}
		return err
	}
}

// TestRewriteStartedByAnother: of several workers one starts the rewrite; the others see no
// error.
func TestRewriteStartedByAnother(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	p := openAt(t, Config{Addr: server.Addr})
	h := handoffs(t, p)
	ctx := t.Context()
	another := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer another.Close()
	for key, value := range map[string]string{"aof-use-rdb-preamble": "yes", "rdb-key-save-delay": "10000000"} { // makes it slow
		must(t, another.ConfigSet(ctx, key, value).Err())
	}
	fill(t, p, 0, 1)
	p.rdb.AddHook(&racingRewrite{another: another})
	must(t, h.RewriteAfterStart(ctx))
	due, err := rewriteDue(ctx, p.rdb)
	if err != nil || due {
		t.Errorf("no rewrite was started: %v", err)
	}
}

// tearLast truncates the append-only file in the middle of the command after the last one of
// a name.
func tearLast(t *testing.T, dir, name string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*.incr.aof"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v %v", found, err)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(text, []byte(name))
	next := bytes.Index(text[max(at, 0):], []byte("\r\n*"))
	if at < 0 || next < 0 {
		t.Fatalf("no %s in the middle of %d bytes", name, len(text))
	}
	if err := os.Truncate(found[0], int64(at+next+len("\r\n*1"))); err != nil {
		t.Fatal(err)
	}
}
