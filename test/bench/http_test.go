package bench

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"hongbao/api"
	"hongbao/internal/access"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/health"
	"hongbao/internal/payout"
	"hongbao/internal/pool"
	"hongbao/internal/provider"
	"hongbao/internal/store"
	"hongbao/internal/store/report"
)

var shareMember = []byte(`"share_index":`)

// shareIndex finds the share in a claim without decoding the JSON: a decoder would cost the client more than the grab costs the
// server.
func shareIndex(claim []byte) (int, error) {
	_, rest, ok := bytes.Cut(claim, shareMember)
	if !ok {
		return 0, fmt.Errorf("no share in %s", claim)
	}
	end := bytes.IndexAny(rest, ",}")
	if end < 0 {
		return 0, fmt.Errorf("no share in %s", claim)
	}
	return strconv.Atoi(string(rest[:end]))
}

// installation is the API with real Redis and MariaDB, and one app with a key.
type installation struct {
	pool  *pool.Pool
	addr  string
	app   string
	token string
	dsn   string // of MariaDB
}

// seedKey is the API's key for seeds.
var seedKey = [32]byte{1}

func newInstallation(tb testing.TB, redisAddr string) *installation {
	tb.Helper()
	h := &installation{dsn: stacktest.MariaDB(tb)}
	mysql := openStore(tb, h.dsn)
	h.app, h.token = newApp(tb, mysql)
	var err error
	if h.pool, err = pool.Open(tb.Context(), pool.Config{Addr: redisAddr, Timeout: patience}); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = h.pool.Close() })
	// Grabs do not reach the provider.
	pay, err := provider.NewSandbox(provider.SandboxConfig{BaseURL: "http://127.0.0.1:1", APIKey: "none"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(pay.Close)
	server, err := api.New(api.Config{PublicAddr: "127.0.0.1:0", StaffAddr: "127.0.0.1:0", Pool: h.pool,
		Store: apiStore(mysql), Providers: payout.OnlyProvider(pay),
		Probes: health.Probes{"redis": h.pool.Durable}, SeedKey: seedKey, Version: "bench"})
	if err != nil {
		tb.Fatal(err)
	}
	if err := server.Listen(); err != nil {
		tb.Fatal(err)
	}
	h.addr = server.PublicAddr().String()
	serve(tb, server.Serve)
	awaitReady(tb, "http://"+h.addr+"/readyz")
	return h
}

// serve runs a server until the test ends.
func serve(tb testing.TB, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- run(ctx) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			tb.Error(err)
		}
	})
}

func awaitReady(tb testing.TB, url string) {
	tb.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		status, _, err := fasthttp.Get(nil, url)
		if err == nil && status == http.StatusOK {
			return
		}
		select {
		case <-deadline.C:
			tb.Fatalf("%s: %d, %v after %v", url, status, err, patience)
		case <-tick.C:
		}
	}
}

// apiStore is a store as the API uses it: with the reports.
func apiStore(s *store.Store) api.Store {
	return struct {
		*store.Store
		*report.Source
	}{s, report.New(s.MySQL())}
}

func openStore(tb testing.TB, dsn string) *store.Store {
	tb.Helper()
	stacktest.Migrate(tb, dsn)
	s, err := store.Open(store.Config{DSN: dsn})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

func newApp(tb testing.TB, s *store.Store) (app, token string) {
	tb.Helper()
	token, id := access.NewToken(access.RoleApp)
	a := access.App{ID: "app" + id, Name: "bench", Salt: []byte(rand.Text())}
	k := access.Key{ID: id, Role: access.RoleApp, SecretHash: access.HashToken(token), Owner: "bench", AppID: a.ID}
	if err := errors.Join(s.EnsureApp(tb.Context(), a), s.EnsureKey(tb.Context(), k)); err != nil {
		tb.Fatal(err)
	}
	return a.ID, token
}

// httpGrabs is POST /v1/packets/{id}/grabs of the API, with the check of the key.
func (h *installation) httpGrabs() subject {
	return subject{"POST grabs", func(tb testing.TB, callers int, length time.Duration) attempt {
		ids := openPackets(tb, h.pool, h.app, 1, sharesFor(length, callers, 1))
		url := "http://" + h.addr + "/v1/packets/" + ids[0] + "/grabs"
		receipts := make([][]receipt, callers)
		a := attempt{}
		for i := range callers {
			users, from := newUser(i), newCaller(h.addr, h.token)
			a.callers = append(a.callers, func() error {
				name := users.next()
				if err := from.post(url, name); err != nil {
					return err
				}
				index, err := shareIndex(from.body)
				if err != nil {
					return err
				}
				receipts[i] = append(receipts[i], receipt{0, name, index})
				return nil
			})
			tb.Cleanup(from.close)
		}
		a.finish = func(tb testing.TB, done int) {
			answered := collectClaims(1, receipts)
			answered.total(tb, done)
			settle(tb, h.pool, ids, answered)
		}
		return a
	}}
}

// idle is a web server with the settings of the API, whose POST handler only returns 201. It gets the same requests, including the
// key.
func idle(tb testing.TB, token string) subject {
	tb.Helper()
	app := fiber.New(fiber.Config{
		CaseSensitive: true, StrictRouting: true, Immutable: true, StreamRequestBody: true, DisablePreParseMultipartForm: true,
		BodyLimit: 1 << 20, ReadBufferSize: 16 << 10, ReadTimeout: 15 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 75 * time.Second, DisableStartupMessage: true,
	})
	app.Post("/v1/packets/:id/grabs", func(c *fiber.Ctx) error {
		c.Status(http.StatusCreated)
		return nil
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- app.Listener(ln) }()
	tb.Cleanup(func() {
		if err := errors.Join(app.ShutdownWithTimeout(patience), <-served); err != nil {
			tb.Error(err)
		}
	})
	addr := ln.Addr().String()
	return subject{"POST nothing", func(tb testing.TB, callers int, _ time.Duration) attempt {
		a := attempt{finish: func(testing.TB, int) {}} // nothing is recorded
		for i := range callers {
			users, from := newUser(i), newCaller(addr, token)
			a.callers = append(a.callers, func() error { return from.post("http://"+addr+"/v1/packets/00000000000000000000/grabs", users.next()) })
			tb.Cleanup(from.close)
		}
		return a
	}}
}
