package api_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/test/wait"
)

// conflictsBody are the promises of a proof.
type conflictsBody struct{ Count, Amount, Honoured, Owed, Paid, Voided int64 }

// addConflict has a user win the next share of a packet in Redis, which in MySQL a
// grab has that Redis lost; the claim is kept as the workflow keeps it.
func (p proofFixture) addConflict(user string, share int) (promiseID string) {
	p.t.Helper()
	ctx := p.t.Context()
	c := packet.Claim{PacketID: p.id, UserID: fmt.Sprint("lost", share), ShareIndex: share, Amount: 250}
	c.ClaimedAt = p.packet(p.app, p.id).CreatedAt
	st, err := p.store.RecordClaim(ctx, c)
	p.check(err)
	p.drive(st.PaymentID)
	var won claimBody
	r := p.grab(p.app, p.id, user)
	if r.json(p.t, &won); r.status != http.StatusCreated || won.ShareIndex != share || won.Amount != 250 {
		p.t.Fatalf("%s", r)
	}
	return p.addUnrecorded(user)
}

// addUnrecorded keeps a user's claim, which MySQL refuses, as the workflow does.
func (p proofFixture) addUnrecorded(user string) (promiseID string) {
	p.t.Helper()
	c, _, err := p.pool.Claim(p.t.Context(), p.id, user)
	p.check(err)
	_, refused := p.store.RecordClaim(p.t.Context(), c)
	if refused == nil {
		p.t.Fatalf("the claim of %s was booked", user)
	}
	st, err := p.store.RecordShareConflict(p.t.Context(), c, refused.Error())
	p.check(err)
	return st.PaymentID
}

// hasClaim checks that a user's claim is unchanged, by a read and by a grab.
func (p proofFixture) hasClaim(user string, share int, id, status string) {
	p.t.Helper()
	for _, r := range []result{p.as(p.app, "GET", "/v1/packets/"+p.id+"/grabs/"+user, ""), p.grab(p.app, p.id, user)} {
		var c claimBody
		r.json(p.t, &c)
		if r.status != http.StatusOK || c.Amount != 250 || c.ShareIndex != share || c.Payout.ID != id || c.Payout.Status != status {
			p.t.Errorf("%s, whose payout is %s: %s", user, status, r)
		}
	}
}

func (p proofFixture) showsConflicts(step string, want conflictsBody) {
	p.t.Helper()
	var got struct{ Promises conflictsBody }
	p.as(p.app, "GET", "/v1/packets/"+p.id+"/proof", "").json(p.t, &got)
	if got.Promises != want {
		p.t.Errorf("%s: %+v, want %+v", step, got.Promises, want)
	}
}

// TestR10_Staff: a promise is among the payouts of staff, and two persons decide
// about it, however little it is.
func TestR10_Staff(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	p := proofFixture{h, h.open(h.app, with("share_count", "4", "split", `"equal"`))}
	id := p.addConflict("late", 0)
	p.hasClaim("late", 0, id, "failed")
	if page := p.payouts("?packet_id=" + p.id); len(page.Items) != 2 {
		t.Errorf("%+v", page.Items)
	}
	first := p.payouts("?packet_id=" + p.id + "&limit=1")
	rest := p.payouts("?limit=5&cursor=" + *first.NextCursor)
	if len(rest.Items) != 1 || first.Items[0].ID == rest.Items[0].ID || first.Items[0].ID != id && rest.Items[0].ID != id {
		t.Errorf("%+v, then %+v", first, rest)
	}
	page := p.payouts("?failure_code=share_conflict&status=failed&user_id=late")
	if len(page.Items) != 1 || page.Items[0].ID != id || page.Items[0].OrderNo != nil || page.Items[0].Failure.NextAction == "" ||
		page.Items[0].Workflow.ID != "payout/"+p.id+"/late" {
		t.Fatalf("%+v", page)
	}
	one := p.as(p.ops, "GET", "/v1/staff/payouts/"+id, "")
	if !bytes.Contains(one.body, []byte(`"share_index":null`)) || !bytes.Contains(one.body, []byte(`"amount":250`)) ||
		!bytes.Contains(one.body, []byte("claimed by another")) {
		t.Errorf("%s", one)
	}
	if r := p.as(p.ops, "GET", "/v1/staff/export/payouts.csv?user_id=late", ""); !strings.Contains(string(r.body), id+","+p.id+
		",late,,250,CNY,failed,") {
		t.Errorf("%s", r)
	}
	if r := p.write(p.finance, "refunds/"+id+"/retry", "k", because); r.status != http.StatusNotFound {
		t.Errorf("as a refund: %s", r)
	}
	var bulk struct {
		Items []struct{ Result string }
	}
	p.write(p.finance, "payouts/retry", "b", `{"filter":{"failure_code":"share_conflict"},"reason":"r"}`).json(t, &bulk)
	if len(bulk.Items) != 1 || bulk.Items[0].Result != "needs_approval" {
		t.Errorf("%+v", bulk)
	}
	p.agreed("payouts/"+id+"/retry", because) // fails unless the decision waits
	p.hasClaim("late", 0, id, "pending")
	if st := p.drive(id); st.Status != payout.StatusPaid {
		t.Errorf("%+v", st)
	}
	p.hasClaim("late", 0, id, "paid")
	if r := p.write(p.finance, "payouts/"+id+"/cancel", "too-late", because); r.code() != "not_retryable" {
		t.Errorf("%s", r)
	}
	void := p.addConflict("later", 1)
	p.agreed("payouts/"+void+"/cancel", because)
	p.drive(void)
	p.hasClaim("later", 1, void, "cancelled")
	p.shows("as without them", sums{paid: 500, remaining: 500})
	p.drive(p.closeBooks())
	_, err := p.store.FinishPacket(t.Context(), p.id, nil)
	p.check(err)
	p.check(p.pool.Retire(t.Context(), p.id))
	p.hasClaim("late", 0, id, "paid") // from MySQL now
	p.hasClaim("later", 1, void, "cancelled")
	p.shows("closed", sums{paid: 500, refunded: 500})
}

// TestR10_ProofExcludesShareConflicts: the packet's figures are the same whatever
// becomes of a promise, and its own money is proven all the while.
func TestR10_ProofExcludesShareConflicts(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	p := proofFixture{h, h.open(h.app, with("share_count", "4", "split", `"equal"`))}
	own := sums{paid: 250, remaining: 750}
	id := p.addConflict("late~declined", 0)
	p.shows("promised", own)
	p.showsConflicts("promised", conflictsBody{Count: 1, Amount: 250})
	p.agreed("payouts/"+id+"/retry", because)
	p.shows("honoured", own)
	p.showsConflicts("honoured", conflictsBody{1, 250, 250, 250, 0, 0})
	p.drive(id)
	p.shows("refused", own)
	p.agreed("payouts/"+id+"/mark-paid", `{"reason":"r","evidence":"e"}`)
	p.shows("paid outside", own)
	p.showsConflicts("paid outside", conflictsBody{1, 250, 250, 0, 250, 0})
	// What Redis gave out and nobody has booked when the books close is a
	// difference, until it is kept as a promise.
	p.grab(p.app, p.id, "slow")
	p.closeBooks()
	if got := p.proof(p.app, p.id); got.Balanced || len(got.Differences) != 1 {
		t.Errorf("a claim that nobody has: %+v", got)
	}
	slow := p.addUnrecorded("slow")
	p.hasClaim("slow", 1, slow, "failed")
	p.shows("books closed", sums{paid: 250, refunding: 750})
	p.showsConflicts("books closed", conflictsBody{2, 500, 250, 0, 250, 0})
	p.agreed("payouts/"+slow+"/retry", because)
	p.drive(slow)
	p.shows("paid by the house", sums{paid: 250, refunding: 750})
	p.showsConflicts("paid by the house", conflictsBody{2, 500, 500, 0, 500, 0})
}

// TestR10_SoldOutKnowsShareConflicts: a user with a share conflict never gets sold_out from
// the memory of a process, also when it read the winners from MySQL; the user's own list keeps
// the claim.
func TestR10_SoldOutKnowsShareConflicts(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	p := proofFixture{h, h.open(h.app, with("share_count", "1", "total_amount", "250"))}
	id := p.addConflict("late", 0)
	p.closeBooks()
	closed, err := p.store.FinishPacket(t.Context(), p.id, nil)
	if p.check(err); !closed {
		t.Fatal("the packet is not closed")
	}
	p.check(p.pool.Retire(t.Context(), p.id))
	p.tooLate(p.id)
	p.hasClaim("late", 0, id, "failed")
	var list claimsBody
	p.as(p.app, "GET", "/v1/users/late/claims", "").json(t, &list)
	if len(list.Items) != 1 || list.Items[0].Amount != 250 || list.Items[0].Payout.ID != id {
		t.Errorf("%+v", list)
	}
}

// TestR10_ListOfAPacket: the list of a packet has every acknowledged claim, also from MySQL.
// Of several claims of a share only the recorded one can have the best luck.
func TestR10_ListOfAPacket(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	p := proofFixture{h, h.open(h.app, with("share_count", "1", "total_amount", "250"))}
	id := p.addConflict("late", 0)
	luck := func(step string, want map[string]bool, sums map[string]int, list ...string) {
		t.Helper()
		for user, best := range want {
			var c claimBody
			p.as(p.app, "GET", "/v1/packets/"+p.id+"/grabs/"+user, "").json(t, &c)
			var own claimsBody
			p.as(p.app, "GET", "/v1/users/"+user+"/claims", "").json(t, &own)
			if c.BestLuck != best || len(own.Items) != 1 || own.Items[0].BestLuck && !best {
				t.Errorf("%s: %s: %+v, in the own list %+v", step, user, c, own.Items)
			}
			var sum struct {
				Received struct {
					Count    int
					BestLuck int `json:"best_luck"`
				}
			}
			p.as(p.app, "GET", "/v1/users/"+user+"/summary", "").json(t, &sum)
			if sum.Received.Count != 1 || sum.Received.BestLuck != sums[user] {
				t.Errorf("%s: %s: %+v", step, user, sum)
			}
		}
		var got []string
		for _, c := range p.claims(p.app, p.id, "").Items {
			got = append(got, c.UserID)
			if c.BestLuck != want[c.UserID] || (c.UserID == "late") != (c.Payout.ID == id) {
				t.Errorf("%s: listed as %+v", step, c)
			}
		}
		if !slices.Equal(got, list) {
			t.Errorf("%s: listed %q, want %q", step, got, list)
		}
	}
	want := map[string]bool{"late": false, "lost0": true}
	luck("sold out, with a Redis that has lost a grab", want, nil, "late")
	p.closeBooks()
	closed, err := p.store.FinishPacket(t.Context(), p.id, nil)
	if p.check(err); !closed {
		t.Fatal("the packet is not closed")
	}
	p.check(p.pool.Retire(t.Context(), p.id))
	luck("retired", want, map[string]int{"lost0": 1}, "late", "lost0")
	first := p.claims(p.app, p.id, "?limit=1")
	if first.NextCursor == nil {
		t.Fatalf("one page: %+v", first)
	}
	second := p.claims(p.app, p.id, "?limit=1&cursor="+url.QueryEscape(*first.NextCursor))
	if first.Items[0].UserID != "late" || second.Items[0].UserID != "lost0" || second.NextCursor != nil {
		t.Errorf("pages %+v and %+v", first, second)
	}
}

// TestR10_PagesOfAPacket: with two acknowledged users per share, pages of every size list each
// user once and their cursors are accepted, also when a rebuilt pool in Redis continues the
// list.
func TestR10_PagesOfAPacket(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	p := proofFixture{h, h.open(h.app, with("share_count", "4", "split", `"equal"`))}
	p.addConflict("late0", 0)
	p.addConflict("late1", 1)
	p.drive(p.closeBooks())
	closed, err := p.store.FinishPacket(t.Context(), p.id, nil)
	if p.check(err); !closed {
		t.Fatal("the packet is not closed")
	}
	p.check(p.pool.Retire(t.Context(), p.id))
	want := []string{"late1", "lost1", "late0", "lost0"}
	for limit := 1; limit <= len(want); limit++ {
		var got []string
		for next := ""; len(got) <= len(want); {
			r := p.as(p.app, "GET", fmt.Sprintf("/v1/packets/%s/grabs?limit=%d%s", p.id, limit, next), "")
			var page claimsBody
			if r.json(t, &page); r.status != http.StatusOK || len(page.Items) > limit {
				t.Fatalf("pages of %d, after %q: %s", limit, got, r)
			}
			for _, c := range page.Items {
				got = append(got, c.UserID)
			}
			if page.NextCursor == nil {
				break
			}
			next = "&cursor=" + url.QueryEscape(*page.NextCursor)
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d: %q, want %q", limit, got, want)
		}
	}
	live := h.open(h.app, with("share_count", "4", "split", `"equal"`))
	for _, user := range []string{"u0", "u1", "u2"} {
		h.grab(h.app, live, user)
	}
	for user, want := range map[string][]string{"t": {"u1", "u0"}, "u1": {"u0"}, "v": {"u0"}} { // by MySQL, as the last one of share 1
		cursor := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"p":%q,"s":1,"u":%q,"n":2}`, live, user))
		for _, limit := range []int{1, 2} {
			page := p.claims(h.app, live, fmt.Sprintf("?limit=%d&cursor=%s", limit, cursor))
			var got []string
			for _, c := range page.Items {
				got = append(got, c.UserID)
			}
			if !slices.Equal(got, want[:min(limit, len(want))]) || (page.NextCursor != nil) != (limit < len(want)) {
				t.Errorf("behind %s, pages of %d: %+v, want %q", user, limit, page, want)
			}
		}
	}
}

// rebuildPool makes the pool of a packet again from its rows, as a rebuild of its lane does.
func (p proofFixture) rebuildPool() {
	p.t.Helper()
	ctx := p.t.Context()
	lane := packet.Lane(p.id, p.pool.Lanes())
	db := p.database(p.dsn)
	move := func(state string) {
		p.t.Helper()
		_, err := db.ExecContext(ctx, "UPDATE pool_lanes SET epoch = 2, seen = 0, seen_grabs = 0, "+state+" WHERE lane = ?", lane)
		p.check(err)
	}
	move("state = 'shut', reason = 'by_hand', shut_at = UTC_TIMESTAMP(3)")
	p.check(p.pool.CloseFence(ctx, lane, 2))
	rows, found, err := p.store.PoolOf(ctx, p.id)
	if p.check(err); !found {
		p.t.Fatal("the books have no pool of the packet")
	}
	p.check(p.pool.Restore(ctx, 2, rows, func(index int) ([]packet.Share, error) {
		shares, err := p.store.Shares(ctx, []string{p.id}, index+1, index+101)
		return shares[p.id], err
	}))
	move("state = 'open', reason = NULL, shut_at = NULL")
	p.check(p.pool.OpenFence(ctx, lane, 2, 0))
	wait.Until(p.t, "the gate is open in the new epoch", func() bool {
		epoch, open := p.pool.Fence(p.id)
		return open && epoch == 2
	})
}

// TestR10_SoldOutOfARebuiltPool: a pool that was made again from the books has its
// promises beside the claims. A process that learns from it who has won knows both.
func TestR10_SoldOutOfARebuiltPool(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{redis: stacktest.FreshRedis(t).Addr})
	p := proofFixture{h, h.open(h.app, with("share_count", "1", "total_amount", "250"))}
	id := p.addConflict("late", 0)
	p.rebuildPool()
	p.hasClaim("late", 0, id, "failed")
	p.tooLate(p.id)
	p.hasClaim("late", 0, id, "failed")
}

// TestR9_LuckOfARebuiltPool: a packet whose recall was lost with Redis gives out shares again.
// A larger later claim then has the best luck.
func TestR9_LuckOfARebuiltPool(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{redis: stacktest.FreshRedis(t).Addr})
	var p proofFixture
	for lucky := false; !lucky; { // the second share is the larger one
		p = proofFixture{h, h.open(h.app, with("share_count", "2", "total_amount", "100000"))}
		found, err := p.store.Shares(t.Context(), []string{p.id}, 0, 2)
		p.check(err)
		shares := found[p.id]
		lucky = shares[1].Amount > shares[0].Amount
	}
	p.payoutOf("first")
	if r := p.as(p.app, "POST", "/v1/packets/"+p.id+"/close", ""); r.status != http.StatusAccepted {
		t.Fatalf("%s", r)
	}
	best := func(want string) {
		t.Helper()
		for _, c := range p.claims(p.app, p.id, "").Items {
			if c.BestLuck != (c.UserID == want) {
				t.Errorf("%s has the best luck: %+v", want, c)
			}
		}
	}
	best("first")
	p.rebuildPool()
	if r := p.grab(p.app, p.id, "second"); r.status != http.StatusCreated {
		t.Fatalf("%s", r)
	}
	best("second")
}
