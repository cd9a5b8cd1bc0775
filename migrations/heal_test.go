package migrations_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"hongbao/devstack/stacktest"
	"hongbao/migrations"
)

// doomed is a process that is killed: from then on nothing that it has open sends
// anything, and it opens nothing more.
type doomed struct {
	mu    sync.Mutex
	at    []byte // killed instead of sending this; nil: when told
	dead  bool
	conns []net.Conn
}

type doomedConn struct {
	net.Conn
	process *doomed
}

func (c doomedConn) Write(b []byte) (int, error) {
	if c.process.at != nil && bytes.Contains(b, c.process.at) {
		c.process.kill()
	}
	return c.Conn.Write(b)
}

func (d *doomed) kill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = true
	for _, c := range d.conns {
		_ = c.Close()
	}
}

func (d *doomed) killed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dead
}

func (d *doomed) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return nil, net.ErrClosed
	}
	c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	d.conns = append(d.conns, c)
	return doomedConn{c, d}, nil
}

// doomedAt returns the migrations of a process that is killed as it is about to
// send a statement with the text at.
func doomedAt(t *testing.T, dsn, at string) (*doomed, *migrations.Provider) {
	t.Helper()
	d := &doomed{}
	if at != "" {
		d.at = []byte(at)
	}
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg.ParseTime, cfg.MultiStatements, cfg.InterpolateParams, cfg.Collation = true, true, true, "utf8mb4_bin"
	cfg.DialFunc, cfg.Logger = d.dial, &mysql.NopLogger{}
	c, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(c)
	t.Cleanup(func() { _ = db.Close() })
	return d, provider(t, db, nil)
}

// healed says whether a line tells of a migration that was found carried out, and forgets the lines.
func (b *told) healed() bool {
	defer b.Reset()
	return strings.Contains(b.String(), "had been carried out and not noted")
}

func exec(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// everything is what SHOW CREATE tells of each table and trigger, each row, and which migrations are noted.
func everything(t *testing.T, db *sql.DB) []string {
	t.Helper()
	list := func(query string) (out [][]string) {
		rows, err := db.QueryContext(t.Context(), query)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		defer func() { _ = rows.Close() }()
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			fields, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
			for i := range fields {
				into[i] = &fields[i]
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			line := make([]string, len(fields))
			for i, f := range fields {
				line[i] = fmt.Sprint(f.Valid, " ", f.String)
			}
			out = append(out, line)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return out
	}
	out := []string{text(t, db, "SELECT GROUP_CONCAT(version_id ORDER BY id) FROM goose_db_version WHERE is_applied")}
	for _, table := range list("SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name NOT LIKE 'goose%' ORDER BY 1") {
		name := strings.TrimPrefix(table[0], "true ")
		out = append(out, list("SHOW CREATE TABLE " + name)[0][1])
		for _, row := range list("SELECT * FROM " + name + " ORDER BY 1, 2") {
			out = append(out, name+": "+strings.Join(row, "; "))
		}
	}
	for _, trigger := range list("SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = DATABASE() ORDER BY 1") {
		out = append(out, list("SHOW CREATE TRIGGER " + strings.TrimPrefix(trigger[0], "true "))[0][2])
	}
	return out
}

// before are rows that the changes of data work on, put in when so many migrations are applied.
var before = map[int64][]string{
	16: {
		`INSERT INTO packets (id, app_id, sender_id, currency, total_amount, share_count, split, min_share, max_share, greeting, metadata, body_hash, commitment, sealed_seed,
			status, close_reason, created_at, opens_at, expires_at, books_closed_at, remainder, closed_at, updated_at) VALUES
			('closed', 'app', 's', 'CNY', 10, 4, 'equal', 1, 0, '', '{}', 'h', 'c', 's', 'closed', 'expired', '2026-01-01', '2026-01-01', '2026-01-02', '2026-01-02', 4, '2026-01-02', '2026-01-02'),
			('open', 'other', 's', 'CNY', 10, 2, 'equal', 1, 0, '', '{}', 'h', 'c', 's', 'open', NULL, '2026-01-01', '2026-01-01', '2026-01-02', NULL, NULL, NULL, '2026-01-02')`,
		`INSERT INTO shares (packet_id, share_index, amount, user_id, claimed_at) VALUES
			('closed', 0, 1, 'a', '2026-01-01'), ('closed', 1, 2, 'b', '2026-01-02'), ('closed', 2, 2, 'c', '2026-01-01'), ('closed', 3, 5, NULL, NULL),
			('open', 0, 3, 'a', '2026-01-01'), ('open', 1, 7, NULL, NULL)`,
	},
}

// repeated are the migrations that may be carried out twice, which the server does
// not refuse: they change what is there to something of the same name.
var repeated = []string{"00020_shares_user.sql", "00049_transfers_second_returned.sql", "00055_transfers_voided.sql", "00065_staff_idempotency_owner.sql", "00068_breaks_reason.sql"}

// sameNames are those of which nothing but the expression of a check changes.
var sameNames = []string{"00049_transfers_second_returned.sql", "00055_transfers_voided.sql"}

// left says whether a DDL has left its traces; a change of data is known by its statement.
func left(t *testing.T, db *sql.DB, name string, up bool) (there, data bool) {
	t.Helper()
	part, down := split(t, name, sources(t)[name])
	if !up {
		part = down
	}
	word, _, _ := strings.Cut(part[0], " ")
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	there, err = migrations.AlreadyThere(t.Context(), conn, name, up)
	if data = slices.Contains([]string{"INSERT", "UPDATE", "DELETE"}, word); data != (err != nil) {
		t.Errorf("%s changes data %t, read as: %v", name, data, err)
	}
	return there, data
}

// TestKilledBeforeTheNote kills a process between each migration and its note, up
// and down. The next start goes on at once, and what comes of it is the schema, and
// the data, of starts that nobody killed.
func TestKilledBeforeTheNote(t *testing.T) {
	dsn, clean := stacktest.MariaDB(t), open(t, stacktest.MariaDB(t))
	undisturbed := provider(t, clean, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	db := open(t, dsn)
	var log told
	next := provider(t, db, log.logger())
	names := slices.Sorted(maps.Keys(sources(t)))

	killed, p := doomedAt(t, dsn, "VALUES (0, ")
	if _, err := p.Up(ctx); err == nil || !killed.killed() || text(t, db, "SELECT COUNT(*) FROM goose_db_version") != "0" {
		t.Fatalf("not killed between goose's table and its first row: %v", err)
	}
	for i, name := range names {
		version := int64(i + 1)
		for _, statement := range before[int64(i)] {
			exec(t, db, statement)
			exec(t, clean, statement)
		}
		if there, data := left(t, db, name, true); !data && there != slices.Contains(sameNames, name) {
			t.Errorf("%s: there %t before it began", name, there)
		}
		killed, p := doomedAt(t, dsn, fmt.Sprintf("VALUES (%d, ", version))
		if _, err := p.UpTo(ctx, version); err == nil || !killed.killed() {
			t.Fatalf("%s was not killed: %v", name, err)
		}
		there, data := left(t, db, name, true)
		if !data && !there {
			t.Errorf("%s: not there when the process was killed", name)
		}
		done, err := next.UpTo(ctx, version)
		if err != nil || len(done) != 1 || done[0].Source.Version != version {
			t.Fatalf("%s: the next start: %v, %v", name, done, err)
		}
		if healed := log.healed(); healed == (data || slices.Contains(repeated, name)) {
			t.Errorf("%s: only noted %t", name, healed)
		}
		if _, err := undisturbed.UpTo(ctx, version); err != nil {
			t.Fatal(err)
		}
	}
	got, want := everything(t, db), everything(t, clean)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\n\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if claims := text(t, db, "SELECT COUNT(*) FROM claims"); claims != "4" {
		t.Errorf("%s claims: the rows for the changes of data are missing", claims)
	}
	for _, name := range slices.Backward(names) {
		killed, p := doomedAt(t, dsn, "DELETE FROM goose_db_version")
		if _, err := p.Down(ctx); err == nil || !killed.killed() {
			t.Fatalf("%s was not killed: %v", name, err)
		}
		if there, data := left(t, db, name, false); !data && !there {
			t.Errorf("%s: not taken back when the process was killed", name)
		}
		done, err := next.Down(ctx)
		if err != nil || done.Source.Path != name || done.Direction != "down" {
			t.Fatalf("%s: the next one back: %v, %v", name, done, err)
		}
	}
	if rest := schema(t, db); len(rest) != 0 || text(t, db, "SELECT GROUP_CONCAT(version_id) FROM goose_db_version") != "0" {
		t.Errorf("left behind: %v", rest)
	}
}

// TestHalfThereIsRefused: what the server refuses is taken as applied only when all
// of it is there, and only when it was the first thing to do.
func TestHalfThereIsRefused(t *testing.T) {
	const apps = "CREATE TABLE apps (id VARBINARY(32) NOT NULL PRIMARY KEY, name VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, id_salt VARBINARY(32) NOT NULL, created_at DATETIME(3) NOT NULL"
	const keys = "ALTER TABLE api_keys ADD COLUMN name VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL"
	for name, c := range map[string]struct {
		at     int64 // applied before
		by     string
		number uint16
	}{
		"table of another":      {0, "CREATE TABLE apps (id INT)", 1050},
		"column of another":     {0, strings.Replace(apps, "VARBINARY(32) NOT NULL,", "VARBINARY(31) NOT NULL,", 1) + ")", 1050},
		"column that may lack":  {0, strings.Replace(apps, "DATETIME(3) NOT NULL", "DATETIME(3) NULL", 1) + ")", 1050},
		"another collation":     {0, strings.Replace(apps, "utf8mb4_bin", "utf8mb4_general_ci", 1) + ")", 1050},
		"column too many":       {0, apps + ", more INT NULL)", 1050},
		"key too many":          {0, apps + ", KEY more (name))", 1050},
		"check too many":        {0, apps + ", CONSTRAINT more CHECK (name <> ''))", 1050},
		"one column of several": {52, keys, 1060},
		"key of several":        {52, "ALTER TABLE api_keys ADD KEY api_keys_list (created_at, id)", 1061},
		"old check gone":        {52, "ALTER TABLE api_keys DROP CONSTRAINT api_keys_role", 1091},
		"one of two keys gone":  {51, "ALTER TABLE shares DROP KEY shares_claimer", 1091},
		"key of other columns":  {59, "ALTER TABLE attempts ADD KEY attempts_ref (order_no)", 1061},
		"key that is unique":    {59, "ALTER TABLE attempts ADD UNIQUE KEY attempts_ref (provider_ref)", 1061},
		"trigger of another":    {44, "CREATE TRIGGER transfers_no_update BEFORE DELETE ON transfers FOR EACH ROW SET @x = 1", 1359},
		"not the first":         {58, "CREATE TABLE ended_sign_ins (id VARBINARY(32) NOT NULL PRIMARY KEY, key_id VARBINARY(64) NOT NULL, ended_at DATETIME(3) NOT NULL, until_at DATETIME(3) NOT NULL, KEY ended_sign_ins_until (until_at))", 1050},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t, stacktest.MariaDB(t))
			p := provider(t, db, nil)
			if c.at > 0 {
				if _, err := p.UpTo(t.Context(), c.at); err != nil {
					t.Fatal(err)
				}
			}
			exec(t, db, c.by)
			for range 2 { // a start that was refused makes the next one no bolder
				_, err := p.Up(t.Context())
				var my *mysql.MySQLError
				if !errors.As(err, &my) || my.Number != c.number {
					t.Fatalf("want %d, got %v", c.number, err)
				}
				if name == "not the first" {
					break // in the next start it is the first, and all of it is there
				}
				if noted := text(t, db, "SELECT MAX(version_id) FROM goose_db_version"); noted != fmt.Sprint(c.at) {
					t.Fatalf("%s is noted", noted)
				}
			}
		})
	}
}

// TestKilledWhileTheServerIsBusy: the server finishes what a killed process had
// asked for. Who starts meanwhile waits for that, and then notes it.
func TestKilledWhileTheServerIsBusy(t *testing.T) {
	dsn := stacktest.MariaDB(t)
	db := open(t, dsn)
	if _, err := provider(t, db, nil).UpTo(t.Context(), 52); err != nil {
		t.Fatal(err)
	}
	reader, err := db.BeginTx(t.Context(), nil) // keeps the ALTER from ending
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.ExecContext(t.Context(), "SELECT * FROM api_keys"); err != nil {
		t.Fatal(err)
	}
	killed, p := doomedAt(t, dsn, "")
	first, second := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := p.UpTo(t.Context(), 53)
		first <- err
	}()
	waits(t, db, "Waiting for table metadata lock", 1)
	killed.kill()
	if err := <-first; err == nil {
		t.Fatal("not killed")
	}
	var log told
	next := provider(t, open(t, dsn), log.logger())
	go func() {
		_, err := next.UpTo(t.Context(), 53)
		second <- err
	}()
	waits(t, db, "User lock", 1)
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-second; err != nil {
		t.Fatal(err)
	}
	if !log.healed() || text(t, db, "SELECT COUNT(*) FROM goose_db_version WHERE version_id = 53") != "1" {
		t.Error("the migration was not found carried out, or not noted once")
	}
}

// TestHealedOnce: several processes that start after one was killed.
func TestHealedOnce(t *testing.T) {
	dsn := stacktest.MariaDB(t)
	killed, p := doomedAt(t, dsn, "VALUES (5, ")
	if _, err := p.Up(t.Context()); err == nil || !killed.killed() {
		t.Fatalf("not killed: %v", err)
	}
	errs := make(chan error)
	for range 4 {
		db := open(t, dsn)
		go func() { errs <- up(t.Context(), db) }()
	}
	for range 4 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n := text(t, open(t, dsn), "SELECT CONCAT(COUNT(*), ' ', COUNT(DISTINCT version_id)) FROM goose_db_version WHERE version_id > 0"); n != fmt.Sprintf("%d %[1]d", len(sources(t))) {
		t.Errorf("versions, and different ones: %s", n)
	}
}
