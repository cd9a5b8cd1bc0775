package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"hongbao/client"
	"hongbao/internal/devstack"
	"hongbao/internal/money"
	"hongbao/wire"
)

// fakeAPI answers like the API, from memory and at once. It shows that the first
// packet calls the right routes and checks every answer; the end-to-end tests show
// that the product answers so.
type fakeAPI struct {
	mu       sync.Mutex
	packets  map[string]*fakePacket
	stumbles int    // how many calls are answered 503 first
	payout   string // status of every payout
	extra    int    // shares given out beyond the last
}

type fakePacket struct {
	request wire.CreatePacket
	claimed []money.Fen
}

func (a *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key, isApp := r.Header.Get("Authorization"), !strings.HasPrefix(r.URL.Path, "/v1/staff/")
	switch parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/"); {
	case isApp && key != "Bearer app", !isApp && key != "Bearer finance":
		answer(w, http.StatusForbidden, client.Problem{Problem: wire.Problem{Code: "forbidden"}})
	case a.stumbles > 0:
		a.stumbles--
		answer(w, http.StatusServiceUnavailable, client.Problem{Problem: wire.Problem{Code: "unavailable"}})
	case !isApp:
		a.listPayouts(w, r)
	case len(parts) == 2:
		var p fakePacket
		if json.NewDecoder(r.Body).Decode(&p.request) != nil || r.Header.Get("Idempotency-Key") == "" {
			answer(w, http.StatusBadRequest, client.Problem{Problem: wire.Problem{Code: "malformed_json"}})
			return
		}
		a.packets[p.request.SenderID+r.Header.Get("Idempotency-Key")] = &p
		answer(w, http.StatusAccepted, wire.Packet{ID: p.request.SenderID + r.Header.Get("Idempotency-Key"), Status: "funding"})
	case r.Method == http.MethodPost:
		a.grab(w, a.packets[parts[2]])
	default:
		a.read(w, parts[2], len(parts) == 4)
	}
}

func (a *fakeAPI) grab(w http.ResponseWriter, p *fakePacket) {
	if len(p.claimed) >= p.request.ShareCount+a.extra {
		answer(w, http.StatusConflict, client.Problem{Problem: wire.Problem{Code: "sold_out"}})
		return
	}
	p.claimed = append(p.claimed, p.request.TotalAmount/money.Fen(p.request.ShareCount))
	answer(w, http.StatusCreated, wire.Claim{Amount: p.claimed[0]})
}

// read answers open while nothing has been grabbed, closed afterwards.
func (a *fakeAPI) read(w http.ResponseWriter, id string, proof bool) {
	p := a.packets[id]
	claimed := money.Fen(len(p.claimed)) * p.request.TotalAmount / money.Fen(p.request.ShareCount)
	refunded := p.request.TotalAmount - claimed
	switch {
	case proof:
		answer(w, http.StatusOK, wire.Proof{Total: p.request.TotalAmount, Paid: claimed, Refunded: refunded, Balanced: true})
	case claimed == 0:
		answer(w, http.StatusOK, wire.Packet{ID: id, Status: "open", TotalAmount: p.request.TotalAmount})
	default:
		answer(w, http.StatusOK, wire.Packet{ID: id, Status: "closed", ClaimedAmount: claimed, RefundedAmount: refunded})
	}
}

// listPayouts answers in pages of 20.
func (a *fakeAPI) listPayouts(w http.ResponseWriter, r *http.Request) {
	type item struct {
		Status string `json:"status"`
	}
	left := len(a.packets[r.URL.Query().Get("packet_id")].claimed) - 20*len(r.URL.Query().Get("cursor"))
	page := map[string]any{"next_cursor": nil}
	if left > 20 {
		left, page["next_cursor"] = 20, r.URL.Query().Get("cursor")+"+"
	}
	items := make([]item, left)
	for i := range items {
		items[i].Status = a.payout
	}
	page["items"] = items
	answer(w, http.StatusOK, page)
}

func answer(w http.ResponseWriter, code int, body any) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

// play runs the first packet against a and returns what it printed.
func play(t *testing.T, a *fakeAPI, limit time.Duration) (string, error) {
	t.Helper()
	a.packets = map[string]*fakePacket{}
	server := httptest.NewServer(a)
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var out strings.Builder
	env := devstack.Env{URL: server.URL, StaffURL: server.URL, Keys: devstack.Keys{App: "app", Finance: "finance"}}
	err := firstPacket(ctx, env, &out)
	return out.String(), err
}

func TestFirstPacket(t *testing.T) {
	t.Run("OK", func(t *testing.T) {
		output, err := play(t, &fakeAPI{payout: "paid", stumbles: 3}, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"lin-mei sends ¥888.88", "shares grabbed                                 50 / 50",
			"paid out                                       50 / 50", "50 won ¥888.50, 70 came too late", "¥3.00 claimed, ¥7.00 refunded",
			"¥10.00 = paid ¥3.00 + refunded ¥7.00",
		} {
			if !strings.Contains(output, want) {
				t.Errorf("no %q in:\n%s", want, output)
			}
		}
	})
	t.Run("OneWinnerTooMany", func(t *testing.T) {
		_, err := play(t, &fakeAPI{payout: "paid", extra: 1}, time.Minute)
		if !errors.Is(err, errFirstPacket) || !strings.Contains(err.Error(), "51 instead of 50") {
			t.Errorf("error: %v", err)
		}
	})
	t.Run("FailedPayout", func(t *testing.T) {
		_, err := play(t, &fakeAPI{payout: "failed"}, time.Minute)
		if !errors.Is(err, errFirstPacket) || !errors.Is(err, errUnexpected) {
			t.Errorf("error: %v", err)
		}
	})
	t.Run("Interrupted", func(t *testing.T) {
		_, err := play(t, &fakeAPI{stumbles: 1 << 30}, time.Second)
		if !errors.Is(err, errFirstPacket) || !client.IsCode(err, wire.CodeUnavailable) {
			t.Errorf("error: %v", err)
		}
	})
}
