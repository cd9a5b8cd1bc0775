package api_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/store"
	"hongbao/test/wait"
)

// refundBody is a refund as staff reads it.
type refundBody struct {
	payoutBody
	Kind     string
	PayoutID *string `json:"payout_id"`
	Amount   int64
}

// refundsBody is a page of refunds.
type refundsBody struct {
	Items      []refundBody
	NextCursor *string `json:"next_cursor"`
}

func (h *fixture) refunds(query string) refundsBody {
	h.t.Helper()
	var page refundsBody
	h.page(h.ops, "/v1/staff/refunds"+query, &page)
	return page
}

// faults sets the faults of the sandbox provider.
func (h *fixture) faults(rules string) {
	h.t.Helper()
	if r := h.do(call{method: "PUT", base: h.provider, path: "/_faults", body: `{"rules":[` + rules +
		`]}`}); r.status != http.StatusNoContent {
		h.t.Fatalf("faults: %s", r)
	}
}

// TestLateRefunds: the filter is of refunds alone, goes with others and over pages.
func TestLateRefunds(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	h.faults(`{"op":"refund","kind":"decline","rate":1}`)
	var ids []string
	for _, sender := range []string{"a", "b", "c"} {
		_, refund := h.remaindered(sender)
		ids = append(ids, refund)
	}
	late := func(query string) (out []string) {
		t.Helper()
		for _, r := range h.refunds(query).Items {
			out = append(out, r.ID)
		}
		slices.Sort(out)
		return out
	}
	if got := late("?late=true"); got != nil {
		t.Errorf("late as soon as they were made: %q", got)
	}
	db, err := store.OpenSQL(h.dsn)
	h.check(err)
	defer func() { h.check(db.Close()) }()
	_, err = db.ExecContext(t.Context(), "UPDATE payments SET created_at = created_at - INTERVAL 6 MINUTE WHERE id IN (?, ?)", ids[0], ids[1])
	h.check(err)
	want := slices.Sorted(slices.Values(ids[:2]))
	if got := late("?late=true"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got, all := late("?late=false"), late(""); len(got) != 3 || !slices.Equal(got, all) {
		t.Errorf("false is a filter: %q of %q", got, all)
	}
	if got := late("?late=true&status=failed&user_id=b"); !slices.Equal(got, ids[1:2]) {
		t.Errorf("%q, want %q", got, ids[1:2])
	}
	if got := late("?late=true&status=paid"); got != nil {
		t.Errorf("%q", got)
	}
	first := h.refunds("?late=true&limit=1")
	if len(first.Items) != 1 || first.NextCursor == nil {
		t.Fatalf("%+v", first)
	}
	next := h.refunds("?limit=1&cursor=" + *first.NextCursor)
	if len(next.Items) != 1 || next.NextCursor != nil || next.Items[0].ID == first.Items[0].ID {
		t.Errorf("%+v behind %+v", next, first)
	}
	var sum struct{ Count, Amount int64 }
	if h.as(h.ops, "GET", "/v1/staff/refunds/sum?late=true", "").json(t, &sum); sum.Count != 2 || sum.Amount != 1500 {
		t.Errorf("%+v", sum)
	}
	var all struct {
		LateRefunds struct{ Count int64 } `json:"late_refunds"`
	}
	if h.as(h.ops, "GET", "/v1/staff/overview", "").json(t, &all); all.LateRefunds.Count != 2 {
		t.Errorf("%+v", all)
	}
	packets := func(query string) (out []string) {
		t.Helper()
		var page struct{ Items []struct{ ID string } }
		h.as(h.ops, "GET", "/v1/staff/packets?overdue=true"+query, "").json(t, &page)
		for _, p := range page.Items {
			out = append(out, p.ID)
		}
		return out
	}
	if got := packets(""); got != nil {
		t.Errorf("overdue before they expired: %q", got)
	}
	first0, done := ids[0][1:21], ids[1][1:21]
	_, err = db.ExecContext(t.Context(), "UPDATE packets SET opens_at = opens_at - INTERVAL 2 DAY, expires_at = expires_at - INTERVAL 2 "+
		"DAY WHERE id IN (?, ?)", first0, done)
	h.check(err)
	_, err = db.ExecContext(t.Context(), "UPDATE packets SET status = 'closed', closed_at = expires_at WHERE id = ?", done)
	h.check(err)
	for query, want := range map[string][]string{"": {first0}, "&status=closing": {first0}, "&status=closed": nil, "&status=open": nil,
		"&sender_id=a": {first0}, "&sender_id=b": nil} {
		if got := packets(query); !slices.Equal(got, want) {
			t.Errorf("overdue%s: %q, want %q", query, got, want)
		}
	}
	for _, query := range []string{"packets?overdue=1", "packets?overdue=", "refunds?late=1", "refunds?late=", "refunds?late=true&late=true",
		"refunds/sum?late=1", "payouts?late=true", "payouts/sum?late=true", "export/payouts.csv?late=true"} {
		if r := h.as(h.ops, "GET", "/v1/staff/"+query, ""); r.code() != "invalid_request" {
			t.Errorf("%s: %s", query, r)
		}
	}
}

// remaindered makes a packet that is recalled after one of four shares was taken;
// its refund of 750 fen, unless more says otherwise, is driven to its end.
func (h *fixture) remaindered(sender string, more ...string) (id, refund string) {
	h.t.Helper()
	id = h.open(h.app, with(append([]string{"share_count", "4", "split", `"equal"`, "sender_id", `"` + sender + `"`}, more...)...))
	h.grab(h.app, id, "a")
	ctx := h.t.Context()
	_, err := h.store.BeginClosing(ctx, id, packet.CloseRecalled)
	h.check(err)
	_, err = h.pool.ClosePool(ctx, id, packet.CloseRecalled)
	h.check(err)
	h.record(id)
	_, err = h.store.CloseBooks(ctx, id, "")
	h.check(err)
	refund = payout.ID(payout.KindRefund, id, 0)
	h.drive(refund)
	return id, refund
}

// TestRefundOfAChargeThatCameBack: the provider refuses the refund, and the next action says
// that the sender may have the money already.
func TestRefundOfAChargeThatCameBack(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	id := h.open(h.app, with("share_count", "4", "split", `"equal"`, "sender_id", `"s~returned"`))
	charge := payout.ID(payout.KindCharge, id, 0)
	wait.Until(h.t, "the charge is returned", func() bool {
		return h.sandbox.Query(t.Context(), payout.OpCharge, payout.OrderNo(charge, 1)).Kind == payout.ObsReturned
	})
	_, err := h.store.BeginClosing(t.Context(), id, packet.CloseRecalled)
	h.check(err)
	_, err = h.pool.ClosePool(t.Context(), id, packet.CloseRecalled)
	h.check(err)
	_, err = h.store.CloseBooks(t.Context(), id, "")
	h.check(err)
	if st := h.drive(payout.ID(payout.KindRefund, id, 0)); st.Status != payout.StatusFailed {
		t.Fatalf("refund: %+v", st)
	}
	r := h.as(h.finance, "GET", "/v1/staff/refunds?packet_id="+id, "")
	var page struct {
		Items []struct {
			Failure struct {
				NextAction string `json:"next_action"`
			}
		}
	}
	if r.json(t, &page); len(page.Items) != 1 || !strings.Contains(page.Items[0].Failure.NextAction, "charge was returned to the sender") {
		t.Errorf("%s", r)
	}
}

func TestRefunds(t *testing.T) {
	t.Parallel()
	dsn := stacktest.MariaDB(t)
	h := newFixture(t, parts{dsn: dsn})
	h.faults(`{"op":"refund","kind":"decline","rate":1}`)
	badPacket, bad := h.remaindered("s/1")
	h.faults("")
	_, good := h.remaindered("s2")
	_, badPayout := h.failed()
	cancelled, err := payout.Parse(badPayout)
	h.check(err)
	cancel := payout.ID(payout.KindRefund, cancelled.PacketID, cancelled.Number+1)
	h.exec(dsn, `INSERT INTO payments (id, kind, packet_id, app_id, user_id, share_index, account, amount, currency, remark, provider, status,
		created_at, updated_at)
		SELECT '`+cancel+
		`', 'r', packet_id, app_id, 'u1', -1, 'u1', 250, 'CNY', '', 'sandbox', 'pending', NOW(3), NOW(3) FROM payments WHERE id = '`+badPayout+
		`'`)

	var d refundBody
	r := h.as(h.auditor, "GET", "/v1/staff/refunds/"+bad, "")
	r.json(t, &d)
	if d.ID != bad || d.PacketID != badPacket || d.Kind != "remainder" || d.PayoutID != nil || d.UserID != "s/1" || d.Amount != 750 ||
		d.Status != "failed" || d.Failure == nil ||
		d.Failure.Code != "declined_by_rule" || d.AttemptCount != 1 || len(d.Attempts) != 1 || d.Attempts[0].OrderNo != bad+"01" ||
		*d.OrderNo != bad+"01" || len(d.Timeline) < 3 ||
		d.Timeline[0].Source != "ledger" || !strings.Contains(d.Timeline[0].What, "remainder") || d.Workflow.ID != "refund/"+badPacket+"/0" ||
		!strings.HasSuffix(d.Workflow.URL, "/workflows/refund%2F"+badPacket+"%2F0") {
		t.Errorf("%s", r)
	}
	d = refundBody{}
	r = h.as(h.finance, "GET", "/v1/staff/refunds/"+cancel, "")
	r.json(t, &d)
	if d.Kind != "cancel" || d.PayoutID == nil || *d.PayoutID != badPayout || d.Status != "pending" || d.OrderNo != nil || d.Failure != nil ||
		len(d.Attempts) != 0 ||
		!strings.Contains(d.Timeline[0].What, "cancelled") || d.Workflow.ID != "refund/"+cancelled.PacketID+"/2" {
		t.Errorf("%s", r)
	}
	for _, path := range []string{"x", "r" + anonymous + "0000", badPayout, "c" + badPacket + "0000", bad + "01", strings.ToUpper(bad),
		bad + "%20", "%zz", "%00"} {
		if r := h.as(h.ops, "GET", "/v1/staff/refunds/"+path, ""); r.status != http.StatusNotFound || r.code() != "refund_not_found" {
			t.Errorf("%s: %s", path, r)
		}
	}
	for query, want := range map[string][]string{
		"": {cancel, good, bad}, "?packet_id=" + badPacket: {bad}, "?status=failed": {bad}, "?status=paid": {good}, "?status=pending": {cancel},
		"?status=unknown": nil, "?user_id=s%2F1": {bad}, "?user_id=a": nil, "?order_no=" + bad + "01": {bad}, "?order_no=" + badPayout +
			"01": nil, "?failure_code=declined_by_rule": {bad},
		"?older_than_seconds=0": {cancel, good, bad}, "?older_than_seconds=60": nil, "?amount_min=251": {good, bad}, "?amount_max=250": {cancel},
		"?amount_max=0": nil, "?status=failed&packet_id=" + badPacket + "&amount_min=1": {bad}, "?status=paid&packet_id=" + badPacket: nil,
	} {
		var got []string
		for _, item := range h.refunds(query).Items {
			got = append(got, item.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	if page := h.payouts(""); len(page.Items) != 5 || slices.ContainsFunc(page.Items, func(p payoutBody) bool { return p.ID[0] != 'p' }) {
		t.Errorf("among payouts: %+v", page)
	}
}

func TestRefundPages(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	var want []string
	for range 3 {
		_, id := h.remaindered("s")
		want = append([]string{id}, want...)
	}
	var got []string
	query := "?status=paid&limit=1"
	for range 10 {
		page := h.refunds(query)
		for _, item := range page.Items {
			got = append(got, item.ID)
		}
		if page.NextCursor == nil {
			break
		}
		query = "?limit=1&cursor=" + url.QueryEscape(*page.NextCursor)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	cursor := url.QueryEscape(*h.refunds("?status=paid&limit=1").NextCursor)
	payouts := url.QueryEscape(*h.payouts("?status=paid&limit=1").NextCursor)
	for path, field := range map[string]string{
		"refunds?status=x": "status", "refunds?packet_id=": "packet_id", "refunds?kind=cancel": "kind", "refunds?amount_max=-1": "amount_max",
		"refunds?limit=0": "limit", "refunds?status=failed&cursor=" + cursor: "cursor", "refunds?cursor=" + payouts: "cursor", "payouts?cursor=" +
			cursor: "cursor",
	} {
		r := h.as(h.finance, "GET", "/v1/staff/"+path, "")
		if got := fieldsOf(t, r); r.status != http.StatusUnprocessableEntity || len(got) != 1 || !strings.HasPrefix(got[0], field+" ") {
			t.Errorf("%s: %s", path, r)
		}
	}
}
