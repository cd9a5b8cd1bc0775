package bulk

import (
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/internal/staff"
	"hongbao/internal/store"
	"hongbao/internal/store/report"
)

func TestMain(m *testing.M) { os.Exit(stacktest.Main(m)) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestFill: the ledger of filled books verifies, every final status of a payout is
// there, nothing is left to do, and the order of the ledger is that of time.
func TestFill(t *testing.T) {
	dsn := stacktest.MariaDB(t)
	stacktest.Migrate(t, dsn)
	db, err := store.OpenSQL(dsn)
	must(t, err)
	defer func() { must(t, db.Close()) }()
	cfg := Config{Payouts: 6000, Days: 30, Until: time.Now(), App: "app", SeedKey: [32]byte{7}, Provider: "sandbox"}
	began := time.Now()
	must(t, Fill(t.Context(), db, cfg))
	t.Logf("filled in %v", time.Since(began))

	s, err := store.Open(store.Config{DSN: dsn})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	found, err := report.New(s.MySQL()).VerifyLedger(t.Context(), func(v staff.Violation) error {
		t.Errorf("%+v", v)
		return nil
	})
	must(t, err)
	if found.Payments < 6000 || found.Suspense != 0 {
		t.Errorf("%+v", found)
	}
	counts := map[string]int{}
	rows, err := db.QueryContext(t.Context(), "SELECT CONCAT(kind, ' ', status), COUNT(*) FROM payments GROUP BY 1")
	must(t, err)
	for rows.Next() {
		var what string
		var n int
		must(t, rows.Scan(&what, &n))
		counts[what] = n
	}
	must(t, rows.Err())
	must(t, rows.Close())
	want := []string{"c failed", "c paid", "p cancelled", "p failed", "p paid", "p paid_outside", "p returned", "r paid"}
	if got := slices.Sorted(maps.Keys(counts)); !slices.Equal(got, want) {
		t.Errorf("payments are %v, want each of %v", counts, want)
	}
	for _, query := range []string{
		"SELECT COUNT(*) FROM transfers a JOIN transfers b ON b.id = a.id + 1 WHERE b.created_at < a.created_at",
		"SELECT COUNT(*) FROM transfers WHERE created_at > UTC_TIMESTAMP()",
		"SELECT COUNT(*) FROM payments WHERE updated_at > UTC_TIMESTAMP()",
		"SELECT COUNT(*) = 0 FROM decisions WHERE status = 'rejected'",
		"SELECT COUNT(*) = 0 FROM audit",
		"SELECT COUNT(*) = 0 FROM payment_events WHERE op = 'ask'",
		"SELECT COUNT(*) = 0 FROM payments WHERE amount >= 150000",
	} {
		var n int
		must(t, db.QueryRowContext(t.Context(), query).Scan(&n))
		if n != 0 {
			t.Errorf("%s: %d", query, n)
		}
	}
	packets, err := report.New(s.MySQL()).Packets(t.Context(), packet.RecordFilter{Limit: 20})
	must(t, err)
	for _, p := range packets {
		if seed, err := packet.OpenSeed(cfg.SeedKey, p.ID, p.SealedSeed); err != nil || packet.Commitment(seed) != p.Commitment {
			t.Errorf("seed of %s: %v", p.ID, err)
		}
	}
}
