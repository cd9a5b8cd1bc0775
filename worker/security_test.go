package worker_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/pool"
	"hongbao/test/wait"
	"hongbao/worker"
)

// host is the name in the certificates of these tests' servers; nobody can look it up.
const host = "temporal.test"

// vault is a folder with the files of a worker.Server.
type vault struct {
	ca, cert, key string
}

func newVault(t testing.TB, authorities []byte, client stacktest.Pair) vault {
	t.Helper()
	dir := t.TempDir()
	v := vault{ca: filepath.Join(dir, "ca.pem"), cert: filepath.Join(dir, "client.pem"), key: filepath.Join(dir, "client.key")}
	put(t, v.ca, authorities)
	put(t, v.cert, client.Cert)
	put(t, v.key, client.Key)
	return v
}

// put replaces a file atomically, as a rotation of certificates does.
func put(t testing.TB, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(name+".new", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}

// reach has the rig reach Temporal as s says.
func (r *rig) reach(t testing.TB, s worker.Server) {
	t.Helper()
	r.temporal = must(s.Dial(r.logger))(t)
	t.Cleanup(r.temporal.Close)
	r.starter = worker.NewStarter(r.temporal)
	r.change = func(_ *rig, cfg *worker.Config) {
		cfg.Refused = func(ctx context.Context) error { return s.Refused(ctx, r.temporal) }
	}
}

// livePacket runs a packet of one share with the worker alone.
func (r *rig) livePacket(t testing.TB, user string) {
	t.Helper()
	p := r.create(t, spec{total: 100, count: 1})
	r.awaitOpen(t, p.ID)
	g := r.grab(t, p.ID, user)
	if g.Result != packet.GrabWon {
		t.Fatalf("grab of %s: %v", user, g.Result)
	}
	r.awaitPayout(t, g.Claim, payout.StatusPaid)
	r.awaitStatus(t, p.ID, packet.StatusClosed)
	r.balanced(t, p)
}

// TestTemporalTLS: a worker that connects to Temporal with a client certificate runs packets, and
// continues with a new certificate while it runs.
func TestTemporalTLS(t *testing.T) {
	t.Parallel()
	temporal, ns := stacktest.TemporalNamespace(t)
	ours, theirs := stacktest.NewAuthority(t), stacktest.NewAuthority(t)
	front := stacktest.NewFront(t, temporal, &tls.Config{Certificates: []tls.Certificate{ours.Issue(t, host, time.Hour).TLS(t)},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: theirs.Pool})
	v := newVault(t, ours.PEM, theirs.Issue(t, "first", time.Hour))
	var said locked
	r := newParts(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), temporal, ns)
	r.logger = slog.New(slog.NewTextHandler(&said, nil))
	r.reach(t, worker.Server{Address: front.Addr, Namespace: ns, TLS: true, CAFile: v.ca, CertFile: v.cert, KeyFile: v.key, ServerName: host})
	w, _ := r.startWorker(t)
	wait.Until(t, "worker ready", w.Ready)
	r.livePacket(t, "大伟") // the id of whose run needs care in headers
	if seen := front.Seen(); len(seen) == 0 || slices.ContainsFunc(seen, func(name string) bool { return name != "first" }) {
		t.Fatalf("connections of %q", seen)
	}

	second := theirs.Issue(t, "second", time.Hour)
	// latest is whose certificate a connection shows that is made now.
	latest := func() string {
		before := len(front.Seen())
		front.Drop()
		wait.Until(t, "another connection", func() bool { _ = worker.Ping(t.Context(), r.temporal, ns); return len(front.Seen()) > before })
		seen := front.Seen()
		return seen[len(seen)-1]
	}
	put(t, v.cert, second.Cert) // and its key not yet
	if name := latest(); name != "first" {
		t.Errorf("in the middle of the rotation %q was shown", name)
	}
	if !strings.Contains(said.String(), "Client certificate for Temporal not read; using the previous one.") {
		t.Error("a certificate that does not match its key is not logged")
	}
	put(t, v.key, second.Key)
	if name := latest(); name != "second" {
		t.Errorf("after the rotation %q was shown", name)
	}
	r.livePacket(t, "after the rotation")
}

// locked is a buffer that many may write into.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestTemporalRefused: each way in which a server rejects this process has its own reason, and an
// unavailable server has none. A line is the server and the client's fault.
func TestTemporalRefused(t *testing.T) {
	t.Parallel()
	backend, ns := stacktest.Temporal(t)
	ours, theirs, nobody := stacktest.NewAuthority(t), stacktest.NewAuthority(t), stacktest.NewAuthority(t)
	v := newVault(t, ours.PEM, theirs.Issue(t, "client", time.Hour))
	server := func(change func(c *tls.Config)) string {
		c := &tls.Config{Certificates: []tls.Certificate{ours.Issue(t, host, time.Hour).TLS(t)}}
		change(c)
		return stacktest.NewFront(t, backend, c).Addr
	}
	plain := server(func(*tls.Config) {})
	mutual := server(func(c *tls.Config) { c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, theirs.Pool })
	mutual12 := server(func(c *tls.Config) {
		c.ClientAuth, c.ClientCAs, c.MaxVersion = tls.RequireAndVerifyClientCert, theirs.Pool, tls.VersionTLS12
	})
	other, foreign, expired := newVault(t, nobody.PEM, nobody.Issue(t, "client", time.Hour)),
		newVault(t, ours.PEM, nobody.Issue(t, "client", time.Hour)), newVault(t, ours.PEM, theirs.Issue(t, "client", -time.Hour))
	right := worker.Server{Namespace: ns, TLS: true, CAFile: v.ca, ServerName: host}
	with := func(address string, change func(s *worker.Server)) worker.Server {
		s := right
		s.Address = address
		change(&s)
		return s
	}
	shows := func(v vault) func(*worker.Server) {
		return func(s *worker.Server) { s.CertFile, s.KeyFile = v.cert, v.key }
	}
	same := func(*worker.Server) {}
	for _, row := range []struct {
		what string
		s    worker.Server
		want worker.Reason // "": nothing is wrong
	}{
		{"right", with(plain, same), ""},
		{"TLS 1.2", with(server(func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }), same), ""},
		{"client certificate", with(mutual, shows(v)), ""},
		{"client certificate, TLS 1.2", with(mutual12, shows(v)), ""},
		{"client certificate that nobody asks for", with(plain, shows(v)), ""},
		{"plain text", worker.Server{Address: backend, Namespace: ns}, ""},
		{"nobody there", with("127.0.0.1:1", same), ""},
		{"nobody there, plain text", worker.Server{Address: "127.0.0.1:1", Namespace: ns}, ""},
		{"other authority", with(plain, func(s *worker.Server) { s.CAFile = other.ca }), worker.WhyAuthority},
		{"authorities of the system", with(plain, func(s *worker.Server) { s.CAFile = "" }), worker.WhyAuthority},
		{"name of the address", with(plain, func(s *worker.Server) { s.ServerName = "" }), worker.WhyName},
		{"other name", with(plain, func(s *worker.Server) { s.ServerName = "other.test" }), worker.WhyName},
		{"server's certificate has ended", with(server(func(c *tls.Config) { c.Certificates[0] = ours.Issue(t, host, -time.Hour).TLS(t) }), same),
			worker.WhyCertificate},
		{"no client certificate", with(mutual, same), worker.WhyHandshake},
		{"no client certificate, TLS 1.2", with(mutual12, same), worker.WhyHandshake},
		{"client certificate of another authority", with(mutual, shows(foreign)), worker.WhyHandshake},
		{"client certificate has ended", with(mutual, shows(expired)), worker.WhyHandshake},
		{"TLS 1.1", with(server(func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }), same),
			worker.WhyHandshake},
		{"server without TLS", with(backend, same), worker.WhyNotTLS},
		{"server without HTTP/2", with(server(func(c *tls.Config) { c.NextProtos = []string{} }), same), worker.WhyNotHTTP2},
		{"server asks for TLS", worker.Server{Address: plain, Namespace: ns}, worker.WhyTLS},
		{"server asks for TLS and a certificate", worker.Server{Address: mutual, Namespace: ns}, worker.WhyTLS},
	} {
		t.Run(row.what, func(t *testing.T) {
			c := must(row.s.Dial(quietLogger()))(t)
			defer c.Close()
			expectWhy(t, row.s.Refused(t.Context(), c), row.want)
			_, err := worker.Examine(t.Context(), row.s)
			if away := strings.HasPrefix(row.what, "nobody there"); row.want == "" && (err == nil) == away {
				t.Errorf("examined: %v", err)
			}
			if row.want != "" {
				expectWhy(t, err, row.want)
			}
		})
	}
}

// expectWhy expects a *Refusal of a kind, or none.
func expectWhy(t *testing.T, err error, want worker.Reason) {
	t.Helper()
	refusal, is := errors.AsType[*worker.Refusal](err)
	switch {
	case want == "" && err != nil, want != "" && (!is || refusal.Why != want):
		t.Errorf("%v, want %q", err, want)
	}
}

// TestTemporalKey: a worker runs packets with an API key that may only make the calls that
// Temporal Cloud allows to a key of a namespace. Without the key, or with one of another
// namespace, it ends, logs why, and never logs the key.
func TestTemporalKey(t *testing.T) {
	t.Parallel()
	temporal, ns := stacktest.TemporalNamespace(t)
	authority := stacktest.NewAuthority(t)
	key, reader := "key-"+rand.Text(), "reader-"+rand.Text()
	addr := stacktest.NewGateway(t, temporal, &tls.Config{Certificates: []tls.Certificate{authority.Issue(t, host, time.Hour).TLS(t)}},
		key, reader)
	right := worker.Server{Address: addr, Namespace: ns, TLS: true, CAFile: newVault(t, authority.PEM, stacktest.Pair{}).ca, ServerName: host,
		APIKey: key}
	parts := newParts(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), temporal, ns)

	for name, want := range map[string]struct {
		key  string
		why  worker.Reason
		code codes.Code
	}{"None": {"", worker.WhyKey, codes.Unauthenticated}, "Unknown": {"wrong-" + rand.Text(), worker.WhyKey, codes.Unauthenticated},
		"OfReaders": {reader, worker.WhyPermission, codes.PermissionDenied}} {
		t.Run(name, func(t *testing.T) {
			var said locked
			r := *parts
			r.logger = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug}))
			s := right
			s.APIKey = want.key
			r.reach(t, s)
			if err := worker.Ping(t.Context(), r.temporal, ns); serviceerror.ToStatus(errors.Unwrap(err)).Code() != want.code {
				t.Errorf("ping: %v", err)
			}
			handoffs := must(pool.NewHandoffs(t.Context(), r.pool))(t)
			defer func() { _ = handoffs.Close() }()
			ctx, cancel := context.WithTimeout(t.Context(), wait.Limit())
			defer cancel()
			err := worker.New(r.workerConfig(handoffs)).Run(ctx)
			expectWhy(t, err, want.why)
			if all := said.String() + fmt.Sprint(err); want.key != "" && strings.Contains(all, want.key) {
				t.Errorf("the key is shown: %s", all)
			}
		})
	}

	r := parts
	r.reach(t, right)
	w, _ := r.startWorker(t)
	wait.Until(t, "worker ready", w.Ready)
	r.livePacket(t, "u")
	if err := worker.Ping(t.Context(), r.temporal, ns); err != nil {
		t.Errorf("ping: %v", err)
	}
	seen, err := worker.Examine(t.Context(), right)
	if err != nil || !seen.Namespace || len(seen.Missing) > 0 || seen.Pollers["hongbao workflow"] == 0 {
		t.Errorf("examined: %+v, %v", seen, err)
	}
	bare := right
	bare.Namespace = "temporal-system" // which has none of our attributes
	if seen, err := worker.Examine(t.Context(), bare); err != nil ||
		!slices.Equal(seen.Missing, []string{"App", "PacketID", "UserID", "Provider", "PayoutStatus", "FailureCode"}) {
		t.Errorf("examined: %+v, %v", seen, err)
	}
}

// TestTemporalShortKey: a key that is a word of Temporal's answers does not change their meaning:
// a run that exists is no error.
func TestTemporalShortKey(t *testing.T) {
	t.Parallel()
	temporal, ns := stacktest.TemporalNamespace(t)
	authority := stacktest.NewAuthority(t)
	const key = "execution"
	addr := stacktest.NewGateway(t, temporal, &tls.Config{Certificates: []tls.Certificate{authority.Issue(t, host, time.Hour).TLS(t)}},
		key, "")
	r := newParts(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), temporal, ns)
	r.reach(t, worker.Server{Address: addr, Namespace: ns, TLS: true, CAFile: newVault(t, authority.PEM, stacktest.Pair{}).ca,
		ServerName: host, APIKey: key})
	p := packet.Packet{ID: packet.NewID([]byte("salt"), "key"), App: "a", SenderID: "s"}
	for want := range 2 {
		if started, err := r.starter.RestartPacket(t.Context(), p); err != nil || started != (want == 0) {
			t.Errorf("start %d: %v, %v", want+1, started, err)
		}
	}
}

// TestTemporalComesRefusing: a worker that waits for Temporal ends when Temporal starts and
// rejects it.
func TestTemporalComesRefusing(t *testing.T) {
	t.Parallel()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
	backend, ns := stacktest.Temporal(t)
	config := &tls.Config{Certificates: []tls.Certificate{stacktest.NewAuthority(t).Issue(t, host, time.Hour).TLS(t)},
		NextProtos: []string{"h2"}}
	r := newParts(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), backend, ns)
	r.reach(t, worker.Server{Address: listener.Addr().String(), Namespace: ns, TLS: true, ServerName: host})
	var waits locked
	r.logger = slog.New(slog.NewTextHandler(&waits, nil))
	handoffs := must(pool.NewHandoffs(t.Context(), r.pool))(t)
	defer func() { _ = handoffs.Close() }()
	ended := make(chan error, 1)
	go func() { ended <- worker.New(r.workerConfig(handoffs)).Run(t.Context()) }()
	comes := make(chan struct{})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			select {
			case <-comes:
				_ = tls.Server(conn, config).HandshakeContext(t.Context())
			default: // a machine without a server: the connection just ends
			}
			_ = conn.Close()
		}
	}()
	wait.Until(t, "the worker waits", func() bool { return strings.Contains(waits.String(), "Temporal is not ready; retrying.") })
	close(comes)
	select {
	case err := <-ended:
		expectWhy(t, err, worker.WhyAuthority)
	case <-time.After(wait.Limit()):
		t.Fatal("the worker goes on waiting for a server that it does not trust")
	}
}

// TestTemporalWithoutAttributes: without the search attributes no run starts, and acknowledged
// claims wait; hongbao creates no attributes. The worker continues by itself once an operator has
// created them.
func TestTemporalWithoutAttributes(t *testing.T) {
	t.Parallel()
	temporal, _ := stacktest.Temporal(t)
	bare := "bare-" + rand.Text()
	r := newParts(t, stacktest.FreshRedis(t).Addr, stacktest.MariaDB(t), temporal, bare)
	_, err := r.temporal.WorkflowService().RegisterNamespace(t.Context(),
		&workflowservice.RegisterNamespaceRequest{Namespace: bare, WorkflowExecutionRetentionPeriod: durationpb.New(7 * 24 * time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	var said locked
	r.logger = slog.New(slog.NewTextHandler(&said, nil))
	r.supervised(t)
	p := r.create(t, spec{total: 100, count: 1})
	wait.Until(t, "the hand-off is refused", func() bool {
		return strings.Contains(said.String(), "Temporal refuses a hand-off;") &&
			strings.Contains(said.String(), "search attribute")
	})
	seen, err := worker.Examine(t.Context(), worker.Server{Address: temporal, Namespace: bare})
	if err != nil || len(seen.Missing) != 6 {
		t.Fatalf("the attributes are there: %+v, %v", seen, err)
	}
	attributes := map[string]enums.IndexedValueType{}
	for _, name := range seen.Missing {
		attributes[name] = enums.INDEXED_VALUE_TYPE_KEYWORD
	}
	if _, err := r.temporal.OperatorService().AddSearchAttributes(t.Context(), &operatorservice.AddSearchAttributesRequest{Namespace: bare,
		SearchAttributes: attributes}); err != nil {
		t.Fatal(err)
	}
	r.awaitOpen(t, p.ID)
	g := r.grab(t, p.ID, "u")
	r.awaitPayout(t, g.Claim, payout.StatusPaid)
	r.awaitStatus(t, p.ID, packet.StatusClosed)
	r.balanced(t, p)
}
