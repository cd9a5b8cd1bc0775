package api_test

import (
	"crypto/rand"
	"testing"
	"time"

	"hongbao/api"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// statedOnly is a provider with a statement and without sums, as most are.
type statedOnly struct{ payout.Stated }

// readStatement stores what the provider's statement has of a packet, as a reconciliation does. change may change lines.
func (p proofFixture) readStatement(change func(*payout.StatementLine)) (readAt time.Time) {
	p.t.Helper()
	ctx, by, run := p.t.Context(), p.stack.Provider.Adapter(), rand.Text()
	readAt = time.Now().UTC().Truncate(time.Microsecond)
	today := payout.DayOf(readAt, time.UTC)
	for _, day := range []payout.Day{today.Add(-1), today} {
		var lines []payout.StatementLine
		for after := ""; ; {
			page, err := p.sandbox.Statement(ctx, day, after)
			p.check(err)
			for _, l := range page.Lines {
				if parts, err := payout.Parse(l.OrderNo); err == nil && parts.PacketID == p.id {
					change(&l)
					lines = append(lines, l)
				}
			}
			if after = page.Next; after == "" {
				break
			}
		}
		p.check(p.store.SaveStatement(ctx, run, by, day, lines))
		p.check(p.store.SealStatement(ctx, run, by, day, readAt))
	}
	return readAt
}

// readFee stores a fee that the statement of today lists for the charge, and compares it with the ledger.
func (p proofFixture) readFee(amount money.Fen) {
	p.t.Helper()
	ctx, by := p.t.Context(), p.stack.Provider.Adapter()
	r := staff.Reconciliation{ID: rand.Text(), Provider: by.Provider, Day: payout.DayOf(time.Now(), time.UTC), StartedAt: time.Now()}
	line := payout.StatementLine{Ref: "fee-" + r.ID, Op: payout.OpFee, OrderNo: payout.OrderNo(payout.ID(payout.KindCharge, p.id, 0), 1),
		Amount: amount, At: time.Now()}
	p.check(p.store.SaveStatement(ctx, r.ID, by, r.Day, []payout.StatementLine{line}))
	_, err := p.store.CompareLines(ctx, r, 0, false, 100)
	p.check(err)
}

// TestProofByStatement: at a provider without sums the figures are our record of its answers, as of the newest one,
// until its statements have every movement. A statement that differs confirms nothing.
func TestProofByStatement(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{dsn: stacktest.MariaDB(t), change: func(c *api.Config) {
		c.Providers = payout.OnlyProvider(statedOnly{sandboxOf(c)})
	}})
	p := proofFixture{h, h.open(h.app, with("share_count", "4", "split", `"equal"`))}
	proof := func(source string, confirmed, balanced bool) (proofBody, time.Time) {
		t.Helper()
		got := p.proof(p.app, p.id)
		parts := got.Sources.Provider.Parts
		if len(parts) != 1 {
			t.Fatalf("%+v", got)
		}
		if parts[0].Source != source || got.Confirmed != confirmed || got.Balanced != balanced {
			t.Errorf("%+v, want %s", got, source)
		}
		return got, parts[0].AsOf
	}
	asRead := func(*payout.StatementLine) {}
	_, charged := proof("orders", false, true)
	if _, again := proof("orders", false, true); !again.Equal(charged) || charged.After(time.Now()) {
		t.Errorf("as of %s, then %s: no movement in between", charged, again)
	}

	read := p.readStatement(asRead)
	_, until := proof("statement", true, true)
	if _, end := payout.DayOf(charged, time.UTC).Span(time.UTC); read.Before(end) && !until.Equal(read.Truncate(time.Millisecond)) {
		t.Errorf("as of %s, read at %s", until, read)
	}

	p.payoutOf("w")
	if _, paid := proof("orders", false, true); !paid.After(charged) {
		t.Errorf("as of %s, after a payout as of %s", charged, paid)
	}
	p.shows("the payout has no line", sums{paid: 250, remaining: 750})

	p.readStatement(func(l *payout.StatementLine) {
		if l.Op == payout.OpTransfer {
			l.Amount = money.Fen(249)
		}
	})
	if got, _ := proof("statement", false, false); len(got.Differences) != 1 || got.Differences[0].Expected != 250 ||
		got.Differences[0].Actual != 249 || got.Sources.Provider.Transferred != 249 {
		t.Errorf("%+v", got)
	}
	p.readStatement(asRead)
	p.readFee(6)
	if got, _ := proof("statement", true, true); got.Sources.Provider.Parts[0].Fees != 6 {
		t.Errorf("a fee of 6 is listed for the charge: %+v", got)
	}
	p.shows("every movement has a line", sums{paid: 250, remaining: 750})
}

// TestProofBeforeTheCharge: where nothing has moved nothing is stated, and nothing confirmed.
func TestProofBeforeTheCharge(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{change: func(c *api.Config) { c.Providers = payout.OnlyProvider(statedOnly{sandboxOf(c)}) }})
	staged := h.stage(h.app, "u1")
	got := h.proof(h.app, staged.ID)
	if parts := got.Sources.Provider.Parts; !got.Balanced || got.Confirmed || len(parts) != 1 || parts[0].Source != "orders" ||
		!parts[0].AsOf.Equal(staged.CreatedAt) {
		t.Errorf("%+v, created at %s", got, staged.CreatedAt)
	}
}
