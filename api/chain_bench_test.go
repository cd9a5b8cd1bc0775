package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"

	"hongbao/api/rest"
	"hongbao/internal/access"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/provider"
)

// endless is a connection on which the same request arrives n times, and on which
// answers are counted and thrown away: what a request costs without sockets.
type endless struct {
	net.Conn
	request  []byte
	left, at int
	answers  int
	last     []byte // what was written last
}

func (c *endless) Read(b []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	n := copy(b, c.request[c.at:])
	if c.at += n; c.at == len(c.request) {
		c.at, c.left = 0, c.left-1
	}
	return n, nil
}

func (c *endless) Write(b []byte) (int, error) {
	c.answers += bytes.Count(b, []byte("HTTP/1.1 "))
	c.last = append(c.last[:0], b...)
	return len(b), nil
}

func (c *endless) Close() error                     { return nil }
func (c *endless) LocalAddr() net.Addr              { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
func (c *endless) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2} }
func (c *endless) SetDeadline(time.Time) error      { return nil }
func (c *endless) SetReadDeadline(time.Time) error  { return nil }
func (c *endless) SetWriteDeadline(time.Time) error { return nil }

// instant decides every grab at once, in the same way.
type instant struct {
	Pool
	app    string
	result packet.GrabResult
}

func (p instant) View(_ context.Context, id string) (packet.PoolView, error) {
	return packet.PoolView{Packet: packet.Packet{ID: id, App: p.app, ShareCount: 1}, State: packet.PoolOpen}, nil
}

func (p instant) Grab(_ context.Context, packetID, userID string, profile packet.Profile) (packet.GrabAnswer, error) {
	g := packet.GrabAnswer{Result: p.result}
	if g.Result == packet.GrabWon {
		g.Claim = packet.Claim{PacketID: packetID, UserID: userID, ShareIndex: 17, Amount: 1288, ClaimedAt: time.UnixMilli(1_700_000_000_123),
			Profile: profile}
	}
	return g, nil
}

func (instant) ClaimsPage(_ context.Context, id string, _, _ int) ([]packet.Claim, int, error) {
	return []packet.Claim{{PacketID: id, UserID: "winner"}}, 1, nil
}

func (instant) WinnersCount(context.Context, string) (int, error) { return 1, nil }

func (instant) LoadApps(context.Context) ([]byte, error) { return nil, nil }

func (instant) SaveApps(context.Context, []byte) error { return nil }

// oneKey knows one app.
type oneKey struct {
	Store
	app access.App
	key access.Key
}

func (s oneKey) AppsAndKeys(context.Context) ([]access.App, []access.Key, error) {
	return []access.App{s.app}, []access.Key{s.key}, nil
}

func (oneKey) EndedSignIns(context.Context) ([]access.EndedSignIn, error) { return nil, nil }

func (oneKey) TicketKeysInUse(context.Context) ([]access.TicketKey, error) { return nil, nil }

// BenchmarkChain is what one grab costs between the sockets and the pool, beside a
// handler that does nothing on a server with the same settings. cpu-ns is the
// processor time, which other work on the machine disturbs less than the clock.
func BenchmarkChain(b *testing.B) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	token, id := access.NewToken(access.RoleApp)
	books := oneKey{app: access.App{ID: "app" + id, Name: "bench", Salt: []byte(rand.Text())}}
	books.key = access.Key{ID: id, Role: access.RoleApp, SecretHash: access.HashToken(token), Owner: "bench", AppID: books.app.ID}
	const body = `{"user_id":"0123456789abcdef-12345"}`
	request := fmt.Appendf(nil, "POST /v1/packets/0123456789abcdefghij/grabs HTTP/1.1\r\nUser-Agent: fasthttp\r\nHost: 127.0.0.1:8080\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\nAuthorization: Bearer %s\r\n\r\n%s", len(body), token, body)
	for _, side := range []struct {
		result packet.GrabResult
		status int
	}{{packet.GrabWon, http.StatusCreated}, {packet.GrabSoldOut, http.StatusConflict}} {
		b.Run(side.result.String(), func(b *testing.B) {
			s := benchServer(b, instant{app: books.app.ID, result: side.result}, books)
			s.public.app.Handler() // makes the routes
			serve := func(c net.Conn) error {
				return s.public.app.Server().ServeConn(
					&conn{Conn: c, owner: newConns(b.Context(), nil, 1, 0, prometheus.NewGauge(prometheus.GaugeOpts{}),
						prometheus.NewCounter(prometheus.CounterOpts{}), prometheus.NewCounter(prometheus.CounterOpts{}))})
			}
			serveOnce(b, serve, request, side.status)
			s.soldOut.running.Wait() // the process knows the winners, if there are any to know
			serveEndless(b, serve, request)
		})
	}
	b.Run("nothing", func(b *testing.B) {
		app := fiber.New(fiber.Config{
			CaseSensitive: true, StrictRouting: true, Immutable: true, StreamRequestBody: true, DisablePreParseMultipartForm: true,
			BodyLimit: rest.CreateBodyLimit, ReadBufferSize: headerLimit, ReadTimeout: DefaultReadTimeout, WriteTimeout: DefaultWriteTimeout,
			IdleTimeout: DefaultIdleTimeout, DisableStartupMessage: true,
		})
		app.Post("/v1/packets/:id/grabs", func(c *fiber.Ctx) error { c.Status(http.StatusCreated); return nil })
		app.Handler()
		serveOnce(b, app.Server().ServeConn, request, http.StatusCreated)
		serveEndless(b, app.Server().ServeConn, request)
	})
}

func benchServer(b testing.TB, p Pool, books Store) *Server {
	b.Helper()
	pay, err := provider.NewSandbox(provider.SandboxConfig{BaseURL: "http://127.0.0.1:1", APIKey: "none"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pay.Close)
	s, err := New(Config{PublicAddr: "127.0.0.1:0", StaffAddr: "127.0.0.1:0", Pool: p, Store: books,
		Providers: payout.OnlyProvider(pay), SeedKey: [32]byte{1}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.stopBase)
	if err := s.dir.load(b.Context(), 0); err != nil {
		b.Fatal(err)
	}
	return s
}

// serveOnce checks that the request is answered with a status.
func serveOnce(b *testing.B, serve func(net.Conn) error, request []byte, status int) {
	b.Helper()
	c := &endless{request: request, left: 1}
	if err := serve(c); err != nil {
		b.Fatal(err)
	}
	if want := fmt.Sprintf("HTTP/1.1 %d ", status); !strings.HasPrefix(string(c.last), want) {
		b.Fatalf("want %s, got %s", want, c.last)
	}
}

// serveEndless serves b.N requests on one connection.
func serveEndless(b *testing.B, serve func(net.Conn) error, request []byte) {
	b.Helper()
	c := &endless{request: request, left: b.N}
	b.ReportAllocs()
	b.ResetTimer()
	before := processorTime(b)
	if err := serve(c); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
	if c.answers != b.N {
		b.Fatalf("%d answers to %d requests", c.answers, b.N)
	}
}

func processorTime(b *testing.B) int64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
