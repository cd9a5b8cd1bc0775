package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hongbao/api"
	"hongbao/internal/access"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/internal/risk"
)

// judge refuses the user bad, and does not answer about mute users.
type judge struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string // users
	last  map[string]string
}

func newJudge(t *testing.T) *judge {
	t.Helper()
	j := &judge{}
	j.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		q := map[string]string{}
		_ = json.Unmarshal(raw, &q)
		j.mu.Lock()
		j.asked, j.last = append(j.asked, q["user_id"]), q
		j.mu.Unlock()
		if strings.HasPrefix(q["user_id"], "mute") {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = fmt.Fprintf(w, `{"allow":%t}`, !strings.HasPrefix(q["user_id"], "bad"))
	}))
	t.Cleanup(j.Close)
	return j
}

// users are those it was asked about since the last call.
func (j *judge) users() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := j.asked
	j.asked = nil
	return out
}

// judged starts the API again with a risk check.
func (h *fixture) judged(url string, silenceRefuses bool) {
	h.t.Helper()
	check, err := risk.New(url, "key", time.Second)
	h.check(err)
	h.t.Cleanup(check.Close)
	h.check(h.stop())
	h.cfg.Metrics, h.cfg.RiskRefuseUnanswered = nil, silenceRefuses
	h.cfg.Risk = func(ctx context.Context, q api.RiskQuestion) (bool, error) {
		return check.Allows(ctx, risk.Request{App: q.App, PacketID: q.PacketID, UserID: q.UserID, At: q.At.UTC().Format(time.RFC3339)})
	}
	h.start()
}

const riskBy = `hongbao_risk_checks_total{outcome="%s"}`

// TestRisk: grabs that could win are asked about, once each, and no others; who is
// refused takes nothing and learns no more.
func TestRisk(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	j := newJudge(t)
	early := h.open(h.app, with("opens_at", strconv.Quote(time.Now().Add(time.Hour).UTC().Format(time.RFC3339))))
	id, guests, soldOut, closing, retired := h.open(h.app, with()), h.open(h.app, with("eligible_user_ids", `["a","bad"]`)),
		h.open(h.app, with("share_count", "1")), h.open(h.app, with()), h.open(h.app, with())
	for _, id := range []string{soldOut, closing, retired} {
		if r := h.grab(h.app, id, "a"); r.status != http.StatusCreated {
			t.Fatalf("%s", r)
		}
	}
	_, err := h.pool.ClosePool(t.Context(), closing, packet.CloseRecalled)
	h.check(err)
	h.finish(retired, packet.CloseRecalled)
	ticketed := h.open(h.app, with("tickets", byTicket))
	h.judged(j.URL, false)
	for i, c := range []struct {
		id, user string
		status   int
		code     string
		asked    bool
	}{
		{id, "bad", 403, "not_eligible", true},
		{id, "a", 201, "", true},
		{id, "a", 200, "", false},
		{id, "mute", 201, "", true},
		{id, "bad", 403, "not_eligible", true},
		{early, "bad", 409, "not_open_yet", false},
		{guests, "bad", 403, "not_eligible", true},
		{guests, "x", 403, "not_eligible", false},
		{guests, "a", 201, "", true},
		{soldOut, "bad", 409, "sold_out", false},
		{soldOut, "a", 200, "", false},
		{closing, "bad", 410, "expired", false},
		{closing, "a", 200, "", false},
		{retired, "bad", 410, "expired", false},
		{retired, "a", 200, "", false},
		{ticketed, "bad", 403, "not_eligible", false},
		{anonymous, "bad", 404, "packet_not_found", false},
	} {
		r := h.grab(h.app, c.id, c.user)
		if r.status != c.status || r.code() != c.code {
			t.Errorf("%d: want %d %s, got %s", i, c.status, c.code, r)
		}
		var want []string
		if c.asked {
			want = []string{c.user}
		}
		if got := j.users(); !slices.Equal(got, want) {
			t.Errorf("%d: asked about %q, want %q", i, got, want)
		}
	}
	if r := h.grab(h.app, id, "bad"); !strings.Contains(string(r.body), `"detail":"The grab was refused."`) {
		t.Errorf("%s", r)
	}
	if q := j.last; q["app"] != h.app.app.ID || q["packet_id"] != id || q["user_id"] != "bad" || q["at"] == "" {
		t.Errorf("asked %v", q)
	}
	if p := h.packet(h.app, id); p.ClaimedCount != 2 {
		t.Errorf("%+v", p)
	}
	for outcome, want := range map[string]int{"allowed": 2, "refused": 4, "unanswered": 1} {
		if n := h.metric(fmt.Sprintf(riskBy, outcome)); n != want {
			t.Errorf("%d %s, want %d", n, outcome, want)
		}
	}
	if n := h.metric("hongbao_risk_check_seconds_count"); n != 7 {
		t.Errorf("%d questions were measured", n)
	}
}

// TestRiskSilence: without an answer the grab is permitted or refused, as configured; an
// existing claim is returned in any case.
func TestRiskSilence(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t)
	h := newFixture(t, parts{redis: server.Addr})
	id := h.open(h.app, with())
	gone := newJudge(t)
	gone.Close()
	h.judged(gone.URL, false)
	won := h.grab(h.app, id, "a")
	if won.status != http.StatusCreated {
		t.Errorf("let through: %s", won)
	}
	h.judged(gone.URL, true)
	h.same("the winner", won, h.grab(h.app, id, "a"))
	if r := h.grab(h.app, id, "b"); r.code() != "not_eligible" || !strings.Contains(string(r.body), "The grab was refused.") {
		t.Errorf("refused: %s", r)
	}
	if n := h.metric(fmt.Sprintf(riskBy, "unanswered")); n != 1 {
		t.Errorf("%d unanswered", n)
	}
	server.Kill()
	if r := h.grab(h.app, id, "c"); r.code() != "unavailable" {
		t.Errorf("without redis: %s", r)
	}
}

// TestRiskBehindLimits: a refused grab counts as an attempt, and a user over a limit costs the
// risk check nothing.
func TestRiskBehindLimits(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	j := newJudge(t)
	id := h.open(h.app, with())
	h.limit(api.Limits{User: access.Limit{N: 1, Span: time.Hour}})
	h.judged(j.URL, false)
	if r := h.grab(h.app, id, "bad"); r.code() != "not_eligible" {
		t.Errorf("%s", r)
	}
	j.users()
	h.overLimit("again", h.grab(h.app, id, "bad"))
	if got := j.users(); len(got) != 0 {
		t.Errorf("asked about %q", got)
	}
}

// TestRiskRefuseFrom: a flood that takes the risk check from others lets them through, but
// for packets from a configured amount on; both kinds of silence are counted apart.
func TestRiskRefuseFrom(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	small := h.open(h.app, with("total_amount", "999", "share_count", "9"))
	large := h.open(h.app, with("total_amount", "1000", "share_count", "9"))
	h.check(h.stop())
	silence := errors.New("no answer")
	h.cfg.Metrics, h.cfg.RiskRefuseUnanswered, h.cfg.RiskRefuseFrom = nil, false, 1000
	h.cfg.Risk = func(_ context.Context, q api.RiskQuestion) (bool, error) {
		if q.UserID == "crowded" {
			return true, fmt.Errorf("%w: %w", api.ErrRiskOverflow, silence)
		}
		return true, silence
	}
	h.start()
	for _, user := range []string{"crowded", "mute"} {
		if r := h.grab(h.app, small, user); r.status != http.StatusCreated {
			t.Errorf("%s, below the amount: %s", user, r)
		}
		if r := h.grab(h.app, large, user); r.code() != "not_eligible" {
			t.Errorf("%s, from the amount on: %s", user, r)
		}
	}
	for outcome, want := range map[string]int{"overflow": 2, "unanswered": 2, "allowed": 0, "refused": 0} {
		if n := h.metric(fmt.Sprintf(riskBy, outcome)); n != want {
			t.Errorf("%d %s, want %d", n, outcome, want)
		}
	}
}
