package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"hongbao/internal/dataformat"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/test/wait"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(stacktest.Wrap(m),
		// The library's reconnect loop ends up to a second after Close.
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// patience is a timeout for busy machines; no call should come near it.
const patience = 20 * time.Second

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// setup is a running Redis of one test at a time.
type setup struct {
	mode  Mode
	addrs []string
}

func onSingle(t testing.TB) setup {
	t.Helper()
	return setup{ModeSingle, []string{stacktest.BorrowRedis(t)}}
}

func onCluster(t testing.TB) setup {
	t.Helper()
	return setup{ModeCluster, stacktest.BorrowRedisCluster(t)}
}

// onEach runs a test on one server and on a Cluster of three masters, both in parallel with
// other tests.
func onEach(t *testing.T, test func(*testing.T, setup)) {
	t.Helper()
	t.Parallel()
	for mode, borrow := range map[Mode]func(testing.TB) setup{ModeSingle: onSingle, ModeCluster: onCluster} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			test(t, borrow(t))
		})
	}
}

func (on setup) config() Config { return Config{Mode: on.mode, Addr: strings.Join(on.addrs, ",")} }

// open returns a pool on a Redis that may hold data of earlier tests.
func (on setup) open(t testing.TB) *Pool {
	t.Helper()
	return openAt(t, on.config())
}

// openFresh returns a pool on an empty Redis.
func (on setup) openFresh(t testing.TB) *Pool {
	t.Helper()
	for _, addr := range on.addrs {
		empty(t, addr)
		// These tests may leave data that breaks others.
		t.Cleanup(func() { empty(t, addr) })
	}
	return on.open(t)
}

// empty deletes all keys of a server.
func empty(t testing.TB, addr string) {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr})
	defer c.Close()
	ctx := context.WithoutCancel(t.Context()) // also used in a cleanup
	keys, err := c.Keys(ctx, "*").Result()
	for _, key := range keys {
		err = errors.Join(err, c.Unlink(ctx, key).Err())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func openAt(t testing.TB, cfg Config) *Pool {
	t.Helper()
	if cfg.Timeout == 0 {
		cfg.Timeout = 5 * time.Second // the machine may be busy
	}
	if cfg.Logger == nil {
		cfg.Logger = quiet
	}
	var p *Pool
	wait.Until(t, "the pool is open", func() bool { // a test server may rewrite its file, or be slow for the test's timeout
		var err error
		if p, err = Open(t.Context(), cfg); err != nil && !errors.Is(err, ErrRewrite) && !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
		return err == nil
	})
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

var packetSerial atomic.Int64

// newPacket returns a packet that no other test uses.
func newPacket(t testing.TB, shares int) packet.Packet {
	t.Helper()
	id := packet.NewID([]byte(t.Name()), fmt.Sprint(packetSerial.Add(1)))
	return packet.Packet{
		ID: id, App: "shop", SenderID: "sender", Currency: packet.CurrencyCNY, TotalAmount: money.Fen(100 * shares), ShareCount: shares,
		Split: packet.SplitEqual, MinShare: 1, Greeting: "恭喜发财", Metadata: map[string]string{"k": "v"},
		BodyHash: "body of " + id, Commitment: "commitment of " + id,
	}
}

// laneMates returns n packets of one lane.
func laneMates(t testing.TB, p *Pool, n, shares int) []packet.Packet {
	t.Helper()
	var mates []packet.Packet
	for len(mates) < n {
		pk := newPacket(t, shares)
		if len(mates) == 0 || packet.Lane(pk.ID, p.Lanes()) == packet.Lane(mates[0].ID, p.Lanes()) {
			mates = append(mates, pk)
		}
	}
	return mates
}

func hundreds(n int) []money.Fen { return slices.Repeat([]money.Fen{100}, n) }

// stage creates a packet for one hour, which opens as soon as it is loaded.
func stage(t testing.TB, p *Pool, pk packet.Packet, eligible ...string) packet.StageResult {
	t.Helper()
	s, err := p.Create(t.Context(), pk, eligible, nil, time.Hour, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// openPacket stages a packet and opens it with shares of 100 fen.
func openPacket(t testing.TB, p *Pool, pk packet.Packet, eligible ...string) {
	t.Helper()
	stage(t, p, pk, eligible...)
	if err := p.OpenPool(t.Context(), pk.ID, hundreds(pk.ShareCount), nil); err != nil {
		t.Fatal(err)
	}
}

func mustGrab(t testing.TB, p *Pool, id, user string) packet.GrabAnswer {
	t.Helper()
	g, err := p.Grab(t.Context(), id, user, packet.Profile{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// setField writes one field of a packet's hash, for a state that would take long to reach,
// such as expired.
func setField(t testing.TB, p *Pool, id, field string, value any) {
	t.Helper()
	if err := p.rdb.HSet(t.Context(), p.keys.of(id).packet, field, value).Err(); err != nil {
		t.Fatal(err)
	}
}

func expire(t testing.TB, p *Pool, id string) {
	t.Helper()
	setField(t, p, id, "expires_at", time.Now().Add(-time.Hour).UnixMilli())
}

// state is everything that Redis holds of one packet.
type state struct {
	Hash     map[string]string
	Shares   []string
	Winners  map[string]string
	Eligible []string
	Order    []string
	Live     bool
	// Claimed and Staged are the packet's members in the lane's sorted sets.
	Claimed, Staged []string
	// HandOffs are the lane's entries that name the packet, each with its fields sorted.
	HandOffs [][]string
}

// dump reads the state of a packet.
func dump(t testing.TB, p *Pool, id string) state {
	t.Helper()
	ctx, keys := t.Context(), p.keys.of(id)
	var s state
	fail := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	s.Hash, err = p.rdb.HGetAll(ctx, keys.packet).Result()
	fail(err)
	s.Shares = freeShares(t, p, id)
	s.Winners, err = p.rdb.HGetAll(ctx, keys.winners).Result()
	fail(err)
	s.Eligible, err = p.rdb.SMembers(ctx, keys.eligible).Result()
	fail(err)
	slices.Sort(s.Eligible)
	live, err := p.rdb.ZRange(ctx, keys.live, 0, -1).Result()
	fail(err)
	s.Live = slices.Contains(live, id)
	s.Order, err = p.rdb.LRange(ctx, keys.order, 0, -1).Result()
	fail(err)
	for key, to := range map[string]*[]string{keys.claimed: &s.Claimed, keys.staged: &s.Staged} {
		all, err := p.rdb.ZRange(ctx, key, 0, -1).Result()
		fail(err)
		for _, member := range all {
			if strings.HasSuffix(member, "\x00"+id) {
				*to = append(*to, member)
			}
		}
	}
	entries, err := p.rdb.XRange(ctx, keys.handoff, "-", "+").Result()
	fail(err)
	for _, e := range entries {
		var fields []string
		for k, v := range e.Values {
			fields = append(fields, fmt.Sprintf("%s=%s", k, v))
		}
		if slices.Sort(fields); strings.Contains(strings.Join(fields, "\n"), id) {
			s.HandOffs = append(s.HandOffs, fields)
		}
	}
	return s
}

// freeShares returns the packed shares of a packet that are not taken, as "<index>:<amount>".
func freeShares(t testing.TB, p *Pool, id string) []string {
	t.Helper()
	keys := p.keys.of(id)
	packed, err := p.rdb.GetRange(t.Context(), keys.shares, 0, -1).Result()
	must(t, err)
	claimed, _ := parseClaimed(p.rdb.HGet(t.Context(), keys.packet, "claimed").Val()) // a test may have damaged it
	free := []string{}
	for i := int(claimed.count); i < (len(packed)+packet.ShareLen-1)/packet.ShareLen; i++ {
		index, amount, err := packet.UnpackShare(packed, i)
		if err != nil {
			free = append(free, err.Error())
			continue
		}
		free = append(free, fmt.Sprintf("%d:%d", index, amount))
	}
	return free
}

// packedHundreds returns n packed shares of 100 fen.
func packedHundreds(n int) string {
	var b []byte
	for i := range n {
		b = packet.AppendShare(b, i, 100)
	}
	return string(b)
}

// unchanged fails unless the packet has the state before.
func unchanged(t testing.TB, p *Pool, id string, before state) {
	t.Helper()
	if after := dump(t, p, id); !reflect.DeepEqual(before, after) {
		t.Errorf("changed\nbefore %+v\nafter  %+v", before, after)
	}
}

// changed fails unless exactly these fields of the packet's hash differ, with these values.
// It returns the new state.
func changed(t testing.TB, p *Pool, id string, before state, want map[string]string) state {
	t.Helper()
	after := dump(t, p, id)
	expected := maps.Clone(before.Hash)
	for k, v := range want {
		expected[k] = v
	}
	if !reflect.DeepEqual(after.Hash, expected) {
		t.Errorf("hash\n got %v\nwant %v", after.Hash, expected)
	}
	return after
}

func wantErr(t testing.TB, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Errorf("error %v, want %v", err, target)
		}
	}
}

func TestOpen(t *testing.T) { onEach(t, testOpen) }

// testFormat: a Redis with another data format is refused, also by an observer. A Redis
// without a number gets ours, but not from an observer.
func testFormat(t *testing.T, on setup) {
	p := on.openFresh(t)
	held := func(want string) {
		t.Helper()
		for place := range copies {
			if got := p.rdb.Get(t.Context(), keyFormat(place)).Val(); got != want {
				t.Errorf("copy %d holds %q, want %q", place, got, want)
			}
		}
	}
	reopen := func(observe bool) error {
		t.Helper()
		again, err := Open(t.Context(), Config{Mode: on.mode, Addr: on.config().Addr, Observe: observe, Timeout: patience, Logger: quiet})
		if err == nil {
			err = again.Close()
		}
		return err
	}
	own := strconv.Itoa(dataformat.Number)
	held(own)
	for _, number := range []int{dataformat.Number - 1, dataformat.Number + 1} {
		for place := range copies {
			if err := p.rdb.Set(t.Context(), keyFormat(place), number, 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
		for _, observe := range []bool{true, false} {
			err := reopen(observe)
			if e, is := errors.AsType[*dataformat.Error](err); !is || e.Found != number || e.Store != "Redis" {
				t.Errorf("number %d, observer %t: %v", number, observe, err)
			}
		}
		held(strconv.Itoa(number))
		if seen, err := Examine(t.Context(), Config{Mode: on.mode, Addr: on.config().Addr}); err != nil || seen.Format == nil {
			t.Errorf("examined: %v, %v", seen.Format, err)
		}
	}
	for place := range copies {
		if err := p.rdb.Unlink(t.Context(), keyFormat(place)).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := reopen(true); err != nil {
		t.Errorf("an observer of a Redis without a number: %v", err)
	}
	held("")
	if seen, err := Examine(t.Context(), Config{Mode: on.mode, Addr: on.config().Addr}); err != nil || seen.Format != nil {
		t.Errorf("examined: %v, %v", seen.Format, err)
	}
	held("")
	if err := reopen(false); err != nil {
		t.Error(err)
	}
	held(own)
}

func testOpen(t *testing.T, on setup) {
	t.Run("OK", func(t *testing.T) {
		p := on.open(t)
		if p.Lanes() != on.mode.DefaultLanes() {
			t.Errorf("%d lanes", p.Lanes())
		}
		if err := errors.Join(p.Ping(t.Context()), p.Durable(t.Context())); err != nil {
			t.Error(err)
		}
	})
	t.Run("ErrLanes", func(t *testing.T) {
		on.open(t)
		_, err := Open(t.Context(), Config{Mode: on.mode, Addr: on.config().Addr, Lanes: 32, Logger: quiet})
		wantErr(t, err, ErrLanes)
		if want := fmt.Sprintf("configured 32, in use %d", on.mode.DefaultLanes()); !strings.Contains(err.Error(), want) {
			t.Errorf("error %q, want %q in it", err, want)
		}
	})
	t.Run("data format", func(t *testing.T) { testFormat(t, on) })
	t.Run("ErrUnavailable", func(t *testing.T) {
		_, err := Open(t.Context(), Config{Mode: on.mode, Addr: "127.0.0.1:1", Logger: quiet})
		wantErr(t, err, ErrUnavailable)
	})
	for name, cfg := range map[string]Config{
		"no address":     {},
		"empty address":  {Addr: "127.0.0.1:1,", Mode: ModeCluster},
		"unknown mode":   {Addr: "127.0.0.1:1", Mode: "sentinel"},
		"many addresses": {Addr: "127.0.0.1:1,127.0.0.1:2"},
		"too many lanes": {Addr: "127.0.0.1:1", Lanes: MaxLanes + 1},
		"negative lanes": {Addr: "127.0.0.1:1", Lanes: -1},
		"negative time":  {Addr: "127.0.0.1:1", Timeout: -1},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Open(t.Context(), cfg); err == nil || errors.Is(err, ErrUnavailable) {
				t.Errorf("error %v, want one about the configuration", err)
			}
		})
	}
	t.Run("closed", func(t *testing.T) {
		p := on.open(t)
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := p.Grab(t.Context(), newPacket(t, 1).ID, "u", packet.Profile{})
		wantErr(t, err, ErrUnavailable)
		wantErr(t, p.Ping(t.Context()), ErrUnavailable)
	})
}

func TestApps(t *testing.T) { onEach(t, testApps) }

func testApps(t *testing.T, on setup) {
	p := on.openFresh(t)
	_, err := p.LoadApps(t.Context())
	wantErr(t, err, ErrNotFound)
	for _, blob := range []string{"first", "second \x00\xff"} {
		if err := p.SaveApps(t.Context(), []byte(blob)); err != nil {
			t.Fatal(err)
		}
		if got, err := p.LoadApps(t.Context()); err != nil || string(got) != blob {
			t.Errorf("loaded %q, %v; saved %q", got, err, blob)
		}
	}
}
