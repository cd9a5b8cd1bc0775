package pool

import (
	"bufio"
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/fence"
	"hongbao/internal/packet"
)

// arity is the number of KEYS or ARGV that a script's header declares.
type arity struct{ single, group int }

func (a arity) fits(n int) bool {
	if a.group == 0 {
		return n == a.single
	}
	return n >= a.single && (n-a.single)%a.group == 0
}

var declaration = regexp.MustCompile(`^-- (KEYS|ARGV)\[(\+?)(\d+)\]\s+\S`)

// firstLine returns a script's first line: at its memory limit Redis refuses only scripts
// that begin something new.
func firstLine(name string) string {
	switch name {
	case "create", "open", "grab", "limit":
		return "#!lua"
	case "view", "page", "acl":
		return "#!lua flags=no-writes"
	}
	return "#!lua flags=allow-oom"
}

// header reads the declarations of a script; they must be numbered from 1.
func header(t *testing.T, name string) (keys, args arity) {
	t.Helper()
	source, err := scriptFiles.ReadFile(name + ".lua")
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(strings.NewReader(string(source)))
	if !lines.Scan() || lines.Text() != firstLine(name) {
		t.Errorf("%s.lua begins with %q, not with %q", name, lines.Text(), firstLine(name))
	}
	returns := false
	for first := true; lines.Scan() && strings.HasPrefix(lines.Text(), "--"); first = false {
		if first && !strings.HasPrefix(lines.Text(), "-- "+name+".lua ") {
			t.Errorf("%s.lua does not begin with its name and purpose", name)
		}
		returns = returns || strings.HasPrefix(lines.Text(), "-- Returns ")
		m := declaration.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		a := &keys
		if m[1] == "ARGV" {
			a = &args
		}
		count := &a.single
		if m[2] == "+" {
			count = &a.group
		}
		if *count++; strconv.Itoa(*count) != m[3] {
			t.Errorf("%s.lua: %s is not the next one", name, m[0])
		}
	}
	if !returns {
		t.Errorf("%s.lua does not say what it returns", name)
	}
	return keys, args
}

// calls records the script calls of a client.
type calls struct {
	mu   sync.Mutex
	made []scriptCall
}

type scriptCall struct {
	name string
	keys []string
	args int
	err  error
}

func (c *calls) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *calls) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			c.note(cmd, cmd.Err())
		}
		return err
	}
}

func (c *calls) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		c.note(cmd, err)
		return err
	}
}

func (c *calls) note(cmd redis.Cmder, err error) {
	if cmd.Name() != "evalsha" {
		return
	}
	args := cmd.Args()
	call := scriptCall{err: err}
	for name, s := range scripts {
		if s.Hash() == args[1] {
			call.name = name
		}
	}
	n := args[2].(int)
	for _, k := range args[3 : 3+n] {
		call.keys = append(call.keys, k.(string))
	}
	call.args = len(args) - 3 - n
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made = append(c.made, call)
}

// everyScript runs packets to their end, so that each script is called.
func everyScript(t *testing.T, p *Pool) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	mates := laneMates(t, p, 3, 2)
	one, two, three := mates[0], mates[1], mates[2]
	openPacket(t, p, one)
	openPacket(t, p, two, "a", "b")
	stage(t, p, three)
	must(p.StoreAction(ctx, three.ID, []byte("sealed")))
	must(p.Reject(ctx, three.ID, packet.Failure{Code: "declined"}))
	_, err := p.StoreFirstAnswer(ctx, one.ID, packet.FirstAnswer{HTTPStatus: 201})
	must(err)
	batch := batchOf(ctx, [2]string{one.ID, "a"}, [2]string{two.ID, "a"}, [2]string{one.ID, "b"})
	flush(p, packet.Lane(one.ID, p.Lanes()), batch)
	for i, g := range results(t, batch) {
		if g.Result != packet.GrabWon {
			t.Errorf("grab %d: %v", i, g.Result)
		}
	}
	_, err = p.Recall(ctx, two.ID)
	must(err)
	_, err = p.View(ctx, two.ID)
	must(err)
	_, _, err = p.ClaimsPage(ctx, two.ID, -1, 10)
	must(err)
	_, err = p.ClosePool(ctx, one.ID, packet.CloseSoldOut)
	must(err)
	_, _, err = p.KeepStaleClaim(ctx, packet.Claim{PacketID: one.ID, UserID: "stale", Amount: 1, ClaimedAt: time.Now()})
	must(err)
	must(p.Retire(ctx, one.ID))
	h := handoffs(t, p)
	s, err := h.AcquireSlot(ctx, 200, time.Minute)
	must(err)
	must(s.Renew(ctx))
	_, err = h.LiveSlots(ctx, 200)
	must(err)
	lane := packet.Lane(one.ID, p.Lanes())
	read, err := h.Read(ctx, lane, s.Consumer(), 1, time.Millisecond)
	must(err)
	must(h.Ack(ctx, lane, read.Last))
	_, err = h.TakeOver(ctx, lane, s.Consumer(), "successor", 1)
	must(err)
	_, err = h.RemoveConsumer(ctx, lane, s.Consumer())
	must(err)
	_, err = h.TakeOver(ctx, lane, "successor", s.Consumer(), 1)
	must(err)
	_, err = h.RemoveConsumer(ctx, lane, "successor")
	must(err)
	_, err = h.TakeOrphans(ctx, lane, "successor", 1)
	must(err)
	must(s.Release(ctx))
	must(p.HaltFence(ctx, lane, 1, fence.LaneRequested))
	must(p.CloseFence(ctx, lane, 2))
	_, err = p.ClearLane(ctx, lane, 2, nil, nil)
	must(err)
	must(p.RestoreTombstones(ctx, lane, 2, []packet.Tombstone{{ID: one.ID, State: packet.PoolClosed, Until: time.Now().Add(time.Hour)}}))
	must(p.OpenFence(ctx, lane, 2, 0))
	pc, err := NewThrottle(p, "sandbox", 1)
	must(err)
	_, err = pc.Acquire(ctx, "one")
	must(err)
	must(p.RaiseHeartbeatNumber(ctx, 1))
	_, _, err = p.WithinLimits(ctx, counted("user", "u", 1, time.Minute))
	must(err)
	must(checkRights(ctx, p.rdb, p.cfg))
}

func TestScriptHeaders(t *testing.T) { onEach(t, testScriptHeaders) }

func testScriptHeaders(t *testing.T, on setup) {
	p := on.openFresh(t)
	var made calls
	p.rdb.AddHook(&made)
	everyScript(t, p)
	called := map[string]bool{}
	for _, c := range made.made {
		called[c.name] = true
		keys, args := header(t, c.name)
		if !keys.fits(len(c.keys)) || !args.fits(c.args) {
			t.Errorf("%s.lua: header declares %+v keys and %+v arguments, called with %d and %d", c.name, keys, args, len(c.keys), c.args)
		}
		for _, k := range c.keys {
			if slotOf(k) != slotOf(c.keys[0]) {
				t.Errorf("%s.lua: keys %s and %s are in different slots", c.name, c.keys[0], k)
			}
		}
	}
	files, err := scriptFiles.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(scripts) {
		t.Errorf("%d files, %d scripts", len(files), len(scripts))
	}
	for name := range scripts {
		if !called[name] {
			t.Errorf("%s.lua was not called", name)
		}
	}
}

// slotOf is the hash slot of a key with or without a tag.
func slotOf(key string) int {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			return hashSlot(tag)
		}
	}
	return hashSlot(key)
}

// TestScriptsReload: a restarted Redis lost the scripts, and calls reload them.
func TestScriptsReload(t *testing.T) { onEach(t, testScriptsReload) }

func testScriptsReload(t *testing.T, on setup) {
	p := on.openFresh(t)
	var made calls
	p.rdb.AddHook(&made)
	if err := p.rdb.ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	everyScript(t, p)
	missing := map[string]int{}
	for _, c := range made.made {
		if redis.HasErrorPrefix(c.err, "NOSCRIPT") {
			missing[c.name]++
		}
	}
	for name := range scripts {
		most := copies // a script of a lease is called for its copies at the same time
		if name == "group" {
			most = p.Lanes() // and this one for the lanes
		}
		if n := missing[name]; n < 1 || n > most {
			t.Errorf("%s.lua was missing %d times", name, n)
		}
	}
}

func TestVolatile(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for name, flags := range map[string][]string{
		"no file":       {"--appendonly", "no"},
		"fsync later":   {"--appendfsync", "everysec"},
		"eviction":      {"--maxmemory-policy", "allkeys-lru"},
		"rewrite":       {"--no-appendfsync-on-rewrite", "yes"},
		"CONFIG hidden": {"--rename-command", "CONFIG", "HIDDEN"}, // the fsync setting is unknown
	} {
		t.Run(name, func(t *testing.T) {
			server := stacktest.FreshRedis(t, flags...)
			_, err := Open(ctx, Config{Addr: server.Addr, Logger: quiet, Timeout: patience})
			wantErr(t, err, ErrVolatile, ErrUnavailable, packet.ErrUnavailable)
			p := openAt(t, Config{Addr: server.Addr, AllowVolatile: true})
			if err := p.Durable(ctx); err != nil {
				t.Errorf("allowed, but %v", err)
			}
			pk := newPacket(t, 1)
			openPacket(t, p, pk)
			if g := mustGrab(t, p, pk.ID, "u"); g.Result != packet.GrabWon {
				t.Errorf("grab: %v", g.Result)
			}
		})
	}

	t.Run("later", func(t *testing.T) {
		server := stacktest.FreshRedis(t)
		p := openAt(t, Config{Addr: server.Addr})
		pk := newPacket(t, 1)
		openPacket(t, p, pk)
		admin := redis.NewClient(&redis.Options{Addr: server.Addr})
		defer admin.Close()
		for name, values := range map[string][]string{"no-appendfsync-on-rewrite": {"yes", "no"},
			"maxmemory-policy": {"allkeys-lru", "noeviction"},
			"appendfsync":      {"everysec", "always"}} {
			for i, value := range values {
				must(t, admin.ConfigSet(ctx, name, value).Err())
				if err := p.Durable(ctx); errors.Is(err, ErrVolatile) != (i == 0) {
					t.Errorf("%s %s: %v", name, value, err)
				}
			}
		}
		before := dump(t, p, pk.ID)
		must(t, admin.ConfigSet(ctx, "appendfsync", "no").Err())
		wantErr(t, p.Durable(ctx), ErrVolatile)
		_, err := p.Grab(ctx, pk.ID, "u", packet.Profile{}) // on an open connection
		wantErr(t, err, ErrVolatile, ErrUnavailable, packet.ErrUnavailable)
		// New connections, as after a restart, make the check.
		if err := admin.ClientKillByFilter(ctx, "TYPE", "normal", "SKIPME", "yes").Err(); err != nil {
			t.Fatal(err)
		}
		_, err = p.Grab(ctx, pk.ID, "u", packet.Profile{})
		wantErr(t, err, ErrVolatile, ErrUnavailable, packet.ErrUnavailable)
		if err := admin.ConfigSet(ctx, "appendfsync", "always").Err(); err != nil {
			t.Fatal(err)
		}
		if err := p.Durable(ctx); err != nil {
			t.Error(err)
		}
		unchanged(t, p, pk.ID, before)
		if g := mustGrab(t, p, pk.ID, "u"); g.Result != packet.GrabWon {
			t.Errorf("durable again, but %v", g.Result)
		}
	})
}
