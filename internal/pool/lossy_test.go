package pool

import (
	"bytes"
	"net"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/money"
	"hongbao/internal/packet"
)

// lossy is a proxy before Redis that can lose a reply: the command is executed, the reply is
// dropped and the connection is closed.
type lossy struct {
	listener net.Listener
	upstream string

	mu     sync.Mutex
	marker []byte // lose the reply of the next request that contains it
	lost   func() // called when the reply has arrived, before the close
	count  int
}

func newLossy(t *testing.T, upstream string) *lossy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &lossy{listener: listener, upstream: upstream}
	var wg sync.WaitGroup
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
	wg.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { l.serve(client) })
		}
	})
	return l
}

func (l *lossy) addr() string { return l.listener.Addr().String() }

// lose arms the proxy for one request.
func (l *lossy) lose(marker string, lost func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.marker, l.lost = []byte(marker), lost
}

func (l *lossy) losses() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// hit disarms the proxy when this is the request it waits for.
func (l *lossy) hit(request []byte) func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.marker == nil || !bytes.Contains(request, l.marker) {
		return nil
	}
	l.marker = nil
	l.count++
	return l.lost
}

func (l *lossy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", l.upstream)
	if err != nil {
		return
	}
	defer server.Close()
	var mu sync.Mutex
	var lost func()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { // replies
		defer client.Close()
		buf := make([]byte, 1<<16)
		for {
			n, err := server.Read(buf)
			mu.Lock()
			f := lost
			mu.Unlock()
			if f != nil {
				f()
				return
			}
			if _, werr := client.Write(buf[:n]); err != nil || werr != nil {
				return
			}
		}
	})
	defer server.Close()
	buf := make([]byte, 1<<16)
	for {
		n, err := client.Read(buf)
		if f := l.hit(buf[:n]); f != nil {
			mu.Lock()
			lost = f
			mu.Unlock()
		}
		if _, werr := server.Write(buf[:n]); err != nil || werr != nil {
			return
		}
	}
}

// TestLostReply loses the reply of every script once. The client retries the call: the
// caller must get the same result, and the second execution must change nothing.
func TestLostReply(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	direct := openAt(t, Config{Addr: server.Addr})
	proxy := newLossy(t, server.Addr)
	p := openAt(t, Config{Addr: proxy.addr()})
	ctx := t.Context()

	staged := func(t *testing.T, pk packet.Packet) { stage(t, direct, pk) }
	opened := func(t *testing.T, pk packet.Packet) { openPacket(t, direct, pk, "u", "v") }
	closing := func(t *testing.T, pk packet.Packet) {
		opened(t, pk)
		if _, err := direct.Recall(ctx, pk.ID); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		script *redis.Script
		make   func(*testing.T, packet.Packet)
		// call returns the caller's result, without times.
		call func(id packet.Packet) (any, error)
		want any
		// lenient: the call continues with further scripts after the lost reply.
		lenient bool
	}{
		{name: "create", script: createScript, make: func(*testing.T, packet.Packet) {}, call: func(pk packet.Packet) (any, error) {
			s, err := p.Create(ctx, pk, []string{"u"}, nil, time.Hour, busy)
			return []bool{s.Existed, s.SameBody, s.View.BusyUntil.Equal(s.View.Packet.CreatedAt.Add(busy))}, err
		}, want: []bool{false, true, true}},
		{name: "create, taking over", script: createScript, make: func(t *testing.T, pk packet.Packet) {
			staged(t, pk)
			setField(t, direct, pk.ID, "busy_until", 1700000000000)
		}, call: func(pk packet.Packet) (any, error) {
			s, err := p.Create(ctx, pk, nil, nil, time.Hour, busy)
			return []any{s.Existed, s.SameBody, s.View.BusyUntil.UnixMilli()}, err
		}, want: []any{true, true, int64(1700000000000)}},
		{name: "answer", script: answerScript, make: staged, call: func(pk packet.Packet) (any, error) {
			return p.StoreFirstAnswer(ctx, pk.ID, packet.FirstAnswer{HTTPStatus: 201, RequestID: "r"})
		}, want: packet.FirstAnswer{HTTPStatus: 201, RequestID: "r"}},
		{name: "open", script: openScript, make: staged, call: func(pk packet.Packet) (any, error) {
			return nil, p.OpenPool(ctx, pk.ID, hundreds(3), nil)
		}},
		{name: "open, first chunk", script: openScript, lenient: true, make: func(t *testing.T, pk packet.Packet) {
			pk.ShareCount = openChunk + 1
			staged(t, pk)
		}, call: func(pk packet.Packet) (any, error) {
			if err := p.OpenPool(ctx, pk.ID, hundreds(openChunk+1), nil); err != nil {
				return nil, err
			}
			n, err := direct.rdb.StrLen(ctx, direct.keys.of(pk.ID).shares).Result()
			return n, err
		}, want: int64(packet.ShareLen * (openChunk + 1))},
		{name: "reject", script: rejectScript, make: staged, call: func(pk packet.Packet) (any, error) {
			return nil, p.Reject(ctx, pk.ID, packet.Failure{Code: "declined"})
		}},
		{name: "grab", script: grabScript, make: opened, call: func(pk packet.Packet) (any, error) {
			g, err := p.Grab(ctx, pk.ID, "u", packet.Profile{})
			return []any{g.Result, g.Claim.ShareIndex, g.Claim.Amount}, err
		}, want: []any{packet.GrabWon, 0, money.Fen(100)}},
		{name: "recall", script: recallScript, make: opened, call: func(pk packet.Packet) (any, error) {
			v, err := p.Recall(ctx, pk.ID)
			return v.Reason, err
		}, want: packet.CloseRecalled},
		{name: "close", script: closeScript, make: opened, call: func(pk packet.Packet) (any, error) {
			return p.ClosePool(ctx, pk.ID, packet.CloseRecalled)
		}, want: packet.PoolCloseResult{Reason: packet.CloseRecalled}},
		{name: "keep", script: keepScript, make: opened, call: func(pk packet.Packet) (any, error) {
			_, result, err := p.KeepStaleClaim(ctx, packet.Claim{PacketID: pk.ID, UserID: "u", Amount: 100, ClaimedAt: time.Now()})
			return result, err
		}, want: packet.StaleKept},
		{name: "retire", script: retireScript, make: closing, call: func(pk packet.Packet) (any, error) {
			return nil, p.Retire(ctx, pk.ID)
		}},
		{name: "view", script: viewScript, make: opened, call: func(pk packet.Packet) (any, error) {
			v, err := p.View(ctx, pk.ID)
			return v.State, err
		}, want: packet.PoolOpen},
	} {
		t.Run(c.name, func(t *testing.T) {
			pk := newPacket(t, 3)
			c.make(t, pk)
			losses := proxy.losses()
			var once state
			proxy.lose(c.script.Hash(), func() { once = dump(t, direct, pk.ID) })
			got, err := c.call(pk)
			if err != nil {
				t.Fatal(err)
			}
			if proxy.losses() != losses+1 {
				t.Fatal("no answer was lost")
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if !c.lenient {
				unchanged(t, direct, pk.ID, once)
			}
		})
	}
}

// TestLostReplyOfHandoffs: leases, acknowledgement, removal and takeover.
func TestLostReplyOfHandoffs(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	direct := openAt(t, Config{Addr: server.Addr})
	proxy := newLossy(t, server.Addr)
	p := openAt(t, Config{Addr: proxy.addr()})
	h := handoffs(t, p)
	ctx := t.Context()
	losing := func(t *testing.T, marker string, call func() error) {
		t.Helper()
		losses := proxy.losses()
		proxy.lose(marker, func() {})
		if err := call(); err != nil {
			t.Error(err)
		}
		if proxy.losses() != losses+1 {
			t.Error("no answer was lost")
		}
	}
	var s Slot
	losing(t, acquireScript.Hash(), func() (err error) { s, err = h.AcquireSlot(ctx, 3, time.Minute); return err })
	if s.Consumer() != "w0" {
		t.Errorf("acquired %s: the slot of the lost answer stays held", s.Consumer())
	}
	losing(t, renewScript.Hash(), func() error { return s.Renew(ctx) })
	losing(t, releaseScript.Hash(), func() error { return s.Release(ctx) })

	want := fill(t, direct, 0, 3)
	// A lost read is not retried; the entries are pending.
	proxy.lose("xreadgroup", func() {})
	_, err := h.Read(ctx, 0, "w0", 2, time.Millisecond)
	wantErr(t, err, ErrUnavailable)
	b, err := h.ReadOwnPending(ctx, 0, "w0", "0", 10)
	if err != nil || !reflect.DeepEqual(ids(b), want[:2]) {
		t.Errorf("pending %v, %v; want %v", ids(b), err, want[:2])
	}
	losing(t, "xclaim", func() (err error) { b, err = h.TakeOver(ctx, 0, "w0", "w1", 10); return err })
	if !reflect.DeepEqual(ids(b), want[:2]) {
		t.Errorf("taken over %v, want %v", ids(b), want[:2])
	}
	for _, answer := range []string{orphansScript.Hash(), "xclaim"} {
		if err := direct.rdb.XAck(ctx, direct.keys.handoff(0), Group, want[0]).Err(); err != nil {
			t.Fatal(err)
		}
		losing(t, answer, func() (err error) { b, err = h.TakeOrphans(ctx, 0, "w1", 10); return err })
		if !reflect.DeepEqual(ids(b), want[:1]) {
			t.Errorf("orphans taken %v, want %v", ids(b), want[:1])
		}
	}
	losing(t, dismissScript.Hash(), func() error {
		gone, err := h.RemoveConsumer(ctx, 0, "w0")
		if !gone {
			t.Error("not removed")
		}
		return err
	})
	losing(t, ackScript.Hash(), func() error { return h.Ack(ctx, 0, want[:2]...) })
	if err := h.Ack(ctx, 0, want[:2]...); err != nil { // the caller may repeat the call too
		t.Error(err)
	}
	if n, _, err := h.Depth(ctx, 0); n != 1 || err != nil {
		t.Errorf("depth %d, %v", n, err)
	}
}
