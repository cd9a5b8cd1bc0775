// Package migrations holds the MySQL schema as numbered SQL files, one per table, and runs them
// with goose. MySQL commits each DDL statement by itself, so a file may be applied in part, or
// without its row in goose's table; therefore each file can run again.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"hongbao/internal/dataformat"
)

// Files are the migrations.
//
//go:embed *.sql
var Files embed.FS

const (
	// Table is goose's table of applied migrations.
	Table = goose.DefaultTablename
	// first is the number of the first file, which makes the table of the data format. Lower
	// numbers were applied by builds from before that table.
	first = 100
)

// Provider is goose over Files.
type Provider = goose.Provider

// NewProvider returns goose over Files. The database handle needs parseTime and multiStatements. A
// lock of the server excludes concurrent migrations. logger may be nil. Call CheckFormat before Up.
func NewProvider(db *sql.DB, logger *slog.Logger) (*Provider, error) {
	opts := []goose.ProviderOption{}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	} else {
		opts = append(opts, goose.WithSlog(logger))
	}
	applied, err := database.NewStore(database.DialectMySQL, Table)
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	opts = append(opts, goose.WithStore(fromZero{applied}), goose.WithSessionLocker(locker{logger}))
	p, err := goose.NewProvider(goose.DialectCustom, db, Files, opts...)
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return p, nil
}

// fromZero reads an empty table as version 0. goose creates its table and inserts version 0 in two
// commits, before it takes the lock: a second process may read in between, or a first start may be
// killed there.
type fromZero struct{ database.Store }

// GetLatestVersion implements database.Store.
func (s fromZero) GetLatestVersion(ctx context.Context, db database.DBTxConn) (int64, error) {
	version, err := s.Store.GetLatestVersion(ctx, db)
	if errors.Is(err, database.ErrVersionNotFound) {
		return 0, nil
	}
	return version, err //nolint:wrapcheck // goose's own error goes back to goose
}

// ListMigrations implements database.Store.
func (s fromZero) ListMigrations(ctx context.Context, db database.DBTxConn) ([]*database.ListMigrationsResult, error) {
	list, err := s.Store.ListMigrations(ctx, db)
	if err == nil && len(list) == 0 {
		list = append(list, &database.ListMigrationsResult{IsApplied: true})
	}
	return list, err //nolint:wrapcheck // goose's own error goes back to goose
}

// CheckFormat returns a *dataformat.Error when a build with another data format made the database.
// An empty database passes. It changes nothing.
func CheckFormat(ctx context.Context, db *sql.DB) error {
	applied, err := readApplied(ctx, db)
	if err != nil {
		return err
	}
	return checkFormat(ctx, db, applied)
}

func checkFormat(ctx context.Context, db *sql.DB, applied map[int64]bool) error {
	for version := range applied {
		if 0 < version && version < first {
			return dataformat.Check("MySQL", 0)
		}
	}
	found, err := readFormat(ctx, db)
	if err != nil {
		return err
	}
	if found == 0 && !applied[first] {
		return nil // a first start that was interrupted, or is in progress
	}
	return dataformat.Check("MySQL", found)
}

// readFormat returns 0 when the table or its row is missing.
func readFormat(ctx context.Context, db *sql.DB) (number int, err error) {
	if there, err := tableExists(ctx, db, "data_format"); !there || err != nil {
		return 0, err
	}
	err = db.QueryRowContext(ctx, "SELECT number FROM data_format").Scan(&number)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("read the data format: %w", err)
	}
	return number, nil
}

func tableExists(ctx context.Context, db *sql.DB, name string) (bool, error) {
	var n int
	err := db.QueryRowContext(ctx,
		"SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?", name).Scan(&n)
	if err != nil {
		return false, fmt.Errorf("read the schema: %w", err)
	}
	return n > 0, nil
}

// readApplied returns the numbers of the applied migrations, and 0.
func readApplied(ctx context.Context, db *sql.DB) (map[int64]bool, error) {
	applied := map[int64]bool{0: true}
	if there, err := tableExists(ctx, db, Table); !there || err != nil {
		return applied, err
	}
	rows, err := db.QueryContext(ctx, "SELECT version_id FROM "+Table+" WHERE is_applied")
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var version int64
		if err := rows.Scan(&version); err != nil {
			return nil, fmt.Errorf("read migrations: %w", err)
		}
		applied[version] = true
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return applied, nil
}

// Difference compares the schema with the migrations of this build and changes nothing, unlike
// goose's own status, which creates its table. missing are the files not applied yet, unknown the
// numbers applied by a newer build. On an empty database all are missing. Errors: those of
// CheckFormat too.
func Difference(ctx context.Context, db *sql.DB) (missing []string, unknown []int64, err error) {
	p, err := NewProvider(db, nil)
	if err != nil {
		return nil, nil, err
	}
	applied, err := readApplied(ctx, db)
	if err != nil {
		return nil, nil, err
	}
	if err := checkFormat(ctx, db, applied); err != nil {
		return nil, nil, err
	}
	for _, s := range p.ListSources() {
		if !applied[s.Version] {
			missing = append(missing, s.Path)
		}
		delete(applied, s.Version)
	}
	delete(applied, 0)
	return missing, slices.Sorted(maps.Keys(applied)), nil
}
