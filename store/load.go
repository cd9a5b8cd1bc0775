package store

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"
	"golang.org/x/sync/errgroup"

	"hongbao/history"
	"hongbao/payout"
)

// ErrNotEmpty means that books that a history was to be loaded into have something in them.
var ErrNotEmpty = errors.New("the books are not empty")

// Loader fills empty books with a history, by one LOAD DATA a table, all of them
// at the same time. It is for stacks to try and to measure: what it writes never
// went through the steps that real rows go through, so it refuses books in which
// there is anything.
type Loader struct {
	db     *sql.DB
	group  *errgroup.Group
	ctx    context.Context //nolint:containedctx // of the statements that are under way
	tables map[string]*stream
	queue  postings
	audit  []payout.AuditEntry
}

// loadColumns are the columns of every table that a history fills, in the order in
// which its rows are written.
var loadColumns = map[string]string{
	"packets": `id, app_id, sender_id, currency, total_amount, share_count, split, min_share, max_share, greeting, group_id, metadata, body_hash, commitment,
		sealed_seed, status, close_reason, failure_code, failure_message, first_status, first_request_id, created_at, opens_at, expires_at, books_closed_at,
		remainder, closed_at, updated_at, claimed_count, best_share, last_share`,
	"shares": "packet_id, share_index, amount, app_id, user_id, nickname, claimed_at",
	"claims": "packet_id, user_id, share_index, app_id, claimed_at",
	"payments": `id, kind, packet_id, app_id, user_id, share_index, account, amount, currency, remark, provider, status, version, attempt, order_no, decided_at,
		deciding, new_number_agreed, failure_code, failure_message, created_at, updated_at, settled_at`,
	"attempts": `order_no, payment_id, no, op, request, sends, asks, noted_until, open_until, statement, refused, booked, return_booked, next_action, next_at,
		asked_at, ask_requested, forgotten, observed, code, message, provider_ref, token, started_at, ask_until, ended_at`,
	"payment_events": "payment_id, at, source, op, order_no, outcome, code, what, started_at, ended_at",
	"transfers":      "packet_id, kind, debit, credit, amount, order_no, reference, created_at",
	"decisions": `id, payment_id, kind, reason, decided_by, role, status, approval_id, expires_at, approved_by, approve_reason, evidence, created_at,
		ended_at`,
	"audit": "seq, at, actor, role, action, subject, reason, before_is, after_is, hash",
}

// NewLoader begins to load a history. End it with Close, or with the end of ctx.
// Errors: ErrNotEmpty, ErrUnavailable.
func NewLoader(ctx context.Context, dsn string) (*Loader, error) {
	cfg, err := parseDSN(dsn)
	if err != nil {
		return nil, err
	}
	cfg.ReadTimeout, cfg.WriteTimeout = 0, 0 // a statement takes as long as the history
	c, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("mysql connector: %w", err)
	}
	l := &Loader{db: sql.OpenDB(c), tables: map[string]*stream{}}
	var rows int64
	err = l.db.QueryRowContext(ctx, `SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM packets LIMIT 1) p) + (SELECT COUNT(*) FROM (SELECT 1 FROM transfers LIMIT 1) t)
		+ (SELECT COUNT(*) FROM (SELECT 1 FROM audit LIMIT 1) a)`).Scan(&rows)
	if err == nil && rows > 0 {
		err = ErrNotEmpty
	}
	if err != nil {
		return nil, errors.Join(classify(err), l.db.Close())
	}
	l.group, l.ctx = errgroup.WithContext(ctx)
	for table := range loadColumns {
		s := &stream{ctx: l.ctx, table: table, chunks: make(chan []byte, 8)}
		l.tables[table] = s
		l.group.Go(func() error { return s.load(l.db) })
	}
	return l, nil
}

// Close writes what is left and waits until everything is in the books. After an
// error they hold part of the history, and have to be made anew.
func (l *Loader) Close() error {
	err := l.postBefore(time.Time{})
	if err == nil {
		err = l.endAudit()
	}
	for _, s := range l.tables {
		s.end(err)
	}
	if waited := l.group.Wait(); waited != nil {
		err = waited // why a stream could not be written to any more
	}
	if err == nil {
		err = l.head()
	}
	if err == nil {
		err = l.analyse()
	}
	return errors.Join(classify(err), l.db.Close())
}

// head keeps the end of the audit's chain.
func (l *Loader) head() error {
	n := len(l.audit)
	if n == 0 {
		return nil
	}
	last := l.audit[n-1]
	_, err := l.db.Exec("INSERT INTO audit_head (id, seq, hash) VALUES (1, ?, ?) ON DUPLICATE KEY UPDATE seq = VALUES(seq), hash = VALUES(hash)", last.Seq, last.Hash[:])
	return err
}

// analyse has the optimizer look at what is there now.
func (l *Loader) analyse() error {
	for table := range l.tables {
		if err := l.analyseOne(table); err != nil {
			return err
		}
	}
	return nil
}

func (l *Loader) analyseOne(table string) error {
	rows, err := l.db.Query("ANALYZE TABLE " + table)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() { // an ANALYZE whose answer is not read is not done
	}
	return rows.Err()
}

// endAudit puts the audit in order and gives it its chain.
func (l *Loader) endAudit() error {
	slices.SortStableFunc(l.audit, func(a, b payout.AuditEntry) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Subject, b.Subject)) })
	var prev payout.AuditHash
	var err error
	for i := range l.audit {
		e := &l.audit[i]
		e.Seq = int64(i) + 1
		if e.Hash, err = e.Sum(prev); err != nil {
			return err
		}
		prev = e.Hash
		err = l.tables["audit"].row(e.Seq, e.At, e.Actor, e.Role, e.Action, e.Subject, e.Reason, e.Before, e.After, e.Hash[:])
		if err != nil {
			return err
		}
	}
	return nil
}

// posted is a posting that waits for its turn: the ledger is in the order of time.
type posted struct {
	history.Posting
	packetID string
	n        int
}

// postings are a heap, the oldest first.
type postings struct {
	rows []posted
	n    int
}

func (q *postings) Len() int { return len(q.rows) }
func (q *postings) Less(i, j int) bool {
	return cmp.Or(q.rows[i].At.Compare(q.rows[j].At), cmp.Compare(q.rows[i].n, q.rows[j].n)) < 0
}
func (q *postings) Swap(i, j int) { q.rows[i], q.rows[j] = q.rows[j], q.rows[i] }
func (q *postings) Push(x any)    { q.rows = append(q.rows, x.(posted)) } //nolint:forcetypeassert // of heap.Push below
func (q *postings) Pop() any {
	last := q.rows[len(q.rows)-1]
	q.rows = q.rows[:len(q.rows)-1]
	return last
}

func (q *postings) add(packetID string, p history.Posting) {
	q.n++
	heap.Push(q, posted{p, packetID, q.n})
}

// postBefore writes the postings made before a time; zero: all.
func (l *Loader) postBefore(t time.Time) error {
	for l.queue.Len() > 0 && (t.IsZero() || l.queue.rows[0].At.Before(t)) {
		p := heap.Pop(&l.queue).(posted) //nolint:forcetypeassert // there is nothing else in it
		err := l.tables["transfers"].row(p.packetID, string(p.Kind), string(p.Debit), string(p.Credit), int64(p.Amount), p.OrderNo, p.Reference(), p.At)
		if err != nil {
			return err
		}
	}
	return nil
}

// stream is one LOAD DATA that is under way.
type stream struct {
	ctx    context.Context //nolint:containedctx // of its statement
	table  string
	buf    bytes.Buffer
	chunks chan []byte
	rows   int64
	failed error // why the history ended; set before chunks is closed
}

const loadChunk = 256 << 10

// load runs the statement. With LOCAL the server drops rows it does not like and
// only warns: both are looked at.
func (s *stream) load(db *sql.DB) error {
	conn, err := db.Conn(s.ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	for _, set := range []string{
		"SET SESSION unique_checks = 0", "SET SESSION foreign_key_checks = 0",
		"SET SESSION net_read_timeout = 3600", // some tables get a row now and then
	} {
		if _, err := conn.ExecContext(s.ctx, set); err != nil {
			return err
		}
	}
	name := fmt.Sprintf("history-%p", s)
	mysql.RegisterReaderHandler(name, func() io.Reader { return &chunkReader{stream: s} })
	defer mysql.DeregisterReaderHandler(name)
	res, err := conn.ExecContext(s.ctx, "LOAD DATA LOCAL INFILE 'Reader::"+name+"' INTO TABLE "+s.table+" CHARACTER SET binary ("+loadColumns[s.table]+")")
	if err != nil {
		return fmt.Errorf("load %s: %w", s.table, err)
	}
	var warnings int64
	if err := conn.QueryRowContext(s.ctx, "SELECT @@warning_count").Scan(&warnings); err != nil {
		return fmt.Errorf("load %s: %w", s.table, err)
	}
	if n, err := res.RowsAffected(); err != nil || n != s.rows || warnings > 0 {
		return fmt.Errorf("load %s: %d of %d rows were taken, with %d warnings: %w", s.table, n, s.rows, warnings, errors.Join(ErrConflict, err))
	}
	return nil
}

// chunkReader is what the driver sends.
type chunkReader struct {
	stream *stream
	left   []byte
}

// Read implements io.Reader.
func (r *chunkReader) Read(p []byte) (int, error) {
	for len(r.left) == 0 {
		chunk, more := <-r.stream.chunks
		if !more && r.stream.failed != nil {
			return 0, r.stream.failed
		}
		if !more {
			return 0, io.EOF
		}
		r.left = chunk
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

// row writes one row, as LOAD DATA reads it by default.
func (s *stream) row(values ...any) error {
	for i, v := range values {
		if i > 0 {
			s.buf.WriteByte('\t')
		}
		s.value(v)
	}
	s.buf.WriteByte('\n')
	s.rows++
	if s.buf.Len() < loadChunk {
		return nil
	}
	return s.flush()
}

func (s *stream) flush() error {
	select {
	case s.chunks <- bytes.Clone(s.buf.Bytes()):
		s.buf.Reset()
		return nil
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
}

func (s *stream) end(failed error) {
	if failed == nil && s.buf.Len() > 0 {
		failed = s.flush()
	}
	s.failed = failed
	close(s.chunks)
}

func (s *stream) value(v any) {
	switch v := v.(type) {
	case string:
		s.text(v)
	case []byte:
		s.text(string(v))
	case int64:
		s.buf.Write(strconv.AppendInt(s.buf.AvailableBuffer(), v, 10))
	case int:
		s.buf.Write(strconv.AppendInt(s.buf.AvailableBuffer(), int64(v), 10))
	case bool:
		s.buf.WriteByte("01"[map[bool]int{true: 1}[v]])
	case time.Time:
		if v.IsZero() {
			s.buf.WriteString(`\N`)
			return
		}
		s.buf.Write(v.UTC().AppendFormat(s.buf.AvailableBuffer(), "2006-01-02 15:04:05.000000"))
	case *string:
		if v == nil {
			s.buf.WriteString(`\N`)
			return
		}
		s.text(*v)
	case *int:
		if v == nil {
			s.buf.WriteString(`\N`)
			return
		}
		s.value(*v)
	case nil:
		s.buf.WriteString(`\N`)
	default:
		panic(fmt.Sprintf("load: %T", v))
	}
}

func (s *stream) text(v string) {
	for i := range len(v) {
		switch b := v[i]; b {
		case '\t', '\n', '\\':
			s.buf.WriteByte('\\')
			s.buf.WriteByte(b)
		case 0:
			s.buf.WriteString(`\0`)
		default:
			s.buf.WriteByte(b)
		}
	}
}
