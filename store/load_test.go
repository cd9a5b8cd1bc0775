package store

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"hongbao/devstack/stacktest"
	"hongbao/history"
	"hongbao/observe"
	"hongbao/packet"
	"hongbao/payout"
)

// pastOf is a history of an app whose books are empty.
func pastOf(t testing.TB, payouts int, number uint64) *history.History {
	t.Helper()
	h, err := history.New(history.Config{
		Payouts: payouts, Days: 30, Number: number, Until: time.Now(), App: "app", Salt: []byte("salt"), SeedKey: [32]byte{7}, Provider: provider, Limits: limits,
		Encode: func(in payout.Instruction) ([]byte, error) { return json.Marshal(in) },
		Staff:  []string{"li-na", "wang-wei", "zhang-min"}, ApproveFrom: 100_000,
	})
	must(t, err)
	return h
}

// fill loads a history into the books and returns it.
func fill(t testing.TB, dsn string, h *history.History) (packets []*history.Packet) {
	t.Helper()
	l, err := NewLoader(t.Context(), dsn)
	must(t, err)
	for {
		p, err := h.Next()
		must(t, err)
		if p == nil {
			break
		}
		packets = append(packets, p)
		must(t, l.Add(p))
	}
	must(t, l.Close())
	return packets
}

// TestLoadedHistory: books that were filled with a history stand every check that
// real ones stand, and nobody has anything to do in them but people.
func TestLoadedHistory(t *testing.T) {
	dsn := stacktest.MariaDB(t)
	s, _, raw := newStoreAt(t, dsn)
	began := time.Now()
	packets := fill(t, dsn, pastOf(t, 6000, 1))
	t.Logf("%d packets in %v", len(packets), time.Since(began))

	found, err := s.VerifyLedger(t.Context(), func(v payout.Violation) error {
		t.Errorf("%+v", v)
		return nil
	})
	must(t, err)
	if found.Payments < 6000 || len(found.OpenBreaks) > 0 || found.Suspense != 0 {
		t.Errorf("%+v", found)
	}
	check, err := s.VerifyAudit(t.Context())
	must(t, err)
	if check.FirstBad != nil || check.Entries < 20 || check.Head.Seq != check.Entries {
		t.Errorf("audit: %+v", check)
	}
	v := observe.Vitals{Repairs: map[string]int64{}, Held: map[string]time.Time{}}
	must(t, NewVitals(s).Read(t.Context(), &v))
	for _, p := range v.Payments {
		if waits := payout.Status(p.Status); waits.Open() && p.Waiting > 0 {
			t.Errorf("%d payments (%s) are %s", p.Waiting, p.Kind, p.Status)
		}
	}
	for _, p := range v.Overdue {
		if p.Waiting > 0 {
			t.Errorf("%d packets are %s past their expiry", p.Waiting, p.Status)
		}
	}
	if v.Imbalanced > 0 || v.Outbox.Waiting > 0 || v.Approvals.Waiting > 0 {
		t.Errorf("imbalanced %d, outbox %d, approvals %d", v.Imbalanced, v.Outbox.Waiting, v.Approvals.Waiting)
	}
	statuses := map[string]int{}
	rows, err := raw.QueryContext(t.Context(), "SELECT status, COUNT(*) FROM payments WHERE kind = 'p' GROUP BY status")
	must(t, err)
	for rows.Next() {
		var status string
		var n int
		must(t, rows.Scan(&status, &n))
		statuses[status] = n
	}
	must(t, errors.Join(rows.Err(), rows.Close()))
	if got, want := slices.Sorted(maps.Keys(statuses)), []string{"cancelled", "failed", "paid", "paid_outside", "returned"}; !slices.Equal(got, want) {
		t.Errorf("payouts are %v, want each of %v", statuses, want)
	}
	// Ledger and audit are in the order of time, as those that grow are.
	for _, query := range []string{
		"SELECT COUNT(*) FROM transfers a JOIN transfers b ON b.id = a.id + 1 WHERE b.created_at < a.created_at",
		"SELECT COUNT(*) FROM audit a JOIN audit b ON b.seq = a.seq + 1 WHERE b.at < a.at",
		"SELECT COUNT(*) FROM transfers WHERE created_at > UTC_TIMESTAMP()",
	} {
		var n int
		must(t, raw.QueryRowContext(t.Context(), query).Scan(&n))
		if n != 0 {
			t.Errorf("%s: %d", query, n)
		}
	}
	i := slices.IndexFunc(packets, func(p *history.Packet) bool { return p.Status == packet.StatusClosed && len(p.Claims) > 0 })
	rec, err := s.Packet(t.Context(), packets[i].ID)
	must(t, err)
	if seed, err := packet.OpenSeed([32]byte{7}, rec.ID, rec.SealedSeed); err != nil || packet.Commitment(seed) != rec.Commitment {
		t.Errorf("seed of %s: %v", rec.ID, err)
	}
}

// TestLoadRefusesBooks: a history never mixes with what is there.
func TestLoadRefusesBooks(t *testing.T) {
	dsn := stacktest.MariaDB(t)
	s, _, _ := newStoreAt(t, dsn)
	funded(t, s, 1000, 4)
	if _, err := NewLoader(t.Context(), dsn); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("loader on books in use: %v", err)
	}
}

// TestLoadNoticesDroppedRows: with LOAD DATA LOCAL the server drops what it does
// not like, and tells nobody who does not ask.
func TestLoadNoticesDroppedRows(t *testing.T) {
	dsn := stacktest.MariaDB(t)
	newStoreAt(t, dsn)
	h := pastOf(t, 50, 2)
	l, err := NewLoader(t.Context(), dsn)
	must(t, err)
	p, err := h.Next()
	must(t, err)
	must(t, l.Add(p))
	must(t, l.Add(p)) // every row of it is there
	if err := l.Close(); err == nil {
		t.Error("a packet was loaded twice, and nothing said so")
	}
}
