package sandbox

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"hongbao/test/wait"
)

// charge sends a charge that its payer has to pay.
func (st *stand) charge(orderNo, account, more string) result {
	st.t.Helper()
	return st.do("POST", "/v1/charges", `{"order_no":"`+orderNo+`","account":"`+account+`","amount":600,"currency":"CNY","remark":"红包"`+more+`}`)
}

const inApp = `,"method":"sandbox_app","pay_until":"2099-01-01T00:00:00Z","return_url":"https://shop.example/back"`

func (st *stand) closeCharge(orderNo string) result {
	st.t.Helper()
	return st.do("POST", "/v1/charges/"+orderNo+"/close", "")
}

func (st *stand) payNow(orderNo string) result {
	st.t.Helper()
	return st.do("POST", "/_pay/"+orderNo, "", withoutKey)
}

// becomes waits until the order has the status.
func (st *stand) becomes(orderNo string, want Status) orderView {
	st.t.Helper()
	var v orderView
	wait.Until(st.t, orderNo+" is "+string(want), func() bool {
		v = st.query(orderNo).order(st.t)
		return v.Status == want
	})
	return v
}

// TestPayer: a charge waits until it is paid or closed; a repeat has a new token, a payment moves the money
// once and is notified, and what ended stays as it is.
func TestPayer(t *testing.T) {
	t.Parallel()
	st := newStand(t)
	first := st.charge("c1", "u", inApp).order(t)
	if first.Status != StatusAwaitingPayment || first.PayToken == nil || first.ExpiresAt == nil || *first.Method != MethodApp {
		t.Fatalf("%+v", first)
	}
	again := st.charge("c1", "u", inApp).order(t)
	if again.PayToken == nil || *again.PayToken == *first.PayToken || again.ProviderRef != first.ProviderRef || st.moved("c1") != "" {
		t.Fatalf("%+v", again)
	}
	if r := st.charge("c1", "u", strings.Replace(inApp, "_app", "_qr", 1)); r.code() != "order_conflict" {
		t.Errorf("another method: %s", r)
	}
	for range 2 {
		if r := st.payNow("c1"); r.status != http.StatusNoContent {
			t.Fatalf("pay: %s", r)
		}
	}
	if v := st.query("c1").order(t); v.Status != StatusSucceeded || v.PayToken != nil || st.moved("c1") != "charge 600;" {
		t.Errorf("%+v, moved %s", v, st.moved("c1"))
	}
	wait.Until(t, "the payment is notified", func() bool { return len(st.hooks.of("c1")) == 1 })
	if r := st.closeCharge("c1"); r.code() != "order_paid" {
		t.Errorf("close of a paid one: %s", r)
	}

	st.charge("c2", "u", `,"method":"sandbox_qr"`).order(t)
	for range 2 {
		if v := st.closeCharge("c2").order(t); v.Status != StatusDeclined || *v.Code != codeClosed {
			t.Errorf("%+v", v)
		}
	}
	if r := st.payNow("c2"); r.code() != "order_not_awaiting" || st.moved("c2") != "" {
		t.Errorf("a closed one is paid: %s", r)
	}
	if v := st.charge("c2", "u", `,"method":"sandbox_qr"`).order(t); v.Status != StatusDeclined || v.PayToken != nil {
		t.Errorf("a closed one is sent again: %+v", v)
	}
	for path, want := range map[string]string{"c3/close": "order_not_found", "c3": "not_found", "c%2f3/close": "not_found"} {
		if r := st.do("POST", "/v1/charges/"+path, ""); r.code() != want {
			t.Errorf("%s: %s", path, r)
		}
	}
	if r := st.charge("c4", "u~broke", inApp).order(t); r.Status != StatusDeclined {
		t.Errorf("a refused account: %+v", r)
	}
	st.charge("c5", "u~pending", inApp).order(t)
	st.payNow("c5")
	st.becomes("c5", StatusSucceeded)
}

// TestPayPage: the page of the latest token takes one payment, shows what became of it, and escapes what
// it shows; it is closed to a wrong token, and after pay_until.
func TestPayPage(t *testing.T) {
	t.Parallel()
	st := newStand(t)
	page := func(v orderView) string { return "/pay/" + v.OrderNo + "?token=" + url.QueryEscape(*v.PayToken) }
	old := st.charge("c1", "u", inApp).order(t)
	v := st.charge("c1", "u", inApp).order(t)
	show := st.do("GET", page(v), "", withoutKey)
	if show.status != 200 || !strings.Contains(string(show.body), "¥6.00") || !strings.Contains(string(show.body), "<button>Pay") ||
		!strings.Contains(string(show.body), "https://shop.example/back") || show.header.Get("Content-Security-Policy") == "" {
		t.Fatalf("%s", show)
	}
	for what, path := range map[string]string{"an old token": page(old), "no token": "/pay/c1",
		"another order": strings.Replace(page(v), "c1", "c2", 1)} {
		for _, method := range []string{"GET", "POST"} {
			if r := st.do(method, path, "", withoutKey); r.status != http.StatusNotFound || st.moved("c1") != "" {
				t.Errorf("%s: %s", what, r)
			}
		}
	}
	r := st.do("POST", page(v), "", withoutKey)
	if r.status != 200 || !strings.Contains(string(r.body), "Paid") || st.moved("c1") != "charge 600;" {
		t.Errorf("%s", r)
	}
	if r := st.do("POST", page(v), "", withoutKey); st.moved("c1") != "charge 600;" {
		t.Errorf("paid twice: %s", r)
	}
	over := st.charge("c3", "u", `,"method":"sandbox_qr","pay_until":"2020-01-01T00:00:00Z","return_url":"javascript:alert(1)"`).order(t)
	r = st.do("GET", page(over), "", withoutKey)
	if strings.Contains(string(r.body), "<button") || strings.Contains(string(r.body), "javascript") {
		t.Errorf("%s", r)
	}
	if r := st.do("POST", page(over), "", withoutKey); r.code() != "order_not_awaiting" || st.moved("c3") != "" {
		t.Errorf("paid too late: %s", r)
	}
}

// TestPayerFaults: what a rule may do to a charge that its payer has to pay.
func TestPayerFaults(t *testing.T) {
	t.Parallel()
	st := newStand(t)
	once := func(kind string) {
		one := int64(1)
		st.faults(Rule{Op: opCharge, Kind: kind, Rate: 1, Times: &one})
	}
	once(faultNoAction)
	if v := st.charge("c1", "u", inApp).order(t); v.PayToken != nil || v.Status != StatusAwaitingPayment {
		t.Errorf("%+v", v)
	}
	if v := st.charge("c1", "u", inApp).order(t); v.PayToken == nil {
		t.Errorf("asked again: %+v", v)
	}
	once(faultWrongAmount)
	st.payNow("c1")
	if v := st.query("c1").order(t); v.Amount != 601 || st.moved("c1") != "charge 601;" {
		t.Errorf("%+v", v)
	}

	st.charge("c2", "u", inApp)
	once(faultPaidTwice)
	st.payNow("c2")
	ref := st.query("c2").order(t).ProviderRef
	wait.Until(t, "it is paid again", func() bool { return st.moved("c2") == "charge 600;charge 600;" })
	if v := st.query("c2").order(t); v.ProviderRef == ref || v.Status != StatusSucceeded {
		t.Errorf("%+v, first %s", v, ref)
	}

	st.charge("c3", "u", inApp)
	once(faultCloseLost)
	if r := st.closeCharge("c3"); r.err == nil {
		t.Errorf("%s", r)
	}
	if v := st.closeCharge("c3").order(t); v.Status != StatusDeclined {
		t.Errorf("%+v", v)
	}

	st.charge("c4", "u", inApp)
	once(faultPayAfterClose)
	if v := st.closeCharge("c4").order(t); v.Status != StatusDeclined {
		t.Errorf("%+v", v)
	}
	st.becomes("c4", StatusSucceeded)
	if got := st.moved("c4"); got != "charge 600;" {
		t.Error(got)
	}
}

// TestPayerInput: the members are of charges only, and each wrong one is named.
func TestPayerInput(t *testing.T) {
	t.Parallel()
	st := newStand(t)
	for more, field := range map[string]string{
		`,"method":"wechat"`: "method", `,"method":"sandbox_app","pay_until":"soon"`: "pay_until",
		`,"pay_until":"2099-01-01T00:00:00Z"`:                                     "method",
		`,"method":"sandbox_app","return_url":"` + strings.Repeat("x", 513) + `"`: "return_url", `,"method":""`: "method",
	} {
		var p problem
		r := st.charge("c1", "u", more)
		if json.Unmarshal(r.body, &p) != nil || r.status != 422 || len(p.Errors) != 1 || p.Errors[0].Field != field {
			t.Errorf("%s: %s", more, r)
		}
	}
	r := st.do("POST", "/v1/transfers", `{"order_no":"p1","account":"u","amount":1,"currency":"CNY","method":"sandbox_app"}`)
	if r.status != 422 {
		t.Errorf("%s", r)
	}
}
