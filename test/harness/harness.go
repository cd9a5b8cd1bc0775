// Package harness gives tests the whole product except its worker, on real parts: a MariaDB
// database, Redis, the sandbox provider, and the API on two free ports.
//
// Open makes a stack for one test. A test without special needs takes Shared, the one stack of its
// test binary. It runs in parallel with the others, and uses apps and keys of its own
// (Stack.NewOwner). A test that sums over all apps, ends a server or changes a configuration opens
// a stack. Methods such as Stack.Fund do one step of the workflows each, so that the test controls
// the order.
//
// A test binary that uses the package runs its tests by Main or Wrap:
//
//	func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
//
// The package is for tests only: a house rule keeps it out of the product.
package harness

import (
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"hongbao/api"
	"hongbao/internal/access"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/health"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/pool"
	"hongbao/internal/provider"
	"hongbao/internal/provider/sandbox"
	"hongbao/internal/store"
	"hongbao/internal/store/report"
	"hongbao/test/wait"
)

// Lanes is the number of lanes of every pool on the shared Redis of a test binary: enough for
// packets to fall into several, and an eighth of the default writes when a pool starts.
const Lanes = 8

// ProviderKey is the key of the sandbox provider.
const ProviderKey = "key-of-tests"

// WebhookSecret signs the notifications of the sandbox provider.
var WebhookSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))

// Database is MySQL as the API uses it: what writes, and the reports for staff.
type Database struct {
	*store.Store
	*report.Source
}

// Options are the differences of a stack from the default: a new database on the shared MariaDB,
// the shared Redis, and an API with its defaults.
type Options struct {
	Redis    string // address; "": the shared Redis
	DSN      string // of an empty database; "": a new one on the shared MariaDB
	Migrated bool   // the database of the DSN has the newest schema already

	// The functions change a configuration before its part is opened.
	Store   func(*store.Config)
	Pool    func(*pool.Config)
	Sandbox func(*sandbox.Config)
	Client  func(*provider.SandboxConfig) // of the provider
	API     func(*api.Config)
	// Mount is called with each API before it listens.
	Mount func(*api.Server)

	// Owners are the roles whose keys are made before the API starts, so that it reads them.
	Owners []access.Role
	// WithoutAPI leaves the start of the API to Start, for a test that makes keys first or needs no
	// API.
	WithoutAPI bool
}

// Stack is stores, provider and API. All of it ends with its test.
type Stack struct {
	DSN         string
	Redis       string // address
	Pool        *pool.Pool
	Store       *store.Store
	Reports     *report.Source
	Provider    *provider.Sandbox
	ProviderURL string
	// StopProvider stops the sandbox provider before the end of the test.
	StopProvider func() error

	Owners []Owner // in the order of the options

	// Config is the configuration of the API; a change takes effect at the next Start.
	Config api.Config
	Server *api.Server // since Start
	Public string      // base URL of the public listener
	Staff  string      // base URL of the staff listener

	mount func(*api.Server)
	stop  func() error
}

// Open opens a stack that ends with the test.
func Open(t testing.TB, o Options) *Stack {
	t.Helper()
	s := &Stack{DSN: o.DSN, Redis: o.Redis, mount: o.Mount, stop: func() error { return nil }}
	if s.Redis == "" {
		s.Redis = stacktest.Redis(t)
	}
	if s.DSN == "" {
		s.DSN = stacktest.MariaDB(t)
	}
	s.openStores(t, o)
	s.openProvider(t, o)
	s.Owners = s.NewOwners(t, o.Owners...)
	s.Config = api.Config{PublicAddr: "127.0.0.1:0", StaffAddr: "127.0.0.1:0", Pool: s.Pool, Store: Database{s.Store, s.Reports},
		Providers: payout.OnlyProvider(s.Provider),
		Fence:     s.Pool.ClaimsVersion, Probes: health.Probes{"redis": s.Pool.Durable, "mysql": s.Store.Ping, "pool": s.Pool.CheckFences},
		SeedKey: [32]byte{7}, TemporalUIURL: "http://127.0.0.1:18233", TemporalNamespace: stacktest.Namespace, Version: "test",
		Refresh: 200 * time.Millisecond}
	if o.API != nil {
		o.API(&s.Config)
	}
	if !o.WithoutAPI {
		s.Start(t)
	}
	return s
}

func (s *Stack) openStores(t testing.TB, o Options) {
	t.Helper()
	if !o.Migrated {
		stacktest.Migrate(t, s.DSN)
	}
	config := store.Config{DSN: s.DSN, MaxOpenConns: 10}
	if o.Store != nil {
		o.Store(&config)
	}
	var err error
	if s.Store, err = store.Open(config); err != nil {
		t.Fatal(err)
	}
	s.Reports = report.New(s.Store.MySQL())
	t.Cleanup(func() { _ = s.Store.Close() }) // a test may have closed it, or ended its server
	cfg := pool.Config{Addr: s.Redis, Lanes: Lanes, Epochs: s.Store}
	if o.Pool != nil {
		o.Pool(&cfg)
	}
	s.Pool = OpenPool(t, cfg)
}

// OpenPool opens a pool, as a process does: it waits while Redis is unavailable, for instance
// because another process has made it rewrite its file. The pool is closed when the test ends.
func OpenPool(t testing.TB, cfg pool.Config) *pool.Pool {
	t.Helper()
	var p *pool.Pool
	var err error
	wait.Until(t, "Redis answers", func() bool {
		p, err = pool.Open(t.Context(), cfg)
		return !errors.Is(err, packet.ErrUnavailable)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() }) // a test may have closed it, or ended its server
	return p
}

func (s *Stack) openProvider(t testing.TB, o Options) {
	t.Helper()
	cfg := sandbox.Config{Listen: "127.0.0.1:0", DBPath: filepath.Join(t.TempDir(), "provider.db"), APIKey: ProviderKey,
		Logger: slog.New(slog.DiscardHandler), HoldTimeout: time.Second, PendingAfter: 50 * time.Millisecond, ReturnAfter: 50 * time.Millisecond}
	if o.Sandbox != nil {
		o.Sandbox(&cfg)
	}
	server, err := sandbox.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.StopProvider = serve(t.Context(), server.Serve, server.Close)
	t.Cleanup(func() { ended(t, "provider", s.StopProvider()) })
	s.ProviderURL = "http://" + server.Addr().String()
	client := provider.SandboxConfig{BaseURL: s.ProviderURL, APIKey: ProviderKey, WebhookSecret: WebhookSecret, Timeout: time.Second}
	if o.Client != nil {
		o.Client(&client)
	}
	if s.Provider, err = provider.NewSandbox(client); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Provider.Close)
}

// Start runs an API with the configuration of the stack until the test ends, or Stop is
// called, and returns when it is ready. Its ports are new.
func (s *Stack) Start(t testing.TB) {
	t.Helper()
	var err error
	if s.Server, err = api.New(s.Config); err != nil {
		t.Fatal(err)
	}
	if s.mount != nil {
		s.mount(s.Server)
	}
	if err := s.Server.Listen(); err != nil {
		t.Fatal(err)
	}
	s.Public, s.Staff = "http://"+s.Server.PublicAddr().String(), "http://"+s.Server.StaffAddr().String()
	stop := serve(t.Context(), s.Server.Serve)
	s.stop = stop
	t.Cleanup(func() { ended(t, "api", stop()) })
	wait.Until(t, "the API is ready", func() bool { return ready(t, s.Staff) })
}

// Stop ends the API and returns its error.
func (s *Stack) Stop() error { return s.stop() }

// serve runs f in a goroutine, with the values of ctx. stop ends it, closes what is to be closed, and returns the
// errors; called again it returns the same.
func serve(ctx context.Context, f func(context.Context) error, closers ...func() error) (stop func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() { served <- f(ctx) }()
	return sync.OnceValue(func() error {
		cancel()
		err := <-served
		for _, c := range closers {
			err = errors.Join(err, c())
		}
		return err
	})
}

func ended(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("stop the %s: %v", what, err)
	}
}

// probe reports whether the API is ready.
var probe = &http.Client{Timeout: 10 * time.Second}

func ready(t testing.TB, base string) bool {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	res, err := probe.Do(req)
	if err != nil {
		return false
	}
	_ = res.Body.Close()
	return res.StatusCode == http.StatusOK
}
