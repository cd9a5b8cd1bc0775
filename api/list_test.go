package api_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hongbao/api"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/test/wait"
)

// packetsBody is a page of packets.
type packetsBody struct {
	Items      []packetBody
	NextCursor *string `json:"next_cursor"`
}

// userClaimBody is a claim among those of its user.
type userClaimBody struct {
	claimBody
	SenderID string `json:"sender_id"`
	Greeting string
}

// summaryBody is a year of a user.
type summaryBody struct {
	UserID string `json:"user_id"`
	Year   int
	TZ     string
	Sent   struct {
		Count  int
		Amount int64
	}
	Received struct {
		Count    int
		Amount   int64
		BestLuck int `json:"best_luck"`
	}
}

// page reads one page of a list into to.
func (h *fixture) page(o owner, path string, to any) {
	h.t.Helper()
	r := h.as(o, "GET", path, "")
	if r.status != http.StatusOK {
		h.t.Fatalf("%s: %s", path, r)
	}
	r.json(h.t, to)
}

// ids walks a list of packets and returns their ids. between is called before each page.
func (h *fixture) ids(o owner, path string, limit int, between func(page int)) []string {
	h.t.Helper()
	var ids []string
	query, mark := "", "?"
	if strings.Contains(path, "?") {
		mark = "&"
	}
	for n := 0; n < 200; n++ {
		if between != nil {
			between(n)
		}
		var p packetsBody
		h.page(o, fmt.Sprintf("%s%slimit=%d%s", path, mark, limit, query), &p)
		if len(p.Items) > limit {
			h.t.Errorf("%d items of %d", len(p.Items), limit)
		}
		for _, item := range p.Items {
			ids = append(ids, item.ID)
		}
		if p.NextCursor == nil {
			return ids
		}
		query = "&cursor=" + url.QueryEscape(*p.NextCursor)
	}
	h.t.Fatal("the list has no end")
	return nil
}

// stage creates a packet that is in Redis only, as one of an app whose worker is behind.
func (h *fixture) stage(o owner, sender string) packet.Packet {
	h.t.Helper()
	id := packet.NewID(o.app.Salt, rand.Text())
	seed := packet.DeriveSeed(h.cfg.SeedKey, id)
	staged, err := h.pool.Create(h.t.Context(), packet.Packet{
		ID: id, App: o.app.ID, SenderID: sender, Currency: packet.CurrencyCNY, ChargeProvider: "sandbox", PayoutProvider: "sandbox",
		TotalAmount: 300, ShareCount: 3, Split: packet.SplitEqual,
		MinShare: 1, BodyHash: strings.Repeat("a", 64), Commitment: packet.Commitment(seed),
	}, nil, nil, time.Hour, time.Second)
	if err != nil {
		h.t.Fatal(err)
	}
	return staged.View.Packet
}

// TestStagedPacketsAreListed: at once, in order, and exactly once when MySQL gets
// them between two pages.
func TestStagedPacketsAreListed(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	var all []packet.Packet
	for i := range 24 {
		all = append(all, h.stage(h.app, []string{"a", "A", "a "}[i%3]))
	}
	foreign := h.stage(h.app2, "a")
	slices.SortFunc(all, func(a, b packet.Packet) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID))
	})
	want := func(keep func(packet.Packet) bool) (ids []string) {
		for _, p := range all {
			if keep(p) {
				ids = append(ids, p.ID)
			}
		}
		return ids
	}
	everyone := func(packet.Packet) bool { return true }
	by := func(sender string) func(packet.Packet) bool {
		return func(p packet.Packet) bool { return p.SenderID == sender }
	}
	for _, limit := range []int{1, 5, 24, 200} {
		for path, ids := range map[string][]string{
			"/v1/packets": want(everyone), "/v1/packets?status=funding": want(everyone), "/v1/packets?status=open": nil,
			"/v1/packets?sender_id=A": want(by("A")), "/v1/packets?sender_id=a%20&status=funding": want(by("a ")),
			"/v1/users/a/packets": want(by("a")), "/v1/users/A/packets": want(by("A")), "/v1/users/a%20/packets": want(by("a ")),
			"/v1/users/b/packets": nil,
		} {
			if got := h.ids(h.app, path, limit, nil); !slices.Equal(got, ids) {
				t.Errorf("%s by %d:\n got %v\nwant %v", path, limit, got, ids)
			}
		}
	}
	if got := h.ids(h.app2, "/v1/packets", 50, nil); !slices.Equal(got, []string{foreign.ID}) {
		t.Errorf("another app: %v", got)
	}
	// Some are funded before each page: those of pages read, and those of pages to come.
	got := h.ids(h.app, "/v1/packets", 4, func(page int) {
		for _, i := range []int{page, len(all) - 1 - page} {
			if view, err := h.pool.View(t.Context(), all[i].ID); err == nil && view.State == packet.PoolFunding {
				h.fund(all[i].ID)
			}
		}
	})
	if !slices.Equal(got, want(everyone)) {
		t.Errorf("while they are funded:\n got %v\nwant %v", got, want(everyone))
	}
}

// TestPacketsByStatus: every status is found, also one that depends on Redis, and the list
// shows a packet as its own path does.
func TestPacketsByStatus(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	two := with("share_count", "2")
	want := map[string]string{}
	want["open"] = h.open(h.app, two)
	h.grab(h.app, want["open"], "a")
	want["scheduled"] = h.open(h.app, with("opens_at", fmt.Sprintf("%q", time.Now().Add(time.Hour).UTC().Format(time.RFC3339))))
	want["sold_out"] = h.open(h.app, two)
	h.grab(h.app, want["sold_out"], "a")
	h.grab(h.app, want["sold_out"], "b")
	want["closing"] = h.open(h.app, two) // MySQL has not heard of it
	h.as(h.app, "POST", "/v1/packets/"+want["closing"]+"/close", "")
	want["closed"] = h.open(h.app, two)
	h.grab(h.app, want["closed"], "a")
	h.finish(want["closed"], packet.CloseRecalled)
	want["rejected"], _ = h.create(h.app, rand.Text(), with("sender_id", `"u1~declined"`))
	want["funding"] = h.stage(h.app, "u1").ID
	for status, id := range want {
		for _, path := range []string{"/v1/packets?status=" + status, "/v1/packets?sender_id=u1&status=" + status,
			"/v1/users/u1/packets?status=" + status} {
			ids := []string{id}
			if status == "rejected" && strings.Contains(path, "u1") {
				ids = nil
			}
			for _, limit := range []int{1, 50} {
				if got := h.ids(h.app, path, limit, nil); !slices.Equal(got, ids) {
					t.Errorf("%s: %v, want %v", path, got, ids)
				}
			}
		}
		if got := h.ids(h.app2, "/v1/packets?status="+status, 50, nil); len(got) != 0 {
			t.Errorf("another app's %s: %v", status, got)
		}
	}
	var all packetsBody
	h.page(h.app, "/v1/packets", &all)
	for _, item := range all.Items {
		one := h.packet(h.app, item.ID)
		if want[item.Status] != item.ID || fmt.Sprintf("%+v", flat(one)) != fmt.Sprintf("%+v", flat(item)) {
			t.Errorf("listed %+v\n alone %+v", flat(item), flat(one))
		}
	}
	if len(all.Items) != len(want) || all.NextCursor != nil {
		t.Errorf("%d packets", len(all.Items))
	}
	// A packet with a lost pool is listed from its row.
	if err := h.pool.Retire(t.Context(), want["rejected"]); err != nil {
		t.Error(err)
	}
	if got := h.ids(h.app, "/v1/packets", 3, nil); len(got) != len(want) {
		t.Errorf("%d packets", len(got))
	}
}

// flat leaves out what is compared by address.
func flat(p packetBody) packetBody {
	p.ClosedAt, p.Failure, p.Fairness.Seed, p.Funding.Failure = nil, nil, nil, nil
	return p
}

// TestFewAmongMany: a status that few of many packets have.
func TestFewAmongMany(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	soldOut := h.open(h.app, with("share_count", "1"))
	h.grab(h.app, soldOut, "a")
	for range 260 { // more than are looked at in one go
		h.fund(h.stage(h.app, "u1").ID)
	}
	if got := h.ids(h.app, "/v1/packets?status=sold_out", 1, nil); !slices.Equal(got, []string{soldOut}) {
		t.Errorf("%v", got)
	}
	if got := h.ids(h.app, "/v1/packets?status=open", 100, nil); len(got) != 260 ||
		len(slices.Compact(slices.Sorted(slices.Values(got)))) != 260 {
		t.Errorf("%d open", len(got))
	}
}

// TestUserClaims: a claim is listed as soon as it is won, once, whatever becomes of it.
func TestUserClaims(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	const packets = 12
	var all []string
	for i := range packets {
		p := h.stage(h.app, fmt.Sprint("s", i))
		h.fund(p.ID)
		for _, user := range []string{"a", "A", "a "} {
			if r := h.grab(h.app, p.ID, user); r.status != http.StatusCreated {
				t.Fatalf("%s", r)
			}
		}
		all = append(all, p.ID)
	}
	slices.Reverse(all)
	foreign := h.stage(h.app2, "s")
	h.fund(foreign.ID)
	h.grab(h.app2, foreign.ID, "a")
	walk := func(o owner, user string, limit int, between func(int)) (ids []string, claims []userClaimBody) {
		t.Helper()
		query := ""
		for n := range 100 {
			if between != nil {
				between(n)
			}
			var p struct {
				Items      []userClaimBody
				NextCursor *string `json:"next_cursor"`
			}
			h.page(o, fmt.Sprintf("/v1/users/%s/claims?limit=%d%s", url.PathEscape(user), limit, query), &p)
			for _, c := range p.Items {
				ids, claims = append(ids, c.PacketID), append(claims, c)
				if c.UserID != user {
					t.Errorf("%q among the claims of %q", c.UserID, user)
				}
			}
			if p.NextCursor == nil {
				break
			}
			query = "&cursor=" + url.QueryEscape(*p.NextCursor)
		}
		return ids, claims
	}
	for _, user := range []string{"a", "A", "a "} {
		for _, limit := range []int{1, 5, packets, 200} {
			if got, _ := walk(h.app, user, limit, nil); !slices.Equal(got, all) {
				t.Errorf("%q by %d:\n got %v\nwant %v", user, limit, got, all)
			}
		}
	}
	if got, _ := walk(h.app2, "a", 50, nil); !slices.Equal(got, []string{foreign.ID}) {
		t.Errorf("another app: %v", got)
	}
	if got, _ := walk(h.app, "b", 50, nil); len(got) != 0 {
		t.Errorf("nobody: %v", got)
	}
	// Before each page one is recorded, and one closed and retired.
	got, _ := walk(h.app, "a", 2, func(page int) {
		for _, i := range []int{page, packets - 1 - page} {
			if view, err := h.pool.View(t.Context(), all[i]); err == nil && !view.Retired {
				h.record(all[i])
			}
		}
		if view, err := h.pool.View(t.Context(), all[page+2]); err == nil && !view.Retired {
			h.finish(all[page+2], packet.CloseSoldOut)
		}
	})
	if !slices.Equal(got, all) {
		t.Errorf("while they are recorded:\n got %v\nwant %v", got, all)
	}
	// Every item equals the claim in the packet's own list.
	_, claims := walk(h.app, "a", 5, nil)
	for i, c := range claims {
		var one claimBody
		h.as(h.app, "GET", "/v1/packets/"+c.PacketID+"/grabs/a", "").json(t, &one)
		if one != c.claimBody || c.SenderID != fmt.Sprint("s", packets-1-i) || !c.BestLuck {
			t.Errorf("listed %+v\n alone %+v", c, one)
		}
	}
}

// countedPool counts the packets and claims that lists read in Redis.
type countedPool struct {
	api.Pool
	views, progress, claims atomic.Int64
}

func (p *countedPool) Views(ctx context.Context, ids []string) (map[string]packet.PoolView, error) {
	p.views.Add(int64(len(ids)))
	return p.Pool.Views(ctx, ids)
}

func (p *countedPool) Progress(ctx context.Context, ids []string) (map[string]packet.PoolView, error) {
	p.progress.Add(int64(len(ids)))
	return p.Pool.Progress(ctx, ids)
}

func (p *countedPool) ClaimsOf(ctx context.Context, user string, ids []string) (map[string]packet.Claim, error) {
	p.claims.Add(int64(len(ids)))
	return p.Pool.ClaimsOf(ctx, user, ids)
}

// TestListsReadWhatMySQLLacks: pages read in Redis only claims that MySQL does not have, and of open
// packets only what changes; an unknown user's page reads nothing more.
func TestListsReadWhatMySQLLacks(t *testing.T) {
	t.Parallel()
	counted := &countedPool{}
	h := newFixture(t, parts{change: func(c *api.Config) {
		counted.Pool = c.Pool
		c.Pool = counted
	}})
	const packets = 5
	for i := range packets {
		p := h.stage(h.app, "s")
		h.fund(p.ID)
		h.grab(h.app, p.ID, "a")
		if i > 0 { // one claim is not recorded
			h.record(p.ID)
		}
	}
	for _, test := range []struct {
		path                           string
		items, views, progress, claims int64
	}{
		{"/v1/users/nobody/claims", 0, 0, 0, 0},
		{"/v1/users/a/claims", packets, 0, packets, 1},
		{"/v1/users/s/packets", packets, 0, packets, 0},
		{"/v1/packets?status=open", packets, 0, packets, 0},
	} {
		counted.views.Store(0)
		counted.progress.Store(0)
		counted.claims.Store(0)
		var page struct{ Items []any }
		h.page(h.app, test.path, &page)
		if got := [4]int64{int64(len(page.Items)), counted.views.Load(), counted.progress.Load(), counted.claims.Load()}; got !=
			[4]int64{test.items, test.views, test.progress, test.claims} {
			t.Errorf("%s: %v, want %+v", test.path, got, test)
		}
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	sum := func(o owner, user, query string) (s summaryBody) {
		t.Helper()
		h.page(o, "/v1/users/"+url.PathEscape(user)+"/summary"+query, &s)
		return s
	}
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	h.check(err)
	year := time.Now().In(shanghai).Year()
	expect := func(step string, sent int, sentAmount int64, received int, amount int64, best int) {
		t.Helper()
		s := sum(h.app, "u1", "")
		if s.UserID != "u1" || s.Year != year || s.TZ != "Asia/Shanghai" || s.Sent.Count != sent || s.Sent.Amount != sentAmount ||
			s.Received.Count != received || s.Received.Amount != amount || s.Received.BestLuck != best {
			t.Errorf("%s: %+v", step, s)
		}
	}
	expect("nothing", 0, 0, 0, 0, 0)
	h.stage(h.app, "u1")
	h.create(h.app, rand.Text(), with("sender_id", `"u1~declined"`))
	expect("not charged", 0, 0, 0, 0, 0)
	id := h.open(h.app, with("share_count", "2", "split", `"equal"`))
	expect("sent", 1, 1000, 0, 0, 0)
	h.grab(h.app, id, "u1")
	expect("grabbed", 1, 1000, 1, 500, 0)
	h.grab(h.app, id, "u2")
	expect("sold out", 1, 1000, 1, 500, 1)
	h.record(id)
	expect("recorded", 1, 1000, 1, 500, 1)
	other := h.open(h.app, with("sender_id", `"u3"`, "share_count", "4", "split", `"equal"`))
	h.grab(h.app, other, "u1")
	expect("another's", 1, 1000, 2, 750, 1)
	h.finish(id, packet.CloseSoldOut)
	expect("retired", 1, 1000, 2, 750, 1)
	h.finish(other, packet.CloseRecalled)
	expect("both", 1, 1000, 2, 750, 2)
	for _, query := range []string{"?year=2000", "?year=9999&tz=UTC", fmt.Sprintf("?year=%d&tz=America/New_York", year+1),
		fmt.Sprintf("?year=%d", year-1)} {
		if s := sum(h.app, "u1", query); s.Sent.Count+s.Received.Count != 0 {
			t.Errorf("%s: %+v", query, s)
		}
	}
	for _, who := range []owner{h.app2} {
		if s := sum(who, "u1", ""); s.Sent.Count+s.Received.Count != 0 {
			t.Errorf("another app: %+v", s)
		}
	}
	if s := sum(h.app, "U1", ""); s.Sent.Count+s.Received.Count != 0 {
		t.Errorf("another user: %+v", s)
	}
	if s := sum(h.app, "u1", "?tz=Pacific%2FKiritimati"); s.TZ != "Pacific/Kiritimati" || s.Received.Count > 2 {
		t.Errorf("%+v", s)
	}
}

// TestGrabPagesAcrossRetiring: the list goes on where it was when MySQL takes over.
func TestGrabPagesAcrossRetiring(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	id := h.open(h.app, with("share_count", "9"))
	var want []string
	for i := range 7 {
		want = append(want, fmt.Sprint("u", i))
		h.grab(h.app, id, want[i])
	}
	slices.Reverse(want)
	first := h.claims(h.app, id, "?limit=3")
	h.grab(h.app, id, "late")
	second := h.claims(h.app, id, "?limit=2&cursor="+url.QueryEscape(*first.NextCursor))
	h.finish(id, packet.CloseRecalled)
	third := h.claims(h.app, id, "?limit=2&cursor="+url.QueryEscape(*second.NextCursor))
	var got []string
	for _, page := range []claimsBody{first, second, third} {
		for _, c := range page.Items {
			got = append(got, c.UserID)
		}
	}
	if !slices.Equal(got, want) || third.NextCursor != nil {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestListsRefuse(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	for range 2 {
		id := h.stage(h.app, "u1").ID
		h.fund(id)
		h.grab(h.app, id, "u1")
	}
	cursor := func(path string) string {
		t.Helper()
		var p struct {
			NextCursor *string `json:"next_cursor"`
		}
		h.page(h.app, path, &p)
		if p.NextCursor == nil {
			t.Fatalf("%s has one page", path)
		}
		return "cursor=" + url.QueryEscape(*p.NextCursor)
	}
	packets, filtered := cursor("/v1/packets?limit=1"), cursor("/v1/packets?limit=1&sender_id=u1&status=open")
	sent, claims := cursor("/v1/users/u1/packets?limit=1"), cursor("/v1/users/u1/claims?limit=1")
	for _, path := range []string{
		"/v1/packets?status=lost", "/v1/packets?status=", "/v1/packets?status=OPEN", "/v1/packets?sender_id=", "/v1/packets?sender_id=%00",
		"/v1/packets?sender_id=%FF", "/v1/packets?sender_id=" + strings.Repeat("x", 65), "/v1/packets?limit=0", "/v1/packets?limit=201",
		"/v1/packets?page=2", "/v1/packets?status=open&status=open", "/v1/packets?cursor=", "/v1/packets?cursor=x", "/v1/packets?cursor=e30",
		"/v1/packets?status=open&" + packets, "/v1/packets?sender_id=u1&" + packets, "/v1/packets?sender_id=u2&" + filtered,
		"/v1/packets?status=closed&" + filtered, "/v1/packets?" + sent, "/v1/packets?" + claims, "/v1/users/u1/packets?" + filtered,
		"/v1/users/u1/packets?status=closed&" + sent, "/v1/users/u2/packets?" + sent, "/v1/users/u1/packets?sender_id=u1",
		"/v1/users/u2/claims?" + claims, "/v1/users/u1/claims?" + sent, "/v1/users/u1/claims?status=open", "/v1/users/u1/claims?limit=x",
		"/v1/users/%00/claims", "/v1/users/%FF/packets", "/v1/users/" + strings.Repeat("x", 65) + "/summary", "/v1/users/%0A/summary",
		"/v1/users/u1/summary?year=1999", "/v1/users/u1/summary?year=10000", "/v1/users/u1/summary?year=", "/v1/users/u1/summary?year=x",
		"/v1/users/u1/summary?year=2026.0", "/v1/users/u1/summary?tz=", "/v1/users/u1/summary?tz=Local", "/v1/users/u1/summary?tz=Mars/Olympus",
		"/v1/users/u1/summary?tz=../UTC", "/v1/users/u1/summary?limit=1",
	} {
		if r := h.as(h.app, "GET", path, ""); r.status != http.StatusUnprocessableEntity || r.code() != "invalid_request" {
			t.Errorf("%s: %s", path, r)
		}
	}
	for _, path := range []string{"/v1/packets?status=open&" + filtered, "/v1/packets?" + filtered, "/v1/users/u1/packets?" + sent,
		"/v1/users/u1/claims?" + claims} {
		var p packetsBody
		if h.page(h.app, path, &p); len(p.Items) != 1 || p.NextCursor != nil {
			t.Errorf("%s: %+v", path, p)
		}
		if r := h.as(h.finance, "GET", path, ""); r.code() != "forbidden" {
			t.Errorf("%s for staff: %s", path, r)
		}
	}
}

// TestListsWhileAway: a list that cannot be whole is refused.
func TestListsWhileAway(t *testing.T) {
	t.Parallel()
	redis := stacktest.FreshRedis(t)
	server, dsn := stacktest.FreshMariaDB(t)
	h := newFixture(t, parts{redis: redis.Addr, dsn: dsn})
	id := h.open(h.app, with("share_count", "2"))
	h.grab(h.app, id, "u1")
	lists := []string{"/v1/packets", "/v1/packets?status=funding", "/v1/packets?sender_id=u1", "/v1/users/u1/packets", "/v1/users/u1/claims",
		"/v1/users/u1/summary"}
	server.Kill()
	for _, path := range lists {
		if r := h.as(h.app, "GET", path, ""); r.status != http.StatusServiceUnavailable || r.code() != "unavailable" {
			t.Errorf("without books %s: %s", path, r)
		}
	}
	if page := h.claims(h.app, id, ""); len(page.Items) != 1 {
		t.Errorf("grabs of a packet: %+v", page)
	}
	server.Restart(t)
	wait.Until(h.t, "MySQL is back", func() bool { return h.store.Ping(t.Context()) == nil })
	redis.Kill()
	for _, path := range lists {
		if r := h.as(h.app, "GET", path, ""); r.status != http.StatusServiceUnavailable || r.code() != "unavailable" {
			t.Errorf("without pool %s: %s", path, r)
		}
	}
}
