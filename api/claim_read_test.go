package api_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"hongbao/api"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
)

// between lets something happen after a packet was looked at and before a claim of it is.
type between struct {
	api.Pool
	once   sync.Once
	happen func()
}

func (p *between) Claim(ctx context.Context, id, user string) (packet.Claim, bool, error) {
	p.once.Do(p.happen)
	return p.Pool.Claim(ctx, id, user)
}

// TestClaimOfAPoolRetiredDuringRead: the pool is retired between the two reads of a claim,
// and MySQL, which has it, is away. Nobody may say that there is none.
func TestClaimOfAPoolRetiredDuringRead(t *testing.T) {
	t.Parallel()
	server, dsn := stacktest.FreshMariaDB(t)
	pool := &between{}
	h := newFixture(t, parts{dsn: dsn, change: func(c *api.Config) { pool.Pool, c.Pool = c.Pool, pool }})
	ended, open := h.open(h.app, with("share_count", "2")), h.open(h.app, with("share_count", "2"))
	won := h.grab(h.app, ended, "u")
	if won.status != http.StatusCreated {
		t.Fatal(won)
	}
	pool.happen = func() {
		h.finish(ended, packet.CloseRecalled)
		server.Kill()
	}
	if r := h.as(h.app, "GET", "/v1/packets/"+ended+"/grabs/u", ""); r.code() != "unavailable" {
		t.Errorf("the winner: %s", r)
	}
	if r := h.as(h.app, "GET", "/v1/packets/"+open+"/grabs/stranger", ""); r.code() != "claim_not_found" {
		t.Errorf("of a pool that knows all its winners: %s", r)
	}
}
