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

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed *.sql
var files embed.FS

// NewProvider returns goose over the embedded files. The database handle needs
// parseTime and multiStatements. Two processes that migrate at once are kept
// apart by goose's lock table. logger may be nil.
func NewProvider(db *sql.DB, logger *slog.Logger) (*goose.Provider, error) {
	locker, err := lock.NewMySQLTableLocker()
	if err != nil {
		return nil, fmt.Errorf("migration lock: %w", err)
	}
	opts := []goose.ProviderOption{goose.WithLocker(locker)}
	if logger != nil {
		opts = append(opts, goose.WithSlog(logger))
	}
	p, err := goose.NewProvider(goose.DialectMySQL, db, files, opts...)
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
