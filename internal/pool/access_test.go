package pool

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/observe"
	"hongbao/internal/packet"
	"hongbao/test/wait"
)

// runPacket runs a packet from creation to its end.
func runPacket(t *testing.T, p *Pool) {
	t.Helper()
	ctx := t.Context()
	pk := newPacket(t, 2)
	openPacket(t, p, pk)
	if g := mustGrab(t, p, pk.ID, "u"); g.Result != packet.GrabWon {
		t.Errorf("grab: %v", g.Result)
	}
	h := handoffs(t, p)
	lane := packet.Lane(pk.ID, p.Lanes())
	read, err := h.Read(ctx, lane, "w0", 100, patience)
	if err != nil || read.Empty() {
		t.Fatalf("read %+v, %v", read, err)
	}
	if err := h.Ack(ctx, lane, read.Last); err != nil {
		t.Error(err)
	}
	if left, err := p.ClosePool(ctx, pk.ID, packet.CloseRecalled); err != nil || left.ClaimedAmount != 100 {
		t.Errorf("closed with %+v, %v", left, err)
	}
	if err := p.Retire(ctx, pk.ID); err != nil {
		t.Error(err)
	}
}

// capturedLog is a log that tests read.
type capturedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *capturedLog) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *capturedLog) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// refused checks that Open and Examine fail for this reason, and print no secret.
func refused(t *testing.T, name string, cfg Config, why error) {
	t.Helper()
	var log capturedLog
	cfg.Logger, cfg.Timeout = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), replicaTimeout
	open := func(cfg Config) error {
		p, err := Open(t.Context(), cfg)
		if err == nil {
			_ = p.Close()
		}
		return err
	}
	examine := func(cfg Config) error {
		seen, err := Examine(t.Context(), cfg)
		if len(seen.Servers) > 0 {
			err = errors.Join(err, seen.Servers[0].Err)
		}
		return err
	}
	var all sync.WaitGroup // each may take several timeouts
	for _, volatile := range []bool{false, true} {
		cfg := cfg
		cfg.AllowVolatile = volatile
		for _, try := range []func(Config) error{open, examine} {
			all.Go(func() {
				err := try(cfg)
				if !errors.Is(err, why) || !errors.Is(err, ErrAccess) || !errors.Is(err, ErrUnavailable) {
					t.Errorf("%s: %v, want %v", name, err, why)
				}
				_, _ = fmt.Fprintf(&log, "%v %+v %#v", err, cfg, cfg)
			})
		}
	}
	all.Wait()
	if strings.Contains(log.String(), "only-for-tests") {
		t.Errorf("%s: a secret is shown: %s", name, log.String())
	}
}

// TestPassword: one server with a password, of the default user and of another one.
func TestPassword(t *testing.T) {
	t.Parallel()
	lock := stacktest.Lock{Password: rootSecret}
	server := stacktest.FreshLockedRedis(t, lock)
	do(t, root(t, server, lock), setUser(ourSecret, rulesOf(rights))...)
	for name, access := range map[string]Access{
		"default user": {Password: rootSecret}, "default user by name": {Username: "default", Password: rootSecret},
		"user": ours(stacktest.Lock{}),
	} {
		t.Run(name, func(t *testing.T) {
			runPacket(t, openAt(t, Config{Addr: server.Addr, Access: access}))
		})
	}
	for name, access := range map[string]Access{
		"none": {}, "wrong": {Password: "only-for-tests-wrong"}, "of another": {Username: ourUser, Password: rootSecret},
		"no user": {Username: "nobody", Password: ourSecret},
	} {
		refused(t, name, Config{Addr: server.Addr, Access: access}, ErrAuth)
	}
}

// TestPasswordRevoked: calls of a user whose access was revoked return ErrAuth, and succeed
// again once it is restored.
func TestPasswordRevoked(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := stacktest.FreshRedis(t)
	admin := root(t, server, stacktest.Lock{})
	do(t, admin, setUser(ourSecret, rulesOf(rights))...)
	p := openAt(t, Config{Addr: server.Addr, Access: ours(stacktest.Lock{})})
	pk := newPacket(t, 2)
	openPacket(t, p, pk)
	do(t, admin, "ACL", "DELUSER", ourUser) // closes the user's connections
	for what, ask := range map[string]func() error{
		"ping":    func() error { return p.Ping(ctx) },
		"durable": func() error { return p.Durable(ctx) },
		"grab":    func() error { _, err := p.Grab(ctx, pk.ID, "u", packet.Profile{}); return err },
		"views":   func() error { _, err := p.Views(ctx, []string{pk.ID}); return err },
		"claims":  func() error { _, err := userClaims(ctx, p, pk.App, "u", packet.Cursor{}, 10); return err },
		"health":  func() error { return p.HealthSnapshot(ctx, &observe.HealthSnapshot{}) },
	} {
		wait.Until(t, what+" returns the reason", func() bool { // at first, open connections end
			err := ask()
			wantErr(t, err, ErrUnavailable)
			return errors.Is(err, ErrAuth) || t.Failed()
		})
	}
	do(t, admin, setUser(ourSecret, rulesOf(rights))...)
	runPacket(t, p)
}

// TestProtectedMode: a server in protected mode sends its refusal on connect, and a command
// in flight may lose it.
func TestProtectedMode(t *testing.T) {
	t.Parallel()
	says := serving(t, func(cn net.Conn) {
		_, _ = io.WriteString(cn, "-DENIED Redis is running in protected mode because protected mode is enabled\r\n")
	})
	refused(t, "as it says", Config{Addr: says}, ErrProtected)
	server := stacktest.FreshRedis(t, "--bind", "0.0.0.0", "--protected-mode", "yes")
	_, port, err := net.SplitHostPort(server.Addr)
	must(t, err)
	all, err := net.InterfaceAddrs()
	must(t, err)
	for _, a := range all {
		if at, ok := a.(*net.IPNet); ok && at.IP.To4() != nil && !at.IP.IsLoopback() {
			refused(t, at.IP.String(), Config{Addr: net.JoinHostPort(at.IP.String(), port)}, ErrProtected)
			return
		}
	}
	t.Log("this machine has no other address than its loopback")
}

// TestUnavailableLog: the log of an unreachable single server does not mention a Cluster.
func TestUnavailableLog(t *testing.T) {
	t.Parallel()
	var log capturedLog
	_, err := Open(t.Context(), Config{Addr: "127.0.0.1:1", AllowVolatile: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	wantErr(t, err, ErrUnavailable)
	if strings.Contains(log.String(), "Cluster") {
		t.Error(log.String())
	}
}

// TestTLSRefused: a server that is not trusted, or does not trust this process, is not
// reported as unreachable.
func TestTLSRefused(t *testing.T) {
	t.Parallel()
	lock := stacktest.Lock{Authority: stacktest.NewAuthority(t)}
	server := stacktest.FreshLockedRedis(t, lock)
	ours := Access{TLS: true, Authorities: lock.Authority.Pool}
	runPacket(t, openAt(t, Config{Addr: server.Addr, Access: ours}))

	refused(t, "another authority", Config{Addr: server.Addr, Access: Access{TLS: true, Authorities: stacktest.NewAuthority(t).Pool}}, ErrTLS)
	refused(t, "authorities of the system", Config{Addr: server.Addr, Access: Access{TLS: true}}, ErrTLS)
	_, port, err := net.SplitHostPort(server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	refused(t, "another name", Config{Addr: net.JoinHostPort("localhost", port), Access: ours}, ErrTLS)
	refused(t, "we do not speak it", Config{Addr: server.Addr}, ErrTLS)
	refused(t, "it does not speak it", Config{Addr: stacktest.FreshRedis(t).Addr, Access: ours}, ErrTLS)
	refused(t, "it wants a certificate of ours",
		Config{Addr: stacktest.FreshLockedRedis(t, stacktest.Lock{Authority: lock.Authority, Mutual: true}).Addr, Access: ours}, ErrTLS)
	refused(t, "old TLS", Config{Addr: oldTLS(t), Access: ours}, ErrTLS)
}

// oldTLS is a server that supports TLS 1.1 at most.
func oldTLS(t *testing.T) string {
	t.Helper()
	return serving(t, func(cn net.Conn) {
		_ = tls.Server(cn, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}).HandshakeContext(t.Context())
	})
}

// serving is the address of a server that answers each connection by a function, and closes
// it. It ends with the test.
func serving(t *testing.T, answer func(net.Conn)) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); all.Wait() })
	all.Go(func() {
		for {
			cn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer func() { _ = cn.Close() }()
				defer context.AfterFunc(t.Context(), func() { _ = cn.Close() })() // unblocks reads
				answer(cn)
			})
		}
	})
	return listener.Addr().String()
}

// TestSentinelPasswords: sentinels have a password of their own; all of them, and the
// servers, use TLS. After a failover the next master accepts the password too.
func TestSentinelPasswords(t *testing.T) {
	t.Parallel()
	authority := stacktest.NewAuthority(t)
	lock, theirs := stacktest.Lock{Password: rootSecret, Authority: authority},
		stacktest.Lock{Password: "only-for-tests-sentinel", Authority: authority}
	servers := pair{stacktest.FreshLockedRedis(t, lock, syncAtOnce...), stacktest.FreshLockedRedis(t, lock, syncAtOnce...)}
	for _, s := range []*stacktest.Server{servers.master, servers.replica} {
		do(t, root(t, s, lock), setUser(ourSecret, rulesOf(rights))...)
	}
	host, port, err := net.SplitHostPort(servers.master.Addr)
	if err != nil {
		t.Fatal(err)
	}
	do(t, root(t, servers.replica, lock), "REPLICAOF", host, port)
	sentinels := stacktest.FreshLockedSentinels(t, masterName, servers.master, 1, theirs)
	sentinel := redis.NewSentinelClient(&redis.Options{Addr: sentinels[0].Addr, Password: theirs.Password, TLSConfig: tlsOf(theirs)})
	t.Cleanup(func() { _ = sentinel.Close() })
	wait.Until(t, "the sentinel can replace the master", func() bool {
		replicas, err := sentinel.Replicas(t.Context(), masterName).Result()
		return err == nil && len(replicas) == 1 && replicas[0]["master-link-status"] == "ok"
	})

	cfg := Config{Mode: ModeSentinel, Addr: sentinels[0].Addr, Master: masterName, Replicas: 1, Timeout: replicaTimeout, Access: ours(lock)}
	for name, password := range map[string]string{"no password": "", "the servers'": ourSecret} {
		wrong := cfg
		wrong.Access.SentinelPassword = password
		refused(t, name, wrong, ErrSentinelAuth)
	}
	cfg.Access.SentinelPassword = theirs.Password
	wrong := cfg
	wrong.Access.Password = theirs.Password
	refused(t, "the sentinels' for the master", wrong, ErrAuth)
	if _, err := Open(t.Context(), wrong); errors.Is(err, ErrSentinelAuth) {
		t.Errorf("the sentinels are blamed: %v", err)
	}

	p := openAt(t, cfg)
	runPacket(t, p)
	if err := sentinel.Failover(t.Context(), masterName).Err(); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the replica is the master, and followed", func() bool {
		role, err := root(t, servers.replica, lock).Do(t.Context(), "ROLE").Slice()
		return err == nil && role[0] == "master" && p.Durable(t.Context()) == nil
	})
	runPacket(t, p)
}

// TestClusterPasswords: each master of a Cluster has its own users. A master that refuses
// access makes only its lanes unavailable; Open names it.
func TestClusterPasswords(t *testing.T) {
	t.Parallel()
	lock := stacktest.Lock{Password: rootSecret, Authority: stacktest.NewAuthority(t)}
	nodes := stacktest.FreshLockedRedisCluster(t, lock)
	for _, n := range nodes {
		do(t, root(t, n, lock), setUser(ourSecret, rulesOf(rights))...)
	}
	cfg := Config{Mode: ModeCluster, Addr: nodes[0].Addr, Access: ours(lock)}
	p := openAt(t, cfg)
	if masters, err := p.masters(t.Context()); err != nil || len(masters) != len(nodes) {
		t.Fatalf("%d masters, %v", len(masters), err)
	}
	packets := onePerLane(t, p, 2)
	for _, pk := range packets {
		if g := mustGrab(t, p, pk.ID, "u"); g.Result != packet.GrabWon {
			t.Errorf("grab: %v", g.Result)
		}
	}
	runPacket(t, p)

	do(t, root(t, nodes[2], lock), "ACL", "DELUSER", ourUser)
	for lane, pk := range packets {
		if hashSlot(p.keys.tags[lane]) < 2*slots/3 {
			mustGrab(t, p, pk.ID, "v")
			continue
		}
		wait.Until(t, "the grab returns the reason", func() bool { // at first, open connections end
			_, err := p.Grab(t.Context(), pk.ID, "v", packet.Profile{})
			wantErr(t, err, ErrUnavailable)
			return errors.Is(err, ErrAuth)
		})
	}
	if err := p.Durable(t.Context()); err != nil {
		t.Error(err)
	}
	cfg.Timeout, cfg.Logger = patience, quiet
	_, err := Open(t.Context(), cfg)
	wantErr(t, err, ErrAuth)
	if err == nil || !strings.Contains(err.Error(), nodes[2].Addr) {
		t.Errorf("which one it is: %v", err)
	}
}

// TestAccess: contradictory settings are errors, and no output contains a password.
func TestAccess(t *testing.T) {
	authorities := stacktest.NewAuthority(t).Pool
	for name, access := range map[string]Access{
		"a user without a password":       {Username: ourUser},
		"authorities without TLS":         {Authorities: authorities},
		"sentinels' password without any": {SentinelPassword: "s"},
	} {
		if _, err := Open(t.Context(), Config{Addr: "127.0.0.1:1", Access: access}); err == nil || errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var log capturedLog
	access := Access{Username: ourUser, Password: ourSecret, SentinelPassword: ourSecret}
	slog.New(slog.NewJSONHandler(&log, nil)).Info("opened", slog.Any("access", access), slog.Any("config", Config{Access: access}))
	_, _ = fmt.Fprintf(&log, "%v %+v %#v %s %q", access, access, access, access, []any{access, Config{Access: access}})
	if strings.Contains(log.String(), ourSecret) || !strings.Contains(log.String(), ourUser) {
		t.Errorf("shown: %s", log.String())
	}
}

// TestTLSConnectionsClosed: idle connections that the server has closed, as after a restart
// or a timeout, are not used again.
func TestTLSConnectionsClosed(t *testing.T) {
	t.Parallel()
	lock := stacktest.Lock{Authority: stacktest.NewAuthority(t)}
	server := stacktest.FreshLockedRedis(t, lock)
	p := openAt(t, Config{Addr: server.Addr, Access: Access{TLS: true, Authorities: lock.Authority.Pool}})
	pk := newPacket(t, 100)
	openPacket(t, p, pk)
	admin := root(t, server, lock)
	for round := range 3 {
		var busy sync.WaitGroup
		for range 4 * (retries + 1) { // each uses a connection of its own
			busy.Go(func() {
				if err := p.rdb.BLPop(t.Context(), time.Second/4, "hb:{none}").Err(); !errors.Is(err, redis.Nil) {
					t.Error(err)
				}
			})
		}
		busy.Wait()
		if err := admin.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Grab(t.Context(), pk.ID, fmt.Sprint(round), packet.Profile{}); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
	}
}

// TestHandshakeCutOff: a server that closes the connection in the middle of a handshake
// counts as unreachable.
func TestHandshakeCutOff(t *testing.T) {
	t.Parallel()
	lock := stacktest.Lock{Authority: stacktest.NewAuthority(t)}
	server := stacktest.FreshLockedRedis(t, lock)
	addr := serving(t, func(cn net.Conn) {
		behind, err := net.Dial("tcp", server.Addr)
		if err != nil {
			return
		}
		defer behind.Close()
		go func() {
			_, _ = io.Copy(behind, cn)
			_ = behind.Close() // a client that ends before 300 bytes unblocks the copy below
		}()
		_, _ = io.CopyN(cn, behind, 300) // in the middle of a record
		_ = cn.(*net.TCPConn).CloseWrite()
	})
	_, err := Open(t.Context(), Config{Addr: addr, Access: Access{TLS: true, Authorities: lock.Authority.Pool}, Timeout: patience,
		Logger: quiet})
	wantErr(t, err, ErrUnavailable)
	if errors.Is(err, ErrAccess) {
		t.Errorf("it is refused: %v", err)
	}
}
