package report

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"hongbao/internal/money"
	"hongbao/internal/observe"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// TestOverviewSums: the ledger's sums are those of its packets, whether transfers are new, cached,
// or added later.
func TestOverviewSums(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	var packets []string
	check := func(what string) staff.Overview {
		t.Helper()
		o, err := s.Overview(ctx)
		must(t, err)
		want := map[payout.TransferKind]money.Fen{}
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
		c.Pass(2 * ledgerSettled)
		check("settled")
		if s.ledger.upTo == 0 {
			t.Fatal("nothing was remembered")
		}
		o := check("remembered")
		found := map[payout.Status]staff.StatusCount{}
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

// TestR13_OverviewAfterRestore: after a restore of MySQL a running process does not report sums
// of transfers that no longer exist.
func TestR13_OverviewAfterRestore(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	older, _ := newStore(t)
	kept := funded(t, older, 300, 2)
	for range 3 {
		funded(t, s, 1000, 4)
		_, err := s.AdvanceHeartbeat(ctx, 0)
		must(t, err)
	}
	c.Pass(2 * ledgerSettled)
	if o, err := s.Overview(ctx); err != nil || o.Ledger.ByKind[payout.PostCharge] != 3000 || s.ledger.upTo == 0 {
		t.Fatalf("%+v, %v", o, err)
	}
	*s.db, *older.db = *older.db, *s.db
	b, err := s.CompareHeartbeat(ctx, 0)
	must(t, err)
	if b.State != payout.MySQLRestored {
		t.Fatalf("%+v", b)
	}
	o, err := s.Overview(ctx)
	must(t, err)
	want, err := s.Balances(ctx, kept.ID)
	must(t, err)
	if !maps.Equal(o.Ledger.ByKind, want.ByKind) || o.Summed != o.Posted {
		t.Errorf("%v, want %v; up to %d of %d", o.Ledger.ByKind, want.ByKind, o.Summed, o.Posted)
	}
}

// TestOverviewInTurns: a ledger that takes longer than one call is added up in turns.
func TestOverviewInTurns(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	funded(t, s, 1000, 4)
	c.Pass(2 * ledgerSettled)
	s.ledger.timeLimit = -time.Second
	o, err := s.Overview(t.Context())
	must(t, err)
	if o.Summed == o.Posted || len(o.Ledger.ByKind) != 0 {
		t.Errorf("reported before it was added up: %+v", o)
	}
	s.ledger.timeLimit = 0
	if o, err = s.Overview(t.Context()); err != nil || o.Summed != o.Posted || o.Ledger.ByKind[payout.PostCharge] != 1000 {
		t.Errorf("%+v, %v", o, err)
	}
}

// TestOverviewOfHugeAmounts: an app may request any number of charges of the largest amount; the
// overview still works.
func TestOverviewOfHugeAmounts(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	recorded(t, s, samplePacket(money.Max, 1))
	recorded(t, s, samplePacket(money.Max, 1))
	if o, err := s.Overview(t.Context()); err != nil || len(o.Payments) != 1 || o.Payments[0].Amount != 2*money.Max {
		t.Errorf("two of the largest: %+v, %v", o.Payments, err)
	}
	if sum, _, err := s.PaymentSum(t.Context(), staff.PaymentFilter{Kind: payout.KindCharge}); err != nil || sum.Amount != 2*money.Max {
		t.Errorf("two of the largest: %+v, %v", sum, err)
	}
	must(t, s.read(t.Context()).Exec("DELETE FROM payments ORDER BY id LIMIT 1").Error)
	const more = 1100 // 1,024 such amounts exceed an int64
	must(t, s.read(t.Context()).Exec(`INSERT INTO payments (id, kind, packet_id, app_id, user_id, share_index, account, amount, currency,
		remark, provider, status, created_at, updated_at)
		SELECT CONCAT('c', LPAD(n.seq, 20, '0'), '0000'), kind, LPAD(n.seq, 20, '0'), app_id, user_id, share_index, account, amount, currency,
		remark, provider, status, created_at, updated_at
		FROM payments JOIN seq_1_to_1100 n`).Error)
	o, err := s.Overview(t.Context())
	must(t, err)
	if len(o.Payments) != 1 || o.Payments[0].Count != more+1 || o.Payments[0].Amount != money.Saturated {
		t.Errorf("%+v", o.Payments)
	}
	sum, _, err := s.PaymentSum(t.Context(), staff.PaymentFilter{Kind: payout.KindCharge})
	must(t, err)
	if sum.Count != more+1 || sum.Amount != money.Saturated {
		t.Errorf("%+v", sum)
	}
}

// TestDeclinedChargesAreAtTheirEnd: declined charges raise no alert, and counting unfinished
// payments does not read them: they accumulate.
func TestDeclinedChargesAreAtTheirEnd(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	fail(t, s, chargeID(recorded(t, s, samplePacket(1000, 4))))
	failed := funded(t, s, 1000, 4)
	claim(t, s, failed, 0, "u")
	fail(t, s, payoutID(failed, 0))
	o, err := s.Overview(t.Context())
	must(t, err)
	if len(o.Payments) != 1 || o.Payments[0].Kind != payout.KindPayout || o.Payments[0].Count != 1 {
		t.Errorf("%+v", o.Payments)
	}
	v := &observe.HealthSnapshot{}
	must(t, NewHealthReader(s.Source).payments(t.Context(), v))
	for _, p := range v.Payments {
		if want := map[bool]int64{true: 1}[p.Kind == "payout" && p.Status == "failed"]; p.Waiting != want {
			t.Errorf("%s %s: %d wait, want %d", p.Kind, p.Status, p.Waiting, want)
		}
	}
}

// TestLedgerOfHugeAmounts: an app may fund any number of packets of the largest amount. Then the
// ledger over all of them is left out permanently, and the rest is reported.
func TestLedgerOfHugeAmounts(t *testing.T) {
	t.Parallel()
	for _, settled := range []bool{false, true} {
		s, c := newStore(t)
		p := funded(t, s, money.Max, 1)
		const more = 1100 // 1,024 such amounts exceed an int64
		must(t, s.read(t.Context()).Exec(`INSERT INTO transfers (packet_id, debit, credit, amount, order_no, kind, reference, created_at,
			provider)
			SELECT n.id, debit, credit, amount, CONCAT('c', n.id, '000001'), kind, CONCAT('c', n.id, '000001:charge'), created_at, provider FROM transfers
			JOIN (SELECT LPAD(seq, 20, '0') AS id FROM seq_1_to_1100) n`).Error)
		if settled {
			c.Pass(2 * ledgerSettled)
		}
		for range 2 {
			o, err := s.Overview(t.Context())
			must(t, err)
			if o.Posted != more+1 || o.Summed == o.Posted || len(o.Ledger.ByKind) != 0 {
				t.Errorf("settled %v: %+v", settled, o)
			}
		}
		year := packet.Span{From: p.CreatedAt.Add(-time.Hour), To: p.CreatedAt.Add(time.Hour)}
		must(t, s.read(t.Context()).Exec(`INSERT INTO packets (id, app_id, sender_id, currency, total_amount, share_count, split, min_share,
			max_share, greeting, metadata, body_hash, commitment, sealed_seed, charge_provider, payout_provider,
			status, created_at, opens_at, expires_at, updated_at) SELECT LPAD(seq, 20, '0'), app_id, sender_id, currency, total_amount, share_count,
			split, min_share, max_share, greeting, metadata, body_hash,
			commitment, sealed_seed, charge_provider, payout_provider, status, created_at, opens_at, expires_at, updated_at
			FROM packets JOIN seq_1_to_1100`).Error)
		sums, err := s.UserSums(t.Context(), p.App, p.SenderID, year, nil)
		if err != nil || sums.SentCount != more+1 || sums.SentAmount != money.Saturated {
			t.Errorf("%+v, %v", sums, err)
		}
	}
}
