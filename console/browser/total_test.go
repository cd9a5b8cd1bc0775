package browser

import (
	"testing"

	"hongbao/internal/store"
)

// exec runs statements on the testbed's database.
func (h *testbed) exec(statements ...string) {
	h.t.Helper()
	db, err := store.OpenSQL(h.DSN)
	h.must(err)
	defer db.Close()
	for _, s := range statements {
		_, err := db.ExecContext(h.t.Context(), s)
		h.must(err)
	}
}

// TestTotals: every list shows count and sum for its filter, and reports when it is too long to
// count.
func TestTotals(t *testing.T) {
	t.Parallel()
	h := newTestbed(t, nil)
	id := h.open(map[string]any{"sender_id": "s", "total_amount": 123400, "share_count": 2, "split": "equal"})
	bad := h.grab(id, "a~frozen", "")
	closed := h.open(map[string]any{"sender_id": "other", "total_amount": 888, "share_count": 2})
	h.finish(closed)
	h.decide(h.finance, bad, "cancel", "why")
	run := h.compare("month end", "x")
	h.exec(`INSERT INTO breaks (kind, packet_id, payment_id, order_no, detail, created_at, last_seen) VALUES ('contradiction',
		'` + id + `', '` + bad + `', '1', '', NOW(3), NOW(3)), ('pool_lost', '', 'lane/3', 'epoch/1', '', NOW(3), NOW(3))`)
	type says map[string][2]string // by page, in English and Chinese
	look := func(pages says) {
		t.Helper()
		for place, language := range []string{"en", "zh"} {
			b := h.signIn(h.auditor, language)
			for path, words := range pages {
				b.open(path)
				if got := b.text("#total"); got != words[place] {
					t.Errorf("%s of %s says %q, want %q", language, path, got, words[place])
				}
			}
		}
	}
	over, fewer := [2]string{"More than 10,000 in total", "超过 10,000 条"},
		[2]string{" · narrow the filter to see the sum", " · 缩小筛选范围后显示总额"}
	tooLong := [2]string{over[0] + fewer[0], over[1] + fewer[1]}
	look(says{
		"/packets": {"2 in total · ¥1,242.88", "共 2 笔 · ¥1,242.88"}, "/packets?status=closed": {"1 in total · ¥8.88", "共 1 笔 · ¥8.88"},
		"/packets?sender=s": {"1 in total · ¥1,234.00", "共 1 笔 · ¥1,234.00"}, "/packets?overdue=true": {"0 in total · ¥0.00", "共 0 笔 · ¥0.00"},
		"/packets?status=open":     {"1 in total · ¥1,234.00", "共 1 笔 · ¥1,234.00"},
		"/packets?status=sold_out": {"0 in total · ¥0.00", "共 0 笔 · ¥0.00"},
		"/approvals":               {"1 in total · ¥617.00", "共 1 笔 · ¥617.00"}, "/approvals?status=rejected": {"0 in total · ¥0.00", "共 0 笔 · ¥0.00"},
		"/approvals?status=": {"1 in total · ¥617.00", "共 1 笔 · ¥617.00"}, "/breaks": {"3 in total · ¥617.01 · 1 without an amount",
			"共 3 笔 · ¥617.01 · 其中 1 条不涉及金额"}, "/breaks?resolved=true": {"0 in total · ¥0.00", "共 0 笔 · ¥0.00"},
		"/breaks?resolved=&kind=foreign_order": {"1 in total · ¥0.01", "共 1 笔 · ¥0.01"}, "/reconciliations/" +
			run: {"1 in total · ¥0.01", "共 1 笔 · ¥0.01"},
		"/audit": {"2 in total", "共 2 条"}, "/audit?action=cancel": {"1 in total", "共 1 条"}, "/audit/verify": {"2 in total", "共 2 条"},
	})
	h.exec(`INSERT INTO packets (id, app_id, sender_id, currency, total_amount, share_count, split, min_share, max_share, greeting, metadata,
		body_hash, commitment, sealed_seed, charge_provider, payout_provider, status, failure_code, created_at, opens_at, expires_at, updated_at)
		SELECT LPAD(LOWER(CONV(seq, 10, 32)), 20, '0'), 'many', 'm', 'CNY', 100, 1, 'equal', 1, 0, '', '{}', 'h', 'c', 's', 'sandbox', 'sandbox',
		'rejected',
		'declined', NOW(3) - INTERVAL 1 DAY, NOW(3) - INTERVAL 1 DAY, NOW(3), NOW(3) FROM seq_1_to_10001`,
		`INSERT INTO breaks (kind, packet_id, payment_id, order_no, detail, created_at, last_seen) SELECT IF(seq <= 3, 'forgotten', 'mismatch'),
			'', CONCAT('q', seq), '', 'seen', NOW(3) - INTERVAL 1 DAY, NOW(3) FROM seq_1_to_10001`,
		`INSERT INTO payments (id, kind, packet_id, app_id, user_id, share_index, account, amount, currency, remark, provider, status, attempt,
			created_at, updated_at, settled_at)
		SELECT CONCAT('r', LPAD(seq, 20, '0'), '0000'), 'r', LPAD(seq, 20, '0'), 'many', 'm', -1, 'a', 100, 'CNY', '', 'sandbox', 'paid', 0,
		NOW(3), NOW(3), NOW(3) FROM seq_1_to_10001`)
	look(says{
		"/packets?sender=m": tooLong, "/packets?status=rejected": tooLong, "/packets?sender=s": {"1 in total · ¥1,234.00", "共 1 笔 · ¥1,234.00"},
		"/breaks": tooLong, "/breaks?kind=forgotten": {"At least 3: too many to count" + fewer[0], "至少 3 条，数量过多，未全部统计" +
			fewer[1]}, "/refunds?status=paid": tooLong,
	})
}
