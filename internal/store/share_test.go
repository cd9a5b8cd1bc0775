package store

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/store/storetest"
	"hongbao/test/wait"
)

// stored returns the share amounts of a packet in MySQL.
func stored(t *testing.T, s *testStore, id string) (amounts []money.Fen) {
	t.Helper()
	var rows []shareRow
	must(t, s.db.Gorm.WithContext(t.Context()).Raw("SELECT * FROM shares WHERE packet_id = ? ORDER BY share_index", id).Scan(&rows).Error)
	for i, r := range rows {
		if r.ShareIndex != i || r.UserID != nil {
			t.Fatalf("row %d is %+v", i, r)
		}
		amounts = append(amounts, money.Fen(r.Amount))
	}
	return amounts
}

// TestFundWritesEveryShare: each share has its index and exact amount, also at the ends of a
// statement and for the largest amount.
func TestFundWritesEveryShare(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	for _, count := range []int{1, 2, insertShares - 1, insertShares, insertShares + 1, 2 * insertShares} {
		amounts := make([]money.Fen, count)
		rest := money.Max
		for i := range amounts {
			amounts[i] = money.Fen(i%97 + 1)
			rest -= amounts[i]
		}
		amounts[count/2] += rest
		p := recorded(t, s, samplePacket(money.Max, count))
		pay(t, s, chargeID(p))
		status, err := s.Fund(t.Context(), p.ID, amounts)
		must(t, err)
		if got := stored(t, s, p.ID); status != packet.StatusOpen || !slices.Equal(got, amounts) {
			t.Errorf("%d shares: %s, %d of them stored, or others", count, status, len(got))
		}
	}
}

// TestFundInterrupted: a try that fails between two statements leaves nothing, the next one
// succeeds, and no reader sees a part. It is not parallel: it looks for a waiting transaction in the
// whole server.
func TestFundInterrupted(t *testing.T) {
	s, _ := newStore(t)
	p := recorded(t, s, samplePacket(3*insertShares, 2*insertShares))
	pay(t, s, chargeID(p))
	// An uncommitted row of another transaction blocks the second statement.
	other := s.db.Gorm.WithContext(t.Context()).Begin()
	must(t, other.Error)
	must(t, other.Exec("INSERT INTO shares (packet_id, share_index, amount) VALUES (?, ?, 1)", p.ID, insertShares+7).Error)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { _, err := s.Fund(ctx, p.ID, even(p)); done <- err }()
	wait.Until(t, "the second statement waits", func() bool {
		select {
		case err := <-done:
			t.Fatalf("not held up: %v", err)
		default:
		}
		return storetest.Query[int](t, s,
			"SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT' AND trx_rows_modified >= ?",
			insertShares) > 0
	})
	if got := stored(t, s, p.ID); len(got) != 0 {
		t.Errorf("%d shares can be seen before all are there", len(got))
	}
	cancel()
	wantErr(t, <-done, ErrUnavailable)
	must(t, other.Rollback().Error)

	for _, err := range together(4, func(int) error {
		status, err := s.Fund(t.Context(), p.ID, even(p))
		if err == nil && status != packet.StatusOpen {
			err = fmt.Errorf("status %s", status)
		}
		return err
	}) {
		must(t, err)
	}
	if got := stored(t, s, p.ID); !slices.Equal(got, even(p)) {
		t.Errorf("%d shares, or others", len(got))
	}
}
