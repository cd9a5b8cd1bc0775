package migrations_test

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"hongbao/internal/dataformat"
	"hongbao/internal/devstack/stacktest"
	"hongbao/migrations"
)

func exec(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// column returns one column of the result of a query.
func column(t *testing.T, db *sql.DB, query string, number int) (found []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		fields, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range fields {
			into[i] = &fields[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		found = append(found, fields[number].String)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

// everything is the output of SHOW CREATE for each table and trigger, the applied migrations, and
// the data format.
func everything(t *testing.T, db *sql.DB) []string {
	t.Helper()
	out := column(t, db, "SELECT version_id FROM goose_db_version ORDER BY id", 0)
	out = append(out, column(t, db, "SELECT number FROM data_format", 0)...)
	for _, table := range column(t, db, "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY 1", 0) {
		if table != migrations.Table { // it counts deleted rows
			out = append(out, column(t, db, "SHOW CREATE TABLE "+table, 1)...)
		}
	}
	for _, trigger := range triggers(t, db, "%") {
		out = append(out, column(t, db, "SHOW CREATE TRIGGER "+trigger, 2)...)
	}
	return out
}

func triggers(t *testing.T, db *sql.DB, table string) []string {
	t.Helper()
	return column(t, db, "SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = DATABASE()"+
		" AND event_object_table LIKE '"+table+"' ORDER BY 1", 0)
}

// TestKilledBeforeVersionZero: goose has created its table, and its row for version 0 is missing.
func TestKilledBeforeVersionZero(t *testing.T) {
	db := open(t, stacktest.MariaDB(t))
	p := provider(t, db, nil)
	if _, err := p.UpTo(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	exec(t, db, "DROP TABLE data_format")
	exec(t, db, "DELETE FROM goose_db_version")
	if done, err := p.Up(t.Context()); err != nil || len(done) != len(p.ListSources()) {
		t.Errorf("%d migrations, %v", len(done), err)
	}
}

// TestKilledBeforeTheNote leaves a database as a process killed between a file and goose's row, or
// between the statements of a file: the next start succeeds, up and down, and makes the same
// schema.
func TestKilledBeforeTheNote(t *testing.T) {
	db, clean := open(t, stacktest.MariaDB(t)), open(t, stacktest.MariaDB(t))
	if err := up(t.Context(), clean); err != nil {
		t.Fatal(err)
	}
	p := provider(t, db, nil)
	forget := "DELETE FROM goose_db_version WHERE version_id = "
	for _, s := range p.ListSources() {
		again := func(what string) {
			exec(t, db, forget+fmt.Sprint(s.Version))
			if done, err := p.UpTo(t.Context(), s.Version); err != nil || len(done) != 1 {
				t.Fatalf("%s, killed before %s: %d migrations, %v", s.Path, what, len(done), err)
			}
		}
		if _, err := p.UpTo(t.Context(), s.Version); err != nil {
			t.Fatal(err)
		}
		again("its row")
		made := triggers(t, db, tableOf(s.Path))
		for i, trigger := range made {
			for _, later := range made[i:] {
				exec(t, db, "DROP TRIGGER "+later)
			}
			again(trigger)
		}
		if s.Version == 100 {
			exec(t, db, "DELETE FROM data_format")
			again("its row of data")
		}
	}
	if all := triggers(t, db, "%"); len(all) != 4 {
		t.Errorf("triggers: %v", all)
	}
	if got, want := everything(t, db), everything(t, clean); !slices.Equal(got, want) {
		t.Errorf("got\n%s\n\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, s := range slices.Backward(p.ListSources()) {
		exec(t, db, "DROP TABLE "+tableOf(s.Path))
		if done, err := p.Down(t.Context()); err != nil || done.Source.Version != s.Version {
			t.Fatalf("%s, killed before its row was deleted: %v", s.Path, err)
		}
	}
	if rest := schema(t, db); len(rest) != 0 {
		t.Errorf("left behind: %v", rest)
	}
}

// TestOtherBuild: a database of a build with another data format is refused. One of this build, an
// empty one, and one of an interrupted first start pass.
func TestOtherBuild(t *testing.T) {
	refused := func(name string, db *sql.DB, found int) {
		t.Helper()
		_, _, different := migrations.Difference(t.Context(), db)
		for _, err := range []error{migrations.CheckFormat(t.Context(), db), different} {
			if e, is := errors.AsType[*dataformat.Error](err); !is || e.Found != found || e.Store != "MySQL" {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	passes := func(name string, db *sql.DB) {
		t.Helper()
		if err := migrations.CheckFormat(t.Context(), db); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	db := open(t, stacktest.MariaDB(t))
	passes("empty", db)
	p := provider(t, db, nil)
	if _, err := p.UpTo(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	passes("only the first migration", db)
	exec(t, db, "DELETE FROM goose_db_version WHERE version_id = 100")
	exec(t, db, "DELETE FROM data_format")
	passes("killed before the number", db)
	if err := up(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	passes("of this build", db)
	exec(t, db, fmt.Sprint("UPDATE data_format SET number = ", dataformat.Number+1))
	refused("newer", db, dataformat.Number+1)
	exec(t, db, fmt.Sprint("UPDATE data_format SET number = ", dataformat.Number-1))
	refused("older", db, dataformat.Number-1)
	exec(t, db, "DELETE FROM data_format")
	refused("number deleted", db, 0)
	exec(t, db, "DROP TABLE data_format")
	refused("table dropped", db, 0)

	old := open(t, stacktest.MariaDB(t))
	if _, err := provider(t, old, nil).Status(t.Context()); err != nil { // creates goose's table
		t.Fatal(err)
	}
	passes("no migration yet", old)
	exec(t, old, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (75, 1)")
	refused("from before the number", old, 0)
}
