package stacktest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"

	"hongbao/migrations"
)

// Migrate gives an empty database the schema of the newest migrations: what
// `hongbao migrate up` makes, triggers and the list of the migrations too. Only the
// first call of a test binary migrates, in a database that it drops again; each makes
// its tables from what came of that, which takes a tenth of the time.
func Migrate(t testing.TB, dsn string) {
	t.Helper()
	newest.once.Do(func() { newest.text, newest.err = readNewest(t.Context(), MariaDB(t)) })
	if newest.err != nil {
		t.Fatalf("read the newest schema: %v", newest.err)
	}
	db, err := openForSchema(dsn)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), newest.text)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatalf("make the newest schema: %v", err)
	}
}

// newest is the newest schema as one text of statements.
var newest struct {
	once sync.Once
	text string
	err  error
}

// openForSchema opens a database as the store opens it for migrations.
func openForSchema(dsn string) (*sql.DB, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	cfg.MultiStatements = true
	cfg.Collation = "utf8mb4_bin"
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// readNewest migrates an empty database and returns the statements that make the same
// of another one.
func readNewest(ctx context.Context, dsn string) (text string, err error) {
	db, err := openForSchema(dsn)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	p, err := migrations.NewProvider(db, nil)
	if err != nil {
		return "", err
	}
	if _, err := p.Up(ctx); err != nil {
		return "", err
	}
	tables, err := texts(ctx, db, "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY 1", 0)
	if err != nil {
		return "", err
	}
	triggers, err := texts(ctx, db, "SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = DATABASE() ORDER BY 1", 0)
	if err != nil {
		return "", err
	}
	var all []string
	for _, table := range tables {
		create, err := texts(ctx, db, "SHOW CREATE TABLE "+table, 1) // after the name
		if err != nil {
			return "", err
		}
		rows, err := insertsOf(ctx, db, table)
		if err != nil {
			return "", err
		}
		all = append(append(all, create...), rows...)
	}
	for _, trigger := range triggers {
		create, err := texts(ctx, db, "SHOW CREATE TRIGGER "+trigger, 2) // after the name and the SQL mode
		if err != nil {
			return "", err
		}
		all = append(all, create...)
	}
	return strings.Join(all, ";\n"), nil
}

// insertsOf returns a statement for each row of a table.
func insertsOf(ctx context.Context, db *sql.DB, table string) (inserts []string, err error) {
	columns, err := texts(ctx, db, "SELECT CONCAT('QUOTE(', column_name, ')') FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = '"+table+"' ORDER BY ordinal_position", 0)
	if err != nil {
		return nil, err
	}
	rows, err := texts(ctx, db, "SELECT CONCAT_WS(', ', "+strings.Join(columns, ", ")+") FROM "+table, 0)
	for _, row := range rows {
		inserts = append(inserts, "INSERT INTO "+table+" VALUES ("+row+")")
	}
	return inserts, err
}

// texts returns one column of the rows that a query finds.
func texts(ctx context.Context, db *sql.DB, query string, column int) ([]string, error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var found []string
	for rows.Next() {
		fields := make([]sql.NullString, len(columns))
		into := make([]any, len(columns))
		for i := range fields {
			into[i] = &fields[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		if column >= len(fields) {
			return nil, fmt.Errorf("%s answers %d columns", query, len(fields))
		}
		found = append(found, fields[column].String)
	}
	return found, rows.Err()
}
