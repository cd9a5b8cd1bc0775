package client_test

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
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

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(stacktest.Main(m))
}

// bank is the API on real Redis, MariaDB and provider; the test itself does
// what the workflows would do.
type bank struct {
	t       *testing.T
	dsn     string
	pool    *pool.Pool
	store   *store.Store
	sandbox *provider.Sandbox
	seedKey [32]byte
	app     access.App
	client  *client.Client
	staff   *client.Staff // finance
	second  *client.Staff // finance, another person
	auditor *client.Staff
	admin   *client.Staff
}

func (b *bank) check(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Error(err)
	}
}

func (b *bank) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// serve runs f until the test ends.
func (b *bank) serve(f func(context.Context) error, closers ...func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- f(ctx) }()
	b.t.Cleanup(func() {
		cancel()
		b.check(<-served)
		for _, c := range closers {
			b.check(c())
		}
	})
}

func newBank(t *testing.T) *bank {
	t.Helper()
	b := &bank{t: t, seedKey: [32]byte{9}}
	b.dsn = stacktest.MariaDB(t)
	stacktest.Migrate(t, b.dsn)
	var err error
	b.store, err = store.Open(store.Config{DSN: b.dsn, MaxOpenConns: 10})
	b.must(err)
	t.Cleanup(func() { b.check(b.store.Close()) })
	b.pool, err = pool.Open(t.Context(), pool.Config{Addr: stacktest.Redis(t)})
	b.must(err)
	t.Cleanup(func() { b.check(b.pool.Close()) })
	b.openProvider()
	appToken, staffToken, secondToken, auditorToken := b.newKey(access.RoleApp), b.newKey(access.RoleFinance), b.newKey(access.RoleFinance), b.newKey(access.RoleAuditor)
	adminToken := b.newKey(access.RoleAdmin)
	server, err := api.New(api.Config{PublicAddr: "127.0.0.1:0", StaffAddr: "127.0.0.1:0", Pool: b.pool, Store: b.store, Provider: b.sandbox,
		SeedKey: b.seedKey, FundingWait: 300 * time.Millisecond, Version: "test", Refresh: 200 * time.Millisecond})
	b.must(err)
	b.must(server.Listen())
	b.serve(server.Serve)
	b.client, err = client.New("http://"+server.PublicAddr().String(), appToken)
	b.must(err)
	t.Cleanup(b.client.Close)
	b.staff, err = client.NewStaff("http://"+server.StaffAddr().String(), staffToken)
	b.must(err)
	t.Cleanup(b.staff.Close)
	b.second, err = client.NewStaff("http://"+server.StaffAddr().String(), secondToken)
	b.must(err)
	t.Cleanup(b.second.Close)
	b.auditor, err = client.NewStaff("http://"+server.StaffAddr().String(), auditorToken)
	b.must(err)
	t.Cleanup(b.auditor.Close)
	b.admin, err = client.NewStaff("http://"+server.StaffAddr().String(), adminToken)
	b.must(err)
	t.Cleanup(b.admin.Close)
	return b
}

func (b *bank) openProvider() {
	b.t.Helper()
	secret := "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	server, err := sandbox.Open(sandbox.Config{Listen: "127.0.0.1:0", DBPath: filepath.Join(b.t.TempDir(), "provider.db"), APIKey: "key", Logger: slog.New(slog.DiscardHandler)})
	b.must(err)
	b.serve(server.Serve, server.Close)
	b.sandbox, err = provider.NewSandbox(provider.SandboxConfig{BaseURL: "http://" + server.Addr().String(), APIKey: "key", WebhookSecret: secret, Timeout: time.Second})
	b.must(err)
	b.t.Cleanup(b.sandbox.Close)
}

// newKey makes a key, and the app of the test when the role is app.
func (b *bank) newKey(role access.Role) string {
	b.t.Helper()
	key := access.Key{Role: role}
	var token string
	token, key.ID = access.NewToken(role)
	key.SecretHash, key.Owner = access.HashOf(token), string(role)+"-"+key.ID
	if role == access.RoleApp {
		b.app = access.App{ID: "app" + key.ID, Name: "shop", Salt: []byte(rand.Text())}
		key.AppID = b.app.ID
		b.must(b.store.EnsureApp(b.t.Context(), b.app))
	}
	b.must(b.store.EnsureKey(b.t.Context(), key))
	return token
}

// fundLater funds the packet of an idempotency key as its workflow would, once it is staged.
func (b *bank) fundLater(key string, after <-chan struct{}) (done <-chan struct{}) {
	funded := make(chan struct{})
	go func() {
		defer close(funded)
		if after != nil {
			<-after
		}
		ctx, id := b.t.Context(), packet.NewID(b.app.Salt, key)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		view, err := b.pool.View(ctx, id)
		for ; errors.Is(err, packet.ErrNotFound) && ctx.Err() == nil; view, err = b.pool.View(ctx, id) {
			<-tick.C
		}
		b.check(err)
		b.fund(ctx, view.Packet)
	}()
	return funded
}

func (b *bank) fund(ctx context.Context, p packet.Packet) {
	seed := packet.DeriveSeed(b.seedKey, p.ID)
	sealed, err := packet.SealSeed(b.seedKey, p.ID, seed)
	b.check(err)
	_, err = b.store.RecordPacket(ctx, p, sealed, nil, "sandbox")
	b.check(err)
	if charge := b.drive(ctx, payout.ID(payout.KindCharge, p.ID, 0)); charge.Status != payout.StatusPaid {
		f := packet.Failure{Code: charge.Failure.Code, Message: charge.Failure.Message}
		b.check(b.store.RejectPacket(ctx, p.ID, f))
		b.check(b.pool.Reject(ctx, p.ID, f))
		return
	}
	shares, err := packet.Split(seed, p.SplitParams())
	b.check(err)
	_, err = b.store.Fund(ctx, p.ID, shares)
	b.check(err)
	b.check(b.pool.OpenPool(ctx, p.ID, shares, nil))
}

// drive moves a payment until nothing is left to do.
func (b *bank) drive(ctx context.Context, id string) payout.State {
	for range 100 {
		st, err := b.store.PaymentState(ctx, id)
		if err != nil || st.Step.Do == payout.ActionEnd {
			b.check(err)
			return st
		}
		asked := st.Step.OrderNo
		var o payout.Observation
		if st.Step.Do == payout.ActionSend {
			begun, err := b.store.BeginSend(ctx, id, b.sandbox.Limits(), b.sandbox.EncodeRequest)
			b.check(err)
			if begun.Order == nil {
				continue
			}
			asked, o = begun.Order.OrderNo, b.sandbox.Send(ctx, *begun.Order)
		} else {
			parts, err := payout.Parse(id)
			b.check(err)
			o = b.sandbox.Ask(ctx, payout.OpOf(parts.Kind), asked)
		}
		if _, err := b.store.Settle(ctx, o, asked); err != nil {
			b.t.Error(err)
			return st
		}
	}
	b.t.Errorf("payment %s does not end", id)
	return payout.State{}
}

// finish records and pays the claims of a packet and closes it, as its workflow would.
func (b *bank) finish(ctx context.Context, id string, reason packet.CloseReason) {
	b.t.Helper()
	_, err := b.store.BeginClosing(ctx, id, reason)
	b.must(err)
	_, err = b.pool.ClosePool(ctx, id, reason)
	b.must(err)
	claims, err := b.pool.Claims(ctx, id)
	b.must(err)
	for _, c := range claims {
		st, err := b.store.RecordClaim(ctx, c, "sandbox")
		b.must(err)
		b.drive(ctx, st.PaymentID)
	}
	rest, err := b.store.CloseBooks(ctx, id, "sandbox")
	b.must(err)
	if rest > 0 {
		b.drive(ctx, payout.ID(payout.KindRefund, id, 0))
	}
	view, err := b.pool.View(ctx, id)
	b.must(err)
	closed, err := b.store.FinishPacket(ctx, id, view.First)
	b.must(err)
	if !closed {
		b.t.Fatal("not closed")
	}
	b.must(b.pool.Retire(ctx, id))
}

// open creates a packet that is open.
func (b *bank) open(r client.CreateRequest) *client.Packet {
	b.t.Helper()
	r.IdempotencyKey = rand.Text()
	done := b.fundLater(r.IdempotencyKey, nil)
	p, err := b.client.CreateAndWait(b.t.Context(), r)
	<-done
	b.must(err)
	return p
}
