// Package store is the only place that talks to MySQL: transactions with frozen
// time, one file a noun. Rows go in and out as domain types; gorm's row structs
// stay here. Every status change is a compare-and-set.
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
	// ErrUnavailable wraps every failure to reach MySQL or to get an answer in time.
	ErrUnavailable = packet.ErrUnavailable
	// ErrConflict: the row exists with other contents than the caller's.
	ErrConflict = packet.ErrConflict
	// ErrMoved: a compare-and-set found that the row had moved.
	ErrMoved = errors.New("row has moved")
	// ErrBooksClosed: the packet's books are closed, nothing can be claimed any more.
	ErrBooksClosed = packet.ErrBooksClosed
)

// Config says how to reach MySQL.
type Config struct {
	DSN          string // go-sql-driver form; isolation, time and limits are set here whatever it says
	MaxOpenConns int    // 0: 40
	// IdleLimit is how long a transaction may stand still before the server rolls
	// it back, whole seconds; 0: 20 s.
	IdleLimit time.Duration
	// RequireComparison: nothing is sent, closed or decided until CompareBooks or AdvanceBooks
	// was called once (rule R13).
	RequireComparison bool
	// Lanes is the number of lanes of the pool, whose gates are looked at before books
	// are closed (rule R9); 0: none is.
	Lanes int
	// ClockOff, if set, is added to MySQL's time: tests step the clock with it.
	ClockOff func() time.Duration
}

// Store is safe for concurrent use.
type Store struct {
	db      *gorm.DB
	sql     *sql.DB
	clock   func(db *gorm.DB) (time.Time, error) // reads MySQL's
	highest *highestNumber

	lanes int // 0: no gates are looked at

	ledger    ledgerSums
	minutes   minuteSums
	auditWalk auditWalk
}

// connector opens connections with READ COMMITTED: the name of the variable
// differs between MySQL 8 and MariaDB 10, the statement does not. They have modes of
// SQL of ours, whatever the server's are: see sqlMode. The server
// closes one that says nothing for idle: a process that is suspended, or a host
// that is cut off, in the midst of a transaction keeps its rows locked until the
// server lets go of them, by default after eight hours.
type connector struct {
	driver.Connector
	idle time.Duration
}

// sqlMode are the modes of all connections: what does not fit a column is refused, and
// not cut to fit. A column of milliseconds cuts microseconds off, as what is answered
// does: MySQL would round them otherwise, and show a moment that was not answered and
// may still be to come. MariaDB cuts without being told, and takes what is between
// the marks for a comment.
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
		return nil, errors.New("mysql DSN is malformed (want user:password@tcp(host:port)/database)")
	}
	cfg.ParseTime = true
	cfg.Loc = time.UTC
	cfg.InterpolateParams = true
	cfg.ClientFoundRows = false
	cfg.Collation = "utf8mb4_bin"
	// Of a literal with nanoseconds the server warns that it is cut, and then finds
	// no range of an index with it: it reads every row.
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

// OpenSQL opens a plain handle for migrations: multiStatements on.
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

// Open prepares the store. It does not connect: MySQL may come later.
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
	pool.SetConnMaxIdleTime(cfg.IdleLimit / 2) // we let go of it first; the driver notices when not
	db, err := gorm.Open(gormmysql.New(gormmysql.Config{Conn: pool, SkipInitializeWithVersion: true, DisableWithReturning: true}),
		&gorm.Config{
			SkipDefaultTransaction: true,
			TranslateError:         true,
			DisableAutomaticPing:   true,
			NowFunc:                func() time.Time { return time.Time{} }, // what was not stamped by MySQL's clock is refused
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
	s := &Store{db: db, sql: pool, clock: serverTime, highest: &highestNumber{}, lanes: cfg.Lanes}
	s.highest.uncompared.Store(cfg.RequireComparison)
	if off := cfg.ClockOff; off != nil {
		s.clock = func(db *gorm.DB) (time.Time, error) {
			now, err := serverTime(db)
			return now.Add(off()), err
		}
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

// tx is a transaction with frozen time, MySQL's at its begin: all rows of one
// commit agree.
type tx struct {
	*gorm.DB
	now     time.Time
	highest *highestNumber // nil outside a transaction of a Store
}

const txTries = 8

// inTx runs fn in a transaction and repeats it whole after a deadlock or a lock
// timeout. fn must not keep effects outside the transaction. Failures of the
// connection come back as ErrUnavailable: the transaction may have committed,
// so every fn has to be repeatable. Each transaction is a step of its own in
// the list of crash points; a new one is put in there.
func (s *Store) inTx(ctx context.Context, step failpoint.Step, fn func(tx tx) error) error {
	var err error
	for try := range txTries {
		err = s.transaction(ctx, step, fn)
		if err == nil || !retryable(err) {
			return classify(err)
		}
		slog.DebugContext(ctx, "transaction repeated after a lock conflict", slog.Int("try", try+1))
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

// repeatable reports deadlock (1213), lock wait timeout (1205) and MariaDB's
// "record has changed since last read" (1020): the transaction was rolled back.
func retryable(err error) bool {
	var my *mysql.MySQLError
	return errors.As(err, &my) && (my.Number == 1213 || my.Number == 1205 || my.Number == 1020)
}

// classify turns driver errors into the errors of this package. What the
// server refused (a *mysql.MySQLError) stays as it is, apart from "shutting
// down" and "read only"; everything else that is not ours means that MySQL
// could not be asked.
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
		// too many connections (two ways), shutdown, read only (two ways), locks, connection or query killed, statement too
		// long for a limit of MariaDB or MySQL; a password that was changed (two ways) or has expired (two ways), an account that
		// is locked (two ways): what runs waits until somebody has corrected that
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
