package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/staff"
	"hongbao/internal/store"
)

// TestLedgerVerify runs the command on sound books, then on broken ones.
func TestLedgerVerify(t *testing.T) {
	dsn := stacktest.MariaDB(t)
	run := func(args ...string) (int, string) {
		t.Helper()
		var out, errs bytes.Buffer
		code := execute(t.Context(), args, []string{"HONGBAO_MYSQL_DSN=" + dsn}, &out, &errs)
		return code, out.String() + errs.String()
	}
	if code, out := run("migrate", "up"); code != exitOK {
		t.Fatal(out)
	}
	if code, out := run("ledger", "verify"); code != exitOK || !strings.Contains(out, "The ledger is valid.") {
		t.Errorf("empty books: %d %s", code, out)
	}
	db, err := store.OpenSQL(dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	// A posting that belongs to nothing: neither its packet nor its payment is there.
	const id = "0123456789abcdefghij"
	if _, err := db.ExecContext(t.Context(), `INSERT INTO transfers (packet_id, kind, debit, credit, amount, order_no, reference, created_at,
		provider)
		VALUES (?, 'paid', 'owed', 'provider', 5, ?, ?, NOW(3), 'sandbox')`, id, "p"+id+"000001", "p"+id+"000001:paid"); err != nil {
		t.Fatal(err)
	}
	code, out := run("ledger", "verify")
	if code != exitFailed || !strings.Contains(out, "VIOLATION unknown: packet "+id+" p"+id+"000001: ") ||
		!strings.Contains(out, "NOT VALID: 2 violations") {
		t.Errorf("%d %s", code, out)
	}
	code, out = run("ledger", "verify", "--json")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var summary staff.VerifyReport
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &summary); err != nil || code != exitFailed || len(lines) != 3 ||
		summary.Violations[staff.RuleUnknown] != 2 {
		t.Errorf("%d %v %s", code, err, out)
	}
	var v staff.Violation
	if err := json.Unmarshal([]byte(lines[0]), &v); err != nil || v.PacketID != id || v.Rule != staff.RuleUnknown {
		t.Errorf("%v %s", err, lines[0])
	}
}
