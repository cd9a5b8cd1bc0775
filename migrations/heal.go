package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/go-sql-driver/mysql"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

// alreadyDone are the numbers with which MySQL 8.4 and MariaDB 10.11 refuse to
// make what is there, and to drop what is gone, in the words of these files.
var alreadyDone = []uint16{
	1050, // a table is there
	1051, // a table is gone
	1060, // a column is there
	1061, // a key is there
	1091, // a column or key is gone; MariaDB: a check too
	1359, // a trigger is there
	1360, // a trigger is gone
	1826, // MariaDB: a check is there
	3822, // MySQL: a check is there
	3940, // MySQL: a check is gone
}

// prepare sees that goose's table is whole. goose makes it and writes its first
// row, number 0, in two commits; without the row it refuses to do anything.
func (p *Provider) prepare(ctx context.Context) (err error) {
	conn, err := p.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if whole, err := p.whole(ctx, conn); whole || err != nil {
		return err
	}
	return p.locked(ctx, conn, func() error {
		exists, err := p.tableExists(ctx, conn)
		if err != nil {
			return err
		}
		if !exists {
			if err := p.store.CreateVersionTable(ctx, conn); err != nil {
				return fmt.Errorf("make the list of migrations: %w", err)
			}
		}
		if whole, err := p.whole(ctx, conn); whole || err != nil {
			return err
		}
		if err := p.store.Insert(ctx, conn, database.InsertRequest{Version: 0}); err != nil {
			return fmt.Errorf("make the list of migrations: %w", err)
		}
		return nil
	})
}

// whole says whether goose's table is there with its first row.
func (p *Provider) whole(ctx context.Context, conn *sql.Conn) (bool, error) {
	exists, err := p.tableExists(ctx, conn)
	if err != nil || !exists {
		return false, err
	}
	_, err = p.store.GetMigration(ctx, conn, 0)
	if errors.Is(err, database.ErrVersionNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read migrations: %w", err)
	}
	return true, nil
}

func (p *Provider) tableExists(ctx context.Context, conn *sql.Conn) (bool, error) {
	n, err := count(ctx, conn, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?", p.store.Tablename())
	return n > 0, err
}

func count(ctx context.Context, conn *sql.Conn, query string, args ...any) (n int, err error) {
	if err := conn.QueryRowContext(ctx, query, args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("read migrations: %w", err)
	}
	return n, nil
}

// locked calls f while conn has the lock.
func (p *Provider) locked(ctx context.Context, conn *sql.Conn, f func() error) error {
	if err := p.locker.SessionLock(ctx, conn); err != nil {
		return err
	}
	return errors.Join(f(), p.locker.SessionUnlock(context.WithoutCancel(ctx), conn))
}

// heal notes a migration that was carried out, and whose process was killed before
// it could note that. MySQL commits a DDL by itself, so the two cannot be one; a
// change of data is in one transaction with its note, and needs no healing.
//
// It does so when the server has refused the very first statement of this call with
// a number that says "is there" or "is gone", when this is still the first migration
// that is pending (for Down: the newest), and when everything the statement makes is
// there and everything it drops is gone. Half of a DDL does not exist: MySQL 8.0 and
// newer carry it out wholly or not at all, even when the server is killed meanwhile
// (reference manual, "Atomic Data Definition Statement Support"), as does MariaDB
// since 10.6 (knowledge base, "Atomic DDL"). So a database of which only a part is
// there was changed by hand, and the refusal stands.
//
// refusal is what goose answered; settled: it is to be forgotten, because the
// migration is noted now. healed is nil when another process had noted it meanwhile.
func (p *Provider) heal(ctx context.Context, refusal error, up bool) (healed *goose.MigrationResult, settled bool, err error) {
	var partial *goose.PartialError
	var refused *mysql.MySQLError
	if !errors.As(refusal, &partial) || len(partial.Applied) > 0 || !errors.As(partial.Err, &refused) || !slices.Contains(alreadyDone, refused.Number) {
		return nil, false, nil
	}
	effect, err := effectOf(partial.Failed.Source.Path, up)
	if err != nil {
		return nil, false, err
	}
	conn, err := p.db.Conn(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("read migrations: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	version := partial.Failed.Source.Version
	err = p.locked(ctx, conn, func() error {
		next, noted, err := p.next(ctx, conn, version, up)
		if err != nil || noted == up || next != version {
			settled = noted == up // by another process
			return err
		}
		if there, err := effect.there(ctx, conn); err != nil || !there {
			return err
		}
		if up {
			err = p.store.Insert(ctx, conn, database.InsertRequest{Version: version})
		} else {
			err = p.store.Delete(ctx, conn, version)
		}
		if err != nil {
			return fmt.Errorf("note migration %d: %w", version, err)
		}
		healed = &goose.MigrationResult{Source: partial.Failed.Source, Direction: partial.Failed.Direction}
		settled = true
		p.logger.WarnContext(ctx, "a migration had been carried out and not noted: it is now", slog.Int64("version", version),
			slog.String("direction", healed.Direction), slog.Int("mysql_error", int(refused.Number)))
		return nil
	})
	return healed, settled && err == nil, err
}

// next is the first migration that is pending, or the newest that is applied; 0:
// none. noted says whether version is applied.
func (p *Provider) next(ctx context.Context, conn *sql.Conn, version int64, up bool) (next int64, noted bool, err error) {
	all, err := p.store.ListMigrations(ctx, conn) // the newest first
	if err != nil {
		return 0, false, fmt.Errorf("read migrations: %w", err)
	}
	applied := map[int64]bool{}
	for _, m := range all {
		applied[m.Version] = true
	}
	if !up {
		return all[0].Version, applied[version], nil
	}
	for _, s := range p.ListSources() {
		if !applied[s.Version] {
			return s.Version, applied[version], nil
		}
	}
	return 0, applied[version], nil
}
