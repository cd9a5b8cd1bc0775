package store

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"hongbao/money"
	"hongbao/payout"
)

// TestOverviewSums: the sums over the ledger are those of its packets, whether
// postings are new, were remembered from an earlier call, or come behind those.
func TestOverviewSums(t *testing.T) {
	s, c := newStore(t)
	ctx := t.Context()
	var packets []string
	check := func(what string) payout.Overview {
		t.Helper()
		o, err := s.Overview(ctx)
		must(t, err)
		want := map[payout.PostingKind]money.Fen{}
		for _, id := range packets {
			b, err := s.Balances(ctx, id)
			must(t, err)
			for kind, sum := range b.ByKind {
				want[kind] += sum
			}
		}
		if !maps.Equal(o.Ledger.ByKind, want) || o.Summed != o.Posted {
			t.Errorf("%s: %v, want %v; up to %d of %d", what, o.Ledger.ByKind, want, o.Summed, o.Posted)
		}
		return o
	}
	check("empty")
	for round := range 3 {
		p := funded(t, s, 1000, 4)
		packets = append(packets, p.ID)
		for i := range 3 {
			claim(t, s, p, i, fmt.Sprint("u", i))
		}
		pay(t, s, payoutID(p, 0))
		fail(t, s, payoutID(p, 1))
		check("new")
		c.pass(2 * ledgerSettled)
		check("settled")
		if s.ledger.upTo == 0 {
			t.Fatal("nothing was remembered")
		}
		o := check("remembered")
		found := map[payout.Status]payout.Unfinished{}
		for _, u := range o.Payments {
			if u.Kind == payout.KindPayout {
				found[u.Status] = u
			}
		}
		for _, status := range []payout.Status{payout.StatusFailed, payout.StatusPending} {
			n := int64(round + 1)
			if u := found[status]; u.Count != n || u.Amount != money.Fen(250*n) || u.Oldest.IsZero() {
				t.Errorf("%s: %+v", status, u)
			}
		}
	}
}

// TestOverviewInTurns: a ledger that takes longer than one call is added up in turns.
func TestOverviewInTurns(t *testing.T) {
	s, c := newStore(t)
	funded(t, s, 1000, 4)
	c.pass(2 * ledgerSettled)
	s.ledger.patience = -time.Second
	o, err := s.Overview(t.Context())
	must(t, err)
	if o.Summed == o.Posted || len(o.Ledger.ByKind) != 0 {
		t.Errorf("told before it was added up: %+v", o)
	}
	s.ledger.patience = 0
	if o, err = s.Overview(t.Context()); err != nil || o.Summed != o.Posted || o.Ledger.ByKind[payout.PostCharge] != 1000 {
		t.Errorf("%+v, %v", o, err)
	}
}
