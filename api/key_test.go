package api_test

import (
	"bytes"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/access"
	"hongbao/internal/devstack/stacktest"
	"hongbao/test/wait"
)

// keyBody is a key as staff reads it.
type keyBody struct {
	ID, Role, Owner, Status string
	AppID                   *string `json:"app_id"`
	Name                    *string
	LastUsedAt              *string    `json:"last_used_at"`
	ExpiresAt               *time.Time `json:"expires_at"`
	RevokedAt               *time.Time `json:"revoked_at"`
	ReplacedBy              *string    `json:"replaced_by"`
	MadeBy                  *string    `json:"made_by"`
	ApprovedBy              *string    `json:"approved_by"`
}

// issuedBody is the answer to a creation or a rotation.
type issuedBody struct {
	Key      keyBody
	Token    *string
	Replaced keyBody
}

// administrator is a person who may administer keys, and is known already.
func (h *fixture) administrator() owner {
	h.t.Helper()
	o := h.newOwner(access.RoleAdmin)
	wait.Until(h.t, "the new key is known", func() bool { return h.opens("", o) == "" })
	return o
}

// issue has a key made.
func (h *fixture) issue(who owner, path, key, body string) (issuedBody, owner) {
	h.t.Helper()
	r := h.write(who, path, key, body)
	var made issuedBody
	r.json(h.t, &made)
	if r.status != http.StatusCreated || made.Token == nil {
		h.t.Fatalf("%s", r)
	}
	return made, owner{key: access.Key{ID: made.Key.ID, Role: access.Role(made.Key.Role), Owner: made.Key.Owner}, token: *made.Token}
}

// opens returns the answer to a key from the process at base: "" or a code.
func (h *fixture) opens(base string, who owner) string {
	h.t.Helper()
	path := "/v1/staff/providers"
	if who.key.Role == access.RoleApp {
		path = "/v1/packets"
	}
	return h.do(call{method: "GET", path: path, key: who.token, base: base}).code()
}

func (h *fixture) keys(who owner, query string) map[string]keyBody {
	h.t.Helper()
	out := map[string]keyBody{}
	for cursor := ""; ; {
		var page struct {
			Items      []keyBody
			NextCursor *string `json:"next_cursor"`
		}
		h.page(who, "/v1/staff/keys?limit=3"+query+cursor, &page)
		for _, k := range page.Items {
			if _, twice := out[k.ID]; twice {
				h.t.Fatalf("%s is listed twice", k.ID)
			}
			out[k.ID] = k
		}
		if page.NextCursor == nil {
			return out
		}
		cursor = "&cursor=" + *page.NextCursor
	}
}

func TestKeyCreate(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	admin := h.administrator()
	body := fmt.Sprintf(`{"role":"app","app_id":%q,"name":"收银台","reason":"ticket 1"}`, h.app.app.ID)
	for _, who := range []owner{h.finance, h.ops, h.auditor, h.app} {
		for _, path := range []string{"keys", "keys/" + h.ops.key.ID + "/rotate", "keys/" + h.ops.key.ID + "/revoke"} {
			if r := h.write(who, path, "k", body); r.code() != "forbidden" {
				t.Errorf("%s by %s: %s", path, who.key.Role, r)
			}
		}
	}
	if r := h.write(admin, "approvals/x/approve", "k", `{"reason":"r"}`); r.code() != "forbidden" {
		t.Errorf("an administrator decides about money: %s", r)
	}
	made, shop := h.issue(admin, "keys", "k1", body)
	if k := made.Key; k.Role != "app" || *k.AppID != h.app.app.ID || k.Owner != h.app.app.ID || *k.Name != "收银台" || k.Status != "active" ||
		k.ExpiresAt != nil {
		t.Errorf("%+v", k)
	}
	if code := h.opens("", shop); code != "" {
		t.Errorf("the new key: %s", code)
	}
	again := h.write(admin, "keys", "k1", body)
	var second issuedBody
	again.json(t, &second)
	if again.status != http.StatusCreated || again.header.Get("Idempotency-Replayed") != "true" || second.Token != nil ||
		second.Key.ID != made.Key.ID {
		t.Errorf("a repeat: %s", again)
	}
	if r := h.write(admin, "keys", "k1", strings.Replace(body, "ticket 1", "ticket 2", 1)); r.code() != "idempotency_key_reused" {
		t.Errorf("another body: %s", r)
	}
	made, auditor := h.issue(admin, "keys", "k2", `{"role":"auditor","owner":"李娜","expires_in_seconds":3600,"reason":"r"}`)
	if h.opens("", auditor) != "" || made.Key.ExpiresAt == nil || time.Until(*made.Key.ExpiresAt) > time.Hour {
		t.Errorf("%+v", made.Key)
	}
	for body, field := range map[string]string{
		`{"role":"app","reason":"r"}`:                                    "app_id",
		`{"role":"app","app_id":"nobody","reason":"r"}`:                  "app_id",
		`{"role":"ops","owner":"x","app_id":"mall","reason":"r"}`:        "app_id",
		`{"role":"ops","reason":"r"}`:                                    "owner",
		`{"role":"root","owner":"x","reason":"r"}`:                       "role",
		`{"role":"ops","owner":"x"}`:                                     "reason",
		`{"role":"ops","owner":"x","reason":"r","token":"t"}`:            "token",
		`{"role":"ops","owner":"x","reason":"r","name":" "}`:             "name",
		`{"role":"ops","owner":"x","expires_in_seconds":1,"reason":"r"}`: "expires_in_seconds",
	} {
		r := h.write(admin, "keys", "k3", body)
		var p struct{ Errors []struct{ Field string } }
		r.json(t, &p)
		if r.code() != "invalid_request" || len(p.Errors) != 1 || p.Errors[0].Field != field {
			t.Errorf("%s: %s", body, r)
		}
	}
	if all := h.keys(h.auditor, ""); len(all) != 8 {
		t.Errorf("%d keys", len(all))
	}
	if some := h.keys(h.ops, "&role=app&app_id="+h.app.app.ID); len(some) != 2 || some[shop.key.ID].ID == "" {
		t.Errorf("%+v", some)
	}
	wait.Until(h.t, "last use is known", func() bool { return h.keys(admin, "")[shop.key.ID].LastUsedAt != nil })
	if k := h.keys(admin, "")[h.app2.key.ID]; k.LastUsedAt != nil {
		t.Errorf("never used: %+v", k)
	}
}

// TestKeyCreateOnce: concurrent requests with one Idempotency-Key create one key, and one of
// them gets its token.
func TestKeyCreateOnce(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	admin := h.administrator()
	const n = 8
	answers := make([]result, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { answers[i] = h.write(admin, "keys", "same", `{"role":"ops","owner":"x","reason":"r"}`) })
	}
	wg.Wait()
	returned := 0
	for _, r := range answers {
		var made issuedBody
		r.json(t, &made)
		if r.status != http.StatusCreated {
			t.Fatalf("%s", r)
		}
		if made.Token != nil {
			returned++
		}
	}
	if all := h.keys(admin, "&role=ops"); returned != 1 || len(all) != 2 {
		t.Errorf("%d tokens returned, keys %+v", returned, all)
	}
}

// TestKeyLastUseOfEnded: when a key was used last is known also of one that was ended
// right after it.
func TestKeyLastUseOfEnded(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	admin := h.administrator()
	_, revoked := h.issue(admin, "keys", "k1", `{"role":"ops","owner":"zhou","reason":"r"}`)
	_, rotated := h.issue(admin, "keys", "k2", `{"role":"ops","owner":"zhou","reason":"r"}`)
	if a, b := h.opens("", revoked), h.opens("", rotated); a != "" || b != "" {
		t.Fatalf("%q, %q", a, b)
	}
	if r := h.write(admin, "keys/"+revoked.key.ID+"/revoke", "k3", `{"reason":"it leaked"}`); r.status != http.StatusOK {
		t.Fatalf("%s", r)
	}
	h.issue(admin, "keys/"+rotated.key.ID+"/rotate", "k4", `{"grace_seconds":0,"reason":"it leaked"}`)
	wait.Until(h.t, "the last use of ended keys is known", func() bool {
		all := h.keys(admin, "&role=ops")
		return all[revoked.key.ID].LastUsedAt != nil && all[rotated.key.ID].LastUsedAt != nil
	})
}

func TestKeyRotateAndRevoke(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	admin := h.administrator()
	_, ops := h.issue(admin, "keys", "k1", `{"role":"ops","owner":"zhou","name":"n","reason":"r"}`)
	made, next := h.issue(admin, "keys/"+ops.key.ID+"/rotate", "k2", `{"grace_seconds":3600,"reason":"yearly"}`)
	if k := made.Key; k.Role != "ops" || k.Owner != "zhou" || *k.Name != "n" || k.ExpiresAt != nil || *made.Replaced.ReplacedBy != k.ID ||
		time.Until(*made.Replaced.ExpiresAt) > time.Hour || made.Replaced.Status != "active" {
		t.Errorf("%+v", made)
	}
	if a, b := h.opens("", ops), h.opens("", next); a != "" || b != "" {
		t.Errorf("within the grace: old %q, new %q", a, b)
	}
	r := h.write(admin, "keys/"+ops.key.ID+"/rotate", "k2", `{"grace_seconds":3600,"reason":"yearly"}`)
	var again issuedBody
	if r.json(t, &again); r.header.Get("Idempotency-Replayed") != "true" || again.Token != nil || again.Key.ID != next.key.ID {
		t.Errorf("a repeat: %s", r)
	}
	if r := h.write(admin, "keys/"+ops.key.ID+"/rotate", "k3", `{"grace_seconds":0,"reason":"again"}`); r.code() != "key_ended" ||
		!bytes.Contains(r.body, []byte(next.key.ID)) {
		t.Errorf("rotated twice: %s", r)
	}
	_, last := h.issue(admin, "keys/"+next.key.ID+"/rotate", "k4", `{"grace_seconds":1,"reason":"lost"}`)
	wait.Until(h.t, "the grace is over", func() bool { return h.opens("", next) == "unauthenticated" })
	if k := h.keys(admin, "")[next.key.ID]; k.Status != "expired" || k.RevokedAt != nil || h.opens("", last) != "" {
		t.Errorf("%+v", k)
	}
	revoke := `{"reason":"laptop stolen"}`
	r = h.write(admin, "keys/"+last.key.ID+"/revoke", "k5", revoke)
	var k keyBody
	if r.json(t, &k); r.status != http.StatusOK || k.Status != "revoked" || k.RevokedAt == nil {
		t.Errorf("%s", r)
	}
	if code := h.opens("", last); code != "unauthenticated" {
		t.Errorf("right after: %q", code)
	}
	var repeated keyBody
	if r = h.write(admin, "keys/"+last.key.ID+"/revoke", "k6", revoke); r.status != http.StatusOK {
		t.Errorf("repeated: %s", r)
	}
	if r.json(t, &repeated); !repeated.RevokedAt.Equal(*k.RevokedAt) {
		t.Errorf("revoked at %v, then at %v", k.RevokedAt, repeated.RevokedAt)
	}
	for path, want := range map[string]string{"keys/aaaaaaaaaaaa/revoke": "not_found", "keys/x/rotate": "not_found", "keys/" + last.key.ID +
		"/rotate": "key_ended"} {
		body := revoke
		if strings.HasSuffix(path, "rotate") {
			body = `{"grace_seconds":0,"reason":"r"}`
		}
		if r := h.write(admin, path, "k7", body); r.code() != want {
			t.Errorf("%s: %s", path, r)
		}
	}
	var lines []string
	for _, e := range h.audit("?actor=" + admin.key.Owner).Items {
		lines = append(lines, e.Role+" "+e.Action+" "+strings.NewReplacer(ops.key.ID, "1", next.key.ID, "2", last.key.ID, "3").Replace(e.Subject)+
			" "+e.Reason)
	}
	want := "admin revoke_key key/3 laptop stolen,admin rotate_key key/2 lost,admin create_key key/3 lost,admin rotate_key key/1 " +
		"yearly,admin create_key key/2 yearly,admin create_key key/1 r"
	if got := strings.Join(lines, ","); got != want {
		t.Errorf("audit\n%s, want\n%s", got, want)
	}
}

// TestKeyLockOut: a key cannot end itself or the last admin key by mistake.
func TestKeyLockOut(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	admin := h.administrator()
	own := "keys/" + admin.key.ID
	for key, c := range map[string]struct{ path, body, code string }{
		"1": {own + "/revoke", `{"reason":"r"}`, "own_key"},
		"2": {own + "/rotate", `{"grace_seconds":59,"reason":"r"}`, "own_key"},
		"3": {own + "/rotate", `{"grace_seconds":60,"expires_in_seconds":60,"reason":"r"}`, "last_admin_key"},
	} {
		r := h.write(admin, c.path, key, c.body)
		if again := h.write(admin, c.path, key, c.body); r.status != http.StatusConflict || r.code() != c.code ||
			!bytes.Equal(again.body, r.body) {
			t.Errorf("%s %s: %s, then %s", c.path, c.body, r, again)
		}
	}
	_, next := h.issue(admin, own+"/rotate", "4", `{"grace_seconds":60,"reason":"yearly"}`)
	if r := h.write(admin, "keys/"+next.key.ID+"/revoke", "5", `{"reason":"r"}`); r.code() != "last_admin_key" {
		t.Errorf("the last one: %s", r)
	}
	if r := h.write(next, own+"/revoke", "6", `{"reason":"r"}`); r.status != http.StatusOK {
		t.Errorf("the one before: %s", r)
	}
	_, other := h.issue(next, "keys", "7", fmt.Sprintf(`{"role":"admin","owner":%q,"reason":"r"}`, next.key.Owner))
	answers := make([]result, 2)
	var wg sync.WaitGroup
	for i, pair := range [][2]owner{{next, other}, {other, next}} {
		wg.Go(func() { answers[i] = h.write(pair[0], "keys/"+pair[1].key.ID+"/revoke", "8", `{"reason":"r"}`) })
	}
	wg.Wait()
	if (answers[0].status == http.StatusOK) == (answers[1].status == http.StatusOK) {
		t.Errorf("two end each other: %s and %s", answers[0], answers[1])
	}
}

// TestKeyRevokedElsewhere: a key that is revoked by one process is refused by the
// others soon, and even one that remembers it longer makes no key for it.
func TestKeyRevokedElsewhere(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	admin, thief := h.administrator(), h.administrator()
	first := h.staff
	h.another()
	second := h.staff
	h.cfg.Refresh = time.Hour
	h.another()
	slow := h.staff
	for _, base := range []string{first, second, slow} {
		wait.Until(h.t, "the key is known", func() bool { return h.opens(base, thief) == "" })
	}
	h.staff = first
	if r := h.write(admin, "keys/"+thief.key.ID+"/revoke", "k", `{"reason":"r"}`); r.status != http.StatusOK {
		t.Fatalf("%s", r)
	}
	if code := h.opens(first, thief); code != "unauthenticated" {
		t.Errorf("the process that was asked: %q", code)
	}
	wait.Until(h.t, "the other process refuses it", func() bool { return h.opens(second, thief) == "unauthenticated" })
	if code := h.opens(slow, thief); code != "" {
		t.Fatalf("the process that is late: %q", code)
	}
	h.staff = slow
	for path, body := range map[string]string{"keys": `{"role":"ops","owner":"x","reason":"r"}`, "keys/" + admin.key.ID +
		"/revoke": `{"reason":"r"}`,
		"keys/" + h.ops.key.ID + "/rotate": `{"grace_seconds":0,"reason":"r"}`} {
		if r := h.write(thief, path, "k", body); r.code() != "unauthenticated" {
			t.Errorf("%s: %s", path, r)
		}
	}
	if all := h.keys(admin, ""); len(all) != 7 {
		t.Errorf("%d keys", len(all))
	}

	// The end of a grace needs no news: the process that read of it keeps to it.
	h.staff = first
	_, old := h.issue(admin, "keys", "k1", `{"role":"ops","owner":"x","reason":"r"}`)
	made, _ := h.issue(admin, "keys/"+old.key.ID+"/rotate", "k2", `{"grace_seconds":3,"reason":"r"}`)
	wait.Until(h.t, "the late process has read it",
		func() bool { return h.opens(slow, old) == "" || time.Now().After(*made.Replaced.ExpiresAt) })
	wait.Until(h.t, "the late process refuses it", func() bool { return h.opens(slow, old) == "unauthenticated" })
}

// logbook is a log that several may write to.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestKeyNowhere: a token is in no table, Redis key, audit entry, metric or log line; its hash
// is.
func TestKeyNowhere(t *testing.T) {
	log := new(logbook)
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	t.Cleanup(func() { slog.SetDefault(before) })
	addr := stacktest.FreshRedis(t).Addr
	h := newFixture(t, parts{redis: addr})
	admin := h.administrator()
	_, one := h.issue(admin, "keys", "k1", fmt.Sprintf(`{"role":"app","app_id":%q,"reason":"r"}`, h.app.app.ID))
	_, two := h.issue(admin, "keys/"+one.key.ID+"/rotate", "k2", `{"grace_seconds":60,"reason":"r"}`)
	h.post(two, "p1", `{"sender_id":"u","total_amount":10,"share_count":1}`)
	h.write(admin, "keys", "k1", fmt.Sprintf(`{"role":"app","app_id":%q,"reason":"r"}`, h.app.app.ID))
	h.do(call{method: "GET", path: "/v1/packets", key: two.token + "x"})
	if r := h.write(admin, "keys/"+two.key.ID+"/revoke", "k3", `{"reason":"r"}`); r.status != http.StatusOK {
		t.Fatalf("%s", r)
	}
	slog.Debug("the log is kept")

	rdb := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true, Protocol: 2})
	defer rdb.Close()
	places := map[string]string{"mysql": everyRow(t, h.database(h.dsn)), "redis": everyValue(t, rdb), "log": log.String(),
		"metrics": string(h.do(call{method: "GET", path: "/metrics", base: h.staff}).body), "audit": fmt.Sprint(h.audit(""))}
	for place, has := range map[string]string{"mysql": hex.EncodeToString(access.HashToken(two.token)), "redis": one.key.ID,
		"log": "the log is kept", "audit": two.key.ID} {
		if !strings.Contains(places[place], has) {
			t.Fatalf("%s was not read: %.500s", place, places[place])
		}
	}
	for _, who := range []owner{one, two, admin} {
		secret := who.token[strings.LastIndexByte(who.token, '_')+1:]
		for place, text := range places {
			for form, needle := range map[string]string{"as it is": secret, "in hex": hex.EncodeToString([]byte(secret)),
				"in base64": base64.RawStdEncoding.EncodeToString([]byte(secret))[:40]} {
				if at := strings.Index(text, needle); at >= 0 {
					t.Errorf("%s holds the secret of a key %s: ...%s", place, form, text[max(0, at-200):at])
				}
			}
		}
	}
}

// everyRow reads all tables, each value as it is and in hex.
func everyRow(t *testing.T, db *sql.DB) string {
	t.Helper()
	var all strings.Builder
	read := func(query string, each func(values []sql.RawBytes)) {
		rows, err := db.QueryContext(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		columns, _ := rows.Columns()
		values, into := make([]sql.RawBytes, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		for rows.Next() {
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			each(values)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	var tables []string
	read("SHOW TABLES", func(v []sql.RawBytes) { tables = append(tables, string(v[0])) })
	for _, table := range tables {
		read("SELECT * FROM "+table, func(values []sql.RawBytes) {
			for _, v := range values {
				fmt.Fprintf(&all, "%s %s %x\n", table, v, []byte(v))
			}
		})
	}
	return all.String()
}

// everyValue reads all keys of Redis.
func everyValue(t *testing.T, rdb *redis.Client) string {
	t.Helper()
	var all strings.Builder
	ctx := t.Context()
	keys := rdb.Scan(ctx, 0, "*", 1000).Iterator()
	for keys.Next(ctx) {
		key := keys.Val()
		kind := rdb.Type(ctx, key).Val()
		read := map[string][]any{"string": {"GET", key}, "hash": {"HGETALL", key}, "list": {"LRANGE", key, 0, -1}, "set": {"SMEMBERS", key},
			"zset": {"ZRANGE", key, 0, -1}, "stream": {"XRANGE", key, "-", "+"}}[kind]
		value, err := rdb.Do(ctx, read...).Result()
		if err != nil {
			t.Fatalf("%s %s: %v", kind, key, err)
		}
		text, err := json.Marshal(value)
		if err != nil {
			fmt.Fprint(&all, key, value)
			continue
		}
		fmt.Fprintf(&all, "%s %s\n", key, text)
	}
	if err := keys.Err(); err != nil {
		t.Fatal(err)
	}
	return all.String()
}
