package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hongbao/client"
	"hongbao/internal/packet"
	"hongbao/wire"
)

// script answers one step a request, and the last one for ever.
type script struct {
	t     *testing.T
	mu    sync.Mutex
	steps []http.HandlerFunc
	seen  []*http.Request
	body  []string
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	s.seen, s.body = append(s.seen, r), append(s.body, string(body))
	step := s.steps[min(len(s.seen), len(s.steps))-1]
	s.mu.Unlock()
	step(w, r)
}

func (s *script) keys() (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.seen {
		out = append(out, r.Header.Get("Idempotency-Key"))
	}
	return out
}

func (s *script) calls() int { s.mu.Lock(); defer s.mu.Unlock(); return len(s.seen) }

// refuse answers with a problem.
func refuse(status int, code wire.Code, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"type":"/errors/%s","title":"T","status":%d,"detail":"D.","instance":"/x","code":%q,"request_id":"r1"}`, code,
			status, code)
	}
}

func give(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// hangUp breaks the connection; after part of an answer, if there is one.
func hangUp(part string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if part != "" {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, part)
			_ = http.NewResponseController(w).Flush()
		}
		panic(http.ErrAbortHandler)
	}
}

// scripted starts a server with the steps and a client that notes its pauses.
func scripted(t *testing.T, retry client.Retry, steps ...http.HandlerFunc) (*client.Client, *script, *[]time.Duration) {
	t.Helper()
	s := &script{t: t, steps: steps}
	server := httptest.NewUnstartedServer(s)
	server.Start()
	t.Cleanup(server.Close)
	var pauses []time.Duration
	c, err := client.New(server.URL, "hb_app_key", client.WithRetry(retry), client.WithPause(func(ctx context.Context, d time.Duration) error {
		pauses = append(pauses, d)
		return ctx.Err()
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, s, &pauses
}

const openPacket = `{"id":"p1","status":"open","total_amount":100,"share_count":2,"fairness":{"seed":null},"new_member":1}`

func TestRetryWhatMayBeRepeated(t *testing.T) {
	for name, step := range map[string]http.HandlerFunc{
		"503":                 refuse(503, wire.CodeUnavailable),
		"503 of a proxy":      give(503, "<html>"),
		"429":                 refuse(429, wire.CodeRateLimited),
		"request in progress": refuse(409, wire.CodeRequestInProgress),
		"hang-up":             hangUp(""),
		"cut off":             hangUp(`{"id":"p`),
	} {
		t.Run(name, func(t *testing.T) {
			c, s, pauses := scripted(t, client.Retry{}, step, step, give(201, openPacket))
			ctx, answer := client.KeepAnswer(t.Context())
			p, err := c.Create(ctx, wire.CreatePacket{SenderID: "u1", TotalAmount: 100, ShareCount: 2})
			if err != nil {
				t.Fatal(err)
			}
			if p.ID != "p1" || p.Status != wire.PacketOpen || string(answer()) != openPacket {
				t.Errorf("packet %+v", p)
			}
			keys := s.keys()
			if len(keys) != 3 || keys[0] == "" || keys[1] != keys[0] || keys[2] != keys[0] {
				t.Errorf("idempotency keys of the tries: %q", keys)
			}
			if len(slices.Compact(slices.Clone(s.body))) != 1 || s.body[0] != `{"sender_id":"u1","total_amount":100,"share_count":2}` {
				t.Errorf("bodies of the tries: %q", s.body)
			}
			for i, p := range *pauses {
				if low, high := 100*time.Millisecond, 200*time.Millisecond<<i; p < low || p > high {
					t.Errorf("pause %d is %v, want %v to %v", i, p, low, high)
				}
			}
		})
	}
}

func TestNoRetryOfOtherFailures(t *testing.T) {
	for _, refusal := range []struct {
		status int
		code   wire.Code
	}{
		{400, wire.CodeMalformedJSON}, {401, wire.CodeUnauthenticated}, {402, wire.CodeFundingDeclined}, {403, wire.CodeForbidden},
		{403, wire.CodeNotEligible}, {404, wire.CodePacketNotFound}, {405, wire.CodeMethodNotAllowed}, {408, wire.CodeRequestTimeout},
		{409, wire.CodeNotOpenYet}, {409, wire.CodeSoldOut}, {410, wire.CodeExpired}, {413, wire.CodeBodyTooLarge},
		{415, wire.CodeUnsupportedMedia}, {422, wire.CodeInvalidRequest}, {422, wire.CodeKeyReused}, {500, wire.CodeInternal},
	} {
		t.Run(string(refusal.code), func(t *testing.T) {
			c, s, _ := scripted(t, client.Retry{}, refuse(refusal.status, refusal.code, "Retry-After", "7"))
			_, err := c.Grab(t.Context(), "p1", wire.Grab{UserID: "bob"})
			if !client.IsCode(err, refusal.code) || client.IsCode(err, wire.CodeUnavailable) || s.calls() != 1 {
				t.Errorf("%d calls: %v", s.calls(), err)
			}
			var p *client.Problem
			if !errors.As(err, &p) || p.Status != refusal.status || p.RequestID != "r1" || p.RetryAfter != 7*time.Second || p.Detail != "D." {
				t.Errorf("problem %+v", p)
			}
			var e *client.CallError
			if !errors.As(err, &e) || e.Tries != 1 || e.Method != "POST" || e.Path != "/v1/packets/p1/grabs" || e.IdempotencyKey != "" {
				t.Errorf("call %+v", e)
			}
		})
	}
	for name, step := range map[string]http.HandlerFunc{
		"bad gateway": give(502, "<html>"),
		"redirect":    func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
	} {
		t.Run(name, func(t *testing.T) {
			c, s, _ := scripted(t, client.Retry{}, step)
			_, err := c.Packet(t.Context(), "p1")
			var p *client.Problem
			if !errors.As(err, &p) || p.Code != "" || s.calls() != 1 {
				t.Errorf("%d calls: %v", s.calls(), err)
			}
		})
	}
	for name, body := range map[string]string{"not JSON": "<html>", "wrong type": `{"share_count":"many"}`, "too large": `{"id":"` +
		strings.Repeat("x", client.MaxAnswer) + `"}`} {
		t.Run(name, func(t *testing.T) {
			c, s, _ := scripted(t, client.Retry{}, give(200, body))
			if _, err := c.Packet(t.Context(), "p1"); !errors.Is(err, client.ErrAnswer) || s.calls() != 1 {
				t.Errorf("%d calls: %v", s.calls(), err)
			}
		})
	}
}

func TestRetryEnds(t *testing.T) {
	t.Run("after so many tries", func(t *testing.T) {
		c, s, pauses := scripted(t, client.Retry{Tries: 4, MinPause: time.Millisecond, MaxPause: 3 * time.Millisecond},
			refuse(503, wire.CodeUnavailable))
		_, err := c.Create(t.Context(), wire.CreatePacket{}, client.Key("order-4711"))
		var e *client.CallError
		if !client.IsCode(err, wire.CodeUnavailable) || !errors.As(err, &e) || e.Tries != 4 || e.IdempotencyKey != "order-4711" ||
			s.calls() != 4 {
			t.Errorf("%d calls: %v", s.calls(), err)
		}
		if len(*pauses) != 3 || slices.Max(*pauses) > 3*time.Millisecond {
			t.Errorf("pauses %v", *pauses)
		}
		if !slices.Equal(s.keys(), []string{"order-4711", "order-4711", "order-4711", "order-4711"}) {
			t.Errorf("keys %q", s.keys())
		}
	})
	t.Run("Retry-After is waited for", func(t *testing.T) {
		date := time.Now().Add(4 * time.Second).UTC().Format(http.TimeFormat)
		c, _, pauses := scripted(t, client.Retry{}, refuse(503, wire.CodeUnavailable, "Retry-After", "3"),
			refuse(429, wire.CodeRateLimited, "Retry-After", date), give(200, openPacket))
		if _, err := c.Packet(t.Context(), "p1"); err != nil {
			t.Fatal(err)
		}
		if p := *pauses; len(p) != 2 || p[0] < 3*time.Second || p[0] > 3100*time.Millisecond || p[1] < 2*time.Second ||
			p[1] > 4100*time.Millisecond {
			t.Errorf("pauses %v", p)
		}
	})
	t.Run("a long Retry-After is the caller's business", func(t *testing.T) {
		c, s, _ := scripted(t, client.Retry{}, refuse(503, wire.CodeUnavailable, "Retry-After", "3600"))
		_, err := c.Packet(t.Context(), "p1")
		var p *client.Problem
		if !errors.As(err, &p) || p.RetryAfter != time.Hour || s.calls() != 1 {
			t.Errorf("%d calls: %v", s.calls(), err)
		}
	})
	t.Run("not beyond the deadline", func(t *testing.T) {
		c, s, pauses := scripted(t, client.Retry{}, refuse(503, wire.CodeUnavailable, "Retry-After", "20"))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := c.Packet(ctx, "p1"); !client.IsCode(err, wire.CodeUnavailable) || s.calls() != 1 || len(*pauses) != 0 {
			t.Errorf("%d calls, pauses %v: %v", s.calls(), *pauses, err)
		}
	})
	t.Run("when the context ends", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c, s, _ := scripted(t, client.Retry{}, func(w http.ResponseWriter, r *http.Request) {
			cancel()
			<-r.Context().Done()
		})
		if _, err := c.Packet(ctx, "p1"); !errors.Is(err, context.Canceled) || s.calls() != 1 {
			t.Errorf("%d calls: %v", s.calls(), err)
		}
	})
	t.Run("a try that hangs is repeated", func(t *testing.T) {
		hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		c, s, _ := scripted(t, client.Retry{TryTimeout: 50 * time.Millisecond}, hang, give(200, openPacket))
		if _, err := c.Packet(t.Context(), "p1"); err != nil || s.calls() != 2 {
			t.Errorf("%d calls: %v", s.calls(), err)
		}
	})
	t.Run("nobody listens", func(t *testing.T) {
		server := httptest.NewServer(nil)
		server.Close()
		c, err := client.New(server.URL, "key", client.WithRetry(client.Retry{Tries: 3, MinPause: time.Millisecond}))
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Packet(t.Context(), "p1")
		var e *client.CallError
		if !errors.As(err, &e) || e.Tries != 3 {
			t.Errorf("error %v", err)
		}
	})
}

// One app's texts must not keep an iterator, or staff who list the packets of all
// apps, from going on: the largest page is read.
func TestLargestPage(t *testing.T) {
	p := wire.Packet{
		ID: strings.Repeat("v", 20), Status: wire.PacketClosed, SenderID: strings.Repeat(`"`, packet.MaxUserIDBytes),
		Greeting: strings.Repeat("\u2028", packet.MaxGreeting),
		// JSON needs six bytes for each of these.
		Metadata: map[string]string{strings.Repeat("\x00", packet.MaxMetadata): strings.Repeat("\x00", packet.MaxMetadata)},
	}
	body, err := json.Marshal(wire.List[wire.Packet]{Items: slices.Repeat([]wire.Packet{p}, 200)})
	if err != nil {
		t.Fatal(err)
	}
	c, _, _ := scripted(t, client.Retry{}, give(http.StatusOK, string(body)))
	list, err := c.ListPackets(t.Context(), wire.PacketFilter{}, client.Page{Limit: 200})
	if err != nil || len(list.Items) != 200 {
		t.Errorf("%d bytes: %v", len(body), err)
	}
}
