package api_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hongbao/api"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/test/wait"
)

// TestIdempotency: one line a request, in the order they are sent; the last
// columns are the answer and whether it is the first one again.
func TestIdempotency(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	body := with("greeting", `"x"`)
	id, first := h.create(h.app, "k", body)
	if first.status != http.StatusCreated || first.header.Get("Idempotency-Replayed") != "" {
		t.Fatalf("create: %s", first)
	}
	for _, c := range []struct {
		name, key, body string
		owner           owner
		status          int
		code            string
		same            bool
	}{
		{"again", "k", body, h.app, 201, "", true},
		{"other order and space", "k", " {\"share_count\":10 ,\"greeting\":\"x\",\n\"total_amount\":1000,\"sender_id\":\"u1\"}", h.app, 201, "",
			true},
		{"defaults given", "k", with("greeting", `"x"`, "split", `"random"`, "min_share", "1", "max_share", "null", "currency", `"CNY"`,
			"expires_in_seconds", "86400", "metadata", "{}", "funding", `{"source":"sender","method":null}`), h.app, 201, "", true},
		{"escaped", "k", with("greeting", `"\u0078"`), h.app, 201, "", true},
		{"other greeting", "k", with(), h.app, 422, "idempotency_key_reused", false},
		{"other sender", "k", with("greeting", `"x"`, "sender_id", `"U1"`), h.app, 422, "idempotency_key_reused", false},
		{"other metadata", "k", with("greeting", `"x"`, "metadata", `{"a":""}`), h.app, 422, "idempotency_key_reused", false},
		{"fields first", "k", with("greeting", "1"), h.app, 422, "invalid_request", false},
		{"not remembered", "k", `{`, h.app, 400, "malformed_json", false},
		{"again", "k", body, h.app, 201, "", true},
	} {
		r := h.post(c.owner, c.key, c.body)
		replayed := r.header.Get("Idempotency-Replayed") == "true"
		if r.status != c.status || r.code() != c.code || replayed != c.same || c.same && string(r.body) != string(first.body) {
			t.Errorf("%s: replayed %v, %s", c.name, replayed, r)
		}
	}
	// The scope of a key is its owner; keys differ byte by byte.
	other, r := h.create(h.app2, "k", body)
	if r.status != 201 || other == id {
		t.Errorf("another app, the same key: %s", r)
	}
	if upper, r := h.create(h.app, "K", body); r.status != 201 || upper == id {
		t.Errorf("another key: %s", r)
	}
	// The state moves on, the first answer stays: in Redis, as a tombstone, and without it.
	h.grab(h.app, id, "u2")
	h.record(id)
	h.finish(id, packet.CloseRecalled)
	for range 2 {
		if r := h.post(h.app, "k", body); string(r.body) != string(first.body) || r.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("after closing: %s", r)
		}
	}
	if r := h.post(h.app, "k", with()); r.code() != "idempotency_key_reused" {
		t.Errorf("after closing, another body: %s", r)
	}
}

// TestCreateRedisEmptied: MySQL has the packet, Redis does not know it any more.
func TestCreateRedisEmptied(t *testing.T) {
	t.Parallel()
	redis := stacktest.FreshRedis(t)
	h := newFixture(t, parts{redis: redis.Addr})
	_, closed := h.create(h.app, "closed", with())
	h.finish(packet.NewID(h.app.app.Salt, "closed"), packet.CloseRecalled)
	openID, open := h.create(h.app, "open", with())
	_, declined := h.create(h.app, "declined", with("sender_id", `"u~broke"`))
	h.empty(redis.Addr)
	h.goOnWithNothing()
	if r := h.post(h.app, "closed", with()); string(r.body) != string(closed.body) {
		t.Errorf("closed: %s", r)
	}
	for _, key := range []string{"closed", "open", "declined"} {
		if r := h.post(h.app, key, with("greeting", `"y"`)); r.code() != "idempotency_key_reused" {
			t.Errorf("%s: %s", key, r)
		}
	}
	if r := h.post(h.app, "open", with()); r.status != 201 || string(r.body) != string(open.body) {
		t.Errorf("open: %s", r)
	}
	if r := h.post(h.app, "declined", with("sender_id", `"u~broke"`)); r.code() != declined.code() {
		t.Errorf("declined: %s", r)
	}
	if r := h.grab(h.app, openID, "u2"); r.code() != "unavailable" {
		t.Errorf("grab without a pool: %s", r)
	}
	if r := h.as(h.app, "GET", "/v1/packets/"+openID+"/grabs/u2", ""); r.code() != "unavailable" {
		t.Errorf("claim without a pool: %s", r)
	}
	if r := h.as(h.app, "POST", "/v1/packets/"+openID+"/close", ""); r.code() != "unavailable" {
		t.Errorf("close without a pool: %s", r)
	}
}

// TestCreateLostWhileFunding: the row is there, the pool is not: it is staged
// again under the same id, with the same times, and charged once.
func TestCreateLostWhileFunding(t *testing.T) {
	t.Parallel()
	redis := stacktest.FreshRedis(t)
	h := newFixture(t, parts{redis: redis.Addr, change: func(c *api.Config) { c.FundingWait = 50 * time.Millisecond }})
	r := h.post(h.app, "k", with())
	if r.status != http.StatusAccepted {
		t.Fatal(r)
	}
	id := packet.NewID(h.app.app.Salt, "k")
	view, err := h.pool.View(t.Context(), id)
	h.check(err)
	sealed, err := packet.SealSeed(h.cfg.SeedKey, id, packet.DeriveSeed(h.cfg.SeedKey, id))
	h.check(err)
	_, err = h.store.RecordPacket(t.Context(), view.Packet, sealed, nil)
	h.check(err)
	h.drive(payout.ID(payout.KindCharge, id, 0))
	h.empty(redis.Addr)
	h.goOnWithNothing()
	again, second := h.create(h.app, "k", with())
	if again != id || second.status >= 300 {
		t.Errorf("staged again: %s", second)
	}
	var before, after packetBody
	r.json(t, &before)
	second.json(t, &after)
	if after.CreatedAt != before.CreatedAt || after.OpensAt != before.OpensAt || after.ExpiresAt != before.ExpiresAt {
		t.Errorf("got %s, then %s", r, second)
	}
	totals, err := h.sandbox.Totals(t.Context(), id)
	if err != nil || totals.Charged != 1000 {
		t.Errorf("charged %d fen, %v", totals.Charged, err)
	}
	if r := h.grab(h.app, id, "u2"); r.status != http.StatusCreated {
		t.Errorf("grab: %s", r)
	}
}

func TestFundingDeclined(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	body := with("sender_id", `"u~broke"`)
	id, first := h.create(h.app, "k", body)
	var p struct {
		PacketID  string `json:"packet_id"`
		RequestID string `json:"request_id"`
		Failure   struct{ Code, Message string }
	}
	first.json(t, &p)
	if first.status != http.StatusPaymentRequired || first.code() != "funding_declined" || p.PacketID != id || p.Failure.Code == "" ||
		p.Failure.Message == "" {
		t.Fatalf("declined: %s", first)
	}
	check := func(when string) {
		t.Helper()
		r := h.post(h.app, "k", body)
		if r.status != 402 || string(r.body) != string(first.body) || r.header.Get("Idempotency-Replayed") != "true" ||
			r.header.Get("X-Request-Id") == p.RequestID {
			t.Errorf("%s: %s", when, r)
		}
		got := h.packet(h.app, id)
		if got.Status != "rejected" || got.RemainingAmount != 0 || got.RemainingCount != 0 || got.Failure == nil ||
			got.Failure.Code != p.Failure.Code || got.Fairness.Seed != nil || got.Funding.Status != "declined" ||
			got.Funding.Failure == nil || got.Funding.Failure.Code != p.Failure.Code {
			t.Errorf("%s: %+v", when, got)
		}
		if r := h.grab(h.app, id, "u2"); r.status != http.StatusGone || r.code() != "expired" {
			t.Errorf("%s: grab: %s", when, r)
		}
		if r := h.as(h.app, "POST", "/v1/packets/"+id+"/close", ""); r.status != http.StatusAccepted {
			t.Errorf("%s: close: %s", when, r)
		}
		if proof := h.proof(h.app, id); !proof.Balanced || proof.Total != 0 {
			t.Errorf("%s: proof %+v", when, proof)
		}
	}
	check("in redis")
	h.check(h.pool.Retire(t.Context(), id))
	check("retired")
}

// TestFundingSlow: 202 after the wait, then the packet opens; the first answer stays 202.
func TestFundingSlow(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{change: func(c *api.Config) { c.FundingWait = 300 * time.Millisecond }})
	id := packet.NewID(h.app.app.Salt, "k")
	answered := make(chan result, 1)
	go func() { answered <- h.post(h.app, "k", with()) }()
	wait.Until(h.t, "staged", func() bool { _, err := h.pool.View(t.Context(), id); return err == nil })
	// The first request is still running.
	if r := h.post(h.app, "k", with()); r.code() != "request_in_progress" || r.header.Get("Retry-After") != "1" {
		t.Errorf("in progress: %s", r)
	}
	if r := h.post(h.app, "k", with("greeting", `"y"`)); r.code() != "idempotency_key_reused" {
		t.Errorf("in progress, another body: %s", r)
	}
	first := <-answered
	if first.status != http.StatusAccepted {
		t.Fatalf("slow: %s", first)
	}
	if got := h.packet(h.app, id); got.Status != "funding" {
		t.Errorf("%+v", got)
	}
	if r := h.grab(h.app, id, "u2"); r.code() != "not_open_yet" || r.header.Get("Retry-After") == "" ||
		!strings.Contains(string(r.body), `"opens_at":"`) {
		t.Errorf("grab while funding: %s", r)
	}
	if r := h.as(h.app, "POST", "/v1/packets/"+id+"/close", ""); r.status != 409 || r.code() != "not_open_yet" {
		t.Errorf("close while funding: %s", r)
	}
	if proof := h.proof(h.app, id); !proof.Balanced || proof.Total != 0 {
		t.Errorf("proof %+v", proof)
	}
	h.fund(id)
	if got := h.packet(h.app, id); got.Status != "open" {
		t.Errorf("%+v", got)
	}
	const processing, paid = `"funding":{"source":"sender","provider":"sandbox","method":"sandbox","status":"processing","expires_at":null,"next_action":null,"failure":null,"late_payment":null}`,
		`"funding":{"source":"sender","provider":"sandbox","method":"sandbox","status":"paid","expires_at":null,"next_action":null,"failure":null,"late_payment":null}`
	if !strings.Contains(string(first.body), processing) {
		t.Errorf("slow: %s", first)
	}
	if r := h.post(h.app, "k", with()); r.status != 202 || string(r.body) != strings.Replace(string(first.body), processing, paid, 1) ||
		r.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("again: %s", r)
	}
}

// TestCreateCrashed: the first request staged the packet and was never heard of again.
func TestCreateCrashed(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	_, first := h.create(h.app, "model", with())
	var model packetBody
	first.json(t, &model)
	view, err := h.pool.View(t.Context(), model.ID)
	h.check(err)
	stage := func(key string, busy time.Duration) string {
		t.Helper()
		p := view.Packet
		p.ID = packet.NewID(h.app.app.Salt, key)
		p.Commitment = packet.Commitment(packet.DeriveSeed(h.cfg.SeedKey, p.ID))
		if _, err := h.pool.Create(t.Context(), p, nil, nil, 24*time.Hour, busy); err != nil {
			t.Fatal(err)
		}
		return p.ID
	}
	stage("busy", time.Hour)
	if r := h.post(h.app, "busy", with()); r.code() != "request_in_progress" {
		t.Errorf("while busy: %s", r)
	}
	h.fund(stage("k", time.Millisecond))
	var r result
	wait.Until(h.t, "the state as it stands", func() bool { r = h.post(h.app, "k", with()); return r.status != http.StatusConflict })
	if r.status != http.StatusCreated {
		t.Errorf("then: %s", r)
	}
	if again := h.post(h.app, "k", with()); string(again.body) != string(r.body) || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("again: %s", again)
	}
}

func TestCreateScheduled(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	at := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	id, r := h.create(h.app, "k", with("opens_at", quoted(at.In(time.FixedZone("", 8*3600)).Format(time.RFC3339Nano)), "expires_in_seconds",
		"60"))
	var p packetBody
	r.json(t, &p)
	if r.status != 201 || p.Status != "scheduled" || !p.OpensAt.Equal(at) || !p.ExpiresAt.Equal(at.Add(time.Minute)) {
		t.Fatalf("scheduled: %s", r)
	}
	g := h.grab(h.app, id, "u2")
	var problem struct {
		OpensAt time.Time `json:"opens_at"`
	}
	g.json(t, &problem)
	if g.code() != "not_open_yet" || !problem.OpensAt.Equal(at) || len(g.header.Get("Retry-After")) != 4 {
		t.Errorf("grab: Retry-After %s, %s", g.header.Get("Retry-After"), g)
	}
	// In another time zone's writing it is the same request.
	if again := h.post(h.app, "k", with("opens_at", quoted(at.UTC().Format(time.RFC3339Nano)), "expires_in_seconds", "60")); string(
		again.body) != string(r.body) {
		t.Errorf("again: %s", again)
	}
	if c := h.as(h.app, "POST", "/v1/packets/"+id+"/close", `{}`); c.status != 202 || !strings.Contains(string(c.body), `"status":"closing"`) {
		t.Errorf("close: %s", c)
	}
	past := time.Now().Add(-time.Hour)
	_, r = h.create(h.app, "past", with("opens_at", quoted(past.UTC().Format(time.RFC3339)), "expires_in_seconds", "7200"))
	r.json(t, &p)
	if r.status != 201 || p.Status != "open" {
		t.Errorf("opened an hour ago: %s", r)
	}
}

// TestCreateWithinRefundWindow: a packet that may expire when the provider hardly refunds its
// charge any more is refused before anything is charged; a longer life opens earlier.
func TestCreateWithinRefundWindow(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	const day = 24 * time.Hour
	limits := h.sandbox.Limits()
	if limits.MaxOpensAhead(day) != limits.RefundWindow-61*day || limits.RefundWindow < 90*day {
		t.Fatalf("%+v", limits)
	}
	for what, c := range map[string]struct {
		ahead  time.Duration
		life   int
		status int
	}{
		"day":          {limits.RefundWindow - 61*day - time.Minute, 86400, 201},
		"day-too-far":  {limits.RefundWindow - 61*day + time.Minute, 86400, 422},
		"week":         {limits.RefundWindow - 67*day - time.Minute, 7 * 86400, 201},
		"week-too-far": {limits.RefundWindow - 67*day + time.Minute, 7 * 86400, 422},
	} {
		id, r := h.create(h.app, "window-"+what, with("opens_at", quoted(time.Now().Add(c.ahead).UTC().Format(time.RFC3339)),
			"expires_in_seconds", strconv.Itoa(c.life)))
		if r.status != c.status || c.status == 422 && (!slices.Equal(fieldsOf(t, r), []string{"opens_at out_of_range"}) ||
			!strings.Contains(string(r.body), "refunds a charge for 365 days")) {
			t.Errorf("%s: %s", what, r)
		}
		if _, err := h.pool.View(t.Context(), id); c.status == 422 && !errors.Is(err, packet.ErrNotFound) {
			t.Errorf("%s: staged, %v", what, err)
		}
	}
}

// TestCreateCrowd: one key, many requests at the same time: one packet, one answer.
func TestCreateCrowd(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	id := packet.NewID(h.app.app.Salt, "k")
	answers := make(chan result, 16)
	for range cap(answers) {
		go func() { answers <- h.post(h.app, "k", with()) }()
	}
	wait.Until(h.t, "staged", func() bool { _, err := h.pool.View(t.Context(), id); return err == nil })
	h.fund(id)
	bodies := map[string]int{}
	for range cap(answers) {
		switch r := <-answers; {
		case r.status == http.StatusCreated:
			bodies[string(r.body)]++
		case r.code() != "request_in_progress":
			t.Errorf("%s", r)
		}
	}
	if len(bodies) != 1 {
		t.Errorf("%d different answers: %v", len(bodies), bodies)
	}
}

// fasterPool is a pool at which another process of the API is always a moment faster
// with the first answer.
type fasterPool struct{ api.Pool }

func (p fasterPool) StoreFirstAnswer(ctx context.Context, id string, mine packet.FirstAnswer) (packet.FirstAnswer, error) {
	theirs := mine
	theirs.RequestID = "req_theirs"
	if _, err := p.Pool.StoreFirstAnswer(ctx, id, theirs); err != nil {
		return theirs, err
	}
	return p.Pool.StoreFirstAnswer(ctx, id, mine)
}

// TestAnsweredConcurrently: the first answer of a concurrent request for the same packet is
// returned as a repeat.
func TestAnsweredConcurrently(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{change: func(c *api.Config) { c.Pool = fasterPool{c.Pool} }})
	for sender, status := range map[string]int{"u1": http.StatusCreated, "u~broke": http.StatusPaymentRequired} {
		_, r := h.create(h.app, sender, with("sender_id", quoted(sender)))
		if r.status != status || r.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s: replayed %q, %s", sender, r.header.Get("Idempotency-Replayed"), r)
		}
		if status == http.StatusPaymentRequired && !strings.Contains(string(r.body), `"request_id":"req_theirs"`) {
			t.Errorf("another answer than theirs: %s", r)
		}
	}
}
