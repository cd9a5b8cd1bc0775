package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"hongbao/internal/payout"
)

// TestCharges: staff lists, sums and reads charges, and finance has the provider queried about one.
func TestCharges(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	var all []string
	for range 2 {
		all = append([]string{payout.ID(payout.KindCharge, h.open(h.app, with()), 0)}, all...)
	}
	first := all[1]
	packetID := first[1:21]
	for query, want := range map[string][]string{"": all, "?packet_id=" + packetID: {first}, "?status=paid": all, "?status=unknown": nil,
		"?order_no=" + payout.OrderNo(first, 1): {first}, "?user_id=u1": all, "?amount_min=1001": nil} {
		var page struct{ Items []struct{ ID string } }
		r := h.as(h.auditor, "GET", "/v1/staff/charges"+query, "")
		r.json(t, &page)
		var got []string
		for _, item := range page.Items {
			got = append(got, item.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %s", query, r)
		}
	}
	if r := h.as(h.ops, "GET", "/v1/staff/charges/sum", ""); !strings.Contains(string(r.body), `"count":2,"amount":2000`) {
		t.Errorf("%s", r)
	}
	r := h.as(h.finance, "GET", "/v1/staff/charges/"+first, "")
	if body := string(r.body); r.status != http.StatusOK || !strings.Contains(body, `"packet/`+packetID+`"`) ||
		!strings.Contains(body, `"order_no":"`+payout.OrderNo(first, 1)+`"`) || !strings.Contains(body, `"possible":false`) {
		t.Errorf("%s", r)
	}
	asked := h.write(h.finance, "charges/"+first+"/ask", "k", because)
	if body := string(asked.body); asked.status != http.StatusAccepted || !strings.Contains(body, `"kind":"ask"`) ||
		!strings.Contains(body, `"approval":null`) || !strings.Contains(body, `"id":"`+first+`"`) {
		t.Errorf("%s", asked)
	}
	d, err := h.reports().Payment(t.Context(), first)
	h.check(err)
	if d.Attempts[0].QueryWantedAt.IsZero() {
		t.Errorf("no query is due: %+v", d.Attempts)
	}
	for _, id := range []string{"x", "p" + first[1:], "c" + anonymous + "0000"} {
		if r := h.as(h.ops, "GET", "/v1/staff/charges/"+id, ""); r.code() != "charge_not_found" {
			t.Errorf("%s: %s", id, r)
		}
	}
}
