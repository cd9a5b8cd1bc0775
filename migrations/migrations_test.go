package migrations_test

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/store"
	"hongbao/migrations"
)

func TestMain(m *testing.M) { os.Exit(stacktest.Main(m)) }

var fileName = regexp.MustCompile(`^(\d{5})_[a-z_]+\.sql$`)

// sources reads the SQL files of this folder, which are the embedded ones.
func sources(t *testing.T) map[string]string {
	t.Helper()
	names, err := fs.Glob(os.DirFS("."), "*.sql")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	out := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = string(text)
	}
	return out
}

func TestNumbersAreDenseAndUnique(t *testing.T) {
	names := []string{}
	for name := range sources(t) {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		m := fileName.FindStringSubmatch(name)
		if m == nil || m[1] != fmt.Sprintf("%05d", 100+i) {
			t.Errorf("%s, want number %05d", name, 100+i)
		}
	}
	p, err := migrations.NewProvider(open(t, stacktest.MariaDB(t)), nil)
	if err != nil {
		t.Fatal(err)
	}
	embedded := p.ListSources()
	if len(embedded) != len(names) {
		t.Errorf("%d are embedded of %d files", len(embedded), len(names))
	}
}

// tableOf returns the table that a file creates.
func tableOf(path string) string { return strings.TrimSuffix(path[len("00100_"):], ".sql") }

var (
	comment = regexp.MustCompile(`(?m)--.*$`)
	literal = regexp.MustCompile(`'[^']*'`)
)

// split returns the statements of the file's Up and Down parts.
func split(t *testing.T, name, text string) (up, down []string) {
	t.Helper()
	head, rest, ok := strings.Cut(text, "-- +goose Up\n")
	before, after, ok2 := strings.Cut(rest, "-- +goose Down\n")
	if !ok || !ok2 || strings.Contains(after, "+goose") {
		t.Errorf("%s: want one Up and one Down, in this order", name)
	}
	if !strings.HasPrefix(head, "-- ") || comment.ReplaceAllString(head, "") != strings.Repeat("\n", strings.Count(head, "\n")) {
		t.Errorf("%s: has to say first what it is for", name)
	}
	return statements(before), statements(after)
}

func statements(text string) []string {
	var out []string
	for s := range strings.SplitSeq(literal.ReplaceAllString(comment.ReplaceAllString(text, ""), "''"), ";") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// TestFilesRunAgain: each file creates one table, its triggers and its rows, in a form that a
// second run leaves unchanged; Down drops the table.
func TestFilesRunAgain(t *testing.T) {
	for name, text := range sources(t) {
		up, down := split(t, name, text)
		table := tableOf(name)
		if len(up) == 0 || !strings.HasPrefix(up[0], "CREATE TABLE IF NOT EXISTS "+table+" (") || !strings.HasSuffix(up[0], ") ENGINE = InnoDB") {
			t.Errorf("%s: has to make the table %s IF NOT EXISTS, with ENGINE = InnoDB", name, table)
			continue
		}
		trigger := regexp.MustCompile(`^CREATE TRIGGER IF NOT EXISTS ` + table + `_\w+ BEFORE \w+ ON ` + table + `\b`)
		for _, s := range up[1:] {
			if !trigger.MatchString(s) && !strings.HasPrefix(s, "INSERT IGNORE INTO "+table+" ") {
				t.Errorf("%s: neither a trigger IF NOT EXISTS of %s nor an INSERT IGNORE: %s", name, table, s)
			}
		}
		if len(down) != 1 || down[0] != "DROP TABLE IF EXISTS "+table {
			t.Errorf("%s: Down is %q", name, down)
		}
	}
}

// TestR8_TextNamesItsCollation: a text column names its collation, whatever the server's default
// is. Ids, users and keys are bytes.
func TestR8_TextNamesItsCollation(t *testing.T) {
	text := regexp.MustCompile(`(?i)\b(VARCHAR|CHAR|TINYTEXT|TEXT|MEDIUMTEXT|LONGTEXT|ENUM|SET|JSON)\b\s*(\(|NOT|NULL|,)`)
	named := regexp.MustCompile(`CHARACTER SET (ascii COLLATE ascii_bin|utf8mb4 COLLATE utf8mb4_bin)`)
	id := regexp.MustCompile(`^\s*(id|\w+_id|order_no|account|recipient|idem_key|reference|subject|owner)\s+(\w+)`)
	for name, file := range sources(t) {
		for line := range strings.Lines(file) {
			if strings.Contains(line, "CONSTRAINT") || strings.HasPrefix(line, "--") {
				continue
			}
			column, _, _ := strings.Cut(line, "COMMENT")
			if text.MatchString(column) && !named.MatchString(column) {
				t.Errorf("%s: no binary collation named: %s", name, strings.TrimSpace(line))
			}
			if m := id.FindStringSubmatch(line); m != nil && strings.Contains(strings.ToUpper(m[2]), "CHAR") && name != "00102_api_keys.sql" {
				t.Errorf("%s: %s is %s, want bytes", name, m[1], m[2])
			}
		}
	}
}

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := store.OpenSQL(dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// schema is every column, index and check of the database.
func schema(t *testing.T, db *sql.DB) []string {
	t.Helper()
	var out []string
	for _, q := range []string{
		`SELECT CONCAT_WS(' ', table_name, ordinal_position, column_name, column_type, is_nullable, column_default, collation_name, extra)
			FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name NOT LIKE 'goose%' ORDER BY 1`,
		`SELECT CONCAT_WS(' ', table_name, index_name, non_unique, seq_in_index, column_name)
			FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name NOT LIKE 'goose%' ORDER BY 1`,
		`SELECT CONCAT_WS(' ', c.constraint_name, c.check_clause) FROM information_schema.check_constraints c
			WHERE c.constraint_schema = DATABASE() ORDER BY 1`,
	} {
		rows, err := db.QueryContext(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var s string
			if err := rows.Scan(&s); err != nil {
				t.Fatal(err)
			}
			out = append(out, s)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestUpDownUp: from nothing to the newest, back to nothing, and up again to the same schema.
func TestUpDownUp(t *testing.T) {
	db := open(t, stacktest.MariaDB(t))
	ctx := t.Context()
	p, err := migrations.NewProvider(db, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := schema(t, db); len(got) != 0 {
		t.Fatalf("not empty: %v", got)
	}
	applied, err := p.Up(ctx)
	if err != nil || len(applied) != len(sources(t)) {
		t.Fatalf("%d migrations, %v", len(applied), err)
	}
	up := schema(t, db)
	if again, err := p.Up(ctx); err != nil || len(again) != 0 {
		t.Errorf("up twice: %v, %v", again, err)
	}
	for range applied { // one at a time, as an operator goes back
		if _, err := p.Down(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if got := schema(t, db); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
	if _, err := p.Up(ctx); err != nil {
		t.Fatal(err)
	}
	if again := schema(t, db); !slices.Equal(again, up) {
		t.Errorf("another schema the second time:\n%v\n%v", again, up)
	}
	if len(up) < 200 {
		t.Errorf("the schema has only %d columns, indexes and checks", len(up))
	}
}

// TestUpAtOnce: a lock serializes several processes that migrate at the same moment.
func TestUpAtOnce(t *testing.T) {
	dsn := stacktest.MariaDB(t)
	errs := make(chan error)
	for range 3 {
		db := open(t, dsn)
		go func() { errs <- up(t.Context(), db) }()
	}
	for range 3 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	var n int
	if err := open(t, dsn).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM goose_db_version WHERE version_id > 0").Scan(&n); err != nil ||
		n != len(sources(t)) {
		t.Errorf("%d versions, %v", n, err)
	}
}

func up(ctx context.Context, db *sql.DB) error {
	p, err := migrations.NewProvider(db, nil)
	if err != nil {
		return err
	}
	_, err = p.Up(ctx)
	return err
}
