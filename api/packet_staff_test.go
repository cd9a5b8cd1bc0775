package api_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
)

// staffPacketBody is a packet as staff reads it.
type staffPacketBody struct {
	packetBody
	App          string
	StoredStatus *string `json:"stored_status"`
	CloseReason  *string `json:"close_reason"`
	Workflow     struct{ ID, URL string }
	Charge       *struct {
		payoutBody
		Amount int64
	}
	Payouts []struct {
		Status        string
		Count, Amount int64
	}
	Refunds []refundBody
	Breaks  []struct {
		ID, Kind string
		Resolved *struct{ By, Reason string }
	}
}

func (h *fixture) staffPacket(id string) (p staffPacketBody) {
	h.t.Helper()
	h.page(h.ops, "/v1/staff/packets/"+id, &p)
	return p
}

// TestStaffPackets: packets of every app, by every filter, also those only in Redis; the list
// shows the same as the app's.
func TestStaffPackets(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	two := with("share_count", "2")
	want := map[string][2]string{} // status: id of each app
	for i, o := range []owner{h.app, h.app2} {
		put := func(status, id string) { ids := want[status]; ids[i] = id; want[status] = ids }
		put("open", h.open(o, two))
		put("scheduled", h.open(o, with("opens_at", fmt.Sprintf("%q", time.Now().Add(time.Hour).UTC().Format(time.RFC3339)))))
		soldOut := h.open(o, two)
		h.grab(o, soldOut, "a")
		h.grab(o, soldOut, "b")
		put("sold_out", soldOut)
		closing := h.open(o, two)
		h.as(o, "POST", "/v1/packets/"+closing+"/close", "")
		put("closing", closing)
		closed := h.open(o, two)
		h.grab(o, closed, "a")
		h.finish(closed, packet.CloseRecalled)
		put("closed", closed)
		rejected, _ := h.create(o, rand.Text(), with("sender_id", `"u1~declined"`))
		put("rejected", rejected)
		put("funding", h.stage(o, "u1").ID)
	}
	stored := map[string]string{"open": "open", "scheduled": "open", "sold_out": "open", "closing": "open", "closed": "closed",
		"rejected": "rejected"}
	for status, ids := range want {
		both := []string{ids[1], ids[0]} // newest first
		for query, expect := range map[string][]string{
			"?status=" + status: both, "?app=" + h.app.app.ID + "&status=" + status: ids[:1], "?app=" + h.app2.app.ID + "&status=" + status: ids[1:],
			"?app=x&status=" + status: nil, "?sender_id=u1&status=" + status: both, "?sender_id=U1&status=" + status: nil, "?sender_id=u1&app=" +
				h.app2.app.ID + "&status=" + status: ids[1:],
		} {
			if status == "rejected" && strings.Contains(query, "u1") {
				expect = nil
			}
			for _, limit := range []int{1, 50} {
				if got := h.ids(h.auditor, "/v1/staff/packets"+query, limit, nil); !slices.Equal(got, expect) {
					t.Errorf("%s by %d: %v, want %v", query, limit, got, expect)
				}
			}
		}
	}
	var all struct{ Items []staffPacketBody }
	h.page(h.finance, "/v1/staff/packets?limit=200", &all)
	if len(all.Items) != 2*len(want) {
		t.Errorf("%d packets, want %d", len(all.Items), 2*len(want))
	}
	for _, item := range all.Items {
		o := h.app
		if item.App == h.app2.app.ID {
			o = h.app2
		}
		alone := h.packet(o, item.ID)
		known := want[item.Status]
		if fmt.Sprintf("%+v", flat(alone)) != fmt.Sprintf("%+v", flat(item.packetBody)) || !slices.Contains(known[:], item.ID) {
			t.Errorf("listed %+v\n alone %+v", flat(item.packetBody), flat(alone))
		}
		detail := h.staffPacket(item.ID)
		for _, p := range []staffPacketBody{item, detail} {
			if got := deref(p.StoredStatus); got != stored[item.Status] || p.App != o.app.ID || p.Workflow.ID != "packet/"+item.ID ||
				!strings.HasSuffix(p.Workflow.URL, "/namespaces/hongbao/workflows/packet%2F"+item.ID) {
				t.Errorf("%s: %+v, stored as %q", item.Status, p, got)
			}
		}
	}
	// The time of creation, from one packet on up to another.
	slices.SortFunc(all.Items, func(a, b staffPacketBody) int {
		return packet.Cursor{At: a.CreatedAt, ID: a.ID}.Compare(packet.Cursor{At: b.CreatedAt, ID: b.ID})
	})
	for i := range all.Items {
		for j := range i + 1 { // j is newer
			from, to := all.Items[i].CreatedAt, all.Items[j].CreatedAt
			var expect []string
			for _, item := range all.Items {
				if !item.CreatedAt.Before(from) && item.CreatedAt.Before(to) {
					expect = append(expect, item.ID)
				}
			}
			if !from.Before(to) {
				continue
			}
			query := fmt.Sprintf("?created_from=%s&created_to=%s", from.Format(time.RFC3339Nano), to.Format(time.RFC3339Nano))
			if got := h.ids(h.ops, "/v1/staff/packets"+query, 5, nil); !slices.Equal(got, expect) {
				t.Errorf("%s: %v, want %v", query, got, expect)
			}
		}
	}
	if got := h.ids(h.ops, "/v1/staff/packets?status=funding&created_from="+time.Now().Add(time.Hour).UTC().Format(time.RFC3339), 5,
		nil); len(got) != 0 {
		t.Errorf("of the future: %v", got)
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func TestStaffPacketDetail(t *testing.T) {
	t.Parallel()
	dsn := stacktest.MariaDB(t)
	h := newFixture(t, parts{dsn: dsn})
	id, bad := h.failed()
	h.exec(dsn, `INSERT INTO breaks (kind, packet_id, payment_id, order_no, detail, created_at, last_seen)
		VALUES ('mismatch', '`+id+`', '`+bad+`', '`+bad+`01', 'amount 1, not 2', NOW(3), NOW(3))`)
	h.exec(dsn, `INSERT INTO breaks (kind, packet_id, payment_id, order_no, detail, created_at, last_seen, resolved_at, resolved_by, reason)
		VALUES ('contradiction', '`+id+`', '`+bad+`', '`+bad+`01', 'd', NOW(3) + INTERVAL 1 SECOND, NOW(3), NOW(3), 'li.na', 'mended')`)
	p := h.staffPacket(id)
	if p.Status != "open" || deref(p.StoredStatus) != "open" || p.CloseReason != nil || p.Charge == nil || p.Charge.Status != "paid" ||
		p.Charge.Amount != 1000 ||
		p.Charge.ID != "c"+id+"0000" || len(p.Charge.Attempts) != 1 || len(p.Charge.Timeline) < 2 || len(p.Refunds) != 0 || len(p.Breaks) != 2 ||
		p.Breaks[0].Kind != "contradiction" || p.Breaks[0].Resolved == nil || p.Breaks[0].Resolved.By != "li.na" ||
		p.Breaks[1].Kind != "mismatch" || p.Breaks[1].Resolved != nil {
		t.Errorf("%+v", p)
	}
	if got := fmt.Sprint(p.Payouts); got != "[{paid 2 500} {failed 1 250}]" {
		t.Errorf("payouts %s", got)
	}
	h.finish(id, packet.CloseRecalled)
	p = h.staffPacket(id)
	if p.Status != "closed" || deref(p.CloseReason) != "recalled" || len(p.Refunds) != 1 || p.Refunds[0].ID != "r"+id+"0000" ||
		p.Refunds[0].Amount != 250 || p.Refunds[0].Status != "paid" ||
		p.Fairness.Seed == nil {
		t.Errorf("closed: %+v", p)
	}
	// What has no row yet.
	staged := h.stage(h.app, "u1").ID
	if p := h.staffPacket(staged); p.Status != "funding" || p.StoredStatus != nil || p.Charge != nil || len(p.Payouts)+len(p.Refunds)+
		len(p.Breaks) != 0 {
		t.Errorf("staged: %+v", p)
	}
	// The proof is the app's.
	mine, theirs := h.as(h.app, "GET", "/v1/packets/"+id+"/proof", ""), h.as(h.finance, "GET", "/v1/staff/packets/"+id+"/proof", "")
	untimed := func(r result) string {
		return regexp.MustCompile(`"as_of":"[^"]*"`).ReplaceAllString(string(r.body), "")
	}
	if mine.status != http.StatusOK || untimed(mine) != untimed(theirs) {
		t.Errorf("%s\n%s", mine, theirs)
	}
	for _, path := range []string{"x", anonymous, strings.ToUpper(id), id + "%20", "%zz", "%00"} {
		for _, end := range []string{"", "/proof"} {
			if r := h.as(h.ops, "GET", "/v1/staff/packets/"+path+end, ""); r.status != http.StatusNotFound || r.code() != "packet_not_found" {
				t.Errorf("%s: %s", path, r)
			}
		}
	}
}

func TestStaffPacketsRefuse(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	for range 2 {
		h.fund(h.stage(h.app, "u1").ID)
	}
	cursor := func(o owner, path string) string {
		t.Helper()
		var p packetsBody
		h.page(o, path, &p)
		return "cursor=" + url.QueryEscape(*p.NextCursor)
	}
	all, filtered, apps := cursor(h.ops, "/v1/staff/packets?limit=1"),
		cursor(h.ops, "/v1/staff/packets?limit=1&sender_id=u1&created_from=2026-01-01T00:00:00Z"), cursor(h.app, "/v1/packets?limit=1")
	for query, field := range map[string]string{
		"status=lost": "status", "status=": "status", "app=": "app", "app=%FF": "app", "sender_id=%00": "sender_id",
		"created_from=x": "created_from", "created_to=2026": "created_to",
		"created_from=2026-01-01T00:00:00Z&created_to=2026-01-01T00:00:00Z": "created_to", "limit=201": "limit", "group_id=g": "group_id",
		"status=open&status=open": "status", "cursor=x": "cursor", apps: "cursor", "status=open&" + all: "cursor", "sender_id=u2&" +
			filtered: "cursor", "created_from=2026-01-02T00:00:00Z&" + filtered: "cursor",
	} {
		r := h.as(h.auditor, "GET", "/v1/staff/packets?"+query, "")
		if got := fieldsOf(t, r); r.status != http.StatusUnprocessableEntity || len(got) != 1 || !strings.HasPrefix(got[0], field+" ") {
			t.Errorf("%s: %s", query, r)
		}
	}
	if r := h.as(h.app, "GET", "/v1/packets?"+all, ""); r.code() != "invalid_request" {
		t.Errorf("an app with the cursor of staff: %s", r)
	}
	for _, query := range []string{filtered, "sender_id=u1&" + filtered, "created_from=2026-01-01T00:00:00Z&" + filtered} {
		var p struct{ Items []json.RawMessage }
		if h.page(h.ops, "/v1/staff/packets?"+query, &p); len(p.Items) != 1 {
			t.Errorf("%s: %d packets", query, len(p.Items))
		}
	}
}
