package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"hongbao/api"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// grabFor grabs with a recipient.
func (h *fixture) grabFor(id, user, recipient string) result {
	h.t.Helper()
	return h.as(h.app, "POST", "/v1/packets/"+id+"/grabs", fmt.Sprintf(`{"user_id":%q,"recipient":%s}`, user, recipient))
}

// TestRecipientRequired: where the largest possible share needs the recipient's name, the packet says so, and a grab
// without the name takes no share. An earlier claim comes first. The name is readable nowhere.
func TestRecipientRequired(t *testing.T) {
	t.Parallel()
	var seedKey [32]byte
	limits := withSecond(payout.Limits{RefundWindow: 365 * 24 * time.Hour, NameFrom: 901})
	h := newFixture(t, parts{change: func(c *api.Config) { limits(c); seedKey = c.SeedKey }})
	required := func(id string) []string {
		t.Helper()
		var p struct {
			Required []string `json:"recipient_required"`
		}
		h.as(h.app, "GET", "/v1/packets/"+id, "").json(t, &p)
		return p.Required
	}
	if small := h.open(h.app, with("max_share", "900")); len(required(small)) != 0 || h.grab(h.app, small, "a").status != http.StatusCreated {
		t.Errorf("a packet of small shares requires %q", required(small))
	}
	id := h.open(h.app, with("share_count", "2"))
	if got := required(id); !slices.Equal(got, []string{"name"}) {
		t.Fatalf("required: %q", got)
	}
	refused := func(what string, r result) {
		t.Helper()
		var p struct {
			Errors []struct{ Field, Code string }
		}
		r.json(t, &p)
		if r.code() != "recipient_incomplete" || r.status != http.StatusUnprocessableEntity || len(p.Errors) != 1 ||
			p.Errors[0].Field != "recipient.name" || p.Errors[0].Code != "required" {
			t.Errorf("%s: %s", what, r)
		}
	}
	for _, recipient := range []string{"null", `"account"`, `{}`, `{"account":"account","authorization":"n1"}`} {
		refused(recipient, h.grabFor(id, "a", recipient))
	}
	const name = "张三丰"
	if r := h.grabFor(id, "a", `{"account":"openid-a","name":"`+name+`","authorization":"n1"}`); r.status != http.StatusCreated {
		t.Fatalf("%s", r)
	}
	var c claimBody
	r := h.grab(h.app, id, "a")
	if r.json(t, &c); r.status != http.StatusOK || !c.Replayed {
		t.Errorf("a repeat without the name: %s", r)
	}
	if r := h.grabFor(id, "b", `{"name":"李四"}`); r.status != http.StatusCreated {
		t.Fatalf("%s", r)
	}
	refused("sold out", h.grab(h.app, id, "c"))
	if r := h.grabFor(id, "c", `{"name":"王五"}`); r.code() != "sold_out" {
		t.Errorf("sold out, with a name: %s", r)
	}
	refused("sold out, again", h.grab(h.app, id, "c"))
	claims, err := h.stack.Pool.Claims(t.Context(), id)
	h.check(err)
	for _, c := range claims {
		stored, err := json.Marshal(c)
		h.check(err)
		opened, err := packet.OpenText(seedKey, id, c.SealedName)
		h.check(err)
		if bytes.Contains(stored, []byte(name)) || c.UserID == "a" && (opened != name || c.Recipient != "openid-a" || c.Authorization != "n1") {
			t.Errorf("stored: %s, name %q", stored, opened)
		}
		_, err = h.store.RecordClaim(t.Context(), c)
		h.check(err)
	}
	d, err := h.reports().Payment(t.Context(), payout.ID(payout.KindPayout, id, c.ShareIndex))
	h.check(err)
	opened, err := packet.OpenText(seedKey, id, d.Payment.SealedName)
	if err != nil || opened != name || d.Payment.Account != "openid-a" || d.Payment.Authorization != "n1" {
		t.Errorf("recorded: %+v, %q, %v", d.Payment, opened, err)
	}
}

// TestRecipientInput: a recipient is a text or an object with known members; all faults are reported at once.
func TestRecipientInput(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	id := h.open(h.app, with("share_count", "1"))
	path := "/v1/packets/" + id + "/grabs"
	long := strings.Repeat("名", 65)
	for recipient, field := range map[string]string{
		`1`: "recipient", `[]`: "recipient", `""`: "recipient", `{"account":""}`: "recipient.account", `{"account":1}`: "recipient.account",
		`{"name":""}`: "recipient.name", `{"name":"a\u0000"}`: "recipient.name", `{"name":"` + long + `"}`: "recipient.name",
		`{"authorization":"a b"}`: "recipient.authorization", `{"authorization":"` + strings.Repeat("a", 65) + `"}`: "recipient.authorization",
		`{"Name":"a"}`: "recipient.Name", `{"name":"a","name":"b"}`: "recipient.name",
	} {
		r := h.grabFor(id, "a", recipient)
		if r.code() != "invalid_request" || !strings.Contains(string(r.body), `"field":"`+field+`"`) {
			t.Errorf("%s: %s", recipient, r)
		}
		if strings.HasPrefix(recipient, "{") {
			r = h.as(h.app, "PUT", path+"/a/recipient", recipient)
			if r.code() != "invalid_request" || !strings.Contains(string(r.body), `"field":"`+strings.TrimPrefix(field, "recipient.")+`"`) {
				t.Errorf("PUT %s: %s", recipient, r)
			}
		}
	}
	if r := h.grabFor(id, "a", `{"account":null,"name":null}`); r.status != http.StatusCreated {
		t.Errorf("%s", r)
	}
}

// TestSetRecipient: an app corrects the recipient of a failed payout, which is then sent again under another order
// number without staff. A repeat changes nothing; what was sent keeps its account.
func TestSetRecipient(t *testing.T) {
	t.Parallel()
	h := newFixture(t, parts{})
	id := h.open(h.app, with("share_count", "4", "split", `"equal"`))
	set := func(user, body string) (r result, c claimBody) {
		t.Helper()
		if r = h.as(h.app, "PUT", "/v1/packets/"+id+"/grabs/"+user+"/recipient", body); r.status == http.StatusOK {
			r.json(t, &c)
		}
		return r, c
	}
	if r := h.grab(h.app, id, "early"); r.status != http.StatusCreated {
		t.Fatalf("%s", r)
	}
	if r, _ := set("early", `{"account":"other"}`); r.code() != "unavailable" {
		t.Errorf("not recorded yet: %s", r)
	}
	if r, _ := set("nobody", `{"account":"other"}`); r.code() != "claim_not_found" {
		t.Errorf("%s", r)
	}
	unsent := h.recordGrab(id, "unsent")
	for range 2 {
		if r, c := set("unsent", `{"account":"new","name":"李四"}`); c.Payout.Status != "pending" {
			t.Errorf("unsent: %s", r)
		}
	}
	wrong := h.recordGrab(id, "wrong~frozen")
	h.drive(wrong)
	if r, c := set("wrong~frozen", `{"account":"still~frozen"}`); c.Payout.Status != "pending" || c.Recipient != nil {
		t.Fatalf("%s", r)
	}
	h.drive(wrong)
	if r, c := set("wrong~frozen", `{"account":"still~frozen"}`); c.Payout.Status != "failed" {
		t.Errorf("the same account again: %s", r)
	}
	if r, c := set("wrong~frozen", `{"account":"right"}`); c.Payout.Status != "pending" {
		t.Errorf("%s", r)
	}
	h.drive(wrong)
	if r, c := set("wrong~frozen", `{"account":"right"}`); c.Payout.Status != "paid" {
		t.Errorf("a repeat: %s", r)
	}
	if r, _ := set("wrong~frozen", `{"account":"thief"}`); r.code() != "recipient_fixed" {
		t.Errorf("paid: %s", r)
	}
	d, err := h.reports().Payment(t.Context(), wrong)
	h.check(err)
	var paid []string
	for _, a := range d.Attempts {
		paid = append(paid, a.Account)
	}
	if !slices.Equal(paid, []string{"wrong~frozen", "still~frozen", "right"}) {
		t.Errorf("accounts of the order numbers: %q", paid)
	}
	seen := h.stack.Provider.Query(t.Context(), payout.OpTransfer, payout.OrderNo(wrong, 1)) // names the first account
	seen.ID = "late"
	_, err = h.store.Settle(t.Context(), seen, seen.OrderNo)
	h.check(err)
	if r := h.as(h.auditor, "GET", "/v1/staff/breaks", ""); r.status != http.StatusOK || strings.Contains(string(r.body), wrong) {
		t.Errorf("%s", r)
	}
	audit := h.as(h.auditor, "GET", "/v1/staff/audit?action=set_recipient", "")
	if n := strings.Count(string(audit.body), `"action":"set_recipient"`); n != 3 || strings.Contains(string(audit.body), "李四") {
		t.Errorf("%d entries: %s", n, audit)
	}
	held := h.recordGrab(id, "held~frozen")
	h.drive(held)
	h.placeHold("payment", held)
	if r, _ := set("held~frozen", `{"account":"right"}`); r.code() != "held" {
		t.Errorf("held: %s", r)
	}
	if d, err = h.reports().Payment(t.Context(), held); err != nil || d.Payment.Account != "held~frozen" {
		t.Errorf("held, and yet changed to %q, %v", d.Payment.Account, err)
	}
	if d, err = h.reports().Payment(t.Context(), unsent); err != nil || d.Payment.Account != "new" {
		t.Errorf("%+v, %v", d.Payment, err)
	}
}
