package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"hongbao/client"
	"hongbao/internal/access"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/pool"
	"hongbao/internal/provider"
	"hongbao/internal/store"
	"hongbao/internal/store/report"
	"hongbao/test/harness"
	"hongbao/wire"
)

// approvalFrom is the amount in fen from which a retry at the desk needs two persons.
const approvalFrom = 5000

// desk is the whole API on real parts, and people of finance at their shells. The
// test itself does what the workflows would do.
type staffStack struct {
	keysRig
	stack    *harness.Stack
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

func newStaffStack(t *testing.T) *staffStack {
	t.Helper()
	return newStaffStackOn(newKeysRig(t), harness.Options{})
}

// newStaffStackOn is a desk on the database of an office, with a stack that differs by options.
func newStaffStackOn(o keysRig, options harness.Options) *staffStack {
	t := o.t
	t.Helper()
	options.DSN, options.Migrated, options.WithoutAPI = o.dsn.Reveal(), true, true
	s := harness.Open(t, options)
	d := &staffStack{keysRig: o, stack: s, pool: s.Pool, store: s.Store, sandbox: s.Provider, provider: s.ProviderURL}
	d.mustRun("apps", "create", "mall")
	apps, _ := d.storedAccess()
	d.app = apps[0]
	key := func(role, owner string) string {
		return strings.TrimSpace(d.mustRun("keys", "direct", "create", "--role", role, "--owner", owner))
	}
	d.finance, d.second, d.ops, d.auditor = key("finance", "li-na"), key("finance", "wang-wei"), key("ops", "op"), key("auditor", "au")
	d.appKey = strings.TrimSpace(d.mustRun("keys", "direct", "create", "--role", "app", "--app", "mall"))
	s.Config.ApprovalAmount, s.Config.FundingWait = approvalFrom, 300*time.Millisecond
	s.Start(t)
	d.staff, d.public = s.Staff, s.Public
	var err error
	d.client, err = client.New(d.public, d.appKey)
	d.check(err)
	t.Cleanup(d.client.Close)
	return d
}

func (d *staffStack) check(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// env is what "dev.env" gives a person's shell.
func (d *staffStack) env() []string {
	return []string{"HONGBAO_STAFF_URL=" + d.staff, "HONGBAO_FINANCE_KEY=" + d.finance, "HONGBAO_OPS_KEY=" + d.ops, "HONGBAO_AUDITOR_KEY=" +
		d.auditor}
}

// as is the shell of another person of finance, or of another address.
func (d *staffStack) as(name, value string) []string {
	env := []string{}
	for _, one := range d.env() {
		if !strings.HasPrefix(one, name+"=") {
			env = append(env, one)
		}
	}
	return append(env, name+"="+value)
}

// sh runs a command line at li-na's shell and expects an exit code.
func (d *staffStack) sh(want int, args ...string) (stdout, stderr string) {
	d.t.Helper()
	return d.shAs(d.env(), want, args...)
}

func (d *staffStack) shAs(env []string, want int, args ...string) (stdout, stderr string) {
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
func (d *staffStack) drive(id string) payout.State {
	d.t.Helper()
	st, err := d.stack.Drive(d.t.Context(), id)
	d.check(err)
	return st
}

// grabbed is a packet whose shares these users have, each of the same amount in
// fen, with their payouts tried once. It returns the payout of each user.
func (d *staffStack) grabbedPacket(each int64, users ...string) (packetID string, payouts map[string]string) {
	d.t.Helper()
	return d.createAndGrab(each*int64(len(users)), len(users), users...)
}

// spare is grabbed of a packet of this total in fen that has twice as many shares as users.
func (d *staffStack) halfGrabbedPacket(total int64, users ...string) (packetID string, payouts map[string]string) {
	d.t.Helper()
	return d.createAndGrab(total, 2*len(users), users...)
}

func (d *staffStack) createAndGrab(total int64, shares int, users ...string) (packetID string, payouts map[string]string) {
	d.t.Helper()
	ctx := d.t.Context()
	request, key := wire.CreatePacket{SenderID: "sender", TotalAmount: moneyOf(total), ShareCount: shares,
		Split: wire.SplitEqual}, rand.Text()
	id := packet.NewID(d.app.Salt, key)
	_, err := d.client.Create(ctx, request, client.Key(key))
	d.check(err)
	d.check(d.stack.Fund(ctx, id))
	for _, user := range users {
		_, err := d.client.Grab(ctx, id, wire.Grab{UserID: user})
		d.check(err)
	}
	payouts, err = d.stack.Record(ctx, id)
	d.check(err)
	return id, payouts
}

// closed closes a packet as its workflow would and tries the refund of its remainder.
func (d *staffStack) closePacket(id string) (refund string) {
	d.t.Helper()
	refund, err := d.stack.Close(d.t.Context(), id, packet.CloseRecalled)
	d.check(err)
	d.drive(refund)
	return refund
}

func (d *staffStack) unfreeze(account string) {
	d.t.Helper()
	res, err := http.Post(d.provider+"/_unfreeze/"+url.PathEscape(account), "", nil)
	d.check(err)
	_ = res.Body.Close()
	if res.StatusCode/100 != 2 {
		d.t.Fatalf("unfreeze %s: %s", account, res.Status)
	}
}

// status reads the status of a payout from the books.
func (d *staffStack) status(id string) payout.Status {
	d.t.Helper()
	p, err := report.New(d.store.MySQL()).Payment(d.t.Context(), id)
	d.check(err)
	return p.Status
}

// audited counts what is in the audit about something.
func (d *staffStack) auditCount(subject string) (n int) {
	d.t.Helper()
	out, _ := d.sh(exitOK, "audit", "list", "--subject", subject, "--all", "--json")
	var page struct{ Items []json.RawMessage }
	d.check(json.Unmarshal([]byte(out), &page))
	return len(page.Items)
}

// wire is a connection to the API that goes bad: what spoil says true to is done,
// but its answer is cut off, or it becomes an error of the server.
type faultyProxy struct {
	mu    sync.Mutex
	keys  []string // Idempotency-Keys in the order of their requests
	spoil func(n int, r *http.Request) (cut bool, status int)
}

func (d *staffStack) newFaultyProxy(spoil func(n int, r *http.Request) (cut bool, status int)) (w *faultyProxy, address string) {
	d.t.Helper()
	w = &faultyProxy{spoil: spoil}
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
			forward.ServeHTTP(&discardResponse{header: http.Header{}}, r)
			panic(http.ErrAbortHandler)
		default:
			forward.ServeHTTP(out, r)
		}
	}))
	return w, server
}

// nowhere takes an answer that nobody gets.
type discardResponse struct {
	header http.Header
	bytes.Buffer
}

func (n *discardResponse) Header() http.Header { return n.header }
func (n *discardResponse) WriteHeader(int)     {}
