package bench

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hongbao/api"
	"hongbao/console"
	"hongbao/internal/access"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/health"
	"hongbao/internal/payout"
	"hongbao/internal/pool"
	"hongbao/internal/provider"
	"hongbao/internal/provider/sandbox"
	"hongbao/internal/store"
	"hongbao/test/bench/bulk"
)

// consolePool is MariaDB's memory for pages of tables, on both sides: the least of a server with
// this much data.
const consolePool = 1 << 30

// pageViewLimit is generous, because the first reads come from a slow disk.
const pageViewLimit = 5 * time.Minute

// consoleServer is the API with its console, on a database with so many payouts.
type consoleServer struct {
	base, token string
	api         *http.Client // keeps its connection
	pages       *http.Client // the same, signed in at the console
	rows        int
	took        time.Duration // to fill the database
	version     string        // of MariaDB
	ids         map[string]string
}

// newConsoleServer fills a new MariaDB and serves it. The provider has the orders of the one packet
// whose page is measured.
func newConsoleServer(tb testing.TB, payouts int) *consoleServer {
	tb.Helper()
	_, dsn := stacktest.FreshMariaDB(tb)
	mysql := openStore(tb, dsn)
	d := &consoleServer{rows: payouts, ids: map[string]string{}}
	var id string
	d.token, id = access.NewToken(access.RoleAuditor)
	app := access.App{ID: "app" + id, Name: "bench", Salt: []byte(rand.Text())}
	key := access.Key{ID: id, Role: access.RoleAuditor, SecretHash: access.HashToken(d.token), Owner: "bench"}
	if err := errors.Join(mysql.EnsureApp(tb.Context(), app), mysql.EnsureKey(tb.Context(), key)); err != nil {
		tb.Fatal(err)
	}
	other, err := sandbox.Open(sandbox.Config{Listen: "127.0.0.1:0", DBPath: filepath.Join(tb.TempDir(), "provider.db"), APIKey: "key"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = other.Close() })
	serve(tb, other.Serve)
	pay := newSandbox(tb, "http://"+other.Addr().String())
	d.fill(tb, dsn, pay, app)
	d.serve(tb, mysql, pay)
	return d
}

func newSandbox(tb testing.TB, address string) *provider.Sandbox {
	tb.Helper()
	pay, err := provider.NewSandbox(provider.SandboxConfig{BaseURL: address, APIKey: "key"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(pay.Close)
	return pay
}

func (d *consoleServer) fill(tb testing.TB, dsn string, pay *provider.Sandbox, app access.App) {
	tb.Helper()
	db, err := store.OpenSQL(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(tb.Context(), fmt.Sprintf("SET GLOBAL innodb_buffer_pool_size = %d", consolePool)); err != nil {
		tb.Fatal(err)
	}
	began := time.Now()
	cfg := bulk.Config{Payouts: d.rows, Days: 30, Until: time.Now(), App: app.ID, SeedKey: seedKey, Provider: pay.Name()}
	if err := bulk.Fill(tb.Context(), db, cfg); err != nil {
		tb.Fatal(err)
	}
	d.took = time.Since(began)
	for name, query := range map[string]string{
		"version": "SELECT VERSION()",
		"packet":  "SELECT packet_id FROM (SELECT packet_id FROM claims LIMIT 20000) c GROUP BY packet_id ORDER BY COUNT(*) DESC LIMIT 1",
		"user":    "SELECT user_id FROM payments WHERE kind = 'p' GROUP BY user_id ORDER BY COUNT(*) DESC LIMIT 1",
		"payout":  "SELECT id FROM payments WHERE kind = 'p' AND status = 'failed' ORDER BY created_at LIMIT 1",
		"order":   "SELECT order_no FROM payments WHERE kind = 'p' AND status = 'paid' ORDER BY created_at LIMIT 1",
		"ref": "SELECT a.provider_ref FROM payments p JOIN attempts a ON a.order_no = p.order_no WHERE p.kind = 'p' AND p.status = " +
			"'failed' ORDER BY p.created_at LIMIT 1",
	} {
		var value string
		if err := db.QueryRowContext(tb.Context(), query).Scan(&value); err != nil {
			tb.Fatalf("%s: %v", query, err)
		}
		d.ids[name] = value
	}
	d.version = d.ids["version"]
	sendPacket(tb, db, pay, d.ids["packet"])
}

// sendPacket sends every order of a packet to the provider, the charge first.
func sendPacket(tb testing.TB, db *sql.DB, pay *provider.Sandbox, packetID string) {
	tb.Helper()
	rows, err := db.QueryContext(tb.Context(), `SELECT a.op, a.order_no, p.account, p.amount, p.currency, p.remark
		FROM payments p JOIN attempts a ON a.payment_id = p.id WHERE p.packet_id = ? ORDER BY a.op = 'charge' DESC, a.order_no`, packetID)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	n := 0
	for ; rows.Next(); n++ {
		in := payout.Instruction{ChargeOrderNo: payout.OrderNo(payout.ID(payout.KindCharge, packetID, 0), 1)}
		if err := rows.Scan(&in.Op, &in.OrderNo, &in.Account, &in.Amount, &in.Currency, &in.Remark); err != nil {
			tb.Fatal(err)
		}
		request, err := pay.EncodeRequest(in)
		if err != nil {
			tb.Fatal(err)
		}
		if seen := pay.Send(tb.Context(), payout.Order{Op: in.Op, OrderNo: in.OrderNo, Request: request}); seen.Kind == payout.ObsNoAnswer {
			tb.Fatalf("%s: %s", in.OrderNo, seen.Message)
		}
	}
	if err := rows.Err(); err != nil || n == 0 {
		tb.Fatalf("%d orders, %v", n, err)
	}
}

func (d *consoleServer) serve(tb testing.TB, mysql *store.Store, pay *provider.Sandbox) {
	tb.Helper()
	redis, err := pool.Open(tb.Context(), pool.Config{Addr: stacktest.FreshRedis(tb).Addr, Timeout: patience})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = redis.Close() })
	server, err := api.New(api.Config{PublicAddr: "127.0.0.1:0", StaffAddr: "127.0.0.1:0", Pool: redis, Store: apiStore(mysql),
		Providers: payout.OnlyProvider(pay),
		Probes:    health.Probes{"redis": redis.Durable}, SeedKey: seedKey, Version: "bench"})
	if err != nil {
		tb.Fatal(err)
	}
	front, err := console.New(console.Config{StaffAPI: server, SessionKeys: [][32]byte{seedKey}})
	if err != nil {
		tb.Fatal(err)
	}
	server.MountConsole(front, console.Folders...)
	if err := server.Listen(); err != nil {
		tb.Fatal(err)
	}
	d.base = "http://" + server.StaffAddr().String()
	serve(tb, server.Serve)
	awaitReady(tb, d.base+"/readyz")
	jar, err := cookiejar.New(nil)
	if err != nil {
		tb.Fatal(err)
	}
	d.api = &http.Client{Transport: &http.Transport{}, Timeout: pageViewLimit}
	d.pages = &http.Client{Transport: &http.Transport{}, Timeout: pageViewLimit, Jar: jar}
	tb.Cleanup(d.api.CloseIdleConnections)
	tb.Cleanup(d.pages.CloseIdleConnections)
	res, err := d.pages.PostForm(d.base+"/login", url.Values{"key": {d.token}, "next": {"/"}})
	if err != nil {
		tb.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK || res.Request.URL.Path != "/" {
		tb.Fatalf("sign-in: %s at %s", res.Status, res.Request.URL.Path)
	}
}

// pageView is one request of a user of the console.
type pageView struct {
	what, path string
	has        string // what the answer must hold
	first      bool   // until the first byte; the rest is not read
}

// pageViews are the same for every server.
func (d *consoleServer) pageViews() []pageView {
	const list, one, sum = `"items":[{`, `"id":"`, `"count":`
	v := func(text string) string { return url.QueryEscape(d.ids[text]) }
	staff := "/v1/staff"
	return []pageView{
		{"payouts, newest", staff + "/payouts", list, false},
		{"payouts, half of the days back", staff + "/payouts?older_than_seconds=1296000", list, false},
		{"payouts that are paid", staff + "/payouts?status=paid", list, false},
		{"payouts that failed", staff + "/payouts?status=failed", list, false},
		{"payouts that failed by one reason", staff + "/payouts?failure_code=account_frozen", list, false},
		{"payouts to one user", staff + "/payouts?user_id=" + v("user"), list, false},
		{"payouts of one packet", staff + "/payouts?packet_id=" + v("packet"), list, false},
		{"payouts of an amount that few have", staff + "/payouts?amount_min=150000", `"items":[`, false},
		{"payouts of an amount without rows", staff + "/payouts?amount_min=99999999", `"items":[]`, false},
		{"payouts of an amount that many have", staff + "/payouts?amount_min=100&amount_max=300", list, false},
		{"paid payouts of an amount that few have", staff + "/payouts?status=paid&amount_min=150000", `"items":[`, false},
		{"search: an order number", staff + "/payouts?order_no=" + v("order"), list, false},
		{"search: the provider's number", staff + "/payouts?provider_ref=" + v("ref"), list, false},
		{"count and sum of all payouts", staff + "/payouts/sum", sum, false},
		{"count and sum of what is paid", staff + "/payouts/sum?status=paid", sum, false},
		{"count and sum of what failed", staff + "/payouts/sum?status=failed", sum, false},
		{"count and sum of a rare amount", staff + "/payouts/sum?amount_min=150000", sum, false},
		{"count and sum of a common amount", staff + "/payouts/sum?amount_min=100&amount_max=300", sum, false},
		{"count and sum of all packets", staff + "/packets/sum", sum, false},
		{"count and sum of all breaks", staff + "/breaks/sum", sum, false},
		{"count of the audit", staff + "/audit/count", sum, false},
		{"refunds, newest", staff + "/refunds", list, false},
		{"packets, newest", staff + "/packets", list, false},
		{"approvals, newest", staff + "/approvals", list, false},
		{"audit, newest", staff + "/audit", list, false},
		{"one payout, with its timeline", staff + "/payouts/" + v("payout"), one, false},
		{"overview", staff + "/overview", `"funded":`, false},
		{"CSV of all payouts, first byte", staff + "/export/payouts.csv", "", true},
		{"CSV of all refunds, first byte", staff + "/export/refunds.csv", "", true},
		{"CSV of all packets, first byte", staff + "/export/packets.csv", "", true},
		{"CSV of the audit, first byte", staff + "/export/audit.csv", "", true},
		{"CSV of what failed, whole", staff + "/export/payouts.csv?status=failed", "account_frozen", false},
		{"console: overview", "/", "", false},
		{"console: payouts", "/payouts", "/payouts/p", false},
		{"console: payouts that failed", "/payouts?status=failed", "~frozen", false},
		{"console: payouts that are paid", "/payouts?status=paid", "/payouts/p", false},
		{"console: one payout", "/payouts/" + v("payout"), d.ids["payout"], false},
		{"console: one packet", "/packets/" + v("packet"), d.ids["packet"], false},
		{"console: search for an order number", "/search?q=" + v("order"), d.ids["order"], false},
	}
}

// look makes one request and returns how long the answer took.
func (d *consoleServer) look(tb testing.TB, g pageView) time.Duration {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	defer cancel() // what was not read is not sent either
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.base+g.path, nil)
	if err != nil {
		tb.Fatal(err)
	}
	client := d.pages
	if strings.HasPrefix(g.path, "/v1/") {
		client = d.api
		req.Header.Set("Authorization", "Bearer "+d.token)
	}
	began := time.Now()
	res, err := client.Do(req)
	if err != nil {
		tb.Fatalf("%s: %v", g.what, err)
	}
	defer func() { _ = res.Body.Close() }()
	var body []byte
	if g.first {
		body = make([]byte, 1)
		_, err = io.ReadFull(res.Body, body)
	} else {
		body, err = io.ReadAll(res.Body)
	}
	took := time.Since(began)
	if err != nil || res.StatusCode != http.StatusOK || !bytes.Contains(body, []byte(g.has)) {
		tb.Fatalf("%s: %s, %v: %.300s has no %q", g.what, res.Status, err, body, g.has)
	}
	return took
}

// warm waits until the overview has all sums, which a new process adds up once, and returns how
// long that took.
func (d *consoleServer) warm(tb testing.TB) time.Duration {
	tb.Helper()
	began := time.Now()
	await(tb, "the ledger is added up", func() bool {
		req, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, d.base+"/v1/staff/overview", nil)
		if err != nil {
			tb.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+d.token)
		res, err := d.api.Do(req)
		if err != nil {
			tb.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		var seen struct {
			Money *struct{ Ties bool } `json:"money"`
		}
		if err := json.NewDecoder(res.Body).Decode(&seen); err != nil {
			tb.Fatal(err)
		}
		if seen.Money != nil && !seen.Money.Ties {
			tb.Fatal("the ledger and the provider differ")
		}
		return seen.Money != nil
	})
	return time.Since(began)
}

// consoleCalls is the most calls of each request.
const consoleCalls = 60

// measureConsole fills two databases and sends all requests to both.
func measureConsole(t *testing.T, p plan, say func(string, ...any)) []result {
	if p.rows == 0 {
		say("skipped: -rows 0")
		return nil
	}
	say("filling one MariaDB with %d payouts, and one with %d", p.rows, fewRows)
	few, many := newConsoleServer(t, fewRows), newConsoleServer(t, p.rows)
	say("filled in %v", many.took.Round(time.Second))
	few.warm(t)
	summed := many.warm(t)
	calls := min(p.calls, consoleCalls)
	small, large := figure(float64(few.rows))+" payouts", figure(float64(many.rows))+" payouts"
	out := result{title: "how long the console takes, over HTTP", columns: []string{"GET", "p50 ms", "p99 ms", "least", "most",
		"p50 at " + small,
		"ratio"},
		notes: []string{
			fmt.Sprintf("MariaDB %s with %d MiB for pages; %d payouts over 30 days, filled in %v.", many.version, consolePool>>20, many.rows,
				many.took.Round(time.Second)),
			fmt.Sprintf("One caller sends each request %d times, in turn with the same request to an API with %d payouts. A ratio of 1 means "+
				"that more rows cost nothing. Counts and sums go up to 10,000 payments.", calls, few.rows),
			fmt.Sprintf("The overview is requested after the process has summed up the ledger, which a new process does once: %v here.",
				summed.Round(10*time.Millisecond)),
		},
		plot: &plot{title: "The console, p50", unit: "ms", log: true}}
	a, b := few.pageViews(), many.pageViews()
	for i := range b {
		say("%s", b[i].what)
		l := latency{what: b[i].what}
		for range calls {
			l.few = append(l.few, few.look(t, a[i]))
			l.many = append(l.many, many.look(t, b[i]))
		}
		slices.Sort(l.few)
		slices.Sort(l.many)
		ms := func(of times, percent int) string { return fmt.Sprintf("%.2f", of.at(percent)) }
		out.rows = append(out.rows, []string{l.what, ms(l.many, 50), ms(l.many, 99), ms(l.many, 0), ms(l.many, 100), ms(l.few, 50),
			fmt.Sprintf("%.2f", l.ratio())})
		out.numbers = append(out.numbers, pageTime{l.what, l.many.at(50), l.many.at(99), l.many.at(0), l.many.at(100), l.few.at(50), l.ratio()})
		out.plot.bars = append(out.plot.bars, bar{l.what, small, l.few.at(50), l.few.at(0), l.few.at(100)},
			bar{l.what, large, l.many.at(50), l.many.at(0), l.many.at(100)})
	}
	return []result{out}
}
