package api_test

import (
	"fmt"
	"strings"
	"testing"

	"hongbao/internal/devstack/stacktest"
)

// TestSumsAboveMax: two totals that differ are never rendered as the same one.
func TestSumsAboveMax(t *testing.T) {
	t.Parallel()
	dsn := stacktest.MariaDB(t)
	h := newFixture(t, parts{dsn: dsn})
	const largest = 9007199254740991
	for user, amounts := range map[string][]int64{"one": {largest}, "two": {largest, largest}, "other": {largest, largest - 1}} {
		for i, amount := range amounts {
			h.exec(dsn, fmt.Sprintf(`INSERT INTO packets (id, app_id, sender_id, currency, total_amount, share_count, split, min_share, max_share,
				greeting, metadata, body_hash, commitment, sealed_seed, charge_provider, payout_provider, status,
				created_at, opens_at, expires_at, updated_at)
				VALUES ('%s', '%s', '%s', 'CNY', %d, 1, 'equal', 1, 0, '', '{}', 'h', 'c', 's', 'sandbox', 'sandbox', 'open', NOW(3), NOW(3), NOW(3) + INTERVAL 1 DAY,
				NOW(3))`,
				fmt.Sprintf("%-18s%02d", "k"+user, i), h.app.app.ID, user, amount))
			h.exec(dsn, fmt.Sprintf(`INSERT INTO payments (id, kind, packet_id, app_id, user_id, share_index, account, amount, currency, remark,
				provider, status, created_at, updated_at) VALUES ('c%[1]s%[2]d', 'c', '%[1]s%[2]d', '%[3]s', '%[1]s', -1, 'a', %[4]d, 'CNY', '', 'sandbox',
				'unknown', NOW(3), NOW(3))`, user, i, h.app.app.ID, amount))
		}
	}
	for user, want := range map[string]string{"one": "9007199254740991", "two": `"18014398509481982"`, "other": `"18014398509481981"`} {
		r := h.as(h.app, "GET", "/v1/users/"+user+"/summary", "")
		if !strings.Contains(string(r.body), `"amount":`+want+`}`) {
			t.Errorf("%s: %s, want %s", user, r, want)
		}
	}
	if r := h.as(h.ops, "GET", "/v1/staff/overview", ""); !strings.Contains(string(r.body), `"amount":"45035996273704954"`) {
		t.Errorf("all of them: %s", r)
	}
}
