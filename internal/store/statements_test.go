package store

import (
	"testing"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/payout"
)

// statements is the number of SQL statements of a step, with the begin and commit of its transaction.
// The store has one connection, whose counter is read.
func statements(t testing.TB, s *Store, step func()) int64 {
	t.Helper()
	read := func() (n int64) {
		var name string
		must(t, s.sql.QueryRowContext(t.Context(), "SHOW SESSION STATUS LIKE 'Questions'").Scan(&name, &n))
		return n
	}
	before := read()
	step()
	return read() - before - 1 // the second read
}

// TestStatementsOfAPayout fixes what an ordinary payout costs the database: its claim and noted send are one
// transaction, the provider's answer is another one.
func TestStatementsOfAPayout(t *testing.T) {
	t.Parallel()
	dsn := stacktest.MariaDB(t)
	s, _, _ := newStoreAt(t, dsn)
	p := funded(t, s, 200, 2)
	one := another(t, s, dsn, Config{MaxOpenConns: 1, Lanes: 8})
	begin := func(share int, user string) (b payout.SendStart) {
		n := statements(t, one, func() { b = beginClaim(t, one, claimOf(p, share, user)) })
		// begin; holds; packet; share, claim, payment, transfer, attempt; commit
		if n != 9 {
			t.Errorf("the claim of share %d costs %d statements", share, n)
		}
		return b
	}
	for share, answer := range []payout.ObservationKind{payout.ObsSucceeded, payout.ObsPending} {
		no := begin(share, string(rune('a'+share))).Order.OrderNo
		n := statements(t, one, func() { settle(t, one, payout.SourceSend, no, answer) })
		// begin; payment with attempts; both; transfer of a success; event; commit
		if want := map[payout.ObservationKind]int64{payout.ObsSucceeded: 6, payout.ObsPending: 5}[answer]; n != want {
			t.Errorf("the answer %s costs %d statements", answer, n)
		}
	}
}
