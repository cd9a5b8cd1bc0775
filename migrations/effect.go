package migrations

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
)

// thing is a part of a schema. kind is table, column, key, check or trigger.
type thing struct{ kind, name string }

// effect is what a DDL of these files leaves behind. A thing that it drops is in it
// with an empty text. Others have: a column its type, a key its columns, a trigger
// what it is called before. Neither the expression of a check nor a default is
// compared, because each server writes them in its own way.
type effect struct {
	table  string
	made   bool // the table is new: it has these things and no others
	things map[thing]string
}

const there = "there"

var (
	comments = regexp.MustCompile(`(?m)--.*$`)
	literals = regexp.MustCompile(`'[^']*'`)
	spaces   = regexp.MustCompile(`\s+`)

	createTable   = regexp.MustCompile(`^CREATE TABLE (\w+) \((.*)\) ENGINE = InnoDB$`)
	alterTable    = regexp.MustCompile(`^ALTER TABLE (\w+) (.*)$`)
	dropTable     = regexp.MustCompile(`^DROP TABLE (\w+)$`)
	createTrigger = regexp.MustCompile(`^CREATE TRIGGER (\w+) (\w+ \w+) ON (\w+) FOR EACH ROW`)
	dropTrigger   = regexp.MustCompile(`^DROP TRIGGER (\w+)$`)

	dropClause   = regexp.MustCompile(`^DROP (COLUMN|KEY|INDEX|CONSTRAINT) (\w+)$`)
	primary      = regexp.MustCompile(`^PRIMARY KEY \((.*)\)$`)
	keyClause    = regexp.MustCompile(`^(UNIQUE )?(?:KEY|INDEX) (\w+) \((.*)\)$`)
	checkClause  = regexp.MustCompile(`^CONSTRAINT (\w+) CHECK \(`)
	columnClause = regexp.MustCompile(`^(\w+) (\w+(?:\(\d+\))?)(?: CHARACTER SET \w+ COLLATE (\w+))?( NOT NULL| NULL)`)
	// width is what MariaDB adds to types of numbers, and MySQL to BOOLEAN alone.
	width = regexp.MustCompile(`^(tinyint|smallint|int|bigint)\(\d+\)`)
)

// effectOf reads the one statement of a file's Up or Down part. An error says that
// the file changes data, or has a DDL that this reader does not know.
func effectOf(path string, up bool) (effect, error) {
	text, err := files.ReadFile(path)
	if err != nil {
		return effect{}, fmt.Errorf("read migration %s: %w", path, err)
	}
	part, down, _ := strings.Cut(string(text), "-- +goose Down\n")
	if !up {
		part = down
	}
	part = literals.ReplaceAllString(comments.ReplaceAllString(part, ""), "''")
	statement := strings.TrimSuffix(strings.TrimSpace(spaces.ReplaceAllString(part, " ")), ";")
	e := effect{things: map[thing]string{}}
	if m := createTable.FindStringSubmatch(statement); m != nil {
		e.table, e.made = m[1], true
		e.things[thing{"table", m[1]}] = there
		return e, e.clauses(path, m[2], "")
	}
	if m := alterTable.FindStringSubmatch(statement); m != nil {
		e.table = m[1]
		e.things[thing{"table", m[1]}] = there
		return e, e.clauses(path, m[2], "ADD ")
	}
	if m := dropTable.FindStringSubmatch(statement); m != nil {
		e.table = m[1]
		e.things[thing{"table", m[1]}] = ""
		return e, nil
	}
	if m := createTrigger.FindStringSubmatch(statement); m != nil {
		e.table = m[3]
		e.things[thing{"trigger", m[1]}] = m[2] + " " + m[3]
		return e, nil
	}
	if m := dropTrigger.FindStringSubmatch(statement); m != nil {
		e.things[thing{"trigger", m[1]}] = ""
		return e, nil
	}
	return e, fmt.Errorf("migration %s: what %.40q leaves behind is not known", path, statement)
}

// clauses reads what is between the commas of a statement; what is added begins
// with add, and columns then with COLUMN.
func (e effect) clauses(path, text, add string) error {
	for _, clause := range splitClauses(text) {
		if m := dropClause.FindStringSubmatch(clause); m != nil {
			kind := map[string]string{"COLUMN": "column", "KEY": "key", "INDEX": "key", "CONSTRAINT": "check"}[m[1]]
			e.things[thing{kind, m[2]}] = ""
			continue
		}
		what, isColumn := strings.CutPrefix(clause, "MODIFY COLUMN ")
		if !isColumn {
			var added bool
			if what, added = strings.CutPrefix(clause, add); !added {
				return fmt.Errorf("migration %s: what %.40q leaves behind is not known", path, clause)
			}
			what = strings.TrimPrefix(what, "COLUMN ")
		}
		if !e.clause(what) {
			return fmt.Errorf("migration %s: what %.40q leaves behind is not known", path, clause)
		}
	}
	return nil
}

func (e effect) clause(what string) bool {
	if m := primary.FindStringSubmatch(what); m != nil {
		e.things[thing{"key", "PRIMARY"}] = key(true, m[1])
	} else if m := keyClause.FindStringSubmatch(what); m != nil {
		e.things[thing{"key", m[2]}] = key(m[1] != "", m[3])
	} else if m := checkClause.FindStringSubmatch(what); m != nil {
		e.things[thing{"check", m[1]}] = there
	} else if m := columnClause.FindStringSubmatch(what); m != nil {
		e.things[thing{"column", m[1]}] = column(m[2], m[4] == " NULL", m[3])
		if strings.Contains(what, " PRIMARY KEY") {
			e.things[thing{"key", "PRIMARY"}] = key(true, m[1])
		}
	} else {
		return false
	}
	return true
}

// splitClauses splits at the commas that are in no parentheses.
func splitClauses(text string) []string {
	var out []string
	depth, from := 0, 0
	for i, r := range text {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth == 0:
			out = append(out, strings.TrimSpace(text[from:i]))
			from = i + 1
		}
	}
	return append(out, strings.TrimSpace(text[from:]))
}

// key writes a key's columns as both sides do.
func key(unique bool, columns string) string {
	return fmt.Sprintf("unique %t: %s", unique, strings.ReplaceAll(columns, " ", ""))
}

// column writes a column's type as both sides do.
func column(kind string, null bool, collation string) string {
	kind = strings.ToLower(kind)
	if kind == "boolean" {
		kind = "tinyint"
	}
	return fmt.Sprintf("%s, null %t, %s", width.ReplaceAllString(kind, "$1"), null, collation)
}

// there says whether the database has all that e makes and nothing that it drops.
func (e effect) there(ctx context.Context, conn *sql.Conn) (bool, error) {
	found, err := readThings(ctx, conn, e.table)
	if err != nil {
		return false, err
	}
	for t, want := range e.things {
		if found[t] != want {
			return false, nil
		}
	}
	for t := range found {
		if _, known := e.things[t]; e.made && !known && t.kind != "trigger" {
			return false, nil
		}
	}
	return true, nil
}

// readThings reads what a table has, and the triggers of all.
func readThings(ctx context.Context, conn *sql.Conn, table string) (map[thing]string, error) {
	found := map[thing]string{}
	for _, q := range []struct {
		kind, query string
		args        []any
	}{
		{"table", "SELECT table_name, '', '', '' FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?", []any{table}},
		{"column", "SELECT column_name, column_type, is_nullable, IFNULL(collation_name, '') FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = ?", []any{table}},
		{"key", `SELECT index_name, MAX(non_unique), GROUP_CONCAT(column_name ORDER BY seq_in_index), '' FROM information_schema.statistics
			WHERE table_schema = DATABASE() AND table_name = ? GROUP BY index_name`, []any{table}},
		{"check", "SELECT constraint_name, '', '', '' FROM information_schema.table_constraints WHERE constraint_schema = DATABASE() AND constraint_type = 'CHECK' AND table_name = ?", []any{table}},
		{"trigger", "SELECT trigger_name, action_timing, event_manipulation, event_object_table FROM information_schema.triggers WHERE trigger_schema = DATABASE()", nil},
	} {
		if err := readThing(ctx, conn, found, q.kind, q.query, q.args); err != nil {
			return nil, fmt.Errorf("read the schema: %w", err)
		}
	}
	return found, nil
}

func readThing(ctx context.Context, conn *sql.Conn, found map[thing]string, kind, query string, args []any) error {
	rows, err := conn.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name, a, b, c string
		if err := rows.Scan(&name, &a, &b, &c); err != nil {
			return err
		}
		text := there
		switch kind {
		case "column":
			text = column(a, b == "YES", c)
		case "key":
			text = key(a == "0", b)
		case "trigger":
			text = a + " " + b + " " + c
		}
		found[thing{kind, name}] = text
	}
	return rows.Err()
}
