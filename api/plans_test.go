package api_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hongbao/api"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/store"
	"hongbao/test/bench/bulk"
	"hongbao/test/night"
)

// plansPayouts is the size of the books whose statements are looked at: large beside
// what a page may read, small enough to be made in seconds.
const plansPayouts = 30_000

// plansFile is how much is read of a file with filters: two of its steps or more, of
// which the first has a statement of its own and the others one form.
const plansFile = 300_000

// planFixture is a house with books of that size, and with what names things in them.
type planFixture struct {
	*fixture
	db     *sql.DB
	values map[string][]string // of parameters, by name
	ids    map[string]string   // in paths, by the path
}

func newPlanFixture(t *testing.T) *planFixture {
	t.Helper()
	_, dsn := stacktest.FreshMariaDB(t)
	d := &planFixture{fixture: newFixture(t, parts{dsn: dsn})}
	db, err := store.OpenSQL(dsn)
	check(t, err)
	d.db = db
	t.Cleanup(func() { check(t, d.db.Close()) })
	check(t, bulk.Fill(t.Context(), d.db, bulk.Config{
		Payouts: plansPayouts, Days: 30, Until: time.Now(), App: d.app.app.ID, SeedKey: d.cfg.SeedKey, Provider: d.sandbox.Name(),
	}))
	for more := true; more; { // as the worker does
		more, err = d.fixture.reports().SaveLedgerSums(t.Context(), time.UTC)
		check(t, err)
	}
	d.more()
	d.name()
	return d
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// more fills tables that bulk.Fill leaves empty or small, so that a full scan is visible and
// its file has many steps.
func (d *planFixture) more() {
	for _, statement := range []string{
		`INSERT INTO reconciliations (id, provider, day, status, requested_by, reason, created_at, ended_at, due_at)
			SELECT CONCAT('rec', SUBSTRING(id, 2, 20)), 'sandbox', DATE_FORMAT(created_at - INTERVAL seq DAY, '%Y-%m-%d'), 'done', 'worker',
			'every day', created_at, created_at, created_at
			FROM (SELECT id, created_at, ROW_NUMBER() OVER (ORDER BY id) AS seq FROM payments WHERE kind = 'c' LIMIT 1500) x`,
		`INSERT INTO breaks (kind, packet_id, payment_id, order_no, detail, created_at, last_seen, resolved_at, resolved_by, reason,
			reconciliation_id)
			SELECT IF(seq % 7 = 0, 'amount', 'not_in_statement'), packet_id, id, order_no, 'seen', created_at, created_at, IF(seq % 50 = 0, NULL,
			created_at), 'li-na', 'found',
				(SELECT MIN(id) FROM reconciliations)
			FROM (SELECT id, packet_id, order_no, created_at, ROW_NUMBER() OVER (ORDER BY id) AS seq FROM payments WHERE kind = 'p' LIMIT 5000) x`,
		`INSERT INTO decisions (id, payment_id, kind, reason, decided_by, role, status, approval_id, expires_at, preview_hash, approved_by,
			created_at, ended_at)
			SELECT CONCAT('x', SUBSTRING(id, 1, 25)), id, 'cancel', 'why', 'li-na', 'finance', 'rejected', CONCAT('y', SUBSTRING(id, 1, 25)),
			created_at, REPEAT('h', 32), 'wang-wei', created_at, created_at
			FROM payments WHERE kind = 'p' AND status = 'paid' LIMIT 4000`,
		`INSERT INTO audit (seq, at, actor, role, action, subject, reason, before_is, after_is, hash)
			SELECT m.n + seq, NOW(3) - INTERVAL seq MINUTE, IF(seq % 3, 'li-na', 'wang-wei'), 'finance', IF(seq % 2, 'retry', 'ask'), 'x', 'why',
			'null', 'null', REPEAT('h', 32) FROM seq_1_to_3000 JOIN (SELECT COALESCE(MAX(seq), 0) AS n FROM audit) m`,
		`INSERT INTO campaigns (id, app_id, name, salt, zone, opens_minute, starts_on, template, body_hash, status, next_day, next_opens,
			ended_at, created_at, updated_at)
			SELECT CONCAT('campaign', LPAD(seq, 12, '0')), (SELECT MIN(id) FROM apps), 'rain', 'salt', 'UTC', 0, '2026-01-01',
			'{"packet":{"id":"","app":"","sender_id":"u","currency":"CNY","total_amount":1,"share_count":1,"split":"random","min_share":1,"created_at":"0001-01-01T00:00:00Z","opens_at":"0001-01-01T00:00:00Z","expires_at":"0001-01-01T00:00:00Z"}}', REPEAT('a', 64),
				IF(seq % 100, 'ended', 'active'), IF(seq % 100, NULL, '2999-01-01'), IF(seq % 100, NULL, '2999-01-01'), IF(seq % 100, NOW(3), NULL),
				NOW(3) - INTERVAL seq MINUTE, NOW(3) FROM seq_1_to_3000`,
		`INSERT INTO campaign_days (campaign_id, day, status, packet_id, opens_at, decided_at)
			SELECT IF(seq <= 1500, 'campaign000000000100', CONCAT('campaign', LPAD(seq, 12, '0'))), DATE_FORMAT('2026-01-01' + INTERVAL seq DAY,
			'%Y-%m-%d'), 'made', CONCAT('day', LPAD(seq, 17, '0')), NOW(3), NOW(3) - INTERVAL seq HOUR FROM seq_1_to_3000`,
		`INSERT INTO holds (scope, name, kind, cause, reason, placed_by, placed_role, placed_at, released_by, released_at)
			SELECT IF(seq % 3, 'payment', 'packet'), IF(seq % 3, id, packet_id), 'staff', CONCAT('', seq), 'why', 'li-na', 'finance', created_at,
			IF(seq % 50 = 0, NULL, 'li-na'), IF(seq % 50 = 0, NULL, created_at)
			FROM (SELECT id, packet_id, created_at, ROW_NUMBER() OVER (ORDER BY id) AS seq FROM payments WHERE kind = 'p' LIMIT 3000) x`,
		"ANALYZE TABLE campaigns, campaign_days, breaks, reconciliations, decisions, audit, holds",
	} {
		rows, err := d.db.QueryContext(d.t.Context(), statement)
		check(d.t, err)
		for rows.Next() { // ANALYZE answers
		}
		check(d.t, rows.Err())
		check(d.t, rows.Close())
	}
}

// name finds what the parameters of lists are about.
func (d *planFixture) name() {
	one := func(query string) (text string) {
		d.t.Helper()
		if err := d.db.QueryRowContext(d.t.Context(), query).Scan(&text); err != nil {
			d.t.Fatalf("%s: %v", query, err)
		}
		return text
	}
	packet := one("SELECT packet_id FROM claims GROUP BY packet_id ORDER BY COUNT(*) DESC LIMIT 1")
	failed := one("SELECT id FROM payments WHERE kind = 'p' AND status = 'failed' ORDER BY id LIMIT 1")
	refund := one("SELECT id FROM payments WHERE kind = 'r' AND status = 'paid' ORDER BY id LIMIT 1")
	run := one("SELECT MIN(id) FROM reconciliations")
	d.values = map[string][]string{
		"packet_id": {packet}, "payment_id": {failed},
		"user_id":      {one("SELECT user_id FROM payments WHERE kind = 'p' GROUP BY user_id ORDER BY COUNT(*) DESC LIMIT 1"), "nobody"},
		"order_no":     {one("SELECT order_no FROM payments WHERE id = '" + failed + "'")},
		"provider_ref": {one("SELECT provider_ref FROM attempts WHERE payment_id = '" + failed + "' AND no = 1")},
		"failure_code": {"account_frozen", "never_received"}, "older_than_seconds": {"60", "1296000"}, "amount_min": {"1", "60000", "99999999"},
		// of approvals; others name theirs
		"amount_max": {"2", "60000"}, "bom": {"true"}, "status": {"waiting", "open", "carried_out", "overtaken", "rejected", "expired"},
		"actor": {"li-na", "nobody"}, "action": {"retry", "approve_cancel"}, "subject": {one("SELECT subject FROM audit ORDER BY seq LIMIT 1")},
		"from": {time.Now().AddDate(0, 0, -7).UTC().Format(time.RFC3339)}, "to": {time.Now().AddDate(0, 0, -3).UTC().Format(time.RFC3339)},
		"created_from": {time.Now().AddDate(0, 0, -7).UTC().Format(time.RFC3339)},
		"created_to":   {time.Now().AddDate(0, 0, -3).UTC().Format(time.RFC3339)}, "kind": {"amount", "not_in_statement"},
		"reconciliation_id": {run}, "resolved": {"true", "false"}, "role": {}, "app": {d.app.app.ID}, "app_id": {d.app.app.ID},
		"sender_id": {one("SELECT sender_id FROM packets WHERE id = '" + packet + "'"), "nobody"}, "provider": {"sandbox"},
		"tz": {"Asia/Shanghai"}, "late": {"true"}, "by_others": {"true"}, "overdue": {"true"},
		"at": {time.Now().AddDate(0, 0, -1).UTC().Format(time.RFC3339)}, "date": {time.Now().AddDate(0, 0, -2).UTC().Format(time.DateOnly)},
		"active": {"true", "false"}, "scope": {"packet", "payment"}, "name": {failed}, "limit": {"200"}, "cursor": {},
	}
	d.ids = map[string]string{"payouts": failed, "refunds": refund, "packets": packet, "reconciliations": run,
		"campaigns": "campaign000000000100", "holds": one("SELECT CONCAT('h', MIN(id)) FROM holds")}
}

// operation is what the document says of a route.
type operation struct {
	Parameters []struct {
		Name, In string
		Required bool
		Schema   struct{ Enum []string }
	}
}

// requests are all that a desk can ask for: every route of staff that reads, with
// every parameter and every pair of them.
func (d *planFixture) requests() (list []string) {
	raw, err := api.Document("test")
	check(d.t, err)
	var doc struct {
		Paths map[string]map[string]operation
	}
	check(d.t, json.Unmarshal(raw, &doc))
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		op, reads := doc.Paths[path]["get"]
		if !reads || !strings.HasPrefix(path, "/v1/staff/") {
			continue
		}
		if strings.Contains(path, "{id}") {
			of := strings.Split(path, "/")[3]
			if d.ids[of] == "" {
				d.t.Fatalf("%s: no id of %s is known", path, of)
			}
			path = strings.Replace(path, "{id}", d.ids[of], 1)
		}
		path = strings.Replace(path, "{date}", d.values["date"][0], 1)
		var filters [][]string // each name=value that there is, by name
		begin := "?"
		for _, p := range op.Parameters {
			values, known := d.values[p.Name]
			if p.Name == "ids" { // of what the path is about
				values, known = []string{d.ids[strings.Split(path, "/")[3]]}, true
			}
			if p.In == "path" {
				continue
			}
			if !known {
				d.t.Fatalf("%s: say what values %s has", path, p.Name)
			}
			if p.Schema.Enum != nil {
				values = p.Schema.Enum
			}
			var one []string
			for _, v := range values {
				one = append(one, p.Name+"="+url.QueryEscape(v))
			}
			if p.Required {
				path, begin = path+begin+one[0], "&"
				continue
			}
			filters = append(filters, one)
		}
		list = append(list, path)
		for i, ones := range filters {
			for _, one := range ones {
				list = append(list, path+begin+one)
				for _, others := range filters[i+1:] {
					for _, other := range others {
						if strings.HasPrefix(one, "amount_min=") && other == "amount_max=2" && one != "amount_min=1" || one == "amount_min=99999999" &&
							strings.HasPrefix(other, "amount_max=") {
							continue // refused: there is nothing between them
						}
						list = append(list, path+begin+one+"&"+other)
					}
				}
			}
		}
	}
	return list
}

// statements sends all requests and returns the statements of MariaDB with the request that
// caused each. Of a list it also requests the second page.
func (d *planFixture) statements(requests []string) map[string]string {
	d.exec("SET GLOBAL log_output = 'TABLE'", "TRUNCATE mysql.general_log", "SET GLOBAL general_log = 1")
	for i, path := range requests {
		d.exec(fmt.Sprintf("SELECT 'request %d'", i))
		ask := call{method: "GET", path: path, key: d.auditor.token, loose: true}
		if strings.HasPrefix(path, "/v1/staff/export/") && strings.Contains(path, "?") {
			ask.most = plansFile
		}
		r := d.do(ask)
		if r.status != 200 {
			d.t.Errorf("%s: %s", path, r)
			continue
		}
		var page struct {
			Next *string `json:"next_cursor"`
		}
		if json.Unmarshal(r.body, &page) == nil && page.Next != nil {
			next, _, _ := strings.Cut(path, "?")
			if r := d.do(call{method: "GET", path: next + "?cursor=" + url.QueryEscape(*page.Next), key: d.auditor.token,
				loose: true}); r.status != 200 {
				d.t.Errorf("%s, next page: %s", path, r)
			}
		}
	}
	d.exec("SET GLOBAL general_log = 0")
	rows, err := d.db.QueryContext(d.t.Context(), "SELECT argument FROM mysql.general_log WHERE command_type IN ('Query', 'Execute')")
	check(d.t, err)
	defer rows.Close()
	out, now := map[string]string{}, "before any request"
	for rows.Next() {
		var text string
		check(d.t, rows.Scan(&text))
		var n int
		if _, err := fmt.Sscanf(text, "SELECT 'request %d'", &n); err == nil {
			now = requests[n]
		} else if strings.HasPrefix(strings.ToUpper(strings.TrimSpace(text)), "SELECT") && strings.Contains(text, "FROM") && out[text] == "" {
			out[text] = now
		}
	}
	check(d.t, rows.Err())
	return out
}

func (d *planFixture) exec(statements ...string) {
	d.t.Helper()
	for _, s := range statements {
		if _, err := d.db.ExecContext(d.t.Context(), s); err != nil {
			d.t.Fatalf("%s: %v", s, err)
		}
	}
}

var literals = regexp.MustCompile(`'(?:[^'\\]|\\.|'')*'|\b\d+\b`)

// form is a statement without its values: statements of one form are the same code.
func form(statement string) string {
	return regexp.MustCompile(`\(\?(?:,\?)*\)`).ReplaceAllString(literals.ReplaceAllString(statement, "?"), "(?)")
}

const (
	// plansRead is how many rows a statement may look at, at most: a sum finds 10,001
	// payments and reads what it has found. A scan of the table has more.
	plansRead = 21_000
	// plansWhole is how many rows a table may have that is read from end to end, or
	// whose rows are sorted.
	plansWhole = 1_200
)

// wholeOnPurpose are the forms of statements that look at everything, and why.
var wholeOnPurpose = map[string]string{
	"SELECT kind, debit, credit, SUBSTRING(order_no, ?, ?) = ? AS promise, LEAST(SUM(amount), ?) AS sum FROM `transfers` WHERE id > ? AND " +
		"id <= ? GROUP BY kind, debit, credit, promise": "the ledger is added up once a process, 200,000 postings at a time",
	"SELECT seq, at, actor, role, key_id, action, subject, reason, before_is, after_is, hash FROM audit ORDER BY seq": "the whole chain is " +
		"verified on request",
}

// offence says what is wrong with how a statement is carried out; "": nothing.
func (d *planFixture) offence(statement string) string {
	if wholeOnPurpose[form(statement)] != "" {
		return ""
	}
	rows, err := d.db.QueryContext(d.t.Context(), "EXPLAIN "+statement)
	if err != nil {
		return err.Error()
	}
	defer rows.Close()
	names, err := rows.Columns()
	check(d.t, err)
	for rows.Next() {
		cells := make([]sql.NullString, len(names))
		to := make([]any, len(names))
		for i := range cells {
			to[i] = &cells[i]
		}
		check(d.t, rows.Scan(to...))
		plan := map[string]string{}
		for i, name := range names {
			plan[name] = cells[i].String
		}
		var n int64
		_, _ = fmt.Sscan(plan["rows"], &n)
		whole := (plan["type"] == "ALL" || plan["type"] == "index") && !strings.HasPrefix(plan["table"], "<")
		sorts := strings.Contains(plan["Extra"], "filesort") || strings.Contains(plan["Extra"], "temporary")
		if (whole || sorts) && n > plansWhole {
			return fmt.Sprintf("%s of %s by %q: %d rows; %s", plan["type"], plan["table"], plan["key"], n, plan["Extra"])
		}
	}
	check(d.t, rows.Err())
	return ""
}

// read carries a statement out and returns how many rows it has looked at.
func (d *planFixture) read(statement string) (n int64) {
	conn, err := d.db.Conn(d.t.Context())
	check(d.t, err)
	defer conn.Close()
	for _, s := range []string{"FLUSH STATUS", statement} {
		rows, err := conn.QueryContext(d.t.Context(), s)
		check(d.t, err)
		for rows.Next() { // all of them
		}
		check(d.t, rows.Err())
		check(d.t, rows.Close())
	}
	check(d.t, conn.QueryRowContext(d.t.Context(), `SELECT SUM(variable_value) FROM information_schema.session_status
		WHERE variable_name IN ('HANDLER_READ_FIRST', 'HANDLER_READ_KEY', 'HANDLER_READ_LAST', 'HANDLER_READ_NEXT', 'HANDLER_READ_PREV',
		'HANDLER_READ_RND', 'HANDLER_READ_RND_NEXT')`).Scan(&n))
	return n
}

// judge looks at every statement, each form with a few of its values.
func (d *planFixture) judge(statements map[string]string) (offences []string) {
	const each = 12
	looked := map[string]int{}
	for _, statement := range slices.Sorted(maps.Keys(statements)) {
		of := form(statement)
		if looked[of]++; looked[of] > each {
			continue
		}
		what := d.offence(statement)
		if what == "" && wholeOnPurpose[of] == "" {
			if n := d.read(statement); n > plansRead {
				what = fmt.Sprintf("looks at %d rows", n)
			}
		}
		if what != "" {
			offences = append(offences, fmt.Sprintf("%s\n\t%s\n\tof GET %s", what, statement, statements[statement]))
		}
	}
	return offences
}

// TestPlans asks for everything that the desk shows, with every filter and every
// pair of filters, and looks at how MariaDB carries out each statement that this
// causes: none goes through a large table, or sorts one.
func TestPlans(t *testing.T) {
	night.Only(t, "the lists of staff are tested on small tables")
	d := newPlanFixture(t)
	requests := d.requests()
	statements := d.statements(requests)
	t.Logf("%d requests, %d different statements", len(requests), len(statements))
	if len(requests) < 300 || len(statements) < 300 {
		t.Errorf("%d requests caused %d statements: what is looked at?", len(requests), len(statements))
	}
	for _, one := range d.judge(statements) {
		t.Error(one)
	}
	steps := map[string]int{}
	for _, request := range statements {
		steps[request]++
	}
	for _, list := range []string{"payouts", "packets", "breaks", "audit"} { // refunds are read as payouts are
		if path := "/v1/staff/export/" + list + ".csv"; steps[path] < 2 {
			t.Errorf("%s: %d statements: a file of many steps was to be looked at", path, steps[path])
		}
	}
	for of := range wholeOnPurpose {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(statements)), func(s string) bool { return form(s) == of }) {
			t.Errorf("nobody says %q any more", of)
		}
	}
	t.Run("sees", d.sees)
}

// sees: a key that is missing is noticed.
func (d *planFixture) sees(t *testing.T) {
	for drop, path := range map[string]string{
		"ALTER TABLE attempts DROP KEY attempts_ref":                 "/v1/staff/payouts?provider_ref=" + d.values["provider_ref"][0],
		"ALTER TABLE payment_events DROP KEY payment_events_payment": "/v1/staff/payouts/" + d.ids["payouts"],
	} {
		if found := d.judge(d.statements([]string{path})); len(found) > 0 {
			t.Errorf("%s, with every key: %v", path, found)
		}
		d.exec(drop)
		if found := d.judge(d.statements([]string{path})); len(found) == 0 {
			t.Errorf("%s: nobody has noticed: %s", path, drop)
		}
	}
}
