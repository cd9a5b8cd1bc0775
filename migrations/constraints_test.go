package migrations_test

import (
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"hongbao/internal/devstack/stacktest"
)

// Errors of the server.
const (
	errCheck     = 4025 // MariaDB: a CHECK is violated; MySQL has 3819
	errCheckSQL  = 3819
	errDuplicate = 1062
	errSignal    = 1644 // a trigger refuses
)

const (
	packetID = "0123456789abcdefghij"
	chargeID = "c" + packetID + "0000"
	paidID   = "p" + packetID + "0000"
	failedID = "p" + packetID + "0001"
	// conflictID is the payment of a share conflict.
	conflictID = "h" + packetID + "0001"
)

// sound are rows that satisfy every constraint.
var sound = []string{
	`INSERT INTO packets (id, app_id, sender_id, currency, total_amount, share_count, split, min_share, max_share, greeting, metadata,
		body_hash, commitment, sealed_seed, charge_provider, payout_provider,
		status, created_at, opens_at, expires_at, updated_at) VALUES ('` + packetID +
		`', 'a', 's', 'CNY', 100, 2, 'equal', 1, 0, '', '{}', 'h', 'c', 's', 'sandbox', 'sandbox',
		'open', NOW(), NOW(), NOW() + INTERVAL 1 DAY, NOW())`,
	`INSERT INTO shares (packet_id, share_index, amount, user_id, claimed_at) VALUES ('` + packetID +
		`', 0, 50, 'u', NOW()), ('` + packetID + `', 1, 50, NULL, NULL)`,
	`INSERT INTO claims (packet_id, user_id, kind, share_index, amount, payment_id, app_id, claimed_at) VALUES ('` + packetID +
		`', 'u', 'share', 0, 50, '` + paidID + `', 'a', NOW()), ('` + packetID + `', 'w', 'conflict', 0, 50, '` + conflictID + `', 'a', NOW())`,
	`INSERT INTO payments (id, kind, packet_id, app_id, user_id, share_index, account, amount, currency, remark, provider, status, attempt,
		order_no, failure_code, created_at, updated_at, settled_at) VALUES
		('` + chargeID + `', 'c', '` + packetID + `', 'a', 's', -1, 's', 100, 'CNY', '', 'x', 'paid', 1, '` + chargeID +
		`01', NULL, NOW(), NOW(), NOW()),
		('` + paidID + `', 'p', '` + packetID + `', 'a', 'u', 0, 'u', 50, 'CNY', '', 'x', 'paid', 1, '` + paidID +
		`01', NULL, NOW(), NOW(), NOW()),
		('` + failedID + `', 'p', '` + packetID + `', 'a', 'v', 1, 'v', 50, 'CNY', '', 'x', 'failed', 1, '` + failedID +
		`01', 'x', NOW(), NOW(), NOW())`,
	`INSERT INTO attempts (order_no, payment_id, no, op, account, request, sends, asks, statement, refused, booked, return_booked, next_action,
		observed, code, message,
		provider_ref, started_at, ask_until, ended_at) VALUES ('` + paidID + `01', '` + paidID +
		`', 1, 'transfer', 'u', '', 1, 0, 'succeeded', FALSE, TRUE, FALSE, 'ask', '', '', '', '', NOW(), NOW(), NOW())`,
	`INSERT INTO transfers (packet_id, kind, debit, credit, amount, order_no, reference, created_at, provider) VALUES
		('` + packetID + `', 'charge', 'provider', 'holding', 100, '` + chargeID + `01', '` + chargeID + `01:charge', NOW(), 'sandbox')`,
	`INSERT INTO decisions (id, payment_id, kind, reason, decided_by, role, status, approval_id, expires_at, preview_hash, created_at)
		VALUES ('d', '` + failedID + `', 'cancel', 'r', 'ann', 'finance', 'waiting', 'x', NOW(), REPEAT('h', 32), NOW())`,
	`INSERT INTO app_balances (app_id, currency, available, reserved, version) VALUES ('a', 'CNY', 1, 1, 0)`,
	`INSERT INTO balance_movements (id, app_id, kind, amount, reference, used_reference, created_at) VALUES ('m', 'a', 'credit', 1, 'r', 'r',
		NOW())`,
	`INSERT INTO outbox (payment_id, kind, due_at, created_at) VALUES ('` + failedID + `', 'begin', NOW(), NOW())`,
	`INSERT INTO breaks (kind, packet_id, payment_id, order_no, detail, created_at, last_seen)
		VALUES ('mismatch', '` + packetID + `', '` + paidID + `', '', '', NOW(), NOW())`,
	`INSERT INTO api_keys (id, role, owner, secret_hash, created_at) VALUES ('k', 'finance', 'ann', REPEAT('x', 32), NOW())`,
	`INSERT INTO campaigns (id, app_id, name, salt, zone, opens_minute, starts_on, template, body_hash, status, next_day, next_opens,
		created_at, updated_at)
		VALUES ('c', 'a', 'n', 's', 'UTC', 0, '2026-01-01', '{}', 'h', 'active', '2026-01-02', NOW(), NOW(), NOW())`,
	`INSERT INTO campaign_days (campaign_id, day, status, packet_id, opens_at, decided_at) VALUES ('c', '2026-01-01', 'made',
		'` + packetID + `', NOW(), NOW())`,
	`INSERT INTO holds (scope, name, kind, cause, reason, placed_by, placed_role, placed_at) VALUES ('provider', 'x', 'staff', '', 'r', 'ann',
		'ops', NOW())`,
	`INSERT INTO pool_lanes (lane, epoch, state, seen, seen_grabs, updated_at) VALUES (0, 1, 'open', 9, 8, NOW())`,
	`INSERT INTO pool_rebuilds (lane, from_epoch, epoch, reason, holder, seen, seen_grabs, found, found_grabs, started_at)
		VALUES (0, 1, 2, 'key_missing', 'x', 9, 8, 0, 0, NOW())`,
	`INSERT INTO audit (seq, at, actor, role, action, subject, reason, before_is, after_is, hash) VALUES (1, NOW(), 'ann', 'finance', 'retry',
		's', 'r', '', '', REPEAT('x', 32))`,
}

// guards says how each check of the money tables is tested. The other tables hold nothing that
// money depends on.
var guards = map[string]string{
	"data_format_one":      "UPDATE data_format SET id = 2",
	"api_keys_roles":       "UPDATE api_keys SET role = 'root'",
	"api_keys_app":         "UPDATE api_keys SET app_id = 'a'",
	"api_keys_approval":    "UPDATE api_keys SET made_by = 'ann', approved_by = 'ann'",
	"api_keys_two_persons": "UPDATE api_keys SET made_by = 'ann'",
	"packets_known_status": "UPDATE packets SET status = 'lost'",
	"packets_total":        "UPDATE packets SET total_amount = 0",
	"packets_tickets":      "UPDATE packets SET tickets = TRUE, eligible_count = 1",
	"packets_eligible":     "UPDATE packets SET eligible = '[]'",
	"packets_books":        "UPDATE packets SET remainder = 1",
	"packets_closed":       "UPDATE packets SET closed_at = NOW()",
	"packets_closed_books": "UPDATE packets SET status = 'closed', close_reason = 'expired', closed_at = NOW()",
	"packets_claims_known": "UPDATE packets SET claimed_count = 1",
	"packets_rejected":     "UPDATE packets SET status = 'rejected'",
	"packets_reason":       "UPDATE packets SET status = 'closing'",
	"packets_books_late":   "UPDATE packets SET books_closed_at = NOW(), remainder = 1, claimed_count = 1",
	"packets_remainder": "UPDATE packets SET status = 'closing', close_reason = 'expired', books_closed_at = NOW(), remainder = 101, " +
		"claimed_count = 1",
	"packets_counted": "UPDATE packets SET status = 'closing', close_reason = 'expired', books_closed_at = NOW(), remainder = 1, " +
		"claimed_count = 3",
	"packets_life":          "UPDATE packets SET expires_at = opens_at",
	"shares_amount":         "UPDATE shares SET amount = 0",
	"shares_claimed":        "UPDATE shares SET claimed_at = NULL WHERE share_index = 0",
	"payments_kind":         "UPDATE payments SET kind = 'x' WHERE kind = 'c'",
	"payments_amount":       "UPDATE payments SET amount = 0",
	"payments_known_status": "UPDATE payments SET status = 'lost' WHERE kind = 'c'",
	"payments_settled":      "UPDATE payments SET settled_at = NULL",
	"payments_failed":       "UPDATE payments SET failure_code = NULL",
	"payments_deciding":     "UPDATE payments SET deciding = 'cancel' WHERE status = 'paid'",
	"payments_numbered":     "UPDATE payments SET order_no = NULL",
	"payments_share":        "UPDATE payments SET share_index = -1 WHERE kind = 'p'",
	"payments_payer":        "UPDATE payments SET status = 'awaiting_payer', settled_at = NULL WHERE kind = 'p'",
	"payments_closing":      "UPDATE payments SET close_requested_at = created_at WHERE kind = 'c'",
	"payments_charge":       "UPDATE payments SET status = 'paid_outside' WHERE kind = 'c'",
	"attempts_sent":         "UPDATE attempts SET sends = 0",
	"attempts_booked":       "UPDATE attempts SET ended_at = NULL",
	"attempts_returned":     "UPDATE attempts SET booked = FALSE, return_booked = TRUE",
	"attempts_op":           "UPDATE attempts SET op = 'gift'",
	"attempts_number":       "UPDATE attempts SET payment_id = '" + failedID + "'",
	"transfers_amount":      insertTransfer("charge", "provider", "holding", "-1", chargeID+"02", chargeID+"02:charge"),
	"transfers_two_sides":   insertTransfer("charge", "holding", "holding", "1", chargeID+"02", chargeID+"02:charge"),
	"transfers_kind":        insertTransfer("charge", "holding", "provider", "1", chargeID+"02", chargeID+"02:charge"),
	"transfers_named":       insertTransfer("charge", "provider", "holding", "1", chargeID+"02", chargeID+"03:charge"),
	"transfers_at_provider": strings.Replace(insertTransfer("claim", "holding", "owed", "1", chargeID, chargeID+":claim"),
		"NULL)", "'x')", 1),
	"transfers_app_balance":    insertTransfer("reserve", "prefunded", "holding", "1", chargeID, chargeID+":reserve"),
	"app_balances_available":   "UPDATE app_balances SET available = -1",
	"app_balances_reserved":    "UPDATE app_balances SET reserved = -1",
	"balance_movements_kind":   "UPDATE balance_movements SET kind = 'reserve'",
	"balance_movements_amount": "UPDATE balance_movements SET amount = 0",
	"balance_movements_used":   "UPDATE balance_movements SET used_reference = 'other'",
	"transfers_owner": insertTransfer("charge", "provider", "holding", "1", "c0000000000000000000000001",
		"c0000000000000000000000001:charge"),
	"decisions_known_status":  "UPDATE decisions SET status = 'lost', ended_at = NOW()",
	"decisions_known_kind":    "UPDATE decisions SET kind = 'gift'",
	"decisions_ended":         "UPDATE decisions SET ended_at = NOW()",
	"decisions_two_persons":   "UPDATE decisions SET status = 'open', approved_by = decided_by",
	"decisions_approval_life": "UPDATE decisions SET expires_at = NULL",
	"decisions_preview":       "UPDATE decisions SET preview_hash = NULL",
	"decisions_waiting_for":   "UPDATE decisions SET approval_id = NULL, expires_at = NULL, preview_hash = NULL",
	"decisions_evidence":      "UPDATE decisions SET kind = 'mark_paid'",
	"decisions_about_order":   "UPDATE decisions SET kind = 'moved', evidence = 'e'",
	"decisions_observed_by_two": `UPDATE decisions SET kind = 'moved', evidence = 'e', order_no = 'o', break_id = 1, status = 'open',
		approval_id = NULL, expires_at = NULL, preview_hash = NULL`,
	"retention_removed":      "INSERT INTO retention (name, removed, due_at) VALUES ('breaks', -1, NOW())",
	"claims_known_kind":      "UPDATE claims SET kind = 'promise' WHERE kind = 'conflict'",
	"claims_payment":         "UPDATE claims SET payment_id = 'p" + packetID + "0001' WHERE kind = 'conflict'",
	"claims_amount":          "UPDATE claims SET amount = 0",
	"outbox_known_kind":      "UPDATE outbox SET kind = 'gift'",
	"breaks_resolved":        "UPDATE breaks SET resolved_at = NOW(), resolved_by = 'ann'",
	"holds_scope":            "UPDATE holds SET scope = 'lane'",
	"holds_all":              "UPDATE holds SET scope = 'all'",
	"holds_release":          "UPDATE holds SET release_at = NOW()",
	"holds_released":         "UPDATE holds SET released_at = NOW()",
	"claims_seq":             "UPDATE claims SET epoch = 1",
	"pool_lanes_state":       "UPDATE pool_lanes SET state = 'lost', reason = 'x', shut_at = NOW()",
	"pool_lanes_shut":        "UPDATE pool_lanes SET reason = 'x'",
	"pool_lanes_holder":      "UPDATE pool_lanes SET holder = 'x'",
	"pool_lanes_numbers":     "UPDATE pool_lanes SET seen_grabs = seen + 1",
	"pool_rebuilds_epochs":   "UPDATE pool_rebuilds SET epoch = from_epoch",
	"pool_rebuilds_ended":    "UPDATE pool_rebuilds SET ended_at = NOW()",
	"books_one":              "UPDATE books SET id = 2",
	"books_state":            "UPDATE books SET state = 'lost', restored_at = NOW()",
	"books_restored":         "UPDATE books SET state = 'restored'",
	"campaigns_status":       "UPDATE campaigns SET status = 'lost'",
	"campaigns_minute":       "UPDATE campaigns SET opens_minute = 1440",
	"campaigns_next_agree":   "UPDATE campaigns SET status = 'paused'",
	"campaigns_ended":        "UPDATE campaigns SET ended_at = NOW()",
	"campaign_days_statuses": "UPDATE campaign_days SET status = 'lost'",
	"ledger_closes_tied":     "INSERT INTO ledger_closes (closed_to, totals, tie, created_at) VALUES (NOW(), '{}', '{}', NOW())",
	"ledger_closes_final":    "INSERT INTO ledger_closes (closed_to, totals, final_at, created_at) VALUES (NOW(), '{}', NOW(), NOW())",
}

func insertTransfer(kind, debit, credit, amount, orderNo, reference string) string {
	return "INSERT INTO transfers (packet_id, kind, debit, credit, amount, order_no, reference, created_at, provider) VALUES ('" +
		strings.Join([]string{packetID, kind, debit, credit}, "', '") + "', " + amount + ", '" + orderNo + "', '" + reference + "', NOW(), " +
		"IF('provider' IN ('" + debit + "', '" + credit + "'), 'sandbox', NULL))"
}

// TestR12_TablesRefuse: the database refuses invalid rows, whatever writes them.
func TestR12_TablesRefuse(t *testing.T) {
	db := open(t, stacktest.MariaDB(t))
	if err := up(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	for _, statement := range sound {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	for name, statement := range guards {
		if err := refused(t, db, statement, errCheck, errCheckSQL); err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("%s: not by %s but: %v", statement, name, err)
		}
	}
	for _, name := range checks(t, db) {
		if guards[name] == "" && !slices.Contains(untried, strings.SplitN(name, "_", 2)[0]) {
			t.Errorf("check %s is not tried", name)
		}
	}
	for _, statement := range []string{
		"UPDATE transfers SET amount = amount + 1", "DELETE FROM transfers", "UPDATE audit SET reason = 'other'", "DELETE FROM audit",
	} {
		_ = refused(t, db, statement, errSignal)
	}
	_ = refused(t, db, insertTransfer("charge", "provider", "holding", "100", chargeID+"01", chargeID+"01:charge"), errDuplicate)
	_ = refused(t, db, "INSERT INTO claims SELECT * FROM claims WHERE kind = 'share'", errDuplicate)
	_ = refused(t, db, "INSERT INTO claims SELECT * FROM claims WHERE kind = 'conflict'", errDuplicate)
	_ = refused(t, db, "INSERT INTO payments SELECT * FROM payments", errDuplicate)
	_ = refused(t, db, "INSERT INTO attempts SELECT * FROM attempts", errDuplicate)
}

// untried are tables that move no money: those of reconciliation.
var untried = []string{"reconciliations", "statements", "statement"}

// refused runs a statement that has to fail with one of the error numbers.
func refused(t *testing.T, db *sql.DB, statement string, numbers ...uint16) error {
	t.Helper()
	_, err := db.ExecContext(t.Context(), statement)
	var my *mysql.MySQLError
	if !errors.As(err, &my) || !slices.Contains(numbers, my.Number) {
		t.Errorf("%s: %v, want one of %v", statement, err, numbers)
	}
	return err
}

func checks(t *testing.T, db *sql.DB) (names []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT constraint_name FROM information_schema.check_constraints WHERE constraint_schema = "+
		"DATABASE()")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if len(names) < 40 {
		t.Errorf("only %d checks", len(names))
	}
	return names
}
