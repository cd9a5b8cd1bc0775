package store

import (
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/failpoint"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/test/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(stacktest.Wrap(m)) }

const provider = "sandbox"

// adapter is the adapter of all tests that name no other.
var adapter = payout.Adapter{Provider: provider, Account: "1900007291"}

var limits = payout.Limits{Adapter: adapter, LandingWindow: 10 * time.Second, Remembers: 30 * 24 * time.Hour}

// newStore returns a store on an empty, migrated database of its own. The test sets its clock, in
// steps of at least a microsecond, the columns' precision.
func newStore(t testing.TB) (*Store, *clock) {
	t.Helper()
	s, c, _ := newStoreAt(t, stacktest.MariaDB(t))
	return s, c
}

func newStoreAt(t testing.TB, dsn string) (*Store, *clock, *sql.DB) {
	t.Helper()
	raw, err := OpenSQL(dsn)
	must(t, err)
	t.Cleanup(func() { must(t, raw.Close()) })
	stacktest.Migrate(t, dsn)
	s, err := Open(Config{DSN: dsn})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	c := &clock{at: time.Now().UTC().Truncate(time.Millisecond)}
	s.adjust = func(time.Time) time.Time { return c.now() }
	return s, c, raw
}

// Now is the store's time, set by the test.
func (s *Store) Now() time.Time {
	return s.adjust(time.Time{})
}

// clock is the time that a store sees. Each read advances it by a millisecond, so that rows written
// in sequence have an order.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(time.Millisecond)
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// made returns the result of a call that must not fail.
func made[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		must(t, err)
		return v
	}
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

func newID() string { return packet.NewID([]byte(rand.Text()), "key") }

func samplePacket(total money.Fen, shares int) packet.Packet {
	now := time.Now().UTC().Truncate(time.Millisecond)
	group := "group"
	return packet.Packet{ID: newID(), ChargeProvider: provider, PayoutProvider: provider,
		App: "app", SenderID: "sender", Currency: packet.CurrencyCNY, TotalAmount: total, ShareCount: shares,
		Split: "equal", MinShare: 1, MaxShare: 9, Greeting: "恭喜发财 🧧", GroupID: &group, Metadata: map[string]string{"k": "v"},
		BodyHash: strings.Repeat("a", 64), Commitment: strings.Repeat("b", 64), CreatedAt: now, OpensAt: now, ExpiresAt: now.Add(24 * time.Hour)}
}

// recorded is a packet row in funding with its pending charge.
func recorded(t testing.TB, s *Store, p packet.Packet) packet.Packet {
	t.Helper()
	status, err := s.RecordPacket(t.Context(), p, []byte("sealed"), nil)
	must(t, err)
	if status != packet.StatusFunding {
		t.Fatalf("recorded as %s", status)
	}
	return p
}

func chargeID(p packet.Packet) string { return payout.ID(payout.KindCharge, p.ID, 0) }
func refundID(p packet.Packet) string { return payout.ID(payout.KindRefund, p.ID, 0) }
func payoutID(p packet.Packet, share int) string {
	return payout.ID(payout.KindPayout, p.ID, share)
}

// funded is an open packet of equal shares.
func funded(t testing.TB, s *Store, total money.Fen, shares int) packet.Packet {
	t.Helper()
	p := samplePacket(total, shares)
	open(t, s, p)
	return p
}

func open(t testing.TB, s *Store, p packet.Packet) {
	t.Helper()
	recorded(t, s, p)
	pay(t, s, chargeID(p))
	status, err := s.Fund(t.Context(), p.ID, even(p))
	must(t, err)
	if status != packet.StatusOpen {
		t.Fatalf("funded, and %s", status)
	}
}

func even(p packet.Packet) []money.Fen {
	out := make([]money.Fen, p.ShareCount)
	rest := p.TotalAmount
	for i := range out {
		out[i] = rest / money.Fen(len(out)-i)
		rest -= out[i]
	}
	return out
}

func claimOf(p packet.Packet, share int, user string) packet.Claim {
	return packet.Claim{PacketID: p.ID, UserID: user, ShareIndex: share, Amount: even(p)[share],
		ClaimedAt: time.Now().UTC().Truncate(time.Millisecond)}
}

func claim(t testing.TB, s *Store, p packet.Packet, share int, user string) payout.State {
	t.Helper()
	st, err := s.RecordClaim(t.Context(), claimOf(p, share, user))
	must(t, err)
	return st
}

func encode(in payout.Instruction) ([]byte, error) {
	return fmt.Appendf(nil, "%s %s %s %d %s %s", in.Op, in.OrderNo, in.Account, in.Amount, in.Currency, in.ChargeOrderNo), nil
}

// begin records a send and returns its order, which must exist.
func begin(t testing.TB, s *Store, id string) payout.Order {
	t.Helper()
	b, err := s.BeginSend(t.Context(), id, limits, encode)
	must(t, err)
	if b.Order == nil {
		t.Fatalf("nothing may be sent: %+v", b.State)
	}
	return *b.Order
}

func observation(source payout.Source, orderNo string, kind payout.ObservationKind) payout.Observation {
	return payout.Observation{ID: rand.Text(), Adapter: adapter, Source: source, Kind: kind, OrderNo: orderNo}
}

func settle(t testing.TB, s *Store, source payout.Source, orderNo string, kind payout.ObservationKind) payout.State {
	t.Helper()
	st, err := s.Settle(t.Context(), observation(source, orderNo, kind), orderNo)
	must(t, err)
	return st
}

// pay carries out a pending payment.
func pay(t testing.TB, s *Store, id string) payout.Order {
	t.Helper()
	o := begin(t, s, id)
	if st := settle(t, s, payout.SourceSend, o.OrderNo, payout.ObsSucceeded); st.Status != payout.StatusPaid {
		t.Fatalf("%s, want paid", st.Status)
	}
	return o
}

// fail refuses a pending payment, confirmed by a query.
func fail(t testing.TB, s *Store, id string) payout.Order {
	t.Helper()
	return failAs(t, s, id, "")
}

// failAs refuses it with a code of the provider's.
func failAs(t testing.TB, s *Store, id, why string) payout.Order {
	t.Helper()
	o := begin(t, s, id)
	seen := observation(payout.SourceSend, o.OrderNo, payout.ObsDeclined)
	seen.Code = why
	_, err := s.Settle(t.Context(), seen, o.OrderNo)
	must(t, err)
	seen.ID, seen.Source = rand.Text(), payout.SourceQuery
	st, err := s.Settle(t.Context(), seen, o.OrderNo)
	if must(t, err); st.Status != payout.StatusFailed || st.Failure == nil {
		t.Fatalf("%+v, want failed", st)
	}
	return o
}

// together runs fn n times concurrently and returns the errors.
func together(n int, fn func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { <-start; errs[i] = fn(i) })
	}
	close(start)
	wg.Wait()
	return errs
}

func query[T any](t testing.TB, s *Store, text string, args ...any) T {
	t.Helper()
	var v T
	must(t, s.sql.QueryRowContext(t.Context(), text, args...).Scan(&v))
	return v
}

// TestModes: whatever the data source name or the server says, values that do not fit are refused,
// and times are truncated, not rounded.
func TestModes(t *testing.T) {
	t.Parallel()
	cfg, err := mysql.ParseDSN(stacktest.MariaDB(t))
	must(t, err)
	if cfg.Params == nil {
		cfg.Params = map[string]string{}
	}
	cfg.Params["sql_mode"] = "'ANSI_QUOTES'"
	if version := serverVersion(t, cfg.FormatDSN()); strings.Contains(version, "MariaDB") {
		cfg.Params["sql_mode"] = "'ANSI_QUOTES,TIME_ROUND_FRACTIONAL'" // as MySQL does by default
	}
	s, _, _ := newStoreAt(t, cfg.FormatDSN())
	at := time.Date(2026, time.February, 17, 20, 0, 0, 999_600_000, time.UTC)
	must(t, s.db.Exec(`INSERT INTO apps (id, name, id_salt, created_at) VALUES ("a", "a", "s", ?)`, at).Error)
	if got := query[time.Time](t, s, "SELECT created_at FROM apps"); !got.Equal(at.Truncate(time.Millisecond)) {
		t.Errorf("%v, want %v cut", got, at)
	}
	err = s.db.Exec("INSERT INTO apps (id, name, id_salt, created_at) VALUES (?, 'b', 's', ?)", strings.Repeat("b", 1000), at).Error
	if my, is := errors.AsType[*mysql.MySQLError](err); !is || my.Number != 1406 { // data too long
		t.Errorf("an id that does not fit: %v", err)
	}
}

func serverVersion(t *testing.T, dsn string) (version string) {
	t.Helper()
	db, err := OpenSQL(dsn)
	must(t, err)
	defer func() { must(t, db.Close()) }()
	must(t, db.QueryRowContext(t.Context(), "SELECT VERSION()").Scan(&version))
	return version
}

// TestReadCommitted: whatever the data source name, or the server, says.
func TestReadCommitted(t *testing.T) {
	t.Parallel()
	cfg, err := mysql.ParseDSN(stacktest.MariaDB(t))
	must(t, err)
	if cfg.Params == nil {
		cfg.Params = map[string]string{}
	}
	cfg.Params["tx_isolation"] = "'SERIALIZABLE'"
	s, _, _ := newStoreAt(t, cfg.FormatDSN())
	// On every connection, also while others are busy.
	for _, err := range together(8, func(int) error {
		conn, err := s.sql.Conn(t.Context())
		if err != nil {
			return err
		}
		defer conn.Close()
		var name, level string
		if err := conn.QueryRowContext(t.Context(), "SHOW VARIABLES WHERE Variable_name IN ('tx_isolation', 'transaction_isolation')").Scan(&name,
			&level); err != nil {
			return err
		}
		if level != "READ-COMMITTED" {
			return fmt.Errorf("isolation %s", level)
		}
		return nil
	}) {
		must(t, err)
	}
	// In effect: a statement of a transaction sees what was committed after the transaction began.
	p := recorded(t, s, samplePacket(100, 1))
	must(t, s.inTx(t.Context(), failpoint.Administration, func(tx tx) error {
		for _, want := range []string{"", "changed"} {
			var got *string
			if err := tx.Raw("SELECT first_request_id FROM packets WHERE id = ?", p.ID).Scan(&got).Error; err != nil {
				return err
			}
			if orEmpty(got) != want {
				t.Errorf("read %q, want %q", orEmpty(got), want)
			}
			if want == "" {
				if _, err := s.sql.ExecContext(t.Context(), "UPDATE packets SET first_request_id = 'changed' WHERE id = ?", p.ID); err != nil {
					return err
				}
			}
		}
		return nil
	}))
}

// TestDeadlockIsRepeated makes two transactions lock two rows crosswise: the server rolls one back
// (1213), and both succeed.
func TestDeadlockIsRepeated(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	a, b := recorded(t, s, samplePacket(100, 1)).ID, recorded(t, s, samplePacket(100, 1)).ID
	both := make(chan struct{}, 2)
	var runs, deadlocks int
	var mu sync.Mutex
	cross := func(ids [2]string) error {
		first := true
		return s.inTx(t.Context(), failpoint.Administration, func(tx tx) error {
			mu.Lock()
			runs++
			mu.Unlock()
			if _, err := tx.lockPacket(ids[0]); err != nil {
				return err
			}
			if first { // meet here once; a repeat runs alone
				first = false
				both <- struct{}{}
				for len(both) < 2 {
					select {
					case <-t.Context().Done():
						return t.Context().Err()
					case <-time.After(time.Millisecond):
					}
				}
			}
			_, err := tx.lockPacket(ids[1])
			if my, ok := errors.AsType[*mysql.MySQLError](err); ok && my.Number == 1213 {
				mu.Lock()
				deadlocks++
				mu.Unlock()
			}
			return err
		})
	}
	for _, err := range together(2, func(i int) error { return cross([][2]string{{a, b}, {b, a}}[i]) }) {
		must(t, err)
	}
	if deadlocks != 1 || runs != 3 {
		t.Errorf("%d deadlocks in %d runs, want 1 in 3", deadlocks, runs)
	}
}

// TestRefused: a password changed while this process runs is ErrUnavailable, to be retried; a wrong
// statement is not.
func TestRefused(t *testing.T) {
	t.Parallel()
	s, _, raw := newStoreAt(t, stacktest.MariaDB(t))
	_, err := raw.ExecContext(t.Context(), "SELEC 1")
	if err = classify(err); err == nil || errors.Is(err, ErrUnavailable) {
		t.Errorf("a statement that is wrong: %v", err)
	}
	cfg, err := mysql.ParseDSN(stacktest.MariaDB(t))
	must(t, err)
	cfg.User, cfg.Passwd = "nobody", "of another day"
	refused := another(t, s, cfg.FormatDSN(), Config{})
	_, err = refused.PoolLanes(t.Context())
	if my, ok := errors.AsType[*mysql.MySQLError](err); !ok || my.Number != 1045 {
		t.Errorf("refused with %v", err)
	}
	wantErr(t, err, ErrUnavailable)
}

// TestKilled: a statement or connection killed by an operator or a server limit is retryable.
func TestKilled(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	for _, kill := range []string{"KILL QUERY", "KILL CONNECTION", ""} {
		conn, err := s.sql.Conn(t.Context())
		must(t, err)
		defer conn.Close()
		var id int64
		must(t, conn.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&id))
		if kill == "" {
			_, err = conn.ExecContext(t.Context(), "SET STATEMENT max_statement_time = 0.01 FOR SELECT SLEEP(600)")
			wantErr(t, classify(err), ErrUnavailable)
			continue
		}
		ended := make(chan error, 1)
		go func() {
			_, err := conn.ExecContext(t.Context(), "SELECT SLEEP(600)")
			ended <- err
		}()
		wait.Until(t, "the statement runs", func() bool {
			var n int
			err := s.sql.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = ? AND INFO LIKE '%SLEEP%'",
				id).Scan(&n)
			return err == nil && n == 1
		})
		_, err = s.sql.ExecContext(t.Context(), fmt.Sprint(kill, " ", id))
		must(t, err)
		wantErr(t, classify(wait.For(t, kill, ended)), ErrUnavailable)
	}
}

// TestLockTriesEnd: a transaction that always deadlocks ends as unavailable, not in an endless loop.
func TestLockTriesEnd(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	runs := 0
	err := s.inTx(t.Context(), failpoint.Administration, func(tx) error {
		runs++
		return &mysql.MySQLError{Number: 1213}
	})
	wantErr(t, err, ErrUnavailable)
	if runs != txTries {
		t.Errorf("%d runs", runs)
	}
}

// TestClock: the store's time is MySQL's, whatever time zone a connection has.
func TestClock(t *testing.T) {
	t.Parallel()
	dsn := stacktest.MariaDB(t)
	zone := "?"
	if strings.Contains(dsn, "?") {
		zone = "&"
	}
	s, err := Open(Config{DSN: dsn + zone + "time_zone=%27%2B08%3A00%27"})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	raw, err := OpenSQL(dsn)
	must(t, err)
	t.Cleanup(func() { must(t, raw.Close()) })
	read := func() (at time.Time) {
		must(t, raw.QueryRowContext(t.Context(), "SELECT UTC_TIMESTAMP(6)").Scan(&at))
		return at
	}
	before := read()
	now, err := s.Clock(t.Context())
	must(t, err)
	var frozen time.Time
	must(t, s.inTx(t.Context(), failpoint.Administration, func(tx tx) error { frozen = tx.now; return nil }))
	if after := read(); now.Before(before) || frozen.Before(now) || frozen.After(after) || now.Location() != time.UTC {
		t.Errorf("MySQL's clock is at %v; read as %v, in a transaction as %v; then at %v", before, now, frozen, after)
	}
}
