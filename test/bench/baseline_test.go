package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
)

// design is one way to hand out a red packet: one of eight published ones, reimplemented, or ours.
// Packets are named by ids of packet.NewID; shares are numbered from 0 and have the same amount.
//
// The methods stand for independent processes: two designs opened at the same place are two
// processes.
type design interface {
	// load makes a new packet.
	load(tb testing.TB, packet string, shares int)
	// grab is one grab of a user.
	grab(ctx context.Context, packet, user string) (answer, error)
	// work does the design's background work for a packet until none is left.
	work(ctx context.Context, packet string) error
	// lapse lets time pass: leases end, and recovery of crashed processes runs.
	lapse(ctx context.Context, packet string) error
	// acknowledged returns the acknowledged shares by user, from the store that has them before work
	// has run.
	acknowledged(tb testing.TB, packet string) map[string]int
	// booked returns the shares in MySQL by user, from which they are paid.
	booked(tb testing.TB, packet string) map[string]int
	close() error
}

// answer is the answer to a grab.
type answer struct {
	outcome outcome
	share   int // of won and had; -1 when it is not returned
}

// outcome is the kind of an answer.
type outcome int

const (
	won     outcome = iota
	had             // the user has a share already
	none            // no share is left
	nothing         // had or none: the design does not distinguish them
	busy            // refused; there may be shares left
	barred          // too many attempts
)

func (o outcome) String() string {
	return [...]string{"won", "had", "none", "had or none", "busy", "barred"}[o]
}

// place holds the servers and settings that designs run with.
type place struct {
	redis string // address
	dsn   string // of MariaDB
	space string // of names in Redis that are not of one packet
	conns int    // to Redis, at most; 0: 20
	// rows: shares are in MySQL too, where the design wants them from the start. Without them nothing
	// can be booked.
	rows bool
	// tries bounds the attempts to get a lock; 0: no bound.
	tries int
	// process distinguishes the consumers of a queue.
	process string
	// at is called at the steps at which a process may be killed; nil: nothing.
	at func(step string)
	// pick draws from 0..n-1; nil: at random.
	pick func(n int) int
}

func (p place) step(name string) {
	if p.at != nil {
		p.at(name)
	}
}

func (p place) draw(n int) int {
	if p.pick != nil {
		return p.pick(n)
	}
	return rand.IntN(n)
}

// kind is a design with its known properties.
type kind struct {
	number, name string
	// loses is what a kill -9 loses, as killedTrials shows.
	loses string
	open  func(ctx context.Context, p place) (design, error)
	// rate exceeds the shares that the design hands out in a second, for runs that must not end early.
	rate int
	// contended is the step at which concurrent users have all read the same state, and only one can
	// win.
	contended string
	// released: when the connection of a killed process closes, the server releases its locks, for which others wait.
	released bool
	// kills are the steps at which the process is killed, stalls those at which it is stopped for a
	// while, each with the resulting violations.
	kills, stalls []trouble
	// repeated, crowded and emptied are the violations in the trials without a crash: repeatedGrabTrials, crowdedTrials and
	// emptiedTrials.
	repeated, crowded, emptied []violation
}

// trouble is a step, and the violations of a process that is killed or stopped there.
type trouble struct {
	step string
	want []violation
}

// kinds are the eight published designs in the order of their numbers, then ours.
func kinds() []kind {
	return []kind{s0Kind, s11Kind, s12Kind, s13Kind, s14Kind, s15Kind, s16Kind, s3Kind, oursKind}
}

func kindOf(number string) (kind, error) {
	for _, k := range kinds() {
		if k.number == number {
			return k, nil
		}
	}
	return kind{}, fmt.Errorf("no design %q", number)
}

// sqlConns is the size of every design's pool of MySQL connections: that of store.Store.
const sqlConns = 40

// stores are the connections of a published design.
type stores struct {
	place
	rdb *redis.Client
	db  *sql.DB
}

// openStores connects. Redis commands are not retried: most are not repeatable.
func openStores(p place) (stores, error) {
	if p.conns == 0 {
		p.conns = 20
	}
	db, err := sql.Open("mysql", p.dsn)
	if err != nil {
		return stores{}, fmt.Errorf("open MySQL: %w", err)
	}
	db.SetMaxOpenConns(sqlConns)
	db.SetMaxIdleConns(sqlConns)
	rdb := redis.NewClient(&redis.Options{
		Addr: p.redis, PoolSize: p.conns, MaxRetries: -1, DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience,
		PoolTimeout: patience, DisableIdentity: true,
	})
	return stores{place: p, rdb: rdb, db: db}, nil
}

func (s stores) close() error { return errors.Join(s.rdb.Close(), s.db.Close()) }

// prepare makes a statement of the pool; database/sql prepares it once per connection.
func (s stores) prepare(ctx context.Context, into map[**sql.Stmt]string) error {
	for stmt, text := range into {
		var err error
		if *stmt, err = s.db.PrepareContext(ctx, text); err != nil {
			return fmt.Errorf("prepare %q: %w", text, err)
		}
	}
	return nil
}

// inTx runs fn in a transaction, commits when fn returns true, and rolls back otherwise.
func (s stores) inTx(ctx context.Context, fn func(tx *sql.Tx) (commit bool, err error)) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	commit, err := fn(tx)
	if err != nil || !commit {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// changed reports whether an UPDATE found its row.
func changed(r sql.Result, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n == 1, err
}

// refusal returns the number of MySQL's error; 0 when it is not one of the server.
func refusal(err error) uint16 {
	var my *mysql.MySQLError
	if errors.As(err, &my) {
		return my.Number
	}
	return 0
}

const (
	duplicateKey    = 1062
	lockWait        = 1205 // also MariaDB's answer to NOWAIT
	deadlock        = 1213
	lockedNowait    = 3572 // MySQL's
	baselineChunk   = 5_000
	baselineRetries = 3 // the retry cap of designs that have one
)

// baselineSchema holds the tables of the published designs: activity, redpack and detail of the six
// ways; envelope of S0; repair of S1.6, with all needed indexes.
var baselineSchema = []string{
	"CREATE TABLE activity (id VARBINARY(20) PRIMARY KEY, total INT NOT NULL, surplus INT NOT NULL, version INT NOT NULL)",
	`CREATE TABLE redpack (activity VARBINARY(20) NOT NULL, seq INT NOT NULL, amount BIGINT NOT NULL, status TINYINT NOT NULL DEFAULT 0,
		version INT NOT NULL DEFAULT 0,
		PRIMARY KEY (activity, seq), KEY free (activity, status, seq))`,
	"CREATE TABLE detail (activity VARBINARY(20) NOT NULL, user VARBINARY(64) NOT NULL, seq INT NOT NULL, amount BIGINT NOT NULL, PRIMARY " +
		"KEY (activity, user))",
	"CREATE TABLE envelope (activity VARBINARY(20) NOT NULL, seq INT NOT NULL, amount BIGINT NOT NULL, user VARBINARY(64), PRIMARY KEY " +
		"(activity, seq))",
	"CREATE TABLE repair (id BIGINT AUTO_INCREMENT PRIMARY KEY, activity VARBINARY(20) NOT NULL, entry VARBINARY(255) NOT NULL)",
}

// addActivity and addRows make the rows of a packet.
func (s stores) addActivity(tb testing.TB, packet string, shares int) {
	tb.Helper()
	s.exec(tb, "INSERT INTO activity (id, total, surplus, version) VALUES (?, ?, ?, 0)", packet, shares, shares)
}

func (s stores) addRows(tb testing.TB, table, packet string, shares int) {
	tb.Helper()
	s.exec(tb, "INSERT INTO "+table+" (activity, seq, amount) SELECT ?, seq, ? FROM seq_0_to_"+strconv.Itoa(shares-1), packet, int64(share))
}

func (s stores) exec(tb testing.TB, statement string, args ...any) {
	tb.Helper()
	if _, err := s.db.ExecContext(tb.Context(), statement, args...); err != nil {
		tb.Fatalf("%.60s: %v", statement, err)
	}
}

// holders reads the shares by user from a query for user and share.
func (s stores) holders(tb testing.TB, query, packet string) map[string]int {
	tb.Helper()
	return holders(tb, s.db, query, packet)
}

func holders(tb testing.TB, db *sql.DB, query, packet string) map[string]int {
	tb.Helper()
	rows, err := db.QueryContext(tb.Context(), query, packet)
	if err != nil {
		tb.Fatal(err)
	}
	out := map[string]int{}
	for rows.Next() {
		var user string
		var seq int
		if err := rows.Scan(&user, &seq); err != nil {
			tb.Fatal(err)
		}
		if before, ok := out[user]; ok {
			tb.Fatalf("%s has share %d and share %d", user, before, seq)
		}
		out[user] = seq
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		tb.Fatal(err)
	}
	return out
}

// fillList puts the numbers of all shares into a list.
func (s stores) fillList(tb testing.TB, key string, shares int) {
	tb.Helper()
	for from := 0; from < shares; from += baselineChunk {
		var numbers []any
		for n := from; n < min(shares, from+baselineChunk); n++ {
			numbers = append(numbers, n)
		}
		if err := s.rdb.LPush(tb.Context(), key, numbers...).Err(); err != nil {
			tb.Fatal(err)
		}
	}
}

// hash reads a hash of users and their shares.
func (s stores) hash(tb testing.TB, key string) map[string]int {
	tb.Helper()
	all, err := s.rdb.HGetAll(tb.Context(), key).Result()
	if err != nil {
		tb.Fatal(err)
	}
	out := make(map[string]int, len(all))
	for user, text := range all {
		if out[user], err = strconv.Atoi(text); err != nil {
			tb.Fatal(err)
		}
	}
	return out
}

// ledger is the table detail, which five of the six ways write: the shares by user.
type ledger struct {
	stores
	insert, find *sql.Stmt
}

func openLedger(ctx context.Context, p place, more map[**sql.Stmt]string) (ledger, error) {
	s, err := openStores(p)
	if err != nil {
		return ledger{}, err
	}
	l := ledger{stores: s}
	if more == nil {
		more = map[**sql.Stmt]string{}
	}
	more[&l.insert] = "INSERT INTO detail (activity, user, seq, amount) VALUES (?, ?, ?, ?)"
	more[&l.find] = "SELECT seq FROM detail WHERE activity = ? AND user = ?"
	if err := s.prepare(ctx, more); err != nil {
		return ledger{}, errors.Join(err, s.close())
	}
	return l, nil
}

// late answers a user when no share is left or the user has one.
func (l ledger) late(ctx context.Context, packet, user string) (answer, error) {
	var seq int
	err := l.find.QueryRowContext(ctx, packet, user).Scan(&seq)
	if errors.Is(err, sql.ErrNoRows) {
		return answer{none, -1}, nil
	}
	return answer{had, seq}, err
}

// take inserts the row of a user within a transaction; false: the user has one.
func (l ledger) take(ctx context.Context, tx *sql.Tx, packet, user string, seq int) (bool, error) {
	_, err := tx.StmtContext(ctx, l.insert).ExecContext(ctx, packet, user, seq, int64(share))
	if refusal(err) == duplicateKey {
		return false, nil
	}
	return err == nil, err
}

func (l ledger) booked(tb testing.TB, packet string) map[string]int {
	tb.Helper()
	return l.holders(tb, "SELECT user, seq FROM detail WHERE activity = ?", packet)
}

// acknowledged returns the rows: a row is the acknowledgement.
func (l ledger) acknowledged(tb testing.TB, packet string) map[string]int {
	tb.Helper()
	return l.booked(tb, packet)
}

// work and lapse: there are no background threads, and nothing is leased.
func (l ledger) work(context.Context, string) error  { return nil }
func (l ledger) lapse(context.Context, string) error { return nil }
