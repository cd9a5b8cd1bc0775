package main

import (
	"bytes"
	"database/sql"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"hongbao/devstack/stacktest"
)

// TestMigrateAsOrdinaryUser: a user with the rights that docs/scaling.md tells, and no others,
// on a server with a binary log. It is told what to ask for, and gets on once it has that.
func TestMigrateAsOrdinaryUser(t *testing.T) {
	_, dsn := stacktest.FreshMariaDB(t, "--log-bin=changes")
	admin, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close() }()
	exec := func(statement string) {
		t.Helper()
		if _, err := admin.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	exec("CREATE USER few@127.0.0.1 IDENTIFIED BY 'few'")
	grant(t, exec)
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"HONGBAO_MYSQL_DSN=few:few@tcp(" + cfg.Addr + ")/" + cfg.DBName}
	run := func(want int, says string, args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		if code := execute(t.Context(), args, env, &out, &errs); code != want || !strings.Contains(out.String()+errs.String(), says) {
			t.Errorf("%q: %d, %s%s", args, code, &out, &errs)
		}
	}
	run(exitFailed, "SET GLOBAL log_bin_trust_function_creators = 1\n", "migrate", "up")
	exec("SET GLOBAL log_bin_trust_function_creators = 1")
	run(exitOK, "migrations applied.", "migrate", "up")
	run(exitOK, "0 migrations applied.", "migrate", "up")
	run(exitOK, "taken back.", "migrate", "down")
	run(exitOK, "1 migrations applied.", "migrate", "up")
	run(exitOK, "", "ledger", "verify")
	run(exitOK, "", "audit", "verify")
}

// grant gives few the rights of the document. The tests' administrator may not pass on what it
// has, so they go where the server keeps them.
func grant(t *testing.T, exec func(string)) {
	t.Helper()
	doc, err := os.ReadFile("../../docs/scaling.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^GRANT ([A-Z, ]+) ON hongbao\.\* TO`).FindSubmatch(doc)
	if found == nil {
		t.Fatal("docs/scaling.md has no GRANT")
	}
	rights := strings.Split(string(found[1]), ", ")
	columns := make([]string, len(rights))
	for i, right := range rights {
		columns[i] = right[:1] + strings.ToLower(right[1:]) + "_priv"
	}
	exec("INSERT INTO mysql.db (Host, Db, User, " + strings.Join(columns, ", ") + ") VALUES ('127.0.0.1', 'hongbao', 'few'" + strings.Repeat(", 'Y'", len(rights)) + ")")
	exec("FLUSH PRIVILEGES")
}
