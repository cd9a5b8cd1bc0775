package store

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	driver "github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"hongbao/internal/failpoint"
	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/internal/store/storetest"
)

func TestR12_LedgerBalances(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	p := funded(t, s, 1000, 4) // 250 each
	want := map[payout.Account]money.Fen{payout.AccountHolding: 1000}
	check := func(what string, move map[payout.Account]money.Fen) {
		t.Helper()
		for a, n := range move {
			want[a] += n
		}
		t.Log(what)
		balanced(t, s, p, want)
	}
	check("charged", nil)
	for i := range 3 {
		claim(t, s, p, i, fmt.Sprint("u", i))
		check("claimed", map[payout.Account]money.Fen{payout.AccountHolding: -250, payout.AccountOwed: 250})
	}
	one := pay(t, s, payoutID(p, 0))
	check("paid", map[payout.Account]money.Fen{payout.AccountOwed: -250})
	settle(t, s, payout.SourceQuery, one.OrderNo, payout.ObsReturned)
	check("returned", map[payout.Account]money.Fen{payout.AccountOwed: 250})
	fail(t, s, payoutID(p, 1))
	check("failed", nil)
	decide(t, s, payoutID(p, 1))
	settle(t, s, payout.SourceQuery, payout.OrderNo(payoutID(p, 1), 1), payout.ObsDeclined)
	pay(t, s, payoutID(p, 1))
	check("paid under a new number", map[payout.Account]money.Fen{payout.AccountOwed: -250})
	settle(t, s, payout.SourceQuery, payout.OrderNo(payoutID(p, 1), 1), payout.ObsSucceeded)
	check("paid under the old one too", map[payout.Account]money.Fen{payout.AccountSuspense: -250})
	_, err := s.BeginClosing(ctx, p.ID, "expired")
	must(t, err)
	_, err = s.CloseBooks(ctx, p.ID, "")
	must(t, err)
	check("books closed", map[payout.Account]money.Fen{payout.AccountHolding: -250, payout.AccountRefunding: 250})
	refund := pay(t, s, refundID(p))
	check("refunded", map[payout.Account]money.Fen{payout.AccountRefunding: -250})
	settle(t, s, payout.SourceQuery, refund.OrderNo, payout.ObsReturned)
	check("refund returned", map[payout.Account]money.Fen{payout.AccountRefunding: 250})
	b, err := s.Balances(ctx, p.ID)
	must(t, err)
	kinds := map[payout.TransferKind]money.Fen{"charge": 1000, "claim": 750, "paid": 500, "returned": 250, "second_success": 250, "close": 250,
		"refunded": 250, "refund_returned": 250}
	if !maps.Equal(b.ByKind, kinds) {
		t.Errorf("by kind %v", b.ByKind)
	}
	if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM breaks WHERE packet_id = ? AND kind = 'second_success'", p.ID); n != 1 {
		t.Errorf("%d breaks", n)
	}
	if b, err := s.Balances(ctx, newID()); err != nil || len(b.ByKind)+len(b.ByAccount) != 0 {
		t.Errorf("a packet without transfers: %+v, %v", b, err)
	}
}

// TestR12_LedgerRefuses: impossible transfers are refused, even those caused by a defect.
func TestR12_LedgerRefuses(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	id := newID()
	order := func(attempt int) string { return payout.OrderNo(payout.ID(payout.KindPayout, id, 0), attempt) }
	p := payout.NewTransfer(payout.PostPaid, order(1), 5)
	post := func(change func(*payout.Transfer)) error {
		q := p
		change(&q)
		return s.inTx(t.Context(), failpoint.Administration, func(tx tx) error { return tx.post(id, provider, q) })
	}
	must(t, post(func(*payout.Transfer) {}))
	wantErr(t, post(func(*payout.Transfer) {}), gorm.ErrDuplicatedKey)
	must(t, post(func(q *payout.Transfer) { *q = payout.NewTransfer(payout.PostReturned, order(1), 5) })) // the other reference
	for name, change := range map[string]func(*payout.Transfer){
		"nothing":        func(q *payout.Transfer) { q.OrderNo, q.Amount = order(2), 0 },
		"negative":       func(q *payout.Transfer) { q.OrderNo, q.Amount = order(3), -1 },
		"one side":       func(q *payout.Transfer) { q.OrderNo, q.Credit = order(4), q.Debit },
		"other accounts": func(q *payout.Transfer) { q.OrderNo, q.Credit = order(5), payout.AccountHouse },
		"other packet":   func(q *payout.Transfer) { q.OrderNo = payout.OrderNo(payout.ID(payout.KindPayout, newID(), 0), 1) },
	} {
		err := post(change)
		if my, ok := errors.AsType[*driver.MySQLError](err); !ok || my.Number != 4025 && my.Number != 3819 { // CHECK: MariaDB, MySQL
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM transfers"); n != 2 {
		t.Errorf("%d transfers", n)
	}
}
