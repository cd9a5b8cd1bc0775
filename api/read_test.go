package api_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// TestLife: a packet from open to closed, as the app sees it.
func TestLife(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	id := h.open(h.app, with("share_count", "4"))
	if r := h.as(h.app2, "GET", "/v1/packets/"+id, ""); r.code() != "packet_not_found" {
		t.Errorf("another app: %s", r)
	}
	p := h.packet(h.app, id)
	if p.Status != "open" || p.RemainingCount != 4 || p.Fairness.Seed != nil || p.Fairness.Algorithm != packet.Algorithm ||
		!p.ExpiresAt.After(p.OpensAt) {
		t.Errorf("open: %+v", p)
	}
	h.grab(h.app, id, "a")
	h.grab(h.app, id, "b")
	p = h.packet(h.app, id)
	if p.ClaimedCount != 2 || p.RemainingCount != 2 || p.ClaimedAmount < 2 {
		t.Errorf("two claims: %+v", p)
	}
	for range 2 {
		r := h.as(h.app, "POST", "/v1/packets/"+id+"/close", "")
		r.json(t, &p)
		if r.status != http.StatusAccepted || p.Status != "closing" || p.ClosedAt != nil || p.Fairness.Seed != nil {
			t.Errorf("close: %s", r)
		}
	}
	if r := h.as(h.app2, "POST", "/v1/packets/"+id+"/close", ""); r.code() != "packet_not_found" {
		t.Errorf("another app closes: %s", r)
	}
	if r := h.grab(h.app, id, "c"); r.code() != "expired" {
		t.Errorf("grab: %s", r)
	}
	h.finish(id, packet.CloseRecalled)
	p = h.packet(h.app, id)
	if p.Status != "closed" || p.ClosedAt == nil || p.RefundedAmount != p.RemainingAmount || p.RefundedAmount == 0 || p.Fairness.Seed == nil {
		t.Fatalf("closed: %+v", p)
	}
	seed, err := hex.DecodeString(*p.Fairness.Seed)
	if sum := sha256.Sum256(seed); err != nil || hex.EncodeToString(sum[:]) != p.Fairness.Commitment {
		t.Errorf("the seed is not what was committed to: %v", err)
	}
	shares, err := packet.Split([32]byte(seed), packet.SplitParams{PacketID: id, Mode: packet.SplitRandom, Total: 1000, Count: 4, Min: 1})
	h.check(err)
	page := h.claims(h.app, id, "")
	for _, c := range page.Items {
		if int64(shares[c.ShareIndex]) != c.Amount {
			t.Errorf("share %d is %d by the seed, %d was given", c.ShareIndex, shares[c.ShareIndex], c.Amount)
		}
	}
	if r := h.as(h.app, "POST", "/v1/packets/"+id+"/close", ""); r.status != http.StatusAccepted {
		t.Errorf("close when closed: %s", r)
	}
}

func (h *fixture) claims(o owner, id, query string) claimsBody {
	h.t.Helper()
	r := h.as(o, "GET", "/v1/packets/"+id+"/grabs"+query, "")
	if r.status != http.StatusOK {
		h.t.Fatalf("%s", r)
	}
	var page claimsBody
	r.json(h.t, &page)
	return page
}

// TestBestLuck: on exactly one claim once sold out or closed, on none before, the same everywhere.
func TestBestLuck(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	best := func(id string) []string {
		t.Helper()
		var users []string
		for _, c := range h.claims(h.app, id, "").Items {
			one := h.as(h.app, "GET", "/v1/packets/"+id+"/grabs/"+c.UserID, "")
			var single, again claimBody
			one.json(t, &single)
			h.grab(h.app, id, c.UserID).json(t, &again)
			if single.BestLuck != c.BestLuck || again.BestLuck != c.BestLuck {
				t.Errorf("best luck of %s: list %v, single %v, grab %v", c.UserID, c.BestLuck, single.BestLuck, again.BestLuck)
			}
			if c.BestLuck {
				users = append(users, c.UserID)
			}
		}
		return users
	}
	id := h.open(h.app, with("share_count", "3", "split", `"equal"`, "total_amount", "301"))
	lastLuck := false
	for i, user := range []string{"a", "b", "c"} {
		if got := best(id); len(got) != 0 {
			t.Errorf("after %d claims: %v", i, got)
		}
		r := h.grab(h.app, id, user)
		var won claimBody
		r.json(t, &won)
		if lastLuck = won.BestLuck; r.status != http.StatusCreated || won.BestLuck && i < 2 {
			t.Fatalf("%s", r)
		}
	}
	for _, c := range []struct {
		user, shares string
		split        []string
	}{{"only", "1", nil}, {"last", "2", []string{"a"}}} { // best luck in the answer to the last share never changes
		id := h.open(h.app, with("share_count", c.shares, "total_amount", "3"))
		for _, user := range c.split {
			h.grab(h.app, id, user)
		}
		var won claimBody
		h.grab(h.app, id, c.user).json(t, &won)
		if got := best(id); len(got) != 1 || won.BestLuck != (got[0] == c.user) || c.shares == "1" && !won.BestLuck {
			t.Errorf("%s: the 201 said %+v, the list %v", c.user, won, got)
		}
	}
	page := h.claims(h.app, id, "").Items
	want := slices.MaxFunc(page, func(a, b claimBody) int { return int(a.Amount - b.Amount) }).UserID
	if got := best(id); !slices.Equal(got, []string{want}) || lastLuck != (want == "c") {
		t.Errorf("sold out: %v, want %s; the last 201 said %v", got, want, lastLuck)
	}
	h.finish(id, packet.CloseSoldOut)
	if got := best(id); !slices.Equal(got, []string{want}) {
		t.Errorf("closed: %v, want %s", got, want)
	}
	none := h.open(h.app, with())
	h.finish(none, packet.CloseRecalled)
	if page := h.claims(h.app, none, ""); len(page.Items) != 0 || page.NextCursor != nil {
		t.Errorf("nobody: %+v", page)
	}
}

func TestGrabPages(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	id := h.open(h.app, with("share_count", "7"))
	for i := range 7 {
		h.grab(h.app, id, fmt.Sprint("u", i))
	}
	walk := func(limit int) []string {
		t.Helper()
		var users []string
		query := fmt.Sprintf("?limit=%d", limit)
		for range 10 {
			page := h.claims(h.app, id, query)
			if len(page.Items) > limit {
				t.Errorf("%d items of %d", len(page.Items), limit)
			}
			for _, c := range page.Items {
				users = append(users, c.UserID)
			}
			if page.NextCursor == nil {
				break
			}
			query = fmt.Sprintf("?limit=%d&cursor=%s", limit, url.QueryEscape(*page.NextCursor))
		}
		return users
	}
	want := []string{"u6", "u5", "u4", "u3", "u2", "u1", "u0"}
	for _, retired := range []bool{false, true} {
		if retired {
			h.finish(id, packet.CloseSoldOut)
		}
		for _, limit := range []int{1, 2, 3, 7, 200} {
			if got := walk(limit); !slices.Equal(got, want) {
				t.Errorf("limit %d, retired %v: %v", limit, retired, got)
			}
		}
	}
	cursor := *h.claims(h.app, id, "?limit=1").NextCursor
	other := h.open(h.app, with())
	for _, bad := range []string{"limit=0", "limit=201", "limit=-1", "limit=x", "limit=1.0", "limit=01", "limit=%2B1", "limit=",
		"limit=1&limit=1", "limit=99999999999999999999",
		"cursor=", "cursor=x", "cursor=" + cursor + "A", "cursor=" + cursor[1:], "cursor=e30%3D", "cursor=bnVsbA", "cursor=%FF", "page=1",
		"Limit=1"} {
		if r := h.as(h.app, "GET", "/v1/packets/"+id+"/grabs?"+bad, ""); r.code() != "invalid_request" {
			t.Errorf("%s: %s", bad, r)
		}
	}
	if r := h.as(h.app, "GET", "/v1/packets/"+other+"/grabs?cursor="+cursor, ""); r.code() != "invalid_request" {
		t.Errorf("another packet's cursor: %s", r)
	}
}

// TestProof: the parts move from one place to the next, and always make up the total.
func TestProof(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	id := h.open(h.app, with("share_count", "4", "split", `"equal"`))
	expect := func(step string, want proofBody) {
		t.Helper()
		got := h.proof(h.app, id)
		if !got.Balanced || got.Total != 1000 || got.Paid != want.Paid || got.Owed != want.Owed || got.Remaining != want.Remaining ||
			got.Refunding != want.Refunding || got.Refunded != want.Refunded || got.InFlight != want.InFlight {
			t.Errorf("%s: %+v", step, got)
		}
	}
	expect("open", proofBody{Remaining: 1000})
	for _, user := range []string{"a", "b~frozen", "c"} {
		h.grab(h.app, id, user)
	}
	expect("claimed in redis", proofBody{Remaining: 1000, InFlight: 750})
	h.record(id)
	expect("one payout failed", proofBody{Paid: 500, Owed: 250, Remaining: 250})
	_, err := h.store.BeginClosing(t.Context(), id, packet.CloseRecalled)
	h.check(err)
	_, err = h.pool.ClosePool(t.Context(), id, packet.CloseRecalled)
	h.check(err)
	_, err = h.store.CloseBooks(t.Context(), id, "")
	h.check(err)
	expect("books closed", proofBody{Paid: 500, Owed: 250, Refunding: 250})
	// The refund has moved at the provider, and we have not heard of it.
	refund := payout.ID(payout.KindRefund, id, 0)
	begun, err := h.store.BeginSend(t.Context(), refund, h.sandbox.Limits(), h.sandbox.EncodeRequest)
	h.check(err)
	o := h.sandbox.Send(t.Context(), *begun.Order)
	expect("refund on its way", proofBody{Paid: 500, Owed: 250, Refunding: 250, InFlight: 250})
	_, err = h.store.Settle(t.Context(), o, begun.Order.OrderNo)
	h.check(err)
	h.drive(refund)
	expect("refunded", proofBody{Paid: 500, Owed: 250, Refunded: 250})
	h.finish(id, packet.CloseRecalled)
	expect("closed", proofBody{Paid: 500, Owed: 250, Refunded: 250})
	if r := h.as(h.app2, "GET", "/v1/packets/"+id+"/proof", ""); r.code() != "packet_not_found" {
		t.Errorf("another app: %s", r)
	}
}

// TestProofDiffers: money that no step of ours explains is a difference.
func TestProofDiffers(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	id := h.open(h.app, with("share_count", "4", "split", `"equal"`))
	h.grab(h.app, id, "a")
	h.record(id)
	no := payout.OrderNo(payout.ID(payout.KindPayout, id, 3), 1)
	raw, err := h.sandbox.EncodeRequest(payout.Instruction{Op: payout.OpTransfer, OrderNo: no, Account: "thief", Amount: 7, Currency: "CNY"})
	h.check(err)
	h.sandbox.Send(t.Context(), payout.Order{Op: payout.OpTransfer, OrderNo: no, Request: raw})
	p := h.proof(h.app, id)
	if p.Balanced || len(p.Differences) != 1 || p.Differences[0].Expected != 250 || p.Differences[0].Actual != 257 || p.InFlight != 0 {
		t.Errorf("%+v", p)
	}
}
