// Package store is the only access to MySQL: transactions with a frozen time, one file a noun. Rows
// go in and out as domain types; gorm's row structs stay here. Every status change is a
// compare-and-set.
package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/go-sql-driver/mysql"
	gormmysql "gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"hongbao/internal/failpoint"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// Errors of this package. Methods name the ones they return.
var (
	// ErrNotFound: no such row.
	ErrNotFound = packet.ErrNotFound
	// ErrUnavailable wraps every failure to reach MySQL or to get its answer in time.
	ErrUnavailable = packet.ErrUnavailable
	// ErrConflict: the row exists with other contents.
	ErrConflict = packet.ErrConflict
	// ErrMoved: a compare-and-set failed, the row has changed.
	ErrMoved = packet.ErrMoved
	// ErrBooksClosed: the packet's books are closed, no claim can be recorded.
	ErrBooksClosed = packet.ErrBooksClosed
)

// Config configures the access to MySQL.
type Config struct {
	DSN          string // go-sql-driver form; isolation, time and limits in it are overridden
	MaxOpenConns int    // 0: 40
	// IdleLimit is how long a transaction may be idle before the server rolls it back, in whole
	// seconds; 0: 20 s.
	IdleLimit time.Duration
	// MustCompare: nothing is sent, closed or decided before the first CompareHeartbeat or
	// AdvanceHeartbeat (rule R13).
	MustCompare bool
	// Lanes is the number of the pool's lanes, whose fences are checked before books are closed
	// (rule R9); 0: no check.
	Lanes int
	// ClockOff, if set, is added to MySQL's time, for tests.
	ClockOff func() time.Duration
}

// Store is the access to MySQL. It is safe for concurrent use.
type Store struct {
	db      *gorm.DB
	sql     *sql.DB
	adjust  func(server time.Time) time.Time // MySQL's time as this store sees it, for tests
	highest *highestHeartbeat

	lanes int // 0: fences are not checked

	ledger    ledgerSums
	minutes   minuteSums
	auditWalk auditWalk
}

// connector opens connections with READ COMMITTED: the variable's name differs between MySQL 8 and
// MariaDB 10, the statement does not. The SQL mode is sqlMode. The server closes a connection
// after idle without a statement: a process that is suspended or cut off within a transaction would
// keep its locks, by default for eight hours.
type connector struct {
	driver.Connector
	idle time.Duration
}

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
	exec, ok := conn.(driver.ExecerContext)
	if !ok {
		_ = conn.Close()
		return nil, errors.New("driver cannot execute statements")
	}
	for _, set := range []string{
		"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
		fmt.Sprintf("SET SESSION wait_timeout = %d, sql_mode = %s", max(1, int64(c.idle/time.Second)), sqlMode),
	} {
		// raw: no table
		if _, err := exec.ExecContext(ctx, set, nil); err != nil {
			_ = conn.Close()
			return nil, err
		}
	}
	return conn, nil
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

// Open prepares the store. It does not connect: MySQL may become available later.
func Open(cfg Config) (*Store, error) {
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
	pool := sql.OpenDB(connector{c, cfg.IdleLimit})
	if cfg.MaxOpenConns == 0 {
		cfg.MaxOpenConns = 40
	}
	pool.SetMaxOpenConns(cfg.MaxOpenConns)
	pool.SetMaxIdleConns(cfg.MaxOpenConns)
	pool.SetConnMaxIdleTime(cfg.IdleLimit / 2) // close it before the server does; else the driver notices
	db, err := gorm.Open(gormmysql.New(gormmysql.Config{Conn: pool, SkipInitializeWithVersion: true, DisableWithReturning: true}),
		&gorm.Config{
			SkipDefaultTransaction: true,
			TranslateError:         true,
			DisableAutomaticPing:   true,
			NowFunc:                func() time.Time { return time.Time{} }, // times that are not from MySQL's clock are refused
			Logger:                 logger.Discard,
		})
	if err != nil {
		_ = pool.Close()
		return nil, fmt.Errorf("open gorm: %w", err)
	}
	if err := noteWrites(db); err != nil {
		_ = pool.Close()
		return nil, fmt.Errorf("open gorm: %w", err)
	}
	s := &Store{db: db, sql: pool, adjust: func(t time.Time) time.Time { return t.UTC() }, highest: &highestHeartbeat{}, lanes: cfg.Lanes}
	s.highest.uncompared.Store(cfg.MustCompare)
	if off := cfg.ClockOff; off != nil {
		s.adjust = func(t time.Time) time.Time { return t.UTC().Add(off()) }
	}
	return s, nil
}

// Close closes all connections.
func (s *Store) Close() error { return s.sql.Close() }

// Ping reports whether MySQL answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.sql.PingContext(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// tx is a transaction with a frozen time, MySQL's at its begin, so all rows of a commit agree.
type tx struct {
	*gorm.DB
	now     time.Time
	highest *highestHeartbeat // nil outside a Store's transaction
}

const txTries = 8

// inTx runs fn in a transaction and repeats it after a deadlock or a lock timeout. fn must not keep
// effects outside the transaction. Connection failures are returned as ErrUnavailable: the
// transaction may have committed, so fn must be repeatable. step is the transaction's failpoint; a
// new transaction gets a new one.
func (s *Store) inTx(ctx context.Context, step failpoint.Step, fn func(tx tx) error) error {
	return s.inTxAfter(ctx, step, func(tx tx) (time.Time, error) { return serverTime(tx.DB) }, fn)
}

// inTxAfter is inTx whose first statement reads more than MySQL's time: it runs in first, which has no time yet.
func (s *Store) inTxAfter(ctx context.Context, step failpoint.Step, first func(tx tx) (time.Time, error), fn func(tx tx) error) error {
	var err error
	for try := range txTries {
		err = s.transaction(ctx, step, first, fn)
		if err == nil || !retryable(err) {
			return classify(err)
		}
		slog.DebugContext(ctx, "Transaction repeated after a lock conflict.", slog.Int("try", try+1))
		select {
		case <-ctx.Done():
			return classify(ctx.Err())
		case <-time.After(time.Duration(rand.Int64N(int64(5*time.Millisecond) << min(try, 5)))):
		}
	}
	return classify(err)
}

// read returns a handle for statements outside a transaction.
func (s *Store) read(ctx context.Context) *gorm.DB { return s.db.WithContext(ctx) }

// retryable reports a deadlock (1213), a lock wait timeout (1205) or MariaDB's "record has changed
// since last read" (1020): the transaction was rolled back.
func retryable(err error) bool {
	var my *mysql.MySQLError
	return errors.As(err, &my) && (my.Number == 1213 || my.Number == 1205 || my.Number == 1020)
}

// classify maps driver errors to the errors of this package. A refusal by the server
// (*mysql.MySQLError) is returned unchanged, apart from those below. Any other foreign error means
// that MySQL could not be reached.
func classify(err error) error {
	if err == nil {
		return nil
	}
	for _, own := range []error{ErrNotFound, ErrUnavailable, ErrConflict, ErrMoved, ErrBooksClosed, payout.ErrMySQLRestored,
		gorm.ErrDuplicatedKey} {
		if errors.Is(err, own) {
			return err
		}
	}
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	var my *mysql.MySQLError
	if errors.As(err, &my) {
		switch my.Number {
		// Too many connections (two ways), shutdown, read only (two ways), locks, connection or query
		// killed, statement over a time limit (MariaDB, MySQL), password changed (two ways) or expired
		// (two ways), account locked (two ways): callers retry until an operator has corrected it.
		case 1040, 1203, 1053, 1290, 1836, 1205, 1213, 1927, 1317, 1969, 3024, 1045, 1698, 1820, 1862, 3118, 4151:
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		return err
	}
	var net interface{ Timeout() bool }
	switch {
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, mysql.ErrInvalidConn), errors.Is(err, sql.ErrConnDone),
		errors.Is(err, sql.ErrTxDone),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.As(err, &net):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

// duplicate reports a violated unique key (1062).
func duplicate(err error) bool {
	var my *mysql.MySQLError
	return errors.Is(err, gorm.ErrDuplicatedKey) || errors.As(err, &my) && my.Number == 1062
}

// optTime maps the zero time to NULL.
func optTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	u := t.UTC()
	return &u
}

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

func optString(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func optNumber(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
