package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"hongbao/access"
	"hongbao/api"
	"hongbao/client"
	"hongbao/devstack/stacktest"
	"hongbao/packet"
	"hongbao/payout"
	"hongbao/pool"
	"hongbao/provider"
	"hongbao/provider/sandbox"
	"hongbao/store"
)

// approvalFrom is the amount in fen from which a retry at the desk needs two persons.
const approvalFrom = 5000

// desk is the whole API on real parts, and people of finance at their shells. The
// test itself does what the workflows would do.
type desk struct {
	office
	pool     *pool.Pool
	store    *store.Store
	sandbox  *provider.Sandbox
	provider string // address
	staff    string // address
	public   string // address
	app      access.App
	client   *client.Client
	appKey   string // keys
	finance  string
	second   string
	ops      string
	auditor  string
}

func newDeskTest(t *testing.T) *desk {
	t.Helper()
	return newDeskOn(newOffice(t), stacktest.Redis(t), func(*api.Config) {})
}

// newDeskOn is a desk on other servers, with an API that change has had a say in.
func newDeskOn(o office, redis string, change func(*api.Config)) *desk {
	t := o.t
	t.Helper()
	d := &desk{office: o}
	var err error
	d.store, err = store.Open(store.Config{DSN: d.dsn.Reveal(), MaxOpenConns: 10})
	d.check(err)
	t.Cleanup(func() { _ = d.store.Close() })
	d.pool, err = pool.Open(t.Context(), pool.Config{Addr: redis})
	d.check(err)
	t.Cleanup(func() { _ = d.pool.Close() })
	secret := "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	bank, err := sandbox.Open(sandbox.Config{Listen: "127.0.0.1:0", DBPath: filepath.Join(t.TempDir(), "provider.db"), APIKey: "key", Logger: slog.New(slog.DiscardHandler)})
	d.check(err)
	d.serveUntilEnd(bank.Serve, bank.Close)
	d.provider = "http://" + bank.Addr().String()
	d.sandbox, err = provider.NewSandbox(provider.SandboxConfig{BaseURL: d.provider, APIKey: "key", WebhookSecret: secret, Timeout: 5 * time.Second})
	d.check(err)
	t.Cleanup(d.sandbox.Close)
	d.must("apps", "create", "mall")
	apps, _ := d.inUse()
	d.app = apps[0]
	key := func(role, owner string) string {
		return strings.TrimSpace(d.must("keys", "direct", "create", "--role", role, "--owner", owner))
	}
	d.finance, d.second, d.ops, d.auditor = key("finance", "li-na"), key("finance", "wang-wei"), key("ops", "op"), key("auditor", "au")
	d.appKey = strings.TrimSpace(d.must("keys", "direct", "create", "--role", "app", "--app", "mall"))
	cfg := api.Config{PublicAddr: "127.0.0.1:0", StaffAddr: "127.0.0.1:0", Pool: d.pool, Store: d.store, Provider: d.sandbox, SeedKey: [32]byte{7},
		ApprovalAmount: approvalFrom, TemporalUIURL: "http://127.0.0.1:18233", TemporalNamespace: "hongbao", FundingWait: 300 * time.Millisecond, Version: "test", Refresh: 200 * time.Millisecond}
	change(&cfg)
	server, err := api.New(cfg)
	d.check(err)
	d.check(server.Listen())
	d.serveUntilEnd(server.Serve)
	d.staff, d.public = "http://"+server.StaffAddr().String(), "http://"+server.PublicAddr().String()
	d.client, err = client.New(d.public, d.appKey)
	d.check(err)
	t.Cleanup(d.client.Close)
	return d
}

func (d *desk) check(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// serveUntilEnd runs f until the test ends.
func (d *desk) serveUntilEnd(f func(context.Context) error, closers ...func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- f(ctx) }()
	d.t.Cleanup(func() {
		cancel()
		err := <-served
		for _, c := range closers {
			err = errors.Join(err, c())
		}
		if err != nil {
			d.t.Error(err)
		}
	})
}

// env is what "dev.env" gives a person's shell.
func (d *desk) env() []string {
	return []string{"HONGBAO_STAFF_URL=" + d.staff, "HONGBAO_FINANCE_KEY=" + d.finance, "HONGBAO_OPS_KEY=" + d.ops, "HONGBAO_AUDITOR_KEY=" + d.auditor}
}

// as is the shell of another person of finance, or of another address.
func (d *desk) as(name, value string) []string {
	env := []string{}
	for _, one := range d.env() {
		if !strings.HasPrefix(one, name+"=") {
			env = append(env, one)
		}
	}
	return append(env, name+"="+value)
}

// sh runs a command line at li-na's shell and expects an exit code.
func (d *desk) sh(want int, args ...string) (stdout, stderr string) {
	d.t.Helper()
	return d.shAs(d.env(), want, args...)
}

func (d *desk) shAs(env []string, want int, args ...string) (stdout, stderr string) {
	d.t.Helper()
	code, out, errs := d.run(env, args...)
	if code != want {
		d.t.Fatalf("hongbao %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), code, want, out, errs)
	}
	for _, key := range []string{d.appKey, d.finance, d.second, d.ops, d.auditor} {
		if strings.Contains(out+errs, key) {
			d.t.Errorf("hongbao %s shows a key", strings.Join(args, " "))
		}
	}
	return out, errs
}

// drive moves a payment until nothing is left to do, as its workflow would.
func (d *desk) drive(id string) payout.State {
	d.t.Helper()
	ctx := d.t.Context()
	for range 100 {
		st, err := d.store.PaymentState(ctx, id)
		d.check(err)
		if st.Step.Do == payout.ActionEnd {
			return st
		}
		if st.Step.Do == payout.ActionCarryOut {
			_, err := d.store.CarryOut(ctx, id)
			d.check(err)
			continue
		}
		asked := st.Step.OrderNo
		var o payout.Observation
		if st.Step.Do == payout.ActionSend {
			begun, err := d.store.BeginSend(ctx, id, d.sandbox.Limits(), d.sandbox.EncodeRequest)
			d.check(err)
			if begun.Order == nil {
				continue
			}
			asked, o = begun.Order.OrderNo, d.sandbox.Send(ctx, *begun.Order)
		} else {
			parts, err := payout.Parse(id)
			d.check(err)
			o = d.sandbox.Ask(ctx, payout.OpOf(parts.Kind), asked)
		}
		_, err = d.store.Settle(ctx, o, asked)
		d.check(err)
	}
	d.t.Fatalf("payment %s does not end", id)
	return payout.State{}
}

// grabbed is a packet whose shares these users have, each of the same amount in
// fen, with their payouts tried once. It returns the payout of each user.
func (d *desk) grabbed(each int64, users ...string) (packetID string, payouts map[string]string) {
	d.t.Helper()
	return d.give(each*int64(len(users)), len(users), users...)
}

// spare is grabbed of a packet of this total in fen that has twice as many shares as users.
func (d *desk) spare(total int64, users ...string) (packetID string, payouts map[string]string) {
	d.t.Helper()
	return d.give(total, 2*len(users), users...)
}

func (d *desk) give(total int64, shares int, users ...string) (packetID string, payouts map[string]string) {
	d.t.Helper()
	ctx := d.t.Context()
	request := client.CreateRequest{IdempotencyKey: rand.Text(), SenderID: "sender", TotalAmount: moneyOf(total), ShareCount: shares, Split: client.SplitEqual}
	id := packet.NewID(d.app.Salt, request.IdempotencyKey)
	_, err := d.client.Create(ctx, request)
	d.check(err)
	view, err := d.pool.View(ctx, id)
	d.check(err)
	d.fund(view.Packet)
	for _, user := range users {
		_, err := d.client.Grab(ctx, id, client.GrabRequest{UserID: user})
		d.check(err)
	}
	claims, err := d.pool.Claims(ctx, id)
	d.check(err)
	payouts = map[string]string{}
	for _, c := range claims {
		st, err := d.store.RecordClaim(ctx, c, "sandbox")
		d.check(err)
		d.drive(st.PaymentID)
		payouts[c.UserID] = st.PaymentID
	}
	return id, payouts
}

func (d *desk) fund(p packet.Packet) {
	d.t.Helper()
	ctx := d.t.Context()
	seed := packet.DeriveSeed([32]byte{7}, p.ID)
	sealed, err := packet.SealSeed([32]byte{7}, p.ID, seed)
	d.check(err)
	_, err = d.store.RecordPacket(ctx, p, sealed, nil, "sandbox")
	d.check(err)
	d.drive(payout.ID(payout.KindCharge, p.ID, 0))
	shares, err := packet.Split(seed, p.SplitParams())
	d.check(err)
	_, err = d.store.Fund(ctx, p.ID, shares)
	d.check(err)
	d.check(d.pool.OpenPool(ctx, p.ID, shares, nil))
}

// closed closes a packet as its workflow would and tries the refund of its remainder.
func (d *desk) closed(id string) (refund string) {
	d.t.Helper()
	ctx := d.t.Context()
	_, err := d.store.BeginClosing(ctx, id, packet.CloseRecalled)
	d.check(err)
	_, err = d.pool.ClosePool(ctx, id, packet.CloseRecalled)
	d.check(err)
	_, err = d.store.CloseBooks(ctx, id, "sandbox")
	d.check(err)
	refund = payout.ID(payout.KindRefund, id, 0)
	d.drive(refund)
	return refund
}

func (d *desk) unfreeze(account string) {
	d.t.Helper()
	res, err := http.Post(d.provider+"/_unfreeze/"+url.PathEscape(account), "", nil)
	d.check(err)
	_ = res.Body.Close()
	if res.StatusCode/100 != 2 {
		d.t.Fatalf("unfreeze %s: %s", account, res.Status)
	}
}

// status reads the status of a payout from the books.
func (d *desk) status(id string) payout.Status {
	d.t.Helper()
	p, err := d.store.Payment(d.t.Context(), id)
	d.check(err)
	return p.Status
}

// audited counts what is in the audit about something.
func (d *desk) audited(subject string) (n int) {
	d.t.Helper()
	out, _ := d.sh(exitOK, "audit", "list", "--subject", subject, "--all", "--json")
	var page struct{ Items []json.RawMessage }
	d.check(json.Unmarshal([]byte(out), &page))
	return len(page.Items)
}

// wire is a connection to the API that goes bad: what spoil says true to is done,
// but its answer is cut off, or it becomes an error of the server.
type wire struct {
	mu    sync.Mutex
	keys  []string // Idempotency-Keys in the order of their requests
	spoil func(n int, r *http.Request) (cut bool, status int)
}

func (d *desk) wire(spoil func(n int, r *http.Request) (cut bool, status int)) (w *wire, address string) {
	d.t.Helper()
	w = &wire{spoil: spoil}
	target, err := url.Parse(d.staff)
	d.check(err)
	forward := httputil.NewSingleHostReverseProxy(target)
	server := newTestServer(d.t, http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		if r.Method == http.MethodPost {
			w.keys = append(w.keys, r.Header.Get("Idempotency-Key"))
		}
		cut, status := w.spoil(len(w.keys), r)
		w.mu.Unlock()
		switch {
		case status != 0:
			out.Header().Set("Content-Type", "application/problem+json")
			out.WriteHeader(status)
			_, _ = fmt.Fprintf(out, `{"code":"internal","detail":"Something went wrong on our side.","request_id":"req_spoilt"}`)
		case cut:
			forward.ServeHTTP(&nowhere{header: http.Header{}}, r)
			panic(http.ErrAbortHandler)
		default:
			forward.ServeHTTP(out, r)
		}
	}))
	return w, server
}

// nowhere takes an answer that nobody gets.
type nowhere struct {
	header http.Header
	bytes.Buffer
}

func (n *nowhere) Header() http.Header { return n.header }
func (n *nowhere) WriteHeader(int)     {}
