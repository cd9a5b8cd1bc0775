package store

import (
	"testing"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/failpoint"
	"hongbao/internal/payout"
)

// statements is the number of SQL statements of a step in transactions, with their commits. The store has one
// connection for transactions, whose counter is read.
func statements(t testing.TB, s *testStore, step func()) int64 {
	t.Helper()
	read := func() (n int64) {
		var status struct{ Value int64 }
		must(t, s.inTx(t.Context(), failpoint.Administration, func(tx tx) error {
			return tx.Raw("SHOW SESSION STATUS LIKE 'Questions'").Scan(&status).Error
		}))
		return status.Value
	}
	before := read()
	step()
	return read() - before - 3 // the first read's commit, the second one's time and counter
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
		// holds and packet; share, claim, payment, transfer, attempt; commit
		if n != 7 {
			t.Errorf("the claim of share %d costs %d statements", share, n)
		}
		return b
	}
	for share, answer := range []payout.ObservationKind{payout.ObsSucceeded, payout.ObsPending} {
		no := begin(share, string(rune('a'+share))).Order.OrderNo
		n := statements(t, one, func() { settle(t, one, payout.SourceSend, no, answer) })
		// payment with attempts; both; transfer of a success; event; commit
		if want := map[payout.ObservationKind]int64{payout.ObsSucceeded: 5, payout.ObsPending: 4}[answer]; n != want {
			t.Errorf("the answer %s costs %d statements", answer, n)
		}
	}
}

// TestR6_ClaimLocksItsPacketAlone: closing waits for a claim; the heartbeat and holds do not.
func TestR6_ClaimLocksItsPacketAlone(t *testing.T) {
	t.Parallel()
	dsn := stacktest.MariaDB(t)
	s, _, raw := newStoreAt(t, dsn)
	p := funded(t, s, 200, 2)
	must(t, tx{DB: s.read(t.Context()), now: s.Now()}.placeHold(payout.Hold{Scope: payout.HoldProvider, Name: adapter.Provider,
		Kind: payout.HoldStaff, Cause: "c", Reason: "r", By: "b", Role: "ops"}))
	other, err := raw.Conn(t.Context())
	must(t, err)
	defer func() { must(t, other.Close()) }()
	run := func(statement string, args ...any) error {
		_, err := other.ExecContext(t.Context(), statement, args...)
		return err
	}
	must(t, run("SET SESSION innodb_lock_wait_timeout = 1"))
	must(t, s.inTx(t.Context(), failpoint.Administration, func(tx tx) error {
		hold, found, _, err := tx.lockForClaim(claimOf(p, 0, "u"), adapter, 8)
		if err != nil || hold == nil || found.Packet.ID != p.ID {
			t.Errorf("%+v, %+v, %v", hold, found, err)
		}
		for _, free := range []string{"UPDATE books SET beat_at = NOW(3)", "UPDATE holds SET reason = 'x'", "DELETE FROM holds"} {
			if err := run(free); err != nil {
				t.Errorf("%s: %v", free, err)
			}
		}
		if err := run("UPDATE packets SET updated_at = NOW(3) WHERE id = ?", p.ID); err == nil {
			t.Error("the packet is not locked")
		}
		return nil
	}))
}
