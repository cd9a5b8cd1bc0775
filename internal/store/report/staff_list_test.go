package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/storetest"
)

// staffRows is the number of payouts, ten times that of packets and refunds, with which staff lists
// are measured.
const staffRows = 120_000

// archive has one packet, one recipient and one sender with half of all rows, among many small ones.
var archive = fmt.Sprintf(`
INSERT INTO payments (id, kind, packet_id, app_id, user_id, share_index, account, amount, currency, remark, provider, status, attempt,
order_no, failure_code, created_at, updated_at, settled_at)
	SELECT CONCAT('p', packet, LPAD(CONV(seq, 10, 32), 4, '0')), 'p', packet, 'app', IF(seq MOD 4 < 2, 'giant', CONCAT('u', seq MOD 5000)),
	seq, 'a', 1 + seq MOD 1000, 'CNY', '', 'sandbox', status, 1,
		CONCAT('p', packet, LPAD(CONV(seq, 10, 32), 4, '0'), '01'), IF(status IN ('failed', 'returned'), ELT(1 + seq MOD 2, 'declined',
		'account_frozen'), NULL), NOW(3) - INTERVAL seq SECOND, NOW(3),
		IF(status IN ('unknown', 'pending'), NULL, NOW(3))
	FROM (SELECT seq, IF(seq MOD 2, '%[2]s', LPAD(LOWER(CONV(seq, 10, 32)), 20, '0')) AS packet, IF(seq MOD 100, 'paid',
	ELT(1 + seq DIV 100 MOD 4, 'failed', 'unknown', 'returned', 'pending')) AS status FROM seq_1_to_%[1]d) x;
INSERT INTO payments (id, kind, packet_id, app_id, user_id, share_index, account, amount, currency, remark, provider, status, attempt,
created_at, updated_at, settled_at)
	SELECT CONCAT('r', packet, LPAD(CONV(seq, 10, 32), 4, '0')), 'r', packet, 'app', IF(seq MOD 2, 'giant', CONCAT('s', seq)), -1, 'a',
	1 + seq MOD 1000, 'CNY', '', 'sandbox', 'paid', 0, NOW(3) - INTERVAL seq SECOND, NOW(3), NOW(3)
	FROM (SELECT seq, IF(seq MOD 2, '%[2]s', LPAD(LOWER(CONV(seq, 10, 32)), 20, '0')) AS packet FROM seq_1_to_%[3]d) x;
INSERT INTO packets (id, app_id, sender_id, currency, total_amount, share_count, split, min_share, max_share, greeting, metadata, body_hash,
commitment, sealed_seed, charge_provider, payout_provider, status, close_reason,
created_at, opens_at, expires_at, books_closed_at, remainder, claimed_count, closed_at,
updated_at)
	SELECT LPAD(LOWER(CONV(seq, 10, 32)), 20, '0'), CONCAT('app', seq MOD 3), IF(seq MOD 2, 'giant', CONCAT('s', seq MOD 500)), 'CNY', 100, 1,
	'equal', 1, 0, '', '{}', 'h', 'c', 's', 'sandbox', 'sandbox',
		IF(seq MOD 100, 'closed', 'open'), IF(seq MOD 100, 'expired', NULL), NOW(3) - INTERVAL seq SECOND, NOW(3), NOW(3) + INTERVAL 1 DAY,
		IF(seq MOD 100, NOW(3), NULL), IF(seq MOD 100, 0, NULL), IF(seq MOD 100, 0, NULL), IF(seq MOD 100, NOW(3), NULL), NOW(3)
	FROM seq_1_to_%[3]d;
ANALYZE TABLE payments, packets`, staffRows, giantPacket, staffRows/10)

const giantPacket = "ggggggggggggggggggg0"

// TestStaffListsReadOnePage: with every filter of staff lists, the rows of a page are found in an
// index, in order, and no more are read.
func TestStaffListsReadOnePage(t *testing.T) {
	t.Parallel()
	s, _, raw := newStoreAt(t, stacktest.MariaDB(t))
	ctx := t.Context()
	_, err := raw.ExecContext(ctx, archive)
	must(t, err)
	rec := &storetest.Recorder{Interface: logger.Discard}
	s.db.Gorm = s.db.Gorm.Session(&gorm.Session{Logger: rec})
	deep := time.Now().Add(-10 * time.Hour) // 36,000 rows down, or at the end of the shorter tables
	hour := time.Now().Add(-time.Hour)
	const limit = 51
	measure := func(name string, most int, list func() error) {
		t.Helper()
		rec.Texts = nil
		must(t, list())
		for _, text := range rec.Texts {
			if explain(t, raw, text); strings.Contains(text, "SUM(") {
				continue
			}
			sortFree(t, raw, text)
			if strings.Contains(text, "OFFSET") { // payments of an amount are counted up to a thousand
				readsAtMost(t, raw, text, most+rareAmountLimit)
				continue
			}
			readsAtMost(t, raw, text, most)
		}
		if len(rec.Texts) == 0 {
			t.Errorf("%s: no statement ran", name)
		}
	}
	small := staff.PaymentFilter{PacketID: "00000000000000000004"}
	for name, f := range map[string]staff.PaymentFilter{
		"all": {}, "status": {Status: payout.StatusPaid}, "rare status": {Status: payout.StatusUnknown}, "failure": {FailureCode: "declined"},
		"user": {UserID: "giant"}, "small user": {UserID: "u42"}, "nobody": {UserID: "nobody"}, "packet": {PacketID: giantPacket},
		"small packet": small, "order": {OrderNo: "p" + giantPacket + "000101"}, "older": {CreatedTo: hour},
		"older status": {Status: payout.StatusPaid, CreatedTo: hour}, "older user": {UserID: "giant", CreatedTo: hour},
		"older packet": {PacketID: giantPacket, CreatedTo: hour}, "amount": {AmountMin: 10, AmountMax: 990},
		"user of packet": {PacketID: giantPacket, UserID: "giant"}, "failed with code": {Status: payout.StatusFailed, FailureCode: "declined"},
		"status of packet": {PacketID: giantPacket, Status: payout.StatusPaid}, "status of user": {UserID: "giant", Status: payout.StatusPaid},
	} {
		for _, kind := range []payout.Kind{payout.KindPayout, payout.KindRefund} {
			for _, after := range []time.Time{{}, deep} {
				f.Kind, f.Limit, f.AfterTime = kind, limit, after
				if f.AfterID = ""; !after.IsZero() {
					f.AfterID = "p" + giantPacket + "0000"
				}
				measure(fmt.Sprintf("%c %s", kind, name), 8*limit, func() error { _, err := s.Payments(ctx, f); return err })
			}
		}
	}
	for _, f := range []packet.RecordFilter{{}, {App: "app1"}, {SenderID: "giant"}, {SenderID: "s42"}, {SenderID: "nobody"},
		{App: "app1", SenderID: "giant"}} {
		for _, stored := range [][]packet.Status{nil, {packet.StatusOpen, packet.StatusClosing}, {packet.StatusClosed}, {packet.StatusFunding}} {
			for _, span := range [][2]time.Time{{}, {hour}, {{}, hour}, {deep, hour}} {
				for _, after := range []time.Time{{}, hour} {
					f.Stored, f.From, f.To, f.Limit, f.AfterTime = stored, span[0], span[1], limit, after
					if f.AfterID = ""; !after.IsZero() {
						f.AfterID = "00000000000000000004"
					}
					measure("packets", 4*limit, func() error { _, err := s.Packets(ctx, f); return err })
				}
			}
		}
	}
	measure("sums", staffRows, func() error {
		sums, err := s.PayoutSums(ctx, "00000000000000000004")
		if paid := sums[payout.StatusPaid]; paid.Count != 1 || paid.Amount != money.Fen(5) {
			t.Errorf("%+v", sums)
		}
		return err
	})
}

// TestTimesHaveNoNanoseconds: with nanoseconds in a literal the server finds no index range, which
// EXPLAIN of a rounded time does not show.
func TestTimesHaveNoNanoseconds(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	at := time.Date(2026, 2, 17, 12, 0, 0, 123_456_789, time.UTC)
	if got := storetest.Query[string](t, s, "SELECT CONCAT(?)", at); got != "2026-02-17 12:00:00.123456" {
		t.Errorf("%q", got)
	}
}

func TestCodeOfAnotherStatus(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	id := owing(t, s)
	fail(t, s, id)
	for status, want := range map[payout.Status]int{payout.StatusFailed: 1, payout.StatusReturned: 0, payout.StatusPaid: 0, "": 1} {
		rows, err := s.Payments(t.Context(), staff.PaymentFilter{Kind: payout.KindPayout, FailureCode: "declined", Status: status, Limit: 5})
		if err != nil || len(rows) != want {
			t.Errorf("%q: %d rows, %v", status, len(rows), err)
		}
	}
}

// TestAmountsRareAndCommon: rare amounts are found by amount, common ones in list order; the results
// equal those of a plain query.
func TestAmountsRareAndCommon(t *testing.T) {
	t.Parallel()
	s, _, raw := newStoreAt(t, stacktest.MariaDB(t))
	_, err := raw.ExecContext(t.Context(), archive)
	must(t, err)
	_, err = raw.ExecContext(t.Context(), "UPDATE payments SET amount = 700000 WHERE kind = 'p' AND share_index IN (7, 70007, 119000)")
	must(t, err)
	rec := &storetest.Recorder{Interface: logger.Discard}
	s.db.Gorm = s.db.Gorm.Session(&gorm.Session{Logger: rec})
	for name, f := range map[string]staff.PaymentFilter{
		"three":          {AmountMin: 500_000},
		"three, paid":    {AmountMin: 500_000, Status: payout.StatusPaid},
		"none":           {AmountMin: 800_000},
		"none, failed":   {AmountMin: 800_000, Status: payout.StatusFailed},
		"some":           {AmountMin: 3, AmountMax: 3},
		"most":           {AmountMax: 900},
		"most of failed": {AmountMax: 900, Status: payout.StatusFailed},
	} {
		f.Kind, f.Limit = payout.KindPayout, 51
		rec.Texts = nil
		rows, err := s.Payments(t.Context(), f)
		must(t, err)
		for _, text := range rec.Texts {
			explain(t, raw, text)
			readsAtMost(t, raw, text, 3*rareAmountLimit)
		}
		sum, more, err := s.PaymentSum(t.Context(), f)
		must(t, err)
		where := fmt.Sprintf("kind = 'p' AND amount >= %d AND (%d = 0 OR amount <= %d) AND ('%s' = '' OR status = '%s')", f.AmountMin,
			f.AmountMax, f.AmountMax, f.Status, f.Status)
		var ids []string
		list, err := raw.QueryContext(t.Context(), "SELECT id FROM payments WHERE "+where+" ORDER BY created_at DESC, id DESC LIMIT 51")
		must(t, err)
		for list.Next() {
			var id string
			must(t, list.Scan(&id))
			ids = append(ids, id)
		}
		must(t, errors.Join(list.Err(), list.Close()))
		got := []string{}
		for _, r := range rows {
			got = append(got, r.ID)
		}
		if !slices.Equal(got, ids) && len(got)+len(ids) > 0 {
			t.Errorf("%s: %v, want %v", name, got, ids)
		}
		var want struct{ n, sum int64 }
		must(t, raw.QueryRowContext(t.Context(), "SELECT COUNT(*), COALESCE(SUM(amount), 0) FROM payments WHERE "+where).Scan(&want.n, &want.sum))
		if over := want.n > sumLimit; over != more || !over && (sum.Count != want.n || int64(sum.Amount) != want.sum) {
			t.Errorf("%s: %+v, more %v; want %+v", name, sum, more, want)
		}
	}
}
