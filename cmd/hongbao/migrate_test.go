package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"

	"hongbao/internal/devstack"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/payout"
	"hongbao/internal/provider"
	"hongbao/test/harness"
	"hongbao/test/wait"
)

// TestMigrateAsOrdinaryUser: a user with the rights that docs/scaling.md lists, and no others,
// on a server with a binary log. The error names the missing setting, and the migration succeeds once it is set.
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
	run(exitOK, "reverted.", "migrate", "down")
	run(exitOK, "1 migrations applied.", "migrate", "up")
	run(exitOK, "", "ledger", "verify")
	run(exitOK, "", "audit", "verify")
}

// TestRefusedByMySQL: each command that MySQL refuses says what to do: a password that was
// changed, an account that is locked, a database that is not there, a right that is missing.
func TestRefusedByMySQL(t *testing.T) {
	t.Parallel()
	_, dsn := stacktest.FreshMariaDB(t)
	admin, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close() }()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{"CREATE USER few@127.0.0.1 IDENTIFIED BY 'few'",
		"CREATE USER locked@127.0.0.1 IDENTIFIED BY 'few' ACCOUNT LOCK"} {
		if _, err := admin.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	for user, says := range map[string]string{
		"few:changed": "Correct user and password in HONGBAO_MYSQL_DSN",
		"locked:few":  "ACCOUNT UNLOCK",
		"few:few":     "the rights that docs/scaling.md lists",
	} {
		address := user + "@tcp(" + cfg.Addr + ")/" + cfg.DBName
		for _, args := range [][]string{{"migrate", "up"}, {"migrate", "status"}, {"ledger", "verify"}, {"audit", "verify"}} {
			var out, errs bytes.Buffer
			code := execute(t.Context(), args, []string{"HONGBAO_MYSQL_DSN=" + address}, &out, &errs)
			if code != exitFailed || !strings.Contains(errs.String(), says) {
				t.Errorf("%s %q: %d, %s%s", address, args, code, &out, &errs)
			}
		}
	}
	for number, says := range map[uint16]string{1049: "Correct the database", 1820: "EXPIRE NEVER", 1862: "EXPIRE NEVER", 3118: "UNLOCK",
		1698: "Correct user", 1142: "rights"} {
		if do := mysqlAdvice(fmt.Errorf("read: %w", &mysql.MySQLError{Number: number})); !strings.Contains(do, says) {
			t.Errorf("%d: %q", number, do)
		}
	}
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
	exec("INSERT INTO mysql.db (Host, Db, User, " + strings.Join(columns, ", ") + ") VALUES ('127.0.0.1', 'hongbao', 'few'" +
		strings.Repeat(", 'Y'", len(rights)) + ")")
	exec("FLUSH PRIVILEGES")
}

// TestStartNeedsMigrations: API and worker do not start on a MySQL that lacks migrations of this
// version, and name the command. One that is newer, and one that is away, keep nobody from
// starting: grabs need no MySQL.
func TestStartNeedsMigrations(t *testing.T) {
	dsn := stacktest.MariaDB(t)
	listen, staff := freeAddress(t), freeAddress(t)
	env := func(dsn string) []string {
		return []string{"HONGBAO_MYSQL_DSN=" + dsn, "HONGBAO_REDIS_ADDR=" + stacktest.Redis(t), "HONGBAO_LANES=" + strconv.Itoa(harness.Lanes),
			"HONGBAO_TEMPORAL_ADDRESS=127.0.0.1:1", "HONGBAO_PROVIDER_URL=http://127.0.0.1:1", "HONGBAO_PROVIDER_KEY=k",
			"HONGBAO_SEED_KEY=" + strings.Repeat("0f", 32), "HONGBAO_SESSION_KEY=" + strings.Repeat("5e", 32),
			"HONGBAO_SANDBOX_WEBHOOK_SECRET=whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}
	}
	refused := func(says string) {
		t.Helper()
		for command, own := range map[string][]string{"api": {"HONGBAO_API_LISTEN=" + listen, "HONGBAO_STAFF_LISTEN=" + staff}, "worker": nil} {
			var log logBuffer
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // one that starts would run on
			defer cancel()
			if code := execute(ctx, []string{command}, append(env(dsn), own...), &log, &log); code != exitFailed ||
				!strings.Contains(log.String(), says) || !strings.Contains(log.String(), "hongbao migrate up") {
				t.Errorf("%s: exit code %d, %s", command, code, log.String())
			}
		}
	}
	starts := func(dsn, says string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var log logBuffer
		defer func() {
			if t.Failed() {
				t.Log(log.String())
			}
		}()
		ended := make(chan int, 1)
		go func() {
			ended <- execute(ctx, []string{"api"}, append(env(dsn), "HONGBAO_API_LISTEN="+listen, "HONGBAO_STAFF_LISTEN="+staff), &log, &log)
		}()
		wait.Until(t, "the API starts", func() bool { return temporalStatus(ctx, "http://"+listen+"/readyz") != "" })
		cancel()
		if code := <-ended; code != exitOK || !strings.Contains(log.String(), says) {
			t.Errorf("exit code %d: %s", code, log.String())
		}
	}
	refused("the first is 00100")
	stacktest.Migrate(t, dsn)
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	exec := func(statement string) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	exec("DELETE FROM goose_db_version WHERE version_id = 132")
	refused("MySQL lacks migrations of this version: 1, the first is 00132")
	exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (132, 1), (99999, 1)")
	starts(dsn, "")
	starts("u:p@tcp(127.0.0.1:1)/x", "The migrations of MySQL could not be read")
}

// TestOtherBuild: every process refuses what a build with another data format made, in
// MySQL or in Redis, says what to do, and changes nothing.
func TestOtherBuild(t *testing.T) {
	r := newLanesRig(t, "HONGBAO_TEMPORAL_ADDRESS=127.0.0.1:1", "HONGBAO_PROVIDER_URL=http://127.0.0.1:1",
		"HONGBAO_PROVIDER_KEY=k", "HONGBAO_SEED_KEY="+strings.Repeat("0f", 32), "HONGBAO_SESSION_KEY="+strings.Repeat("5e", 32),
		"HONGBAO_SANDBOX_WEBHOOK_SECRET=whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
		"HONGBAO_API_LISTEN="+freeAddress(t), "HONGBAO_STAFF_LISTEN="+freeAddress(t))
	db, err := sql.Open("mysql", r.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	keys := redis.NewClient(&redis.Options{Addr: r.redis})
	defer func() { _ = keys.Close() }()
	acts := payout.Adapter{Provider: kindSandbox, Account: provider.SandboxAccount}
	if err := r.db.BindProvider(t.Context(), kindSandbox, acts); err != nil {
		t.Fatal(err) // as the first start does
	}
	exec := func(statement string) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(says string, commands ...string) {
		t.Helper()
		before := r.held(r.redis)
		for _, command := range commands {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // one that starts would run on
			var out bytes.Buffer
			code := execute(ctx, strings.Fields(command), r.env, &out, &out)
			reported := strings.Contains(out.String(), "the data was written by "+says) && strings.Contains(out.String(), "make reset")
			if code != exitFailed || !reported || ctx.Err() != nil {
				t.Errorf("%s: exit code %d, %s", command, code, &out)
			}
			cancel()
		}
		if after := r.held(r.redis); !maps.Equal(before, after) {
			t.Errorf("changed: %v, %v", before, after)
		}
	}
	withMySQL := []string{"migrate up", "migrate down", "migrate status", "api", "worker", "apps list", "keys direct list",
		"ledger verify", "audit verify", "pool status", "pool rebuild --all", "recover --by ann"}
	exec("UPDATE data_format SET number = number + 1")
	refused("a newer build (MySQL", withMySQL...)
	exec("UPDATE data_format SET number = number - 1")
	exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (75, 1)")
	refused("an older build (MySQL", withMySQL...)
	_, err = prepare(t.Context(), devstack.Env{MySQLDSN: r.dsn})
	if err == nil || !strings.Contains(err.Error(), "the data was written by an older build") {
		t.Errorf("make run: %v", err)
	}
	exec("DELETE FROM goose_db_version WHERE version_id = 75")
	for _, key := range keys.Keys(t.Context(), "hb:*:format").Val() {
		if err := keys.Incr(t.Context(), key).Err(); err != nil {
			t.Fatal(err)
		}
	}
	refused("a newer build (Redis", "api", "worker", "pool status", "pool rebuild --all", "recover --by ann")
}
