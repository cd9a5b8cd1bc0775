package api_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hongbao/test/wait"
)

// listed is a list of staff that comes as a file too.
type listed struct {
	name   string               // of list and file
	who    func(*fixture) owner // may read it
	yuan   map[string]string    // columns with an amount in yuan, by the column with the same in fen
	local  map[string]string    // columns with a time as people read it, by the column with the same in UTC
	inside []string             // members whose objects come as JSON, in one column
	ages   []string             // members that grow by themselves
	flat   func(map[string]any) // makes of the members of an item those of its line
}

func anyStaff(h *fixture) owner { return h.ops }

var listedRefunds = listed{name: "refunds", who: anyStaff, yuan: map[string]string{"amount": "amount_yuan"},
	local: map[string]string{"created_at": "created_local", "updated_at": "updated_local"}}

var listedPackets = listed{
	name: "packets", who: anyStaff, inside: []string{"metadata"},
	yuan: map[string]string{"total_amount": "total_amount_yuan", "claimed_amount": "claimed_amount_yuan",
		"remaining_amount": "remaining_amount_yuan", "refunded_amount": "refunded_amount_yuan"},
	local: map[string]string{"created_at": "created_local", "opens_at": "opens_local", "expires_at": "expires_local",
		"closed_at": "closed_local"},
}

var listedAudit = listed{name: "audit", who: func(h *fixture) owner { return h.auditor }, local: map[string]string{"at": "at_local"},
	inside: []string{"before", "after"}}

var listedBreaks = listed{
	name: "breaks", who: anyStaff, ages: []string{"age_seconds"},
	yuan:  map[string]string{"amount": "amount_yuan", "payment_amount": "payment_amount_yuan"},
	local: map[string]string{"created_at": "created_local", "last_seen_at": "last_seen_local", "resolved_at": "resolved_local"},
}

var listedApprovals = listed{
	name: "approvals", who: anyStaff, yuan: map[string]string{"amount": "amount_yuan"},
	local: map[string]string{"created_at": "created_local", "expires_at": "expires_local", "ended_at": "ended_local"},
	flat: func(item map[string]any) {
		decision, about := item["decision"].(map[string]any), item["payout"]
		if about == nil {
			about = item["refund"]
		}
		payment := about.(map[string]any)
		item["decision_id"], item["kind"], item["reason"], item["decided_by"] = decision["id"], decision["kind"], decision["reason"],
			decision["by"]
		item["key_id"] = decision["key_id"]
		item["payment_id"], item["packet_id"], item["user_id"], item["amount"], item["payment_status"] = payment["id"], payment["packet_id"],
			payment["user_id"], payment["amount"], payment["status"]
		for _, member := range []string{"decision", "payout", "refund"} {
			delete(item, member)
		}
	},
}

func (l listed) get(h *fixture, query string) result {
	return h.do(call{method: "GET", path: "/v1/staff/export/" + l.name + ".csv" + query, key: l.who(h).token, mayEnd: true})
}

// lines are those of the file, with one filter or none. A busy machine may not read the first
// of them within the limit of a read, which is 503, or later ones, which ends the file. It is then read again.
func (l listed) lines(h *fixture, query string) []map[string]string {
	h.t.Helper()
	var r result
	wait.Until(h.t, "the file", func() bool {
		r = l.get(h, query)
		return r.status != http.StatusServiceUnavailable && r.status != 0
	})
	if r.status != http.StatusOK {
		h.t.Fatalf("%s%s: %s", l.name, query, r)
	}
	return lines(h.t, r.body)
}

// items are those of the list, as its JSON has them.
func (l listed) items(h *fixture, query string) []json.RawMessage {
	h.t.Helper()
	mark := "?"
	if query != "" {
		mark = query + "&"
	}
	var page struct{ Items []json.RawMessage }
	h.page(l.who(h), "/v1/staff/"+l.name+mark+"limit=200", &page)
	return page.Items
}

// cells makes of an item of the list what its line should be, apart from what is there
// for staff and from defused text. What is null is left out.
func (l listed) cells(t *testing.T, item json.RawMessage) map[string]string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(item))
	d.UseNumber()
	var members map[string]any
	if err := d.Decode(&members); err != nil {
		t.Fatal(err)
	}
	if l.flat != nil {
		l.flat(members)
	}
	out := map[string]string{}
	for name, value := range members {
		object, ok := value.(map[string]any)
		switch {
		case slices.Contains(l.inside, name):
			text, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			out[name] = string(text)
		case ok:
			for member, inner := range object {
				if deep, is := inner.(map[string]any); is {
					for last, value := range deep {
						out[name+"_"+member+"_"+last] = fmt.Sprint(value)
					}
				} else if inner != nil {
					out[name+"_"+member] = fmt.Sprint(inner)
				}
			}
		case value != nil:
			out[name] = fmt.Sprint(value)
		}
	}
	return out
}

// people checks and takes away what a line has for people.
func (l listed) people(t *testing.T, line map[string]string, hours time.Duration, zone string) {
	t.Helper()
	for fen, yuan := range l.yuan {
		if want := line[fen]; want != "" && line[yuan] != yuanOf(want) || want == "" && line[yuan] != "" {
			t.Errorf("%s: %q is %q in yuan", l.name, want, line[yuan])
		}
		delete(line, yuan)
	}
	for utc, local := range l.local {
		want := ""
		if line[utc] != "" {
			at, err := time.Parse(time.RFC3339, line[utc])
			if err != nil {
				t.Fatal(err)
			}
			want = at.Add(hours * time.Hour).Format("2006-01-02 15:04:05")
		}
		if line[local] != want {
			t.Errorf("%s: %s is %q, want %q", l.name, local, line[local], want)
		}
		delete(line, local)
	}
	if line["local_zone"] != zone {
		t.Errorf("%s: zone %q", l.name, line["local_zone"])
	}
	delete(line, "local_zone")
}

// reckoned are the first characters of what a spreadsheet reckons with.
const reckoned = "=+-@＝＋－＠\t\r\n"

// same: with each of the filters the file has what the list has, in its order, each
// line being its item once one apostrophe is taken off, and no cell that a spreadsheet
// reckons with.
func (l listed) same(h *fixture, queries ...string) {
	h.t.Helper()
	for _, query := range queries {
		got, want := l.lines(h, query), l.items(h, query)
		if len(got) != len(want) {
			h.t.Errorf("%s%s: %d lines of %d items", l.name, query, len(got), len(want))
			continue
		}
		for i, line := range got {
			for name, cell := range line {
				if cell != "" && strings.ContainsRune(reckoned, []rune(cell)[0]) {
					h.t.Errorf("%s: a spreadsheet reckons with %s: %q", l.name, name, cell)
				}
			}
			l.people(h.t, line, 8, "Asia/Shanghai")
			item := l.cells(h.t, want[i])
			for name, cell := range line {
				cell = strings.TrimPrefix(cell, "'")
				if slices.Contains(l.inside, name) {
					var value any
					if err := json.Unmarshal([]byte(cell), &value); err != nil {
						h.t.Errorf("%s: %s is no JSON: %q", l.name, name, cell)
					}
					again, err := json.Marshal(value)
					h.check(err)
					cell = string(again)
				}
				if slices.Contains(l.ages, name) { // the list was read later
					age, err := strconv.Atoi(cell)
					later, laterErr := strconv.Atoi(item[name])
					if err != nil || laterErr != nil || later < age || later > age+60 {
						h.t.Errorf("%s: %s is %q, listed %q", l.name, name, cell, item[name])
					}
				} else if cell != lineEnd(item[name]) {
					h.t.Errorf("%s%s: %s of line %d is %q, listed %q", l.name, query, name, i, cell, item[name])
				}
				delete(item, name)
			}
			if len(item) > 0 {
				h.t.Errorf("%s: no columns for %v", l.name, slices.Sorted(maps.Keys(item)))
			}
		}
	}
}

// lineEnd is a text with the one form of line end that files have.
func lineEnd(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
}

// like: the file is of the form that all files have, and refuses what the list refuses.
func (l listed) like(h *fixture, first string, refused map[string]string) {
	h.t.Helper()
	r := l.get(h, "")
	kind, params, err := mime.ParseMediaType(r.header.Get("Content-Disposition"))
	if r.header.Get("Content-Type") != "text/csv; charset=utf-8" || err != nil || kind != "attachment" ||
		!strings.HasPrefix(params["filename"], l.name+"-") ||
		!strings.HasSuffix(params["filename"], ".csv") || r.header.Get("Cache-Control") != "no-store" || r.header.Get("X-Request-Id") == "" {
		h.t.Errorf("%s: %v", l.name, r.header)
	}
	if !bytes.HasPrefix(r.body, []byte(first)) {
		h.t.Errorf("%s: %.200s", l.name, r.body)
	}
	if rest, ok := bytes.CutPrefix(l.get(h, "?bom=true").body, []byte("\ufeff")); !ok || !bytes.HasPrefix(rest, []byte(first)) {
		h.t.Errorf("%s with a byte order mark: %.200q", l.name, rest)
	}
	for _, line := range l.lines(h, "?tz=Asia%2FTokyo") {
		l.people(h.t, line, 9, "Asia/Tokyo")
	}
	for _, common := range []string{"tz=Mars", "bom=1", "bom=true&bom=true", "limit=5", "cursor=x", "format=xlsx"} {
		refused[common], _, _ = strings.Cut(common, "=")
	}
	for query, field := range refused {
		r := l.get(h, "?"+query)
		if got := fieldsOf(h.t, r); r.status != http.StatusUnprocessableEntity || r.header.Get("Content-Type") != "application/problem+json" ||
			r.header.Get("Content-Disposition") != "" || len(got) != 1 || !strings.HasPrefix(got[0], field+" ") {
			h.t.Errorf("%s?%s: %s", l.name, query, r)
		}
	}
}

// TestExportRefunds: the list of refunds as a file, with its filters.
func TestExportRefunds(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	for sender := range hostile { // the refunded senders
		id := h.open(h.app, with("sender_id", quote(strings.TrimSuffix(sender, "~frozen")), "total_amount", "300", "share_count", "3", "split",
			`"equal"`))
		if r := h.grab(h.app, id, "winner"); r.status != http.StatusCreated {
			t.Fatalf("%s", r)
		}
		h.finish(id, "recalled")
	}
	packet, bad := h.failed()
	approval := h.decided(h.write(h.finance, "payouts/"+bad+"/cancel", "c", because), "waiting").Approval.ID
	if r := h.write(h.colleague(), "approvals/"+approval+"/approve", "a", because); r.status != http.StatusAccepted {
		t.Fatalf("%s", r)
	}
	h.drive(bad)
	h.faults(`{"op":"refund","kind":"decline","rate":1}`)
	_, declined := h.remaindered("unlucky")
	l := listedRefunds
	l.like(h, "id,packet_id,kind,payout_id,user_id,amount,currency,status,order_no,provider,",
		map[string]string{"status=x": "status", "late=1": "late", "amount_min=2&amount_max=1": "amount_max"})
	l.same(h, "", "?status=failed", "?packet_id="+packet, "?packet_id=x", "?user_id=unlucky", "?late=true", "?late=false", "?amount_min=201",
		"?amount_max=0", "?older_than_seconds=60", "?failure_code=declined", "?user_id=%3Dcmd%7C%27%2Fc+calc%27%21A1")
	var kinds []string
	for _, line := range l.lines(h, "") {
		kinds = append(kinds, line["kind"]+" "+line["status"])
	}
	slices.Sort(kinds)
	if got := slices.Compact(kinds); !slices.Equal(got, []string{"cancel pending", "remainder failed", "remainder paid"}) {
		t.Errorf("%q: not every kind of refund was looked at", got)
	}
	h.exec(h.dsn, "UPDATE payments SET created_at = created_at - INTERVAL 6 MINUTE WHERE id = '"+declined+"'")
	l.same(h, "?late=true", "?late=true&status=failed")
	if got := l.lines(h, "?late=true"); len(got) != 1 || got[0]["failure_code"] == "" {
		t.Errorf("late: %v", got)
	}
}

// quote is a text in JSON.
func quote(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// TestExportPackets: the list of packets as a file, whichever store knows of them, and
// whatever senders and apps have put in.
func TestExportPackets(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	for text := range hostile {
		id := h.open(h.app, with("sender_id", quote(strings.TrimSuffix(text, "~frozen")), "greeting", quote(text), "group_id", quote(text),
			"metadata", `{`+quote(text)+`:`+quote(text)+`,"b":"<&>"}`))
		h.grab(h.app, id, "winner")
		if text == "-1" {
			h.finish(id, "recalled")
		}
	}
	h.grab(h.app, h.open(h.app, with("share_count", "1", "max_share", "1000")), "all of it")
	h.stage(h.app, "staged")
	h.create(h.app2, "later", with("opens_at", quote(time.Now().Add(time.Hour).UTC().Format(time.RFC3339))))
	h.create(h.app, "declined", with("sender_id", `"x~broke"`))
	overdue := h.open(h.app, with("sender_id", `"slow"`))
	h.exec(h.dsn, "UPDATE packets SET created_at = created_at - INTERVAL 2 HOUR, opens_at = created_at, expires_at = created_at + INTERVAL "+
		"1 HOUR WHERE id = '"+overdue+"'")
	l := listedPackets
	l.like(h, "id,app,status,stored_status,close_reason,sender_id,currency,total_amount,",
		map[string]string{"status=x": "status", "overdue=1": "overdue", "created_from=x": "created_from", "sender_id=%00": "sender_id"})
	from := url.QueryEscape(time.Now().Add(-time.Hour).UTC().Format(time.RFC3339))
	l.same(h, "", "?app="+h.app2.app.ID, "?sender_id=%2B86+138", "?status=closed&sender_id=-1", "?overdue=true", "?overdue=false",
		"?created_from="+from, "?created_to="+from, "?created_from="+from+"&status=open", "?sender_id=nobody")
	seen := map[string]bool{}
	for _, line := range l.lines(h, "") {
		seen[line["status"]] = true
	}
	for status := range seen {
		l.same(h, "?status="+status)
	}
	if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, []string{"closed", "closing", "funding", "open", "rejected", "scheduled",
		"sold_out"}) {
		t.Errorf("%q: not every status was looked at", got)
	}
}

// TestExportAudit: the audit as a file, whatever people give as reasons, for auditors alone.
func TestExportAudit(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	_, bad := h.failed()
	for i, reason := range slices.Sorted(maps.Keys(hostile)) {
		if r := h.write(h.finance, "payouts/"+bad+"/ask", fmt.Sprint("ask", i), `{"reason":`+quote(reason+"\n=1+1\n\"-2")+
			`}`); r.status != http.StatusAccepted {
			t.Fatalf("%s", r)
		}
	}
	h.decided(h.write(h.finance, "payouts/"+bad+"/cancel", "c", because), "waiting")
	h.exec(h.dsn, `INSERT INTO audit (seq, at, actor, role, action, subject, reason, before_is, after_is, hash)
		VALUES (999, NOW(3) + INTERVAL 1 HOUR, '=HYPERLINK("x")', 'finance', 'tampered', '@x', '\t=1', '=1', '{"a":"=1"}', REPEAT('h', 32))`)
	l := listedAudit
	l.like(h, "seq,at,actor,role,action,subject,reason,before,after,hash,at_local,local_zone,key_id\r\n",
		map[string]string{"from=x": "from", "actor=": "actor", "to=1": "to"})
	now := url.QueryEscape(time.Now().Add(time.Minute).UTC().Format(time.RFC3339))
	l.same(h, "", "?action=ask", "?action=cancel&subject="+bad, "?actor=nobody", "?from="+now, "?to="+now, "?actor=%3DHYPERLINK%28%22x%22%29")
	if n := len(l.lines(h, "?to="+now)); n != len(hostile)+1 {
		t.Errorf("%d lines", n)
	}
	if r := h.as(h.finance, "GET", "/v1/staff/export/audit.csv", ""); r.code() != "forbidden" {
		t.Errorf("finance: %s", r)
	}
}

// TestExportBreaks: the list of breaks as a file, whatever the provider calls an order and
// people give as reasons.
func TestExportBreaks(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	packet, bad := h.failed()
	db := h.database(h.dsn)
	for text := range hostile {
		_, err := db.ExecContext(t.Context(), `INSERT INTO breaks (kind, packet_id, payment_id, order_no, user_id, detail, provider, amount,
			reconciliation_id, created_at, last_seen)
			VALUES ('foreign_order', '', '', ?, ?, ?, 'sandbox', 7, 'run1', NOW(3) - INTERVAL 1 HOUR, NOW(3))`, text, text, text+"\r\n=1")
		h.check(err)
	}
	h.exec(h.dsn, `INSERT INTO breaks (kind, packet_id, payment_id, order_no, detail, created_at, last_seen)
		VALUES ('mismatch', '`+packet+`', '`+bad+`', '1', '', NOW(3), NOW(3)), ('pool_lost', '', 'lane/3', 'epoch/1', '', NOW(3), NOW(3))`)
	l := listedBreaks
	for i, b := range h.breaks("?kind=foreign_order&resolved=false").Items {
		if i%2 == 0 {
			continue
		}
		if r := h.write(h.finance, "breaks/"+b.ID+"/resolve", fmt.Sprint("resolve", i), `{"reason":`+quote(*b.OrderNo+"\n+1")+
			`}`); r.status != http.StatusOK {
			t.Fatalf("%s", r)
		}
	}
	r := h.write(h.finance, "breaks/"+h.breaks("?kind=mismatch").Items[0].ID+"/resolve", "m", because)
	if item := l.items(h, "?kind=mismatch")[0]; r.status != http.StatusOK || !jsonEqual(t, r.body, item) ||
		!strings.Contains(string(item), `"payment_amount":250`) {
		t.Errorf("resolved: %s, listed %s", r, item)
	}
	l.like(h, "id,kind,packet_id,payment_id,order_no,user_id,detail,provider,amount,payment_amount,",
		map[string]string{"resolved=x": "resolved", "kind=%C3%A9": "kind", "older_than_seconds=-1": "older_than_seconds"})
	l.same(h, "", "?resolved=true", "?resolved=false", "?kind=foreign_order", "?kind=pool_lost&resolved=false", "?packet_id="+packet,
		"?packet_id=x", "?reconciliation_id=run1", "?reconciliation_id=run1&resolved=true", "?older_than_seconds=1800")
	if n := len(l.lines(h, "?older_than_seconds=1800")); n != len(hostile) {
		t.Errorf("%d lines", n)
	}
}

// TestExportApprovals: the list of decisions that need a second person as a file, whatever
// people write, about payouts and refunds, in every status.
func TestExportApprovals(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	_, bad := h.failed()
	_, other := h.failed()
	for i, text := range slices.Sorted(maps.Keys(hostile)) {
		approval := h.decided(h.write(h.finance, "payouts/"+bad+"/mark-paid", fmt.Sprint("mark", i), `{"reason":`+quote(text+"\n=1")+
			`,"evidence":`+quote(text)+`}`), "waiting").Approval.ID
		if r := h.write(h.colleague(), "approvals/"+approval+"/reject", fmt.Sprint("reject", i), `{"reason":`+quote(text)+
			`}`); r.status != http.StatusOK && r.status != http.StatusAccepted {
			t.Fatalf("%s", r)
		}
	}
	h.decided(h.write(h.finance, "payouts/"+bad+"/cancel", "c", because), "waiting")
	late := h.decided(h.write(h.finance, "payouts/"+other+"/cancel", "c2", because), "waiting").Approval.ID
	h.exec(h.dsn, `UPDATE decisions SET expires_at = NOW(3) - INTERVAL 1 SECOND WHERE approval_id = '`+late+`'`)
	l := listedApprovals
	l.like(h, "id,status,kind,payment_id,packet_id,user_id,amount,payment_status,decided_by,",
		map[string]string{"status=x": "status", "by_others=1": "by_others"})
	l.same(h, "?payment_id="+bad, "?by_others=true", "?by_others=false", "", "?status=waiting", "?status=rejected", "?status=expired",
		"?status=open", "?status=carried_out")
	for query, want := range map[string]int{"": len(hostile) + 2, "?status=rejected": len(hostile), "?status=waiting": 1, "?payment_id=" +
		other: 1, "?status=expired": 1, "?status=open": 0} {
		if n := len(l.lines(h, query)); n != want {
			t.Errorf("%s: %d lines, want %d", query, n, want)
		}
	}
}

// jsonEqual reports whether two texts are the same JSON.
func jsonEqual(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if err := errors.Join(json.Unmarshal(a, &x), json.Unmarshal(b, &y)); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(x, y)
}

// TestExportListsInSteps: over many steps every item is there once, in the order of the
// list, also where many have the same time.
func TestExportListsInSteps(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	const n = 2500
	h.exec(h.dsn, fmt.Sprintf(`INSERT INTO payments (id, kind, packet_id, app_id, user_id, share_index, account, amount, currency, remark,
		provider, status, attempt, created_at, updated_at, settled_at)
		SELECT CONCAT('r', LPAD(seq, 20, '0'), '0000'), 'r', LPAD(seq, 20, '0'), 'app', 's', -1, 'a', 1 + seq MOD 7, 'CNY', '', 'sandbox',
		IF(seq MOD 3, 'paid', 'unknown'), 0, NOW(3) - INTERVAL seq DIV 1500 SECOND, NOW(3), IF(seq MOD 3, NOW(3), NULL) FROM seq_1_to_%d`, n))
	// Packets whose status depends on Redis: the first two steps find none that match.
	h.open(h.app, with())
	h.exec(h.dsn, fmt.Sprintf(`INSERT INTO packets (id, app_id, sender_id, currency, total_amount, share_count, split, min_share, max_share,
		greeting, metadata, body_hash, commitment, sealed_seed, charge_provider, payout_provider, status, failure_code,
		created_at, opens_at, expires_at, updated_at)
		SELECT LPAD(LOWER(CONV(seq, 10, 32)), 20, '0'), 'app', 's', 'CNY', 100, 1, 'equal', 1, 0, '', '{}', 'h', 'c', 's', 'sandbox', 'sandbox',
		IF(seq > %[1]d, 'open',
		'rejected'), IF(seq > %[1]d, NULL, 'declined'), NOW(3) + INTERVAL 60 - seq DIV 1500 MINUTE, NOW(3) + INTERVAL 2 HOUR,
		NOW(3) + INTERVAL 1 DAY, NOW(3) FROM seq_1_to_%[2]d`, n, n+4100))
	h.exec(h.dsn, fmt.Sprintf(`INSERT INTO audit (seq, at, actor, role, action, subject, reason, before_is, after_is, hash)
		SELECT seq, NOW(3) - INTERVAL seq DIV 1500 SECOND, 'li-na', 'finance', IF(seq MOD 2, 'ask', 'retry'), 'x', '', 'null', 'null', REPEAT('h',
		32) FROM seq_1_to_%d`, n))
	h.exec(h.dsn, fmt.Sprintf(`INSERT INTO breaks (kind, packet_id, payment_id, order_no, detail, created_at, last_seen, resolved_at,
		resolved_by, reason, reconciliation_id)
		SELECT 'not_in_statement', 'one', CONCAT('x', seq), '', '', NOW(3) - INTERVAL seq DIV 1500 SECOND, NOW(3), IF(seq MOD 2, NULL, NOW(3)),
		'li-na', 'found', 'run' FROM seq_1_to_%d`, n))
	for _, tc := range []struct {
		list  listed
		query string
		key   string // column that identifies an item
		want  int
	}{
		{listedRefunds, "", "id", n}, {listedRefunds, "?status=unknown", "id", n / 3},
		{listedPackets, "?status=rejected", "id", n}, {listedPackets, "?status=open", "id", 1},
		{listedBreaks, "", "id", n}, {listedBreaks, "?resolved=false", "id", n / 2}, {listedBreaks, "?resolved=true", "id", n / 2},
		{listedBreaks, "?packet_id=one", "id", n}, {listedBreaks, "?reconciliation_id=run", "id", n}, {listedAudit, "", "seq", n},
		{listedAudit, "?action=ask", "seq", n / 2}, {listedAudit, "?actor=li-na", "seq", n}, {listedAudit, "?subject=x", "seq", n},
	} {
		var order []string
		for _, line := range tc.list.lines(h, tc.query) {
			order = append(order, cmp.Or(line["created_at"], line["at"])+" "+fmt.Sprintf("%025s", strings.TrimPrefix(line[tc.key], "'")))
		}
		newest := slices.Clone(order)
		slices.Sort(newest)
		slices.Reverse(newest)
		if !slices.Equal(order, newest) || len(slices.Compact(newest)) != tc.want {
			t.Errorf("%s%s: %d lines, want %d", tc.list.name, tc.query, len(order), tc.want)
		}
	}
}
