package api_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"hongbao/api"
	"hongbao/internal/access"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/test/wait"
)

// bulkRefundsBody is the answer to a bulk retry of refunds.
type bulkRefundsBody struct {
	DryRun bool `json:"dry_run"`
	Count  int
	Amount int64
	More   bool
	Items  []struct {
		RefundID    string `json:"refund_id"`
		Result      string
		Code        *string
		OrderNo     *string `json:"order_no"`
		SameOrderNo bool    `json:"same_order_no"`
	}
}

// TestBulkRetryOfRefunds: as for payouts, the dry run moves nothing, large amounts need a
// second person, and a repeat with the key returns the same.
func TestBulkRetryOfRefunds(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{change: func(c *api.Config) { c.ApprovalAmount = 1000 }})
	h.faults(`{"op":"refund","kind":"decline","rate":1}`)
	_, small := h.remaindered("a")
	_, big := h.remaindered("b", "total_amount", "4000")
	h.faults("")
	_, paid := h.remaindered("c")
	_, bad := h.failed()
	bulk := func(key, body string) bulkRefundsBody {
		t.Helper()
		r := h.write(h.finance, "refunds/retry", key, body)
		var b bulkRefundsBody
		if r.json(t, &b); r.status != http.StatusOK {
			t.Fatalf("%s", r)
		}
		return b
	}
	for body, want := range map[string]string{
		`{"reason":"r","filter":{}}`: "filter required", `{"reason":"r","filter":{"late":true}}`: "filter.late unknown_field",
		`{"reason":"r","filter":{"payout_ids":["` + bad + `"]}}`:                   "filter.payout_ids unknown_field",
		`{"reason":"r","filter":{"refund_ids":["` + bad + `"]}}`:                   "filter.refund_ids[0] invalid_format",
		`{"reason":"r","filter":{"refund_ids":["r` + anonymous + `0000"]}}`:        "filter.refund_ids[0] invalid_format",
		`{"reason":"r","filter":{"status":"failed","refund_ids":["` + big + `"]}}`: "filter.refund_ids invalid_format",
	} {
		if r := h.write(h.finance, "refunds/retry", "bad", body); r.status != 422 || !slices.Equal(fieldsOf(t, r), []string{want}) {
			t.Errorf("%s: %s", body, r)
		}
	}
	const failed = `{"reason":"the bank is back","filter":{"status":"failed"}`
	dry := bulk("dry", failed+"}")
	if !dry.DryRun || dry.Count != 2 || dry.Amount != 3750 || len(dry.Items) != 2 || dry.Items[0].RefundID != big ||
		dry.Items[0].Result != "needs_approval" ||
		dry.Items[1].RefundID != small || dry.Items[1].Result != "would_retry" || *dry.Items[1].OrderNo != payout.OrderNo(small, 2) ||
		*dry.Items[1].Code != "declined_by_rule" {
		t.Fatalf("%+v", dry)
	}
	for _, id := range []string{small, big} {
		if st, err := h.store.PaymentState(t.Context(), id); err != nil || st.Status != payout.StatusFailed {
			t.Errorf("a dry run moved something: %+v, %v", st, err)
		}
	}
	named := `{"reason":"the bank is back","dry_run":false,"filter":{"refund_ids":["` + big + `","` + small + `","` + paid + `"]}}`
	for range 2 {
		real := bulk("real", named)
		if real.DryRun || real.Count != 2 || real.Amount != 3750 || len(real.Items) != 3 || real.Items[0].Result != "needs_approval" ||
			real.Items[1].Result != "retried" ||
			real.Items[2].Result != "skipped" || *real.Items[2].Code != "not_retryable" {
			t.Errorf("%+v", real)
		}
	}
	if r := h.write(h.finance, "refunds/retry", "real", failed+"}"); r.code() != "idempotency_key_reused" {
		t.Errorf("another body: %s", r)
	}
	var found struct{ Items []struct{ ID, Status string } }
	h.as(h.auditor, "GET", "/v1/staff/refunds/statuses?ids="+small+","+big+",r"+anonymous+"0000", "").json(t, &found)
	if len(found.Items) != 2 || found.Items[0].ID != small || found.Items[0].Status != "pending" || found.Items[1].ID != big ||
		found.Items[1].Status != "failed" {
		t.Errorf("%+v", found)
	}
	for ids, want := range map[string]string{bad: "ids invalid_format", small + "," + small: "ids duplicate"} {
		if r := h.as(h.auditor, "GET", "/v1/staff/refunds/statuses?ids="+ids, ""); !slices.Equal(fieldsOf(t, r), []string{want}) {
			t.Errorf("%s: %s", ids, r)
		}
	}
	if st := h.drive(small); st.Status != payout.StatusPaid {
		t.Errorf("%+v", st)
	}
	if st := h.drive(big); st.Status != payout.StatusFailed { // waits for a second person
		t.Errorf("%+v", st)
	}
}

// leaves has MySQL restored and recovered, which leaves a packet to people; operations release the
// provider.
func (h *fixture) leaves(id, orderNo string) {
	h.t.Helper()
	w := staff.Write{Owner: "ops", Role: "operator", Reason: "r"}
	books, err := h.store.DeclareRestored(h.t.Context(), w, 0, time.Now())
	h.check(err)
	h.check(h.store.NoteUndecided(h.t.Context(), id, orderNo, "d"))
	_, err = h.store.EndRecovery(h.t.Context(), w, books, 0, []string{"sandbox"}, nil, nil)
	h.check(err)
	if r := h.write(h.finance, "providers/sandbox/release", "release-the-provider", because); r.status != http.StatusOK {
		h.t.Fatalf("%s", r)
	}
}

// TestBulkRetryPassesOverUndecided: of a packet that a recovery of the books has left to a
// person nothing is decided; a bulk retry skips it, and decides about all the others.
func TestBulkRetryPassesOverUndecided(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	_, small := h.failed()
	left, bad := h.failed()
	h.leaves(left, payout.OrderNo(bad, 2))
	for _, c := range []struct{ key, dryRun, small string }{{"dry", "true", "would_retry"}, {"real", "false", "retried"},
		{"real", "false", "retried"}} {
		r := h.write(h.finance, "payouts/retry", c.key, `{"reason":"r","dry_run":`+c.dryRun+`,"filter":{"status":"failed"}}`)
		var b bulkBody
		r.json(t, &b)
		if r.status != http.StatusOK || b.Count != 1 || len(b.Items) != 2 || b.Items[0].PayoutID != bad || b.Items[0].Result != "skipped" ||
			*b.Items[0].Code != "held" ||
			b.Items[1].PayoutID != small || b.Items[1].Result != c.small {
			t.Fatalf("%s", r)
		}
	}
	var detail struct {
		Retry struct {
			Possible   bool
			Code, Held *string
		}
	}
	h.as(h.finance, "GET", "/v1/staff/payouts/"+bad, "").json(t, &detail)
	if d := detail.Retry; d.Possible || d.Code == nil || *d.Code != "held" || d.Held == nil {
		t.Errorf("%+v", detail)
	}
}

// TestHeldPacketIsAState: retries and cancellations of a packet that a recovery could not settle are
// refused because of its hold. The refusal is stored. It ends when two persons of finance release the
// hold, after seeing what moves; a query goes on.
func TestHeldPacketIsAState(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	left, bad := h.failed()
	colleague := h.colleague()
	var waits answeredBody
	h.write(h.finance, "payouts/"+bad+"/cancel", "ask", because).json(t, &waits)
	h.leaves(left, payout.OrderNo(bad, 2))
	approve := "approvals/" + waits.Approval.ID + "/approve"
	for path, body := range map[string]string{"payouts/" + bad + "/retry": because, "payouts/" + bad + "/cancel": because, approve: because} {
		for _, replayed := range []string{"", "true"} {
			r := h.write(colleague, path, "k", body)
			if r.status != http.StatusConflict || r.code() != "held" || r.header.Get("Idempotency-Replayed") != replayed {
				t.Errorf("%s: %s", path, r)
			}
		}
	}
	if r := h.write(colleague, "payouts/"+bad+"/ask", "k", because); r.status != http.StatusAccepted {
		t.Errorf("%s", r)
	}
	var list struct {
		Items []struct{ ID, Scope, Name, Kind string }
	}
	h.as(h.finance, "GET", "/v1/staff/holds?active=true&scope=packet", "").json(t, &list)
	if len(list.Items) != 1 || list.Items[0].Name != left || list.Items[0].Kind != "recovery" {
		t.Fatalf("%+v", list)
	}
	path := "holds/" + list.Items[0].ID
	var item struct {
		Releases     struct{ Amount int64 }
		SecondPerson bool `json:"second_person"`
		Hold         struct {
			Release    *struct{ By string }
			ReleasedBy *string `json:"released_by"`
		}
	}
	h.as(h.finance, "GET", "/v1/staff/"+path, "").json(t, &item)
	if !item.SecondPerson || item.Releases.Amount != 500 {
		t.Errorf("%+v", item)
	}
	ops := h.newOwner(access.RoleOps)
	wait.Until(t, "the new key is known", func() bool { return h.as(ops, "GET", "/v1/staff/holds", "").status == http.StatusOK })
	if r := h.write(ops, path+"/release", "k", because); r.status != http.StatusForbidden {
		t.Errorf("released by operations: %s", r)
	}
	if r := h.write(h.finance, path+"/release", "k", because); r.status != http.StatusAccepted {
		t.Errorf("%s", r)
	}
	r := h.write(colleague, path+"/release", "k", because)
	if r.json(t, &item); r.status != http.StatusOK || item.Hold.ReleasedBy == nil {
		t.Errorf("%s", r)
	}
	if r := h.write(colleague, approve, "now", because); r.status != http.StatusAccepted { // it went on waiting
		t.Errorf("%s", r)
	}
}

// releasedHold is the id of a hold on the provider that was released. There is another hold.
func (h *fixture) releasedHold() string {
	h.t.Helper()
	h.write(h.finance, "holds", "another", `{"scope":"packet","name":"1c5emuasbbm9p6qmv2gr","reason":"r"}`)
	var item struct{ Hold struct{ ID string } }
	h.write(h.finance, "holds", "place", `{"scope":"provider","name":"sandbox","reason":"r"}`).json(h.t, &item)
	if r := h.write(h.finance, "holds/"+item.Hold.ID+"/release", "release", because); r.status != http.StatusOK {
		h.t.Fatalf("%s", r)
	}
	return item.Hold.ID
}

// TestPlaceHold: a hold of a name of the wrong form is refused; a packet need not exist yet.
func TestPlaceHold(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	for body, want := range map[string]int{
		`{"scope":"packet","name":"1c5emuasbbm9p6qmv2gr","reason":"r"}`:         200,
		`{"scope":"payment","name":"p1c5emuasbbm9p6qmv2gr0003","reason":"r"}`:   200,
		`{"scope":"provider","name":"sandbox","reason":"r"}`:                    200,
		`{"scope":"all","reason":"r"}`:                                          200,
		`{"scope":"all","name":"x","reason":"r"}`:                               422,
		`{"scope":"packet","name":"x","reason":"r"}`:                            422,
		`{"scope":"packet","reason":"r"}`:                                       422,
		`{"scope":"payment","name":"p1c5emuasbbm9p6qmv2gr000301","reason":"r"}`: 422,
		`{"scope":"provider","name":"bank","reason":"r"}`:                       422,
		`{"scope":"lane","name":"1","reason":"r"}`:                              422,
		`{"scope":"packet","name":"1c5emuasbbm9p6qmv2gr"}`:                      422,
	} {
		if r := h.write(h.finance, "holds", body, body); r.status != want {
			t.Errorf("%s: %s", body, r)
		}
	}
	var list struct {
		Items      []struct{ ID string }
		NextCursor *string `json:"next_cursor"`
	}
	h.as(h.finance, "GET", "/v1/staff/holds?limit=3", "").json(t, &list)
	if len(list.Items) != 3 || list.NextCursor == nil {
		t.Fatalf("%+v", list)
	}
	h.as(h.finance, "GET", "/v1/staff/holds?limit=3&cursor="+*list.NextCursor, "").json(t, &list)
	if len(list.Items) != 1 || list.NextCursor != nil {
		t.Errorf("%+v", list)
	}
}
