package stacktest

import (
	"database/sql"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"

	"hongbao/migrations"
)

// Migrate gives an empty database the schema of the migrations, goose's table too: what
// `hongbao migrate up` makes, in one round trip instead of four for each file.
func Migrate(t testing.TB, dsn string) {
	t.Helper()
	text, err := schema()
	if err != nil {
		t.Fatalf("read the migrations: %v", err)
	}
	db, err := openForSchema(dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(t.Context(), text); err != nil {
		t.Fatalf("make the schema: %v", err)
	}
}

// openForSchema opens a database as the store opens it for migrations.
func openForSchema(dsn string) (*sql.DB, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	cfg.MultiStatements, cfg.Collation = true, "utf8mb4_bin"
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// schema is the statements of all files, and those with which goose lists them.
var schema = sync.OnceValues(func() (string, error) {
	names, err := fs.Glob(migrations.Files, "*.sql") // sorted
	if err != nil {
		return "", err
	}
	var text strings.Builder
	versions := []string{"(0, 1)"}
	for _, name := range names {
		file, err := migrations.Files.ReadFile(name)
		if err != nil {
			return "", err
		}
		up, _, found := strings.Cut(string(file), "-- +goose Down")
		if !found {
			return "", fmt.Errorf("%s has no Down part", name)
		}
		text.WriteString(up)
		number, _, _ := strings.Cut(name, "_")
		versions = append(versions, "("+number+", 1)")
	}
	fmt.Fprintf(&text, "CREATE TABLE %[1]s (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, version_id BIGINT NOT NULL, "+
		"is_applied BOOLEAN NOT NULL, tstamp DATETIME NULL DEFAULT CURRENT_TIMESTAMP);\nINSERT INTO %[1]s (version_id, is_applied) VALUES %s",
		migrations.Table, strings.Join(versions, ", "))
	return text.String(), nil
})
