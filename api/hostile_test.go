package api_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// hostileTexts are put wherever a client may write something.
var hostileTexts = []string{
	"", "\x00", "\xff", "\xed\xa0\x80", "🧧", `'"\`, "%zz", "../..", "a\r\nb", "-1", "1e9", "null", "9223372036854775808",
	"0000-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", strings.Repeat("中", 200), strings.Repeat("0", 20), "p" + strings.Repeat("v", 24),
	"b9223372036854775807",
}

// hostileValues are put wherever a cursor or a body has a value.
var hostileValues = []string{
	`null`, `-1`, `9223372036854775807`, `1e400`, `""`, `"\u0000"`, `"🧧"`, `"\ud800"`, `[]`, `{"a":1,"a":2}`,
	`"0000-01-01T00:00:00Z"`, `"9999-12-31T23:59:59.999999999-23:59"`, `"` + strings.Repeat("x", 300) + `"`,
	`{"status":"🧧"}`, `{"from":"0000-01-01T00:00:00Z"}`, `{"older_than_seconds":"8589934592"}`, strings.Repeat(`[`, 2000) +
		strings.Repeat(`]`, 2000),
}

// TestBadInputIsReported: whatever a client who may call an operation writes into its
// path, its parameters, its cursor or its body, the answer is its own fault and
// never ours.
func TestBadInputIsReported(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	for i, second := 0, m.colleague(); i < 2; i++ { // the balance of the app has more than one movement
		m.credited(i, second)
	}
	asked := 0
	ask := func(id string, c call) {
		t.Helper()
		asked++
		c.loose = true
		if r := m.do(c); r.status >= http.StatusInternalServerError {
			t.Errorf("%s: %s %.300s %.300s: %.300s", id, c.method, c.path, c.body, r)
		}
	}
	m.each(func(id string, row matrixRow, method string) {
		if method == http.MethodHead || row.who == everybody {
			return
		}
		one := m.callOf(row, method, strings.Fields(row.who)[0])
		item, operation := m.pathOf(id)
		for _, changed := range otherPaths(item, row.path) {
			c := one
			c.path = changed
			ask(id, c)
		}
		for _, p := range operation {
			for _, text := range hostileTexts {
				c := one
				if c.path += "?" + p + "=" + url.QueryEscape(text); strings.Contains(row.path, "?") {
					c.path = strings.Replace(row.path, "?", "?"+p+"="+url.QueryEscape(text)+"&", 1)
				}
				ask(id, c)
			}
		}
		if slices.Contains(operation, "cursor") {
			for _, cursor := range m.forgeries(one) {
				c := one
				if strings.Contains(c.path, "?") {
					c.path += "&cursor=" + cursor
				} else {
					c.path += "?cursor=" + cursor
				}
				ask(id, c)
			}
		}
		for i, body := range otherBodies(row.body) {
			c := one
			c.body = body
			if id != "createPacket" { // whose key is used: nobody funds what is good by chance
				c.header = map[string]string{"Idempotency-Key": fmt.Sprint("hostile-", id, i)}
			}
			ask(id, c)
		}
	})
	if asked < 2000 {
		t.Errorf("only %d requests", asked)
	}
}

// pathOf returns the path of an operation as the document has it, and the names
// of its parameters of the query.
func (m *matrix) pathOf(id string) (path string, query []string) {
	for path, item := range m.doc.doc.Paths.Map() {
		for _, operation := range item.Operations() {
			if operation.OperationID != id {
				continue
			}
			for _, p := range operation.Parameters {
				if p.Value.In == "query" {
					query = append(query, p.Value.Name)
				}
			}
			return path, query
		}
	}
	return "", nil
}

// otherPaths puts hostile texts into each parameter of a path.
func otherPaths(documented, path string) (all []string) {
	names, values := strings.Split(documented, "/"), strings.Split(path, "/")
	for i, name := range names {
		if !strings.HasPrefix(name, "{") {
			continue
		}
		for _, text := range hostileTexts {
			changed := slices.Clone(values)
			changed[i] = url.PathEscape(text)
			all = append(all, strings.Join(changed, "/"))
		}
	}
	return append(all, strings.Join(values, "/")+"%zz")
}

// forgeries are cursors like the one that a list gives, with every value changed.
func (m *matrix) forgeries(list call) (all []string) {
	m.t.Helper()
	if strings.Contains(list.path, "?") {
		list.path += "&limit=1"
	} else {
		list.path += "?limit=1"
	}
	r := m.do(list)
	var page struct {
		Next *string `json:"next_cursor"`
	}
	r.json(m.t, &page)
	if page.Next == nil {
		m.t.Fatalf("%s has one page only: %s", list.path, r)
	}
	text, err := base64.RawURLEncoding.DecodeString(*page.Next)
	m.check(err)
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		m.t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		for _, value := range hostileValues {
			changed := maps.Clone(members)
			changed[name] = json.RawMessage(value)
			var parts []string
			for n, v := range changed {
				parts = append(parts, `"`+n+`":`+string(v))
			}
			all = append(all, base64.RawURLEncoding.EncodeToString([]byte("{"+strings.Join(parts, ",")+"}")))
		}
	}
	return all
}

// otherBodies are bodies like a good one, with every value changed.
func otherBodies(good string) (all []string) {
	if good == "" {
		return nil
	}
	all = slices.Clone(hostileValues)
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(good), &members) != nil {
		return all
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		for _, value := range hostileValues {
			all = append(all, strings.Replace(good, `"`+name+`":`+string(members[name]), `"`+name+`":`+value, 1))
		}
	}
	return all
}
