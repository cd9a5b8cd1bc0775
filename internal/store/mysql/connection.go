// Package mysql is what the packages store and report share: the connections to MySQL, transactions, and the
// rows that both read.
package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
	gormmysql "gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"hongbao/internal/packet"
)

// Config configures the access to MySQL.
type Config struct {
	DSN          string // go-sql-driver form; isolation, time and limits in it are overridden
	MaxOpenConns int    // of transactions, and as many of statements outside transactions; 0: 24
	// IdleLimit is how long a transaction may be idle before the server rolls it back, in whole
	// seconds; 0: 20 s.
	IdleLimit time.Duration
	// ClockOff, if set, is added to MySQL's time, for tests.
	ClockOff func() time.Duration
}

// DB is the access to MySQL. It is safe for concurrent use.
type DB struct {
	SQL    *sql.DB                          // connections for statements outside a transaction
	Adjust func(server time.Time) time.Time // MySQL's time as this process sees it, for tests
	Gorm   *gorm.DB                         // by SQL

	transacting *sql.DB // connections without autocommit, for transactions
}

// connector opens connections with READ COMMITTED: the variable's name differs between MySQL 8 and
// MariaDB 10, the statement does not. The SQL mode is sqlMode. The server closes a connection
// after idle without a statement: a process that is suspended or cut off within a transaction would
// keep its locks, by default for eight hours.
type connector struct {
	driver.Connector
	idle       time.Duration
	autocommit bool
}

// transactingConn is a connection without autocommit. A transaction begins with its first statement, which saves
// the one that would begin it. No statement runs outside a transaction: it would begin one that nobody ends.
type transactingConn struct{ driverConn }

// driverConn is what the driver's connections implement.
type driverConn interface {
	driver.Conn
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// BeginTx implements driver.ConnBeginTx.
func (c transactingConn) BeginTx(ctx context.Context, _ driver.TxOptions) (driver.Tx, error) {
	return transaction(func(statement string) error {
		// raw: no table
		_, err := c.ExecContext(context.WithoutCancel(ctx), statement, nil)
		return err
	}), nil
}

// transaction ends a transaction with a statement.
type transaction func(statement string) error

// Commit implements driver.Tx.
func (end transaction) Commit() error { return end("COMMIT") }

// Rollback implements driver.Tx.
func (end transaction) Rollback() error { return end("ROLLBACK") }

// sqlMode is the SQL mode of all connections. A value that does not fit its column is refused, not
// cut. Times are truncated to the column's precision, as in answers: rounding would show a later
// moment than answered, possibly in the future. MariaDB truncates by default and treats the marked
// part as a comment.
const sqlMode = "CONCAT('STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION' /*!80000 , " +
	"',TIME_TRUNCATE_FRACTIONAL' */)"

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	my, ok := conn.(driverConn)
	if !ok {
		_ = conn.Close()
		return nil, errors.New("driver cannot execute statements")
	}
	for _, set := range []string{
		"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
		fmt.Sprintf("SET SESSION wait_timeout = %d, sql_mode = %s, autocommit = %t", max(1, int64(c.idle/time.Second)), sqlMode, c.autocommit),
	} {
		// raw: no table
		if _, err := my.ExecContext(ctx, set, nil); err != nil {
			_ = conn.Close()
			return nil, err
		}
	}
	if c.autocommit {
		return my, nil
	}
	return transactingConn{my}, nil
}

// parseDSN reads the DSN; its errors never contain the DSN, which holds a password.
func parseDSN(dsn string) (*mysql.Config, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, errors.New("parse MySQL DSN: want user:password@tcp(host:port)/database")
	}
	cfg.ParseTime = true
	cfg.Loc = time.UTC
	cfg.InterpolateParams = true
	cfg.ClientFoundRows = false
	cfg.Collation = "utf8mb4_bin"
	// MySQL warns that it truncates a literal with nanoseconds, finds no index range for it and
	// reads every row.
	if err := cfg.Apply(mysql.TimeTruncate(time.Microsecond)); err != nil {
		return nil, fmt.Errorf("mysql DSN: %w", err)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 3 * time.Second
	}
	if cfg.ReadTimeout == 0 {
		cfg.ReadTimeout = 60 * time.Second
	}
	if cfg.WriteTimeout == 0 {
		cfg.WriteTimeout = 30 * time.Second
	}
	cfg.Logger = &mysql.NopLogger{}
	return cfg, nil
}

// OpenSQL opens a plain handle for migrations, with multiStatements.
func OpenSQL(dsn string) (*sql.DB, error) {
	cfg, err := parseDSN(dsn)
	if err != nil {
		return nil, err
	}
	cfg.MultiStatements = true
	cfg.ReadTimeout = 0
	c, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("mysql connector: %w", err)
	}
	return sql.OpenDB(c), nil
}

// Open prepares the access. It does not connect: MySQL may become available later.
func Open(cfg Config) (*DB, error) {
	my, err := parseDSN(cfg.DSN)
	if err != nil {
		return nil, err
	}
	c, err := mysql.NewConnector(my)
	if err != nil {
		return nil, fmt.Errorf("mysql connector: %w", err)
	}
	if cfg.IdleLimit == 0 {
		cfg.IdleLimit = 20 * time.Second
	}
	if cfg.MaxOpenConns == 0 {
		cfg.MaxOpenConns = 24
	}
	d := &DB{Adjust: func(t time.Time) time.Time { return t.UTC() }}
	if off := cfg.ClockOff; off != nil {
		d.Adjust = func(t time.Time) time.Time { return t.UTC().Add(off()) }
	}
	d.SQL, d.transacting = openPool(connector{c, cfg.IdleLimit, true}, cfg), openPool(connector{c, cfg.IdleLimit, false}, cfg)
	d.Gorm, err = gorm.Open(gormmysql.New(gormmysql.Config{Conn: d.SQL, SkipInitializeWithVersion: true, DisableWithReturning: true}),
		&gorm.Config{
			SkipDefaultTransaction: true,
			TranslateError:         true,
			DisableAutomaticPing:   true,
			NowFunc:                func() time.Time { return time.Time{} }, // times that are not from MySQL's clock are refused
			Logger:                 logger.Discard,
		})
	if err == nil {
		err = noteWrites(d.Gorm)
	}
	if err != nil {
		_ = d.Close()
		return nil, fmt.Errorf("open gorm: %w", err)
	}
	return d, nil
}

func openPool(c connector, cfg Config) *sql.DB {
	pool := sql.OpenDB(c)
	pool.SetMaxOpenConns(cfg.MaxOpenConns)
	pool.SetMaxIdleConns(cfg.MaxOpenConns)
	pool.SetConnMaxIdleTime(cfg.IdleLimit / 2) // close it before the server does; else the driver notices
	return pool
}

// Close closes all connections.
func (d *DB) Close() error { return errors.Join(d.SQL.Close(), d.transacting.Close()) }

// Ping reports whether MySQL answers. Errors: packet.ErrUnavailable.
func (d *DB) Ping(ctx context.Context) error {
	if err := d.SQL.PingContext(ctx); err != nil {
		return fmt.Errorf("%w: %w", packet.ErrUnavailable, err)
	}
	return nil
}

// Read returns a handle for statements outside a transaction.
func (d *DB) Read(ctx context.Context) *gorm.DB { return d.Gorm.WithContext(ctx) }
