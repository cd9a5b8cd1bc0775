// Package migrations holds the MySQL schema as numbered SQL files, one DDL
// statement each (MySQL commits every DDL by itself, so a file is the smallest
// step that can fail), and runs them with goose.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/pressly/goose/v3"
)

//go:embed *.sql
var files embed.FS

// NewProvider returns goose over the embedded files. The database handle needs
// parseTime and multiStatements. Two processes that migrate at once are kept apart
// by a lock of the server. logger may be nil.
func NewProvider(db *sql.DB, logger *slog.Logger) (*goose.Provider, error) {
	opts := []goose.ProviderOption{}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	} else {
		opts = append(opts, goose.WithSlog(logger))
	}
	p, err := goose.NewProvider(goose.DialectMySQL, db, files, append(opts, goose.WithSessionLocker(locker{logger}))...)
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return p, nil
}

// Latest returns the number of the newest migration this binary knows.
func Latest(ctx context.Context, db *sql.DB) (int64, error) {
	p, err := NewProvider(db, nil)
	if err != nil {
		return 0, err
	}
	var latest int64
	for _, s := range p.ListSources() {
		latest = max(latest, s.Version)
	}
	return latest, nil
}

// Difference compares the schema with the migrations this binary knows and
// changes nothing, unlike goose's own status, which makes its table. missing are
// the files that were not applied, unknown the numbers that a newer binary has
// applied. On an empty database all are missing.
func Difference(ctx context.Context, db *sql.DB) (missing []string, unknown []int64, err error) {
	p, err := NewProvider(db, nil)
	if err != nil {
		return nil, nil, err
	}
	var there int
	err = db.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?", goose.DefaultTablename).Scan(&there)
	if err != nil {
		return nil, nil, fmt.Errorf("read migrations: %w", err)
	}
	applied := map[int64]bool{0: true}
	if there > 0 {
		rows, err := db.QueryContext(ctx, "SELECT version_id FROM "+goose.DefaultTablename+" WHERE is_applied")
		if err != nil {
			return nil, nil, fmt.Errorf("read migrations: %w", err)
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var version int64
			if err := rows.Scan(&version); err != nil {
				return nil, nil, fmt.Errorf("read migrations: %w", err)
			}
			applied[version] = true
		}
		if err := rows.Err(); err != nil {
			return nil, nil, fmt.Errorf("read migrations: %w", err)
		}
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
