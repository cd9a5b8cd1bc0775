package api_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"database/sql"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hongbao/api"
	hongbao "hongbao/client"
	"hongbao/internal/access"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/test/wait"
)

// signer is the private half of a key of tickets, and its id.
type signer struct {
	key ed25519.PrivateKey
	kid string
	pem string // of the public half
}

func newSigner(t *testing.T) signer {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return signer{key: private, pem: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))}
}

// ticketKeyBody is a key of tickets as staff reads it.
type ticketKeyBody struct {
	ID, Status string
	AppID      string  `json:"app_id"`
	PublicKey  []byte  `json:"public_key"`
	RevokedAt  *string `json:"revoked_at"`
	Name       *string
}

func addBody(app, key string) string {
	body, _ := json.Marshal(map[string]string{"app_id": app, "public_key": key, "name": "campaigns", "reason": "r"})
	return string(body)
}

// signs adds a new key of tickets for an app.
func (h *fixture) signs(admin, app owner) signer {
	h.t.Helper()
	s := newSigner(h.t)
	r := h.write(admin, "ticket-keys", rand.Text(), addBody(app.app.ID, s.pem))
	var made ticketKeyBody
	if r.json(h.t, &made); r.status != http.StatusCreated || made.AppID != app.app.ID || made.Status != "active" ||
		!slices.Equal(made.PublicKey, s.key.Public().(ed25519.PublicKey)) {
		h.t.Fatalf("%s", r)
	}
	s.kid = made.ID
	return s
}

// ticket is valid for a minute.
func (s signer) ticket(t *testing.T, id, user string) string {
	return s.until(t, id, user, time.Minute)
}

func (s signer) until(t *testing.T, id, user string, left time.Duration) string {
	t.Helper()
	text, err := hongbao.SignTicket(s.key, s.kid, id, user, time.Now().Add(left))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// grabWith grabs with a ticket.
func (h *fixture) grabWith(o owner, id, user, ticket string) result {
	h.t.Helper()
	body, err := json.Marshal(map[string]string{"user_id": user, "ticket": ticket})
	h.check(err)
	return h.as(o, "POST", "/v1/packets/"+id+"/grabs", string(body))
}

// refusedTicket checks a refusal, and that it says why and repeats nothing.
func (h *fixture) refusedTicket(what string, r result, says, ticket string) {
	h.t.Helper()
	var p struct{ Detail string }
	r.json(h.t, &p)
	if r.status != http.StatusForbidden || r.code() != "not_eligible" || !strings.Contains(p.Detail, says) || ticket != "" &&
		strings.Contains(string(r.body), ticket) {
		h.t.Errorf("%s: want 403 with %q, got %s", what, says, r)
	}
}

const byTicket = `true`

// TestTickets: a packet with tickets accepts only grabs with a valid ticket of its app; other
// packets ignore tickets.
func TestTickets(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	admin := h.administrator()
	ours, theirs := h.signs(admin, h.app), h.signs(admin, h.app2)
	id, other := h.open(h.app, with("tickets", byTicket)), h.open(h.app, with("tickets", byTicket))
	stranger := newSigner(t)
	stranger.kid = ours.kid
	unknown := newSigner(t)
	unknown.kid = "aaaaaaaaaaaa"
	for what, c := range map[string]struct{ ticket, says string }{
		"none":                   {"", "has none"},
		"no ticket":              {"x.y.z", "cannot be read"},
		"another key, their kid": {stranger.ticket(t, id, "a"), "not signed"},
		"an unknown key":         {unknown.ticket(t, id, "a"), "not signed"},
		"another app's key":      {theirs.ticket(t, id, "a"), "not signed"},
		"another packet":         {ours.ticket(t, other, "a"), "for another packet"},
		"another user":           {ours.ticket(t, id, "A"), "for another packet, another user"},
		"expired":                {ours.until(t, id, "a", -time.Minute), "has expired"},
	} {
		h.refusedTicket(what, h.grabWith(h.app, id, "a", c.ticket), c.says, c.ticket)
	}
	if p := h.packet(h.app, id); p.ClaimedCount != 0 {
		t.Fatalf("taken without a ticket: %+v", p)
	}
	if r := h.grabWith(h.app, id, "a", strings.Repeat("x", 2049)); !slices.Equal(fieldsOf(t, r), []string{"ticket wrong_length"}) {
		t.Errorf("too long: %s", r)
	}
	good := ours.ticket(t, id, "a")
	won := h.grabWith(h.app, id, "a", good)
	if won.status != http.StatusCreated {
		t.Fatalf("%s", won)
	}
	h.same("the same ticket again", won, h.grabWith(h.app, id, "a", good))
	h.same("no ticket", won, h.grab(h.app, id, "a"))
	h.same("another's ticket", won, h.grabWith(h.app, id, "a", theirs.ticket(t, id, "a")))
	if r := h.grabWith(h.app2, id, "b", theirs.ticket(t, id, "b")); r.code() != "packet_not_found" {
		t.Errorf("another app: %s", r)
	}
	open := h.open(h.app, with())
	if r := h.grabWith(h.app, open, "a", "anything"); r.status != http.StatusCreated {
		t.Errorf("a packet for everybody: %s", r)
	}
	guests := h.open(h.app, with("eligible_user_ids", `["a"]`))
	h.refusedTicket("a stranger of a list", h.grabWith(h.app, guests, "b", ours.ticket(t, guests, "b")), "not on the packet's list", "")
	for id, want := range map[string]string{id: "true", open: "false", guests: "false"} {
		for _, r := range []result{h.as(h.app, "GET", "/v1/packets/"+id, ""), h.as(h.ops, "GET", "/v1/staff/packets/"+id, "")} {
			if !strings.Contains(string(r.body), `"tickets":`+want) {
				t.Errorf("want tickets %s: %s", want, r)
			}
		}
	}
}

// TestTicketOrder: the outcomes of a grab keep their order of precedence, with and without
// a ticket, from Redis and from MySQL.
func TestTicketOrder(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	ours := h.signs(h.administrator(), h.app)
	early := h.open(h.app, with("tickets", byTicket, "opens_at", strconv.Quote(time.Now().Add(time.Hour).UTC().Format(time.RFC3339))))
	funding := packet.NewID(h.app.app.Salt, "funding")
	if r := h.post(h.app, "funding", with("tickets", byTicket)); r.status != http.StatusAccepted {
		t.Fatalf("%s", r)
	}
	soldOut, closing, retired := h.open(h.app, with("tickets", byTicket, "share_count", "1")), h.open(h.app, with("tickets", byTicket)),
		h.open(h.app, with("tickets", byTicket))
	for _, id := range []string{soldOut, closing, retired} {
		if r := h.grabWith(h.app, id, "a", ours.ticket(t, id, "a")); r.status != http.StatusCreated {
			t.Fatalf("%s", r)
		}
	}
	_, err := h.pool.ClosePool(t.Context(), closing, packet.CloseRecalled)
	h.check(err)
	h.finish(retired, packet.CloseRecalled)
	look := func(when string) {
		t.Helper()
		for i, c := range []struct {
			id, user   string
			with, none string // the codes
		}{
			{anonymous, "a", "packet_not_found", "packet_not_found"},
			{early, "a", "not_open_yet", "not_open_yet"},
			{funding, "a", "not_open_yet", "not_open_yet"},
			{soldOut, "a", "", ""},
			{soldOut, "b", "sold_out", "not_eligible"},
			{closing, "a", "", ""},
			{closing, "b", "expired", "not_eligible"},
			{retired, "a", "", ""},
			{retired, "b", "expired", "not_eligible"},
		} {
			for ticket, want := range map[string]string{ours.ticket(t, c.id, c.user): c.with, "": c.none} {
				r := h.grabWith(h.app, c.id, c.user, ticket)
				if r.code() != want || want == "" && r.status != http.StatusOK || want == "not_open_yet" && r.header.Get("Retry-After") == "" {
					t.Errorf("%s: %d with %q: want %q, got %s", when, i, ticket, want, r)
				}
			}
		}
	}
	look("in redis")
	h.finish(soldOut, packet.CloseSoldOut)
	look("in mysql")
	h.another()
	look("by a process that has never seen them")
}

// TestTicketSoldOutLocally: sold_out from memory needs a valid ticket, and a grab without one
// is refused from memory.
func TestTicketSoldOutLocally(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	h := newFixture(t, parts{redis: server.Addr})
	ours := h.signs(h.administrator(), h.app)
	id := h.open(h.app, with("tickets", byTicket, "share_count", "1"))
	if r := h.grabWith(h.app, id, "a", ours.ticket(t, id, "a")); r.status != http.StatusCreated {
		t.Fatalf("%s", r)
	}
	before, n := h.soldOutLocally(), 0
	wait.Until(h.t, "the process knows the winners", func() bool {
		n++
		user := fmt.Sprint("late", n)
		if r := h.grabWith(h.app, id, user, ours.ticket(t, id, user)); r.code() != "sold_out" {
			t.Fatalf("%s", r)
		}
		return h.soldOutLocally() > before
	})
	commands := commandsOf(t, server.Addr)
	h.refusedTicket("without a ticket", h.grab(h.app, id, "b"), "has none", "")
	if now := commandsOf(t, server.Addr); commands != now {
		t.Errorf("Redis was asked:\n%s\n%s", commands, now)
	}
	other := h.open(h.app, with("tickets", byTicket))
	server.Kill()
	h.refusedTicket("without redis", h.grab(h.app, id, "b"), "has none", "")
	if r := h.grabWith(h.app, id, "b", ours.ticket(t, id, "b")); r.code() != "sold_out" {
		t.Errorf("with a ticket: %s", r)
	}
	for what, ticket := range map[string]string{"none": "", "a good one": ours.ticket(t, other, "b")} {
		if r := h.grabWith(h.app, other, "b", ticket); r.code() != "unavailable" {
			t.Errorf("of a packet that only redis knows, ticket %s: %s", what, r)
		}
	}
}

// TestTicketLimit: the limit of a user is looked at behind the ticket: a grab without a
// valid one is no attempt of the user whose name is in it.
func TestTicketLimit(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	ours := h.signs(h.administrator(), h.app)
	id, other := h.open(h.app, with("tickets", byTicket)), h.open(h.app, with("tickets", byTicket))
	early := h.open(h.app, with("tickets", byTicket, "opens_at", strconv.Quote(time.Now().Add(time.Hour).UTC().Format(time.RFC3339))))
	h.limit(api.Limits{User: access.Limit{N: 1, Span: time.Hour}})
	for range 5 {
		h.refusedTicket("not counted", h.grab(h.app, id, "a"), "has none", "")
		if r := h.grab(h.app, early, "a"); r.code() != "not_open_yet" {
			t.Errorf("%s", r)
		}
	}
	won := h.grabWith(h.app, id, "a", ours.ticket(t, id, "a"))
	if won.status != http.StatusCreated {
		t.Fatalf("%s", won)
	}
	h.refusedTicket("of a user over the limit", h.grab(h.app, other, "a"), "has none", "")
	h.overLimit("with a ticket", h.grabWith(h.app, other, "a", ours.ticket(t, other, "a")))
	h.same("the claim", won, h.grab(h.app, id, "a"))
}

// TestTicketKeys: keys are rotated under a running crowd: a new one is taken beside the
// old one, and what was revoked is refused by every process soon, claims apart.
func TestTicketKeys(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	admin := h.administrator()
	old := h.signs(admin, h.app)
	id := h.open(h.app, with("tickets", byTicket, "total_amount", "100", "share_count", "50"))
	first := h.another()
	next := h.signs(admin, h.app)
	won := h.grabWith(h.app, id, "a", old.ticket(t, id, "a"))
	if r := h.grabWith(h.app, id, "b", next.ticket(t, id, "b")); won.status != http.StatusCreated || r.status != http.StatusCreated {
		t.Fatalf("%s, %s", won, r)
	}
	at := func(base, user string, s signer) result {
		body, _ := json.Marshal(map[string]string{"user_id": user, "ticket": s.ticket(t, id, user)})
		return h.do(call{method: "POST", base: base, path: "/v1/packets/" + id + "/grabs", key: h.app.token, body: string(body)})
	}
	wait.Until(h.t, "the new key has come to the other process", func() bool { return at(first, "c", next).status < 300 })
	r := h.write(admin, "ticket-keys/"+old.kid+"/revoke", "k", because)
	var ended ticketKeyBody
	if r.json(t, &ended); r.status != http.StatusOK || ended.Status != "revoked" || ended.RevokedAt == nil {
		t.Fatalf("%s", r)
	}
	if again := h.write(admin, "ticket-keys/"+old.kid+"/revoke", "k2", because); string(again.body) != string(r.body) {
		t.Errorf("a second time: %s, first %s", again, r)
	}
	h.refusedTicket("revoked, where it was", at(h.public, "d", old), "not signed", "")
	wait.Until(h.t, "the revocation has come to the other process",
		func() bool { return at(first, "e"+rand.Text()[:8], old).code() == "not_eligible" })
	for _, base := range []string{first, h.public} {
		h.same("a claim with it", won, at(base, "a", old))
		if r := at(base, "f"+base[len(base)-4:], next); r.status != http.StatusCreated {
			t.Errorf("the other key: %s", r)
		}
	}
	keys := map[string]ticketKeyBody{}
	var page struct{ Items []ticketKeyBody }
	h.page(h.auditor, "/v1/staff/ticket-keys?limit=1&app_id="+h.app.app.ID, &page)
	h.page(h.ops, "/v1/staff/ticket-keys", &page)
	for _, k := range page.Items {
		keys[k.ID] = k
	}
	if len(keys) != 2 || keys[old.kid].Status != "revoked" || keys[next.kid].Status != "active" || *keys[next.kid].Name != "campaigns" {
		t.Errorf("%+v", keys)
	}
	var audit string
	db := h.database(h.dsn)
	h.check(db.QueryRowContext(t.Context(), "SELECT GROUP_CONCAT(CONCAT(role, ' ', action, ' ', subject) ORDER BY seq) FROM audit WHERE "+
		"action LIKE '%ticket%'").Scan(&audit))
	if want := fmt.Sprintf("admin add_ticket_key ticket_key/%s,admin add_ticket_key ticket_key/%s,admin revoke_ticket_key ticket_key/%s",
		old.kid, next.kid, old.kid); audit != want {
		t.Errorf("audit %q, want %q", audit, want)
	}
}

// TestTicketKeyDecisions: who may add keys and which; a repeat adds nothing.
func TestTicketKeyDecisions(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	admin := h.administrator()
	s := newSigner(t)
	body := addBody(h.app.app.ID, s.pem)
	for _, who := range []owner{h.finance, h.ops, h.auditor, h.app} {
		for _, path := range []string{"ticket-keys", "ticket-keys/aaaaaaaaaaaa/revoke"} {
			if r := h.write(who, path, "k", body); r.code() != "forbidden" {
				t.Errorf("%s by %s: %s", path, who.key.Role, r)
			}
		}
	}
	first := h.write(admin, "ticket-keys", "k", body)
	again := h.write(admin, "ticket-keys", "k", body)
	if first.status != http.StatusCreated || again.status != http.StatusCreated || string(first.body) != string(again.body) ||
		again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%s, again %s", first, again)
	}
	if r := h.write(admin, "ticket-keys", "k", addBody(h.app2.app.ID, s.pem)); r.code() != "idempotency_key_reused" {
		t.Errorf("another body: %s", r)
	}
	fresh := newSigner(t)
	private, err := x509.MarshalPKCS8PrivateKey(fresh.key)
	h.check(err)
	secret := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	for what, c := range map[string]struct{ body, field string }{
		"the same key":              {addBody(h.app.app.ID, s.pem), "public_key duplicate"},
		"the same key, another app": {addBody(h.app2.app.ID, s.pem), "public_key duplicate"},
		"no such app":               {addBody("nobody", fresh.pem), "app_id not_allowed"},
		"a private key":             {addBody(h.app.app.ID, secret), "public_key invalid_format"},
		"no key":                    {addBody(h.app.app.ID, ""), "public_key invalid_format"},
		"without a reason": {strings.Replace(addBody(h.app.app.ID, fresh.pem), `"reason":"r"`, `"reason":""`, 1),
			"reason wrong_length"},
		"a member that there is not": {strings.Replace(addBody(h.app.app.ID, fresh.pem), `{`, `{"kid":"x",`, 1), "kid unknown_field"},
	} {
		r := h.write(admin, "ticket-keys", rand.Text(), c.body)
		if r.code() != "invalid_request" || !slices.Equal(fieldsOf(t, r), []string{c.field}) || strings.Contains(string(r.body), "PRIVATE") {
			t.Errorf("%s: want %s, got %s", what, c.field, r)
		}
	}
	for _, id := range []string{"aaaaaaaaaaaa", "x", admin.key.ID} {
		if r := h.write(admin, "ticket-keys/"+id+"/revoke", "k-"+id, because); r.code() != "not_found" ||
			!strings.Contains(string(r.body), "no such ticket key") {
			t.Errorf("%s: %s", id, r)
		}
	}
}

// TestTicketKeysWithoutMySQL: a process that begins while MySQL is away takes tickets.
func TestTicketKeysWithoutMySQL(t *testing.T) {
	t.Parallel()
	db, dsn := stacktest.FreshMariaDB(t)
	h := newFixture(t, parts{redis: stacktest.FreshRedis(t).Addr, dsn: dsn}) // the copy of the keys in Redis is its own
	ours := h.signs(h.administrator(), h.app)
	id := h.open(h.app, with("tickets", byTicket))
	db.Kill()
	h.another()
	if r := h.grabWith(h.app, id, "a", ours.ticket(t, id, "a")); r.status != http.StatusCreated {
		t.Errorf("%s", r)
	}
	h.refusedTicket("without a ticket", h.grab(h.app, id, "b"), "has none", "")
}

// TestTicketsCreate: three ways to say who may grab, one at a time; what does not speak of
// tickets is the same request as before there were any.
func TestTicketsCreate(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	for _, body := range []string{with("tickets", "true", "eligible_user_ids", `["a"]`), with("tickets", "1"), with("tickets", `"true"`)} {
		r := h.post(h.app, rand.Text(), body)
		if got := fieldsOf(t, r); r.code() != "invalid_request" || len(got) != 1 || !strings.HasPrefix(got[0], "tickets ") {
			t.Errorf("%s: %s", body, r)
		}
	}
	if r := h.postCampaign(h.app, "k", campaignBody("packet", with("tickets", "true", "eligible_user_ids", `["a"]`))); !slices.Equal(
		fieldsOf(t, r), []string{"packet.tickets not_allowed"}) {
		t.Errorf("campaign: %s", r)
	}
	id, r := h.create(h.app, "plain", with())
	for _, same := range []string{with("tickets", "false"), with("tickets", "null")} {
		if again := h.post(h.app, "plain", same); again.status != r.status || string(again.body) != string(r.body) {
			t.Errorf("%s: %s, first %s", same, again, r)
		}
	}
	if again := h.post(h.app, "plain", with("tickets", "true")); again.code() != "idempotency_key_reused" {
		t.Errorf("with tickets: %s", again)
	}
	var tickets sql.NullBool
	h.check(h.database(h.dsn).QueryRowContext(t.Context(), "SELECT tickets FROM packets WHERE id = ?", id).Scan(&tickets))
	if !tickets.Valid || tickets.Bool {
		t.Errorf("row: %+v", tickets)
	}
	c := h.campaign(h.app, "c", campaignBody("packet", with("tickets", "true")))
	stored, err := h.store.Campaign(t.Context(), c.ID)
	h.check(err)
	if p := stored.PacketOf("2037-02-01", h.cfg.SeedKey); !p.Tickets {
		t.Errorf("the packet of a day: %+v", p)
	}
	if r := h.as(h.app, "GET", "/v1/campaigns/"+c.ID, ""); !strings.Contains(string(r.body), `"tickets":true`) {
		t.Errorf("%s", r)
	}
}

// TestR9_TicketsOfARebuiltPool: a pool that was made again from the books wants tickets
// as it did, also of a process that learns of the packet from it.
func TestR9_TicketsOfARebuiltPool(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{redis: stacktest.FreshRedis(t).Addr})
	ours := h.signs(h.administrator(), h.app)
	p := proofFixture{h, h.open(h.app, with("tickets", byTicket))}
	p.rebuildPool()
	h.another()
	h.refusedTicket("without a ticket", h.grab(h.app, p.id, "a"), "has none", "")
	if r := h.grabWith(h.app, p.id, "a", ours.ticket(t, p.id, "a")); r.status != http.StatusCreated {
		t.Errorf("with one: %s", r)
	}
}

// TestTicketsOfARepeatedCreate: Redis lost a packet before the books had it, and its app
// asked for another one under the same key, with tickets. A process that has looked at the
// first one knows of no ticket.
func TestTicketsOfARepeatedCreate(t *testing.T) {
	t.Parallel()
	redis := stacktest.FreshRedis(t)
	h := newFixture(t, parts{redis: redis.Addr})
	p := h.stage(h.app, "u1")
	if r := h.grab(h.app, p.ID, "a"); r.code() != "not_open_yet" {
		t.Fatalf("%s", r)
	}
	h.empty(redis.Addr)
	h.goOnWithNothing()
	p.Tickets, p.CreatedAt = true, time.Time{}
	if _, err := h.pool.Create(t.Context(), p, nil, nil, time.Hour, time.Second); err != nil { // by another process
		t.Fatal(err)
	}
	h.fund(p.ID)
	h.refusedTicket("without a ticket", h.grab(h.app, p.ID, "a"), "has none", "")
}
