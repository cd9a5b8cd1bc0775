package main

import (
	"bytes"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/staff"
	"hongbao/internal/store"
)

var auditTime = time.Date(2026, 2, 17, 12, 0, 0, 120_000_000, time.UTC)

// TestAuditVerify: what the command says, and how it ends.
func TestAuditVerify(t *testing.T) {
	dsn := stacktest.MariaDB(t)
	db, err := store.OpenSQL(dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	stacktest.Migrate(t, dsn)
	writeAudit(t, db, 3)
	run := func(args ...string) (string, error) {
		root := newRoot([]string{"HONGBAO_MYSQL_DSN=" + dsn})
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetArgs(append([]string{"audit", "verify"}, args...))
		err := root.ExecuteContext(t.Context())
		return out.String(), err
	}
	if out, err := run(); err != nil || !strings.HasPrefix(out, "The audit is intact.\n3 entries, head ") {
		t.Errorf("%s%v", out, err)
	}
	if out, err := run("--json"); err != nil || !strings.HasPrefix(out, `{"valid":true,"entries":3,"head":"`) ||
		!strings.HasSuffix(out, `","first_bad":null}`+"\n") {
		t.Errorf("%s%v", out, err)
	}
	// Triggers refuse deletions; the owner of the database can drop them.
	if _, err := db.ExecContext(t.Context(), "DELETE FROM audit WHERE seq = 2"); err == nil {
		t.Error("an entry could be deleted")
	} else if refused, ok := errors.AsType[*mysql.MySQLError](err); !ok || refused.Number != 1644 {
		t.Error(err)
	}
	for _, text := range []string{"DROP TRIGGER audit_no_delete", "DELETE FROM audit WHERE seq = 2"} {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := run(); !errors.Is(err, errReported) ||
		!strings.HasPrefix(out, "The audit is NOT intact: the first changed, missing or additional entry is 2.\n2 entries, "+
			"head ") {
		t.Errorf("%s%v", out, err)
	}
	if out, err := run("--json"); !errors.Is(err, errReported) || !strings.HasPrefix(out, `{"valid":false,"entries":2,`) ||
		!strings.HasSuffix(out, `"first_bad":2}`+"\n") {
		t.Errorf("%s%v", out, err)
	}
	if _, err := run("now"); err == nil {
		t.Error("an argument was taken")
	}
}

// writeAudit appends n entries as decisions do.
func writeAudit(t *testing.T, db *sql.DB, n int64) {
	t.Helper()
	var prev staff.AuditHash
	for seq := int64(1); seq <= n; seq++ {
		e := staff.AuditEntry{Seq: seq, At: auditTime, Actor: "li.na", Role: "finance", Action: "retry", Subject: "p", Reason: "r", Before: "{}",
			After: "{}"}
		sum, err := e.Sum(prev)
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.ExecContext(t.Context(), "INSERT INTO audit (seq, at, actor, role, action, subject, reason, before_is, after_is, hash) "+
			"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			e.Seq, e.At, e.Actor, e.Role, e.Action, e.Subject, e.Reason, e.Before, e.After, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		prev = sum
	}
	if _, err := db.ExecContext(t.Context(), "INSERT INTO audit_head (id, seq, hash) VALUES (1, ?, ?)", n, prev[:]); err != nil {
		t.Fatal(err)
	}
}
