package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
)

// fieldsOf lists what a 422 complains about as "field code".
func fieldsOf(t *testing.T, r result) []string {
	t.Helper()
	var p struct {
		Errors []struct{ Field, Code, Message string }
	}
	r.json(t, &p)
	var out []string
	for _, e := range p.Errors {
		if e.Message == "" {
			t.Errorf("no message: %s", r)
		}
		out = append(out, e.Field+" "+e.Code)
	}
	return out
}

// with returns a good create request with some members changed; "" removes one.
func with(changes ...string) string {
	members := []string{"sender_id", `"u1"`, "total_amount", "1000", "share_count", "10"}
	for i := 0; i < len(changes); i += 2 {
		at := slices.Index(members, changes[i])
		if at < 0 {
			members = append(members, changes[i], changes[i+1])
			continue
		}
		members[at+1] = changes[i+1]
	}
	var parts []string
	for i := 0; i < len(members); i += 2 {
		if members[i+1] != "" {
			parts = append(parts, fmt.Sprintf("%q:%s", members[i], members[i+1]))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func TestCreateFields(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	const max = "9007199254740991"
	ids := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"u%d"`, i))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	for _, c := range []struct {
		name, body string
		want       []string
	}{
		{"empty object", `{}`, []string{"sender_id required", "total_amount required", "share_count required"}},
		{"null required", with("sender_id", "null"), []string{"sender_id required"}},
		{"array", `[]`, []string{" wrong_type"}},
		{"string", `"x"`, []string{" wrong_type"}},
		{"null", `null`, []string{" wrong_type"}},
		{"unknown", with("Greeting", `"x"`), []string{"Greeting unknown_field"}},
		{"case", `{"Sender_id":"u","total_amount":1,"share_count":1}`, []string{"sender_id required", "Sender_id unknown_field"}},
		{"duplicate", `{"sender_id":"u","sender_id":"u","total_amount":1,"share_count":1}`, []string{"sender_id duplicate"}},
		{"escaped duplicate", `{"sender_id":"u","sender\u005fid":"v","total_amount":1,"share_count":1}`, []string{"sender_id duplicate"}},
		{"unknown duplicate", with("x", `1,"x":2`), []string{"x duplicate", "x unknown_field", "x unknown_field"}},
		{"all types", `{"sender_id":1,"total_amount":"1","share_count":true,"split":1,"min_share":[],"max_share":{},"currency":1,"greeting":1,"opens_at":1,` +
			`"expires_in_seconds":"1","eligible_user_ids":{},"group_id":1,"metadata":[]}`,
			[]string{"sender_id wrong_type", "total_amount wrong_type", "share_count wrong_type", "split wrong_type", "min_share wrong_type",
				"max_share wrong_type",
				"currency wrong_type", "greeting wrong_type", "opens_at wrong_type", "expires_in_seconds wrong_type", "eligible_user_ids wrong_type",
				"group_id wrong_type", "metadata wrong_type"}},
		{"float", with("total_amount", "1000.0"), []string{"total_amount not_an_integer"}},
		{"exponent", with("total_amount", "1e3"), []string{"total_amount not_an_integer"}},
		{"count float", with("share_count", "1.5"), []string{"share_count not_an_integer"}},
		{"huge", with("total_amount", "1"+strings.Repeat("0", 400)), []string{"total_amount out_of_range"}},
		{"2^63", with("total_amount", "9223372036854775808"), []string{"total_amount out_of_range"}},
		{"2^53", with("total_amount", "9007199254740992"), []string{"total_amount out_of_range"}},
		{"negative", with("total_amount", "-1"), []string{"total_amount out_of_range"}},
		{"minus zero", with("total_amount", "-0"), []string{"total_amount out_of_range"}},
		{"zero shares", with("share_count", "0"), []string{"share_count out_of_range"}},
		{"too many shares", with("share_count", "1000001"), []string{"share_count out_of_range"}},
		{"2^32+1 shares", with("share_count", "4294967297"), []string{"share_count out_of_range"}},
		{"less than a fen", with("total_amount", "9"), []string{"total_amount total_too_small"}},
		{"min product wraps", with("min_share", max, "share_count", "1000000"), []string{"total_amount total_too_small"}},
		{"min zero", with("min_share", "0"), []string{"min_share out_of_range"}},
		{"max zero", with("max_share", "0"), []string{"max_share out_of_range"}},
		{"max 2^53", with("max_share", "9007199254740992"), []string{"max_share out_of_range"}},
		{"max 2^63-1", with("max_share", "9223372036854775807"), []string{"max_share out_of_range"}},
		{"max 2^63", with("max_share", "9223372036854775808"), []string{"max_share out_of_range"}},
		{"min 2^53", with("min_share", "9007199254740992"), []string{"min_share out_of_range"}},
		{"all 2^63", with("total_amount", "9223372036854775808", "min_share", "9223372036854775808", "max_share", "9223372036854775808",
			"share_count", "9223372036854775808"),
			[]string{"total_amount out_of_range", "share_count out_of_range", "min_share out_of_range", "max_share out_of_range"}},
		{"max below min", with("min_share", "5", "max_share", "4"), []string{"max_share out_of_range"}},
		{"cap too low", with("max_share", "99"), []string{"total_amount total_too_large"}},
		{"split", with("split", `"Random"`), []string{"split unknown_split"}},
		{"currency", with("currency", `"USD"`), []string{"currency not_allowed"}},
		{"sender empty", with("sender_id", `""`), []string{"sender_id wrong_length"}},
		{"sender 65 bytes", with("sender_id", quoted(strings.Repeat("界", 21)+"xx")), []string{"sender_id wrong_length"}},
		{"sender NUL", with("sender_id", `"a\u0000b"`), []string{"sender_id invalid_characters"}},
		{"sender newline", with("sender_id", `"a\n"`), []string{"sender_id invalid_characters"}},
		{"sender C1", with("sender_id", `"a\u0085"`), []string{"sender_id invalid_characters"}},
		{"greeting 65", with("greeting", quoted(strings.Repeat("福", 65))), []string{"greeting wrong_length"}},
		{"greeting control", with("greeting", `"a\tb"`), []string{"greeting invalid_characters"}},
		{"life short", with("expires_in_seconds", "9"), []string{"expires_in_seconds out_of_range"}},
		{"life long", with("expires_in_seconds", "604801"), []string{"expires_in_seconds out_of_range"}},
		{"opens_at", with("opens_at", `"tomorrow"`), []string{"opens_at invalid_format"}},
		{"opens_at no zone", with("opens_at", `"2026-01-01T00:00:00"`), []string{"opens_at invalid_format"}},
		{"opens_at zone of a day", with("opens_at", `"2026-01-01T00:00:00+24:00"`), []string{"opens_at invalid_format"}},
		{"opens_at year 10000", with("opens_at", `"9999-12-31T23:59:59-23:00"`), []string{"opens_at invalid_format"}},
		{"opens_at year 0", with("opens_at", `"0000-01-01T00:00:00+23:00"`), []string{"opens_at invalid_format"}},
		{"opened long ago", with("opens_at", `"2001-01-01T00:00:00Z"`), []string{"opens_at out_of_range"}},
		{"opens in 400 years", with("opens_at", `"2400-01-01T00:00:00Z"`), []string{"opens_at out_of_range"}},
		{"nobody eligible", with("eligible_user_ids", "[]"), []string{"eligible_user_ids wrong_length"}},
		{"too many eligible", with("eligible_user_ids", ids(10_001)), []string{"eligible_user_ids wrong_length"}},
		{"eligible twice", with("eligible_user_ids", `["a","b","a"]`), []string{"eligible_user_ids[2] duplicate"}},
		{"eligible types", with("eligible_user_ids", `["a",1,null,""]`),
			[]string{"eligible_user_ids[1] wrong_type", "eligible_user_ids[2] wrong_type", "eligible_user_ids[3] wrong_length"}},
		{"group", with("group_id", `""`), []string{"group_id wrong_length"}},
		{"metadata value", with("metadata", `{"a":1,"b":null,"c":{}}`),
			[]string{"metadata.a wrong_type", "metadata.b wrong_type", "metadata.c wrong_type"}},
		{"funding no object", with("funding", `"sender"`), []string{"funding wrong_type"}},
		{"funding source", with("funding", `{"source":"bank"}`), []string{"funding.source not_allowed"}},
		{"funding method", with("funding", `{"method":"cash"}`), []string{"funding.method not_allowed"}},
		{"funding member", with("funding", `{"bank":"x"}`), []string{"funding.bank unknown_field"}},
		{"metadata duplicate", with("metadata", `{"a":"1","a":"1"}`), []string{"metadata.a duplicate"}},
		{"metadata large", with("metadata", `{"a":`+quoted(strings.Repeat("x", 2048))+`,"b":"x"}`), []string{"metadata wrong_length"}},
		{"metadata in bytes", with("metadata", `{"a":`+quoted(strings.Repeat("界", 683))+`}`), []string{"metadata wrong_length"}},
		{"metadata names", with("metadata", `{`+quoted(strings.Repeat("n", 2049))+`:""}`), []string{"metadata wrong_length"}},
	} {
		r := h.post(h.app, "k", c.body)
		if r.status != http.StatusUnprocessableEntity || r.code() != "invalid_request" || !slices.Equal(fieldsOf(t, r), c.want) {
			t.Errorf("%s: want %v, got %.600s", c.name, c.want, r)
		}
		if strings.Contains(string(r.body), "9223372036854775807") {
			t.Errorf("%s: no amount is that large, whatever a number may be: %.600s", c.name, r)
		}
	}
	if r := h.post(h.app, "k", with("eligible_user_ids", "["+strings.Repeat("1,", 9_999)+"1]")); len(fieldsOf(t, r)) != 100 {
		t.Errorf("faults are not bounded: %.300s", r)
	}
	long := strings.Repeat("n", 100_000)
	if r := h.post(h.app, "k", with(long, "1")); len(r.body) > 1000 || r.code() != "invalid_request" {
		t.Errorf("a long name is repeated: %.300s", r)
	}
}

// TestCreateLimits: what is just allowed.
func TestCreateLimits(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	var ids []string
	for i := range 10_000 {
		ids = append(ids, fmt.Sprintf("%q", fmt.Sprintf("%064d", i)))
	}
	for name, body := range map[string]string{
		"largest total": with("total_amount", "9007199254740991", "share_count", "3"),
		"all defaults": with("split", "null", "min_share", "null", "max_share", "null", "currency", "null", "greeting", "null", "opens_at",
			"null", "expires_in_seconds", "null", "eligible_user_ids", "null", "group_id", "null", "metadata", "null"),
		"all members": with("split", `"normal"`, "min_share", "10", "max_share", "200", "currency", `"CNY"`, "greeting",
			quoted(strings.Repeat("福", 64)), "expires_in_seconds", "604800",
			"eligible_user_ids", `["a","A","a "]`, "group_id", quoted(strings.Repeat("g", 64)), "metadata", `{"":"","a":"<&>\u2028","\u0000":"x"}`,
			"sender_id", quoted(strings.Repeat("s", 64))),
		"10,000 eligible":  with("eligible_user_ids", "["+strings.Join(ids, ",")+"]"),
		"metadata":         with("metadata", `{"a":`+quoted(strings.Repeat("x", 2048))+`}`),
		"metadata escaped": with("metadata", `{"a":`+quoted(strings.Repeat("<", 700)+strings.Repeat(">", 600)+strings.Repeat("&", 748))+`}`),
		"metadata largest": with("metadata", `{"a":"`+strings.Repeat(`\u0001`, 2048)+`","b`+strings.Repeat(`\u0002`, 2046)+`":""}`),
		"white space":      " \n\t" + with("greeting", `""`) + strings.Repeat(" ", 1<<20-200),
	} {
		id, r := h.create(h.app, strings.ReplaceAll(name, " ", "-"), body)
		if r.status != http.StatusCreated {
			t.Errorf("%s: %.300s", name, r)
			continue
		}
		var in, out map[string]any
		result{body: []byte(body)}.json(t, &in)
		r.json(t, &out)
		for member, value := range in {
			if _, ok := out[member]; ok && value != nil && fmt.Sprint(value) != fmt.Sprint(out[member]) {
				t.Errorf("%s: %s: %v was returned as %v", name, member, value, out[member])
			}
		}
		if got := h.as(h.app, "GET", "/v1/packets/"+id, ""); string(got.body) != string(r.body) {
			t.Errorf("%s: created\n%s, read\n%s", name, r, got)
		}
	}
}

// TestBodies: what is not a body of JSON.
func TestBodies(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	grabs := "/v1/packets/" + anonymous + "/grabs"
	good := `{"user_id":"u"}`
	for name, c := range map[string]struct {
		path, body string
		header     map[string]string
		chunked    bool
		status     int
	}{
		"none":                  {grabs, "", nil, false, 400},
		"space":                 {grabs, " ", nil, false, 400},
		"cut off":               {grabs, `{"user_id":"u"`, nil, false, 400},
		"two values":            {grabs, good + good, nil, false, 400},
		"trailing":              {grabs, good + "x", nil, false, 400},
		"trailing comma":        {grabs, `{"user_id":"u",}`, nil, false, 400},
		"comment":               {grabs, `{"user_id":"u"/**/}`, nil, false, 400},
		"single quotes":         {grabs, `{'user_id':'u'}`, nil, false, 400},
		"NaN":                   {grabs, `{"user_id":NaN}`, nil, false, 400},
		"leading zero":          {grabs, `{"user_id":01}`, nil, false, 400},
		"latin1":                {grabs, "{\"user_id\":\"\xe4\"}", nil, false, 400},
		"overlong":              {grabs, "{\"user_id\":\"\xc0\xaf\"}", nil, false, 400},
		"lone surrogate":        {grabs, `{"user_id":"\ud800"}`, nil, false, 400},
		"raw control":           {grabs, "{\"user_id\":\"a\x01\"}", nil, false, 400},
		"byte order mark":       {grabs, "\xef\xbb\xbf" + good, nil, false, 400},
		"utf-16":                {grabs, "\xff\xfe{\x00}\x00", nil, false, 400},
		"deep":                  {grabs, strings.Repeat("[", 4000), nil, false, 400},
		"form":                  {grabs, "user_id=u", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, false, 415},
		"multipart":             {grabs, "--b\r\n\r\n--b--", map[string]string{"Content-Type": "multipart/form-data; boundary=b"}, false, 415},
		"no type":               {grabs, good, map[string]string{"Content-Type": ""}, false, 415},
		"json-like type":        {grabs, good, map[string]string{"Content-Type": "application/json5"}, false, 415},
		"problem type":          {grabs, good, map[string]string{"Content-Type": "application/problem+json"}, false, 415},
		"broken type":           {grabs, good, map[string]string{"Content-Type": "application/json; ;"}, false, 415},
		"gzip":                  {grabs, good, map[string]string{"Content-Encoding": "gzip"}, false, 415},
		"charset":               {grabs, good, map[string]string{"Content-Type": "Application/JSON; charset=utf-8"}, false, 404},
		"accept":                {grabs, good, map[string]string{"Accept": "text/html;q=0.1"}, false, 404},
		"chunked":               {grabs, good, nil, true, 404},
		"64 KiB":                {grabs, good + strings.Repeat(" ", 64<<10-len(good)), nil, false, 404},
		"64 KiB, chunked":       {grabs, good + strings.Repeat(" ", 64<<10-len(good)), nil, true, 404},
		"64 KiB + 1":            {grabs, good + strings.Repeat(" ", 64<<10+1-len(good)), nil, false, 413},
		"64 KiB + 1, chunked":   {grabs, good + strings.Repeat(" ", 64<<10+1-len(good)), nil, true, 413},
		"100 KiB":               {grabs, strings.Repeat(" ", 100<<10), nil, false, 413},
		"3 MiB":                 {grabs, strings.Repeat(" ", 3<<20), nil, false, 413},
		"create 4 MiB":          {"/v1/packets", strings.Repeat(" ", 4<<20), nil, false, 400},
		"create 4 MiB + 1":      {"/v1/packets", strings.Repeat(" ", 4<<20+1), nil, false, 413},
		"create chunked 4 MiB+": {"/v1/packets", strings.Repeat(" ", 4<<20+1), nil, true, 413},
		"create 6 MiB":          {"/v1/packets", strings.Repeat(" ", 6<<20), nil, true, 413},
		"close array":           {"/v1/packets/" + anonymous + "/close", "[]", nil, false, 422},
		"close member":          {"/v1/packets/" + anonymous + "/close", `{"x":1}`, nil, false, 422},
		"close empty":           {"/v1/packets/" + anonymous + "/close", `{}`, nil, false, 404},
		"close none":            {"/v1/packets/" + anonymous + "/close", "", nil, false, 404},
		"close text":            {"/v1/packets/" + anonymous + "/close", "x", map[string]string{"Content-Type": "text/plain"}, false, 415},
	} {
		r := h.do(call{method: "POST", path: c.path, key: h.app.token, body: c.body, header: c.header, chunked: c.chunked})
		if r.status != c.status {
			t.Errorf("%s: want %d, got %.300s", name, c.status, r)
		}
		if c.status == 400 && r.code() != "malformed_json" {
			t.Errorf("%s: %s", name, r)
		}
	}
}

// TestEscapedBodies: a client that writes every character as an escape reaches the bounds
// of the fields.
func TestEscapedBodies(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	escaped := func(text string) string {
		var b strings.Builder
		for _, unit := range utf16.Encode([]rune(text)) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
		return `"` + b.String() + `"`
	}
	var guests []string
	for i := range 10000 {
		guests = append(guests, escaped(fmt.Sprintf("%064d", i)))
	}
	create := with("eligible_user_ids", "["+strings.Join(guests, ",")+"]", "greeting", escaped(strings.Repeat("😀", 64)), "metadata",
		`{"k":`+escaped(strings.Repeat("m", 2048))+`}`)
	id := h.open(h.app, create)
	grab := `{"user_id":` + guests[7] + `,"nickname":` + escaped(strings.Repeat("😀", 64)) + `,"avatar_url":` +
		escaped("https://h/"+strings.Repeat("x", 500)) + `}`
	if r := h.as(h.app, "POST", "/v1/packets/"+id+"/grabs", grab); r.status != http.StatusCreated {
		t.Errorf("%d bytes: %.300s", len(grab), r)
	}
	_, bad := h.failed()
	why := escaped(strings.Repeat("😀", 500))
	h.decided(h.write(h.finance, "payouts/"+bad+"/mark-paid", "k", `{"reason":`+why+`,"evidence":`+why+`}`), "waiting")
}

func TestGrabFields(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	for body, want := range map[string]string{
		`{}`:                            "user_id required",
		`{"user_id":null}`:              "user_id required",
		`{"user_id":5}`:                 "user_id wrong_type",
		`{"user_id":""}`:                "user_id wrong_length",
		`{"user_id":"u","x":1}`:         "x unknown_field",
		`{"user_id":"u","user_id":"u"}`: "user_id duplicate",
		`{"user_id":"` + strings.Repeat("u", 65) + `"}`:                             "user_id wrong_length",
		`{"user_id":"a\u007f"}`:                                                     "user_id invalid_characters",
		`{"user_id":"u","nickname":1}`:                                              "nickname wrong_type",
		`{"user_id":"u","nickname":"` + strings.Repeat("名", 65) + `"}`:              "nickname wrong_length",
		`{"user_id":"u","nickname":"a\nb"}`:                                         "nickname invalid_characters",
		`{"user_id":"u","avatar_url":"javascript:alert(1)"}`:                        "avatar_url invalid_format",
		`{"user_id":"u","avatar_url":"//h/x"}`:                                      "avatar_url invalid_format",
		`{"user_id":"u","avatar_url":"https://h/` + strings.Repeat("x", 512) + `"}`: "avatar_url wrong_length",
		`{"user_id":"u","recipient":""}`:                                            "recipient wrong_length",
		`{"user_id":"u","recipient":"` + strings.Repeat("r", 65) + `"}`:             "recipient wrong_length",
	} {
		r := h.as(h.app, "POST", "/v1/packets/"+anonymous+"/grabs", body)
		if r.status != 422 || !slices.Equal(fieldsOf(t, r), []string{want}) {
			t.Errorf("%.80s: want %s, got %s", body, want, r)
		}
	}
}

// TestPaths: ids in paths are bytes in percent-encoding.
func TestPaths(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	id := h.open(h.app, with("share_count", "8"))
	users := []string{"a", "A", "a ", "a/b", "a%2Fb", "用户", "a+b", "..", "?#"}
	for _, u := range users[:8] {
		if r := h.grab(h.app, id, u); r.status != 201 {
			t.Fatalf("%q: %s", u, r)
		}
	}
	for path, want := range map[string]string{
		"a": "a", "A": "A", "a%20": "a ", "a%2Fb": "a/b", "a%2fb": "a/b", "a%252Fb": "a%2Fb", "%E7%94%A8%E6%88%B7": "用户", "用户": "用户",
		"a+b": "a+b", "%2e%2e": "..", "..": "..", "%61": "a",
	} {
		r := h.as(h.app, "GET", "/v1/packets/"+id+"/grabs/"+path, "")
		var c struct {
			UserID string `json:"user_id"`
		}
		if r.status == 200 {
			r.json(t, &c)
		}
		if c.UserID != want {
			t.Errorf("%s: want %q, got %s", path, want, r)
		}
	}
	for path, code := range map[string]string{
		"b": "claim_not_found", "a%20%20": "claim_not_found", "%3F%23": "claim_not_found",
		"%00": "invalid_request", "a%0A": "invalid_request", "%FF": "invalid_request", "%zz": "invalid_request", "a%": "invalid_request",
		strings.Repeat("x", 65): "invalid_request", strings.Repeat("%E7%95%8C", 22): "invalid_request", "a/b": "not_found", "": "not_found",
	} {
		if r := h.as(h.app, "GET", "/v1/packets/"+id+"/grabs/"+path, ""); r.code() != code {
			t.Errorf("%s: want %s, got %s", path, code, r)
		}
	}
	for _, bad := range []string{"x", strings.ToUpper(id), id + "0", id[1:], "%zz", "%00", id + "%20", anonymous, strings.Repeat("x", 3000)} {
		for _, path := range []string{"", "/grabs", "/proof", "/grabs/u"} {
			if r := h.as(h.app, "GET", "/v1/packets/"+bad+path, ""); r.code() != "packet_not_found" {
				t.Errorf("%.30s%s: %s", bad, path, r)
			}
		}
	}
	if r := h.as(h.app, "GET", "/v1/packets/"+id[:1]+"%"+fmt.Sprintf("%02x", id[1])+id[2:], ""); r.status != 200 {
		t.Errorf("percent-encoded id: %s", r)
	}
}

// TestHostileHeaders: requests below the level of handlers.
func TestHostileHeaders(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	auth := "Authorization: Bearer " + h.app.token + "\r\n"
	post := "POST /v1/packets/" + anonymous + "/grabs HTTP/1.1\r\nHost: h\r\n" + auth + "Content-Type: application/json\r\n"
	for name, c := range map[string]struct {
		text   string
		status int
		code   string
	}{
		"headers too large":    {"GET /livez HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 40<<10) + "\r\n\r\n", 431, "headers_too_large"},
		"path too long":        {"GET /" + strings.Repeat("x", 40<<10) + " HTTP/1.1\r\nHost: h\r\n\r\n", 431, "headers_too_large"},
		"no version":           {"GET /livez\r\n\r\n", 400, "malformed_request"},
		"not http":             {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, "malformed_request"},
		"no colon":             {"GET /livez HTTP/1.1\r\nHost: h\r\nbroken\r\n\r\n", 400, "malformed_request"},
		"negative length":      {post + "Content-Length: -5\r\n\r\n", 400, "malformed_request"},
		"length is no number":  {post + "Content-Length: 1x\r\n\r\n{", 400, "malformed_request"},
		"body cut off":         {post + "Content-Length: 50\r\n\r\n{\"user_id\":", 400, "malformed_json"},
		"chunk cut off":        {post + "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"u", 400, "malformed_json"},
		"chunk without number": {post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", 400, "malformed_json"},
		"two keys": {strings.Replace(strings.Replace(post, "/"+anonymous+"/grabs", "", 1), "Host: h\r\n",
			"Host: h\r\nIdempotency-Key: a\r\nIdempotency-Key: a\r\n", 1) + "Content-Length: 52\r\n\r\n" +
			`{"sender_id":"u1","total_amount":10,"share_count":1}`, 400, "idempotency_key_required"},
		"key with DEL": {strings.Replace(post, "Host: h\r\n", "Host: h\r\nidempotency-key: a\x7f\r\n", 1) + "Content-Length: 2\r\n\r\n{}",
			400, "idempotency_key_required"},
		"key with NUL": {strings.Replace(post, "Host: h\r\n", "Host: h\r\nIdempotency-Key: \x00\r\n", 1) + "Content-Length: 2\r\n\r\n{}",
			400, "idempotency_key_required"},
		"key in the body": {post + "X: \x7f\r\nContent-Length: 19\r\n\r\nIdempotency-Key: \x7f", 400, "malformed_request"},
		"other with DEL": {strings.Replace(post, "Host: h\r\n", "Host: h\r\nIdempotency-Key: a\r\nX: a\x7f\r\n", 1) +
			"Content-Length: 2\r\n\r\n{}", 400, "malformed_request"},
		"read with a bad key": {"GET /livez HTTP/1.1\r\nHost: h\r\nIdempotency-Key: \x7f\r\n\r\n", 400, "malformed_request"},
		"length beyond int":   {post + "Content-Length: 99999999999999999999\r\n\r\n", 400, "malformed_request"},
		"big length, no body": {post + "Content-Length: 2000000\r\n\r\n", 400, "malformed_json"},
		"HTTP/1.0":            {"GET /livez HTTP/1.0\r\n\r\n", 200, ""},
		"absolute form":       {"GET http://h/livez HTTP/1.1\r\nHost: h\r\n\r\n", 200, ""},
	} {
		r := h.wire(h.public, c.text)
		if r.status >= 400 {
			h.doc.check(t, "WIRE", "/"+name, r)
		}
		if r.status != c.status || r.code() != c.code {
			t.Errorf("%s: want %d %s, got %s", name, c.status, c.code, r)
		}
	}
}

// TestKeepAlive: whatever is left of a refused body is not the next request.
func TestKeepAlive(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	smuggled := "GET /livez HTTP/1.1\r\nHost: h\r\n\r\n"
	text := "POST /v1/packets/" + anonymous + "/grabs HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: " +
		fmt.Sprint(9000+len(smuggled)) + "\r\n\r\n" +
		strings.Repeat(" ", 9000) + smuggled + "GET /v1/packets/" + anonymous + " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
	answers := h.wireAll(h.public, text)
	if len(answers) != 2 || answers[0].status != 401 || answers[1].status != 401 {
		t.Errorf("answers: %v", answers)
	}
}

// TestPipeline: requests of one connection, with bodies of every kind, are separated.
func TestPipeline(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	head := func(method, path string) string {
		return method + " " + path + " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + h.app.token + "\r\nContent-Type: application/json\r\n"
	}
	grabs := head("POST", "/v1/packets/"+anonymous+"/grabs")
	text := grabs + "Content-Length: 15\r\n\r\n" + `{"user_id":"u"}` + // 404
		grabs + "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"use\r\na\r\nr_id\":\"u\"}\r\n0\r\n\r\n" + // 404
		grabs + "Content-Length: 0\r\n\r\n" + // 400
		grabs + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + // 400
		head("GET", "/v1/packets/"+anonymous) + "Content-Length: 4\r\n\r\nGET " + // 404, its body is not the next request
		head("GET", "/v1/packets/"+anonymous) + "Transfer-Encoding: chunked\r\n\r\n1\r\nG\r\n0\r\n\r\n" + // 404
		grabs + "Content-Length: 70000\r\n\r\n" + strings.Repeat(" ", 70000) + // 413
		grabs + "Transfer-Encoding: chunked\r\n\r\n11170\r\n" + strings.Repeat(" ", 70000) + "\r\n0\r\n\r\n" + // 413
		grabs + "Expect: 100-continue\r\nContent-Length: 15\r\n\r\n" + `{"user_id":"u"}` + // 100, 404
		head("GET", "/livez") + "Connection: close\r\n\r\n" // 200
	var got []int
	for _, r := range h.wireAll(h.public, text) {
		got = append(got, r.status)
	}
	if want := []int{404, 404, 400, 400, 404, 404, 413, 413, 100, 404, 200}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	for sent, kept := range map[string]bool{"abc-1": true, strings.Repeat("x", 128): true, strings.Repeat("x", 129): false, "a b": false,
		"ä": false, "a\tb": false} {
		r := h.do(call{method: "GET", path: "/v1/packets/" + anonymous, key: h.app.token, header: map[string]string{"X-Request-Id": sent}})
		var p struct {
			RequestID string `json:"request_id"`
			Instance  string
		}
		r.json(t, &p)
		if got := r.header.Get("X-Request-Id"); (got == sent) != kept || got != p.RequestID || p.Instance != "/v1/packets/"+anonymous {
			t.Errorf("%q was returned as %q, %s", sent, got, r)
		}
	}
}
