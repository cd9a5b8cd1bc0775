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

// design is one way to hand out a red packet: one of the eight that were published
// before, written anew, or ours. Packets are named by ids of packet.NewID; shares
// are numbered from 0 and each is worth the same.
//
// The methods stand for processes that run, or die, independently of each other:
// two designs opened at the same place are two of them.
type design interface {
	// load puts a new packet up for grabbing.
	load(tb testing.TB, packet string, shares int)
	// grab is a user who asks once.
	grab(ctx context.Context, packet, user string) (answer, error)
	// work does what the design's background threads do for a packet, until there
	// is nothing left of it.
	work(ctx context.Context, packet string) error
	// lapse is time that passes: leases run out, and whoever looks after others
	// that may have died does so.
	lapse(ctx context.Context, packet string) error
	// acknowledged is who was promised which share, where the design keeps its promises
	// before work has gone over them.
	acknowledged(tb testing.TB, packet string) map[string]int
	// booked is who has which share in MySQL, from where he is paid.
	booked(tb testing.TB, packet string) map[string]int
	close() error
}

// answer is what a user is told.
type answer struct {
	outcome outcome
	share   int // of won and had; -1 when he is not told
}

// outcome is one of the answers that designs give.
type outcome int

const (
	won     outcome = iota
	had             // he has won before
	none            // nothing is left
	nothing         // one of the two: the design does not tell which
	busy            // he did not get through; there may be shares left
	barred          // he has asked too often
)

func (o outcome) String() string {
	return [...]string{"won", "had", "none", "had or none", "busy", "barred"}[o]
}

// place is where designs run, and how.
type place struct {
	redis string // address
	dsn   string // of MariaDB
	space string // of names in Redis that are not of one packet
	conns int    // to Redis, at most; 0: 20
	// rows: shares are in MySQL as well, where the design wants them there from the
	// beginning. Without them nothing can be booked.
	rows bool
	// tries bounds the waiting for somebody else's lock; 0: as long as it takes.
	tries int
	// process tells apart those who take work from the same queue.
	process string
	// at is called at the steps between which a process may die; nil: nothing.
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

// kind is a design with what is known of it.
type kind struct {
	number, name string
	// loses is what a kill -9 costs, as killedTrials shows it.
	loses string
	open  func(ctx context.Context, p place) (design, error)
	// rate is more shares than it hands out in a second, for runs that must not end early.
	rate int
	// contended is the step where users who ask at once have all seen the same, and
	// only one can be right.
	contended string
	// released: what a killed process held is free as soon as its server sees the
	// connection closed, and others wait for that.
	released bool
	// dies are the steps at which it is killed, and stalls those at which it stops
	// for a while, each with what goes wrong then.
	dies, stalls []trouble
	// always is what goes wrong without any process dying.
	asksAgain, crowded, emptied []violation
}

// trouble is a step and what a process does wrong that ends, or stops, there.
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

// openStores connects. Redis commands are not sent twice: most are not repeatable.
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

// prepare makes one statement of the pool; database/sql prepares it on each
// connection once.
func (s stores) prepare(ctx context.Context, into map[**sql.Stmt]string) error {
	for stmt, text := range into {
		var err error
		if *stmt, err = s.db.PrepareContext(ctx, text); err != nil {
			return fmt.Errorf("prepare %q: %w", text, err)
		}
	}
	return nil
}

// inTx runs fn in a transaction: committed when it says so, else rolled back.
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

// changed tells whether an UPDATE found its row.
func changed(r sql.Result, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n == 1, err
}

// refusal is the number of MySQL's error, 0 when it is not one of the server.
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
	baselineRetries = 3 // the retry cap of those that have one
)

// baselineSchema are the tables of the published designs: activity, redpack and
// detail of the six ways; envelope of S0; repair of S1.6. Every one has the index
// that it needs.
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

// holders reads who has which share from a query for user and share.
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

// ledger is the table detail, which five of the six ways write: who has which share.
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

// late answers a user for whom there is nothing: because he has a share, or
// because none is left.
func (l ledger) late(ctx context.Context, packet, user string) (answer, error) {
	var seq int
	err := l.find.QueryRowContext(ctx, packet, user).Scan(&seq)
	if errors.Is(err, sql.ErrNoRows) {
		return answer{none, -1}, nil
	}
	return answer{had, seq}, err
}

// take inserts the row of a user within a transaction; false: he has one already.
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

// acknowledged: the row is the promise.
func (l ledger) acknowledged(tb testing.TB, packet string) map[string]int {
	tb.Helper()
	return l.booked(tb, packet)
}

// work and lapse: there are no background threads, and nothing is leased.
func (l ledger) work(context.Context, string) error  { return nil }
func (l ledger) lapse(context.Context, string) error { return nil }
