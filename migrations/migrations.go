// Package migrations holds the MySQL schema as numbered SQL files, one DDL
// statement each (MySQL commits every DDL by itself, so a file is the smallest
// step that can fail), and runs them with goose.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

//go:embed *.sql
var files embed.FS

// Provider is goose over the embedded files. Its Up, UpTo and Down go on where a
// process was killed; its other methods are goose's own.
type Provider struct {
	*goose.Provider
	db     *sql.DB
	store  database.Store // of goose's notes
	locker locker
	logger *slog.Logger
}

// NewProvider returns goose over the embedded files. The database handle needs
// parseTime and multiStatements. Two processes that migrate at once are kept apart
// by a lock of the server. logger may be nil.
func NewProvider(db *sql.DB, logger *slog.Logger) (*Provider, error) {
	opts := []goose.ProviderOption{}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	} else {
		opts = append(opts, goose.WithSlog(logger))
	}
	store, err := database.NewStore(database.DialectMySQL, goose.DefaultTablename)
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	locker := locker{logger}
	p, err := goose.NewProvider(goose.DialectMySQL, db, files, append(opts, goose.WithSessionLocker(locker))...)
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return &Provider{Provider: p, db: db, store: store, locker: locker, logger: logger}, nil
}

// Up applies all pending migrations and returns them, those too that another
// process had carried out and was killed before it could note them.
func (p *Provider) Up(ctx context.Context) ([]*goose.MigrationResult, error) {
	return p.UpTo(ctx, math.MaxInt64)
}

// UpTo is Up as far as the given number.
func (p *Provider) UpTo(ctx context.Context, version int64) ([]*goose.MigrationResult, error) {
	if err := p.prepare(ctx); err != nil {
		return nil, err
	}
	done, err := p.Provider.UpTo(ctx, version)
	healed, settled, healErr := p.heal(ctx, err, true)
	if !settled {
		return done, errors.Join(err, healErr)
	}
	done, err = p.Provider.UpTo(ctx, version) // a second refusal stands: only the first pending one may have been cut off
	if healed != nil {
		done = append([]*goose.MigrationResult{healed}, done...)
	}
	return done, err
}

// Down takes the newest migration back. One that another process had taken back,
// and was killed before it could note that, is only noted: it is the one returned.
// When two take back the same one, the later of them is refused.
func (p *Provider) Down(ctx context.Context) (*goose.MigrationResult, error) {
	if err := p.prepare(ctx); err != nil {
		return nil, err
	}
	done, err := p.Provider.Down(ctx)
	healed, _, healErr := p.heal(ctx, err, false)
	if healed == nil || healErr != nil {
		return done, errors.Join(err, healErr)
	}
	return healed, nil
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
