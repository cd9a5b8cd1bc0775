package stacktest_test

import (
	"database/sql"
	"fmt"
	"slices"
	"testing"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/store"
	"hongbao/migrations"
)

// TestMigrate: the schema of tests is the one that the migrations make, and holds no more rows.
func TestMigrate(t *testing.T) {
	t.Parallel()
	dsns := [2]string{stacktest.MariaDB(t), stacktest.MariaDB(t)}
	var dbs [2]*sql.DB
	for i, dsn := range dsns {
		db, err := store.OpenSQL(dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		dbs[i] = db
	}
	p, err := migrations.NewProvider(dbs[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	stacktest.Migrate(t, dsns[1])
	migrated, copied := describe(t, dbs[0]), describe(t, dbs[1])
	for _, line := range migrated {
		if !slices.Contains(copied, line) {
			t.Errorf("the copy lacks %s", line)
		}
	}
	for _, line := range copied {
		if !slices.Contains(migrated, line) {
			t.Errorf("only the copy has %s", line)
		}
	}
	if len(migrated) < 300 {
		t.Errorf("only %d lines", len(migrated))
	}
	if missing, unknown, err := migrations.Difference(t.Context(), dbs[1]); err != nil || len(missing)+len(unknown) > 0 {
		t.Error(missing, unknown, err)
	}
}

// describe returns all that a database holds, a line each.
func describe(t *testing.T, db *sql.DB) []string {
	t.Helper()
	var all []string
	read := func(query string) (lines []string) {
		rows, err := db.QueryContext(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, line)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return lines
	}
	for _, query := range []string{
		`SELECT CONCAT_WS(' ', 'table', table_name, engine, table_collation, table_comment, create_options) FROM information_schema.tables
			WHERE table_schema = DATABASE()`,
		`SELECT CONCAT_WS(' ', 'column', table_name, ordinal_position, column_name, column_type, is_nullable, column_default, collation_name,
			extra, generation_expression) FROM information_schema.columns WHERE table_schema = DATABASE()`,
		`SELECT CONCAT_WS(' ', 'index', table_name, index_name, non_unique, seq_in_index, column_name, collation, sub_part)
			FROM information_schema.statistics WHERE table_schema = DATABASE()`,
		`SELECT CONCAT_WS(' ', 'check', table_name, constraint_name, check_clause) FROM information_schema.check_constraints
			WHERE constraint_schema = DATABASE()`,
		`SELECT CONCAT_WS(' ', 'trigger', trigger_name, event_object_table, action_timing, event_manipulation, action_statement, sql_mode,
			definer) FROM information_schema.triggers WHERE trigger_schema = DATABASE()`,
		`SELECT CONCAT_WS(' ', 'migration', version_id, is_applied) FROM goose_db_version`,
	} {
		lines := read(query)
		if len(lines) == 0 {
			t.Errorf("nothing: %s", query)
		}
		all = append(all, lines...)
	}
	for _, table := range read(`SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()`) {
		all = append(all, fmt.Sprintln("rows", table, read("SELECT COUNT(*) FROM " + table)[0]))
	}
	return all
}
