package storetest

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm/logger"
)

// Recorder keeps the text of every statement that gorm runs.
type Recorder struct {
	logger.Interface
	mu    sync.Mutex
	Texts []string
}

// Trace implements logger.Interface.
func (r *Recorder) Trace(_ context.Context, _ time.Time, fc func() (string, int64), _ error) {
	text, _ := fc()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Texts = append(r.Texts, text)
}

// Explain fails when a statement reads a table from end to end.
func Explain(t *testing.T, raw *sql.DB, text string) {
	t.Helper()
	plan(t, raw, text, func(cell func(name string) string) {
		if cell("table") == "" {
			return // "impossible where", "no matching row": nothing is read
		}
		full := cell("type") == "index" && !strings.Contains(text, " LIMIT ")
		if cell("type") == "ALL" || full || cell("key") == "" {
			t.Errorf("reads %s from end to end (%s, key %q): %s", cell("table"), cell("type"), cell("key"), text)
		}
	})
}

// SortFree fails when a statement sorts more than a page.
func SortFree(t *testing.T, raw *sql.DB, text string) {
	t.Helper()
	plan(t, raw, text, func(cell func(name string) string) {
		if extra := cell("Extra"); strings.Contains(extra, "filesort") || strings.Contains(extra, "temporary") {
			t.Errorf("%s: %s", extra, text)
		}
	})
}

// plan calls see with each row of the plan of a statement.
func plan(t *testing.T, raw *sql.DB, text string, see func(cell func(name string) string)) {
	t.Helper()
	rows, err := raw.QueryContext(t.Context(), "EXPLAIN "+text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	Must(t, err)
	for rows.Next() {
		cells := make([]sql.NullString, len(columns))
		into := make([]any, len(columns))
		for i := range cells {
			into[i] = &cells[i]
		}
		Must(t, rows.Scan(into...))
		see(func(name string) string { return cells[slices.Index(columns, name)].String })
	}
	Must(t, rows.Err())
}

// ReadsAtMost runs the statement and counts the rows that the engine read.
func ReadsAtMost(t *testing.T, raw *sql.DB, text string, most int) {
	t.Helper()
	conn, err := raw.Conn(t.Context())
	Must(t, err)
	defer conn.Close()
	_, err = conn.ExecContext(t.Context(), "FLUSH STATUS")
	Must(t, err)
	rows, err := conn.QueryContext(t.Context(), text)
	Must(t, err)
	defer rows.Close()
	for rows.Next() {
	}
	Must(t, rows.Err())
	var read int
	Must(t, conn.QueryRowContext(t.Context(),
		"SELECT SUM(variable_value) FROM information_schema.session_status WHERE variable_name LIKE 'Handler_read%' AND variable_name <> "+
			"'Handler_read_rnd_deleted'").Scan(&read))
	if read > most {
		t.Errorf("%d reads for a page: %s", read, text)
	}
}
