package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"hongbao/client"
	"hongbao/internal/money"
	"hongbao/wire"
)

func TestNew(t *testing.T) {
	for _, bad := range [][2]string{
		{"", "k"}, {"127.0.0.1:8080", "k"}, {"ftp://x", "k"}, {"http://", "k"}, {"http://u:s3cret@x", "k"}, {"http://x?s3cret", "k"},
		{"http://x#f", "k"}, {"http://x", ""}, {"http://x", "s3cret\n"}, {"http://x", "s3cret "}, {"http://x", "s3crét"},
	} {
		_, err := client.New(bad[0], bad[1])
		if !errors.Is(err, client.ErrConfig) || strings.Contains(fmt.Sprint(err), "s3cr") {
			t.Errorf("%q: %v", bad, err)
		}
		if _, err := client.NewStaff(bad[0], bad[1]); !errors.Is(err, client.ErrConfig) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	c, err := client.New("http://x/", "s3cret")
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprintf("%v %+v %#v", c, c, c); strings.Contains(text, "s3cret") {
		t.Errorf("printing the client shows its key: %s", text)
	}
}

// TestSegment: what comes out is one segment that means the bytes that went in.
func TestSegment(t *testing.T) {
	for in, want := range map[string]string{
		"bob": "bob", "a b": "a%20b", "a+b": "a%2Bb", "a/b": "a%2Fb", "a%2Fb": "a%252Fb", "a?b#c": "a%3Fb%23c", "张三": "%E5%BC%A0%E4%B8%89",
		".": "%2E", "..": "%2E%2E", "...": "...", "a.b": "a.b", "x~declined": "x~declined", "a;b=c": "a%3Bb%3Dc", "\xff": "%FF", "": "",
	} {
		got := client.Segment(in)
		back, err := url.PathUnescape(got)
		if got != want || back != in || err != nil {
			t.Errorf("%q: %q, want %q; back %q %v", in, got, want, back, err)
		}
	}
	c, s, _ := scripted(t, client.Retry{}, give(200, `{}`))
	for _, user := range []string{"..", "a/b", "张 三", "a+b%"} {
		if _, err := c.Claim(t.Context(), "p1", user); err != nil {
			t.Fatal(err)
		}
		if got, want := s.seen[len(s.seen)-1].RequestURI, "/v1/packets/p1/grabs/"+client.Segment(user); got != want {
			t.Errorf("asked for %s, want %s", got, want)
		}
	}
}

// TestTextIsNotChanged: two ids that are not UTF-8 would become the same user, who
// would be paid.
func TestTextIsNotChanged(t *testing.T) {
	c, s, _ := scripted(t, client.Retry{}, give(201, `{}`))
	const bad = "\xff"
	for name, call := range map[string]func() error{
		"user": func() error { _, err := c.Grab(t.Context(), "p1", wire.Grab{UserID: bad}); return err },
		"recipient": func() error {
			_, err := c.Grab(t.Context(), "p1", wire.Grab{UserID: "bob", Recipient: &wire.Recipient{Account: bad}})
			return err
		},
		"eligible": func() error {
			_, err := c.Create(t.Context(), wire.CreatePacket{SenderID: "ann", EligibleUserIDs: []string{"bob", bad}})
			return err
		},
		"metadata": func() error {
			_, err := c.Create(t.Context(), wire.CreatePacket{SenderID: "ann", Metadata: map[string]string{bad: ""}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := call()
			var e *client.CallError
			if !errors.Is(err, client.ErrText) || !errors.As(err, &e) || e.Tries != 0 || s.calls() != 0 {
				t.Errorf("%d calls: %v", s.calls(), err)
			}
		})
	}
	if _, err := c.Grab(t.Context(), "p1", wire.Grab{UserID: "\ufffd"}); err != nil || s.calls() != 1 {
		t.Errorf("%d calls: %v", s.calls(), err)
	}
}

func TestRequests(t *testing.T) {
	c, s, _ := scripted(t, client.Retry{}, give(200, `{"items":[],"next_cursor":null}`))
	ctx := t.Context()
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		t.Fatal(err)
	}
	for want, do := range map[string]func() error{
		"POST /v1/packets": func() error { _, err := c.Create(ctx, wire.CreatePacket{}); return err },
		"GET /v1/packets?limit=7&sender_id=a%26b&status=open": func() error {
			_, err := c.ListPackets(ctx, wire.PacketFilter{SenderID: "a&b", Status: wire.PacketOpen}, client.Page{Limit: 7})
			return err
		},
		"GET /v1/packets/p%2F1":     func() error { _, err := c.Packet(ctx, "p/1"); return err },
		"POST /v1/packets/p1/close": func() error { _, err := c.ClosePacket(ctx, "p1"); return err },
		"GET /v1/packets/p1/proof":  func() error { _, err := c.Proof(ctx, "p1"); return err },
		"GET /v1/packets/p1/grabs?cursor=c%2B": func() error {
			_, err := c.ListGrabs(ctx, "p1", client.Page{Cursor: "c+"})
			return err
		},
		"GET /v1/users/u%201/claims":  func() error { _, err := c.ListUserClaims(ctx, "u 1", client.Page{}); return err },
		"GET /v1/users/u%201/packets": func() error { _, err := c.ListUserPackets(ctx, "u 1", client.Page{}); return err },
		"GET /v1/users/u1/summary?tz=Asia%2FShanghai&year=2026": func() error {
			_, err := c.UserSummary(ctx, "u1", 2026, shanghai)
			return err
		},
		"GET /v1/users/u1/summary": func() error { _, err := c.UserSummary(ctx, "u1", 0, nil); return err },
	} {
		if err := do(); err != nil {
			t.Fatalf("%s: %v", want, err)
		}
		r := s.seen[len(s.seen)-1]
		if got := r.Method + " " + r.RequestURI; got != want {
			t.Errorf("asked %s, want %s", got, want)
		}
		if r.Header.Get("Authorization") != "Bearer hb_app_key" {
			t.Errorf("%s: authorization %q", want, r.Header.Get("Authorization"))
		}
		if hasBody := s.body[len(s.body)-1] != ""; hasBody != (r.Header.Get("Content-Type") == "application/json") {
			t.Errorf("%s: content type %q", want, r.Header.Get("Content-Type"))
		}
	}
}

// TestCreateAll: every member goes out under its name.
func TestCreateAll(t *testing.T) {
	c, s, _ := scripted(t, client.Retry{}, give(201, openPacket))
	at := time.Date(2026, 2, 17, 20, 0, 0, 0, time.UTC)
	_, err := c.Create(t.Context(), wire.CreatePacket{SenderID: "u", TotalAmount: money.Max, ShareCount: 3, Split: wire.SplitEven,
		MinShare: 2, MaxShare: 5,
		Currency: "CNY", Greeting: "恭喜", OpensAt: at, ExpiresInSeconds: 60, EligibleUserIDs: []string{"a"}, GroupID: "g",
		Metadata: map[string]string{"k": "v"}})
	want := `{"sender_id":"u","total_amount":9007199254740991,"share_count":3,"split":"even","min_share":2,"max_share":5,"currency":"CNY","greeting":"恭喜",` +
		`"opens_at":"2026-02-17T20:00:00Z","expires_in_seconds":60,"eligible_user_ids":["a"],"group_id":"g","metadata":{"k":"v"}}`
	if err != nil || s.body[0] != want {
		t.Errorf("%v\n%s\n%s", err, s.body[0], want)
	}
}

func packetIn(status string) http.HandlerFunc {
	return give(200, `{"id":"p1","status":"`+status+`","failure":{"code":"insufficient_sender_balance","message":"too poor"}}`)
}

func TestCreateAndWait(t *testing.T) {
	accepted := give(202, `{"id":"p1","status":"funding"}`)
	t.Run("OK", func(t *testing.T) {
		c, s, pauses := scripted(t, client.Retry{}, accepted, packetIn("funding"), refuse(503, wire.CodeUnavailable), packetIn("funding"),
			packetIn("open"))
		p, err := c.CreateAndWait(t.Context(), wire.CreatePacket{})
		if err != nil || p.Status != wire.PacketOpen || s.calls() != 5 || len(*pauses) != 4 {
			t.Errorf("%d calls, pauses %v: %+v %v", s.calls(), *pauses, p, err)
		}
	})
	t.Run("open at once", func(t *testing.T) {
		c, s, _ := scripted(t, client.Retry{}, give(201, openPacket))
		if p, err := c.CreateAndWait(t.Context(), wire.CreatePacket{}); err != nil || p.ID != "p1" || s.calls() != 1 {
			t.Errorf("%d calls: %+v %v", s.calls(), p, err)
		}
	})
	t.Run("declined later", func(t *testing.T) {
		c, _, _ := scripted(t, client.Retry{}, accepted, packetIn("rejected"))
		p, err := c.CreateAndWait(t.Context(), wire.CreatePacket{})
		var problem *client.Problem
		if !client.IsCode(err, wire.CodeFundingDeclined) || !errors.As(err, &problem) || problem.PacketID != "p1" ||
			problem.Failure.Code != "insufficient_sender_balance" || p.Status != wire.PacketRejected {
			t.Errorf("%+v %v", p, err)
		}
		if !strings.Contains(fmt.Sprint(err), "insufficient_sender_balance: too poor") {
			t.Errorf("error says %q", err)
		}
	})
	t.Run("the context ends first", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c, _, _ := scripted(t, client.Retry{}, accepted, packetIn("funding"), func(w http.ResponseWriter, r *http.Request) {
			packetIn("funding")(w, r)
			cancel()
		})
		p, err := c.CreateAndWait(ctx, wire.CreatePacket{})
		if !errors.Is(err, context.Canceled) || p == nil || p.ID != "p1" {
			t.Errorf("%+v %v", p, err)
		}
	})
}

func TestIterators(t *testing.T) {
	first := give(200, `{"items":[{"user_id":"c"},{"user_id":"b"}],"next_cursor":"next"}`)
	last := give(200, `{"items":[{"user_id":"a"}],"next_cursor":null}`)
	t.Run("OK", func(t *testing.T) {
		c, s, _ := scripted(t, client.Retry{}, first, last)
		var got string
		for claim, err := range c.Grabs(t.Context(), "p1") {
			if err != nil {
				t.Fatal(err)
			}
			got += claim.UserID
		}
		if got != "cba" || s.seen[0].RequestURI != "/v1/packets/p1/grabs?limit=200" ||
			s.seen[1].RequestURI != "/v1/packets/p1/grabs?cursor=next&limit=200" {
			t.Errorf("%s by %d calls", got, s.calls())
		}
	})
	t.Run("filters go with every page", func(t *testing.T) {
		c, s, _ := scripted(t, client.Retry{}, first, last)
		for _, err := range c.Packets(t.Context(), wire.PacketFilter{SenderID: "u"}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if s.calls() != 2 || s.seen[1].URL.Query().Get("sender_id") != "u" {
			t.Errorf("%d calls, last %v", s.calls(), s.seen[1].URL)
		}
	})
	t.Run("no more pages than wanted", func(t *testing.T) {
		c, s, _ := scripted(t, client.Retry{}, first, last)
		for _, err := range c.UserClaims(t.Context(), "u") {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		if s.calls() != 1 {
			t.Errorf("%d calls", s.calls())
		}
	})
	t.Run("an error ends it", func(t *testing.T) {
		c, _, _ := scripted(t, client.Retry{}, first, refuse(500, wire.CodeInternal))
		var got []error
		for claim, err := range c.Grabs(t.Context(), "p1") {
			if (claim == nil) == (err == nil) {
				t.Errorf("%v %v", claim, err)
			}
			got = append(got, err)
		}
		if len(got) != 3 || got[0] != nil || got[1] != nil || !client.IsCode(got[2], wire.CodeInternal) {
			t.Errorf("errors %v", got)
		}
	})
	t.Run("a list that does not go on", func(t *testing.T) {
		c, s, _ := scripted(t, client.Retry{}, first, first)
		var last error
		for _, err := range c.Grabs(t.Context(), "p1") {
			last = err
		}
		if !errors.Is(last, client.ErrAnswer) || s.calls() != 2 {
			t.Errorf("%d calls: %v", s.calls(), last)
		}
	})
}
