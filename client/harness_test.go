package client_test

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"hongbao/api"
	"hongbao/client"
	"hongbao/internal/access"
	"hongbao/internal/packet"
	"hongbao/test/harness"
	"hongbao/test/wait"
	"hongbao/wire"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(harness.Main(m))
}

// bank is the API on real Redis, MariaDB and provider, and clients of it; the test itself
// does what the workflows would do.
type bank struct {
	*harness.Stack
	t       *testing.T
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

func newBank(t *testing.T) *bank {
	t.Helper()
	b := &bank{t: t, Stack: harness.Open(t, harness.Options{
		Owners: []access.Role{access.RoleApp, access.RoleFinance, access.RoleFinance, access.RoleAuditor, access.RoleAdmin},
		API:    func(c *api.Config) { c.FundingWait = 300 * time.Millisecond },
	})}
	b.app = b.Owners[0].App
	var err error
	b.client, err = client.New(b.Public, b.Owners[0].Token)
	b.must(err)
	t.Cleanup(b.client.Close)
	for i, of := range []**client.Staff{&b.staff, &b.second, &b.auditor, &b.admin} {
		*of, err = client.NewStaff(b.Stack.Staff, b.Owners[1+i].Token)
		b.must(err)
		t.Cleanup((*of).Close)
	}
	return b
}

// createFunded has a packet created, which waits for its charge, and charges it as its
// workflow would, once it is staged.
func (b *bank) createFunded(r wire.CreatePacket, key string) (*wire.Packet, error) {
	b.t.Helper()
	type answer struct {
		packet *wire.Packet
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		p, err := b.client.CreateAndWait(b.t.Context(), r, client.Key(key))
		answered <- answer{p, err}
	}()
	ctx, id := b.t.Context(), packet.NewID(b.app.Salt, key)
	wait.Until(b.t, "the packet is staged", func() bool { _, err := b.Pool.View(ctx, id); return !errors.Is(err, packet.ErrNotFound) })
	b.check(b.Fund(ctx, id))
	a := <-answered
	return a.packet, a.err
}

// finish records and pays the claims of a packet and closes it, as its workflow would.
func (b *bank) finish(ctx context.Context, id string, reason packet.CloseReason) {
	b.t.Helper()
	b.must(b.Finish(ctx, id, reason))
}

// open creates a packet that is open.
func (b *bank) open(r wire.CreatePacket) *wire.Packet {
	b.t.Helper()
	p, err := b.createFunded(r, rand.Text())
	b.must(err)
	return p
}
