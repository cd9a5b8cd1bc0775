package console

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"hongbao/client"
	"hongbao/internal/access"
	"hongbao/wire"
)

// TestWaitingAmongMany: the page of a payout shows its pending approval even if more than a page
// of later ones exist, such as after two bulk retries.
func TestWaitingAmongMany(t *testing.T) {
	const payout = "p3q5k9v0c1m7e2u8h4r6t0003"
	pending := "decision_pending"
	mine := wire.ApprovalItem{ID: "aMINE", Status: "waiting", Decision: wire.Decision{Kind: "cancel", Reason: "the oldest of all",
		By: "another"}, Payout: &wire.Payout{Payment: wire.Payment{ID: payout}}}
	var others wire.List[wire.ApprovalItem]
	for i := range 200 {
		others.Items = append(others.Items, wire.ApprovalItem{ID: fmt.Sprint("a", i), Status: "waiting",
			Decision: wire.Decision{Kind: "retry", By: "another"}, Payout: &wire.Payout{Payment: wire.Payment{ID: fmt.Sprintf("p%024d", i)}}})
	}
	desk, err := New(Config{SessionKeys: [][32]byte{{1}}, StaffAPI: funcAPI{newKeys(map[string]access.Role{"f": access.RoleFinance}),
		func(r *http.Request) any {
			switch {
			case r.URL.Path == "/v1/staff/payouts/"+payout:
				return wire.PayoutDetail{Payout: wire.Payout{Payment: wire.Payment{ID: payout, Status: wire.PayoutFailed}},
					PaymentHistory: wire.PaymentHistory{Retry: wire.RetryPreview{Code: &pending}}}
			case r.URL.Query().Get("payment_id") == payout:
				return wire.List[wire.ApprovalItem]{Items: []wire.ApprovalItem{mine}}
			}
			return others
		}}})
	if err != nil {
		t.Fatal(err)
	}
	v := newVisitor(t, desk)
	v.signIn("f")
	res := v.do("GET", "/payouts/"+payout, nil)
	page, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%d %v\n%s", res.StatusCode, err, page)
	}
	for _, want := range []string{"the oldest of all", "/approvals/aMINE/approve"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page does not have %q", want)
		}
	}
}

// TestChangedDecision: an approval of a payment that has changed since is refused. The page shows
// the current preview, keeps the input and offers only to reject.
func TestChangedDecision(t *testing.T) {
	order, frozen := "p3q5k9v0c1m7e2u8h4r6t000302", "account_frozen"
	item := wire.ApprovalItem{ID: "aMINE", Status: "waiting", Decision: wire.Decision{Kind: "retry", Reason: "unfrozen", By: "another"},
		Payout:  &wire.Payout{Payment: wire.Payment{ID: "p3q5k9v0c1m7e2u8h4r6t0003", Status: wire.PayoutFailed}},
		Preview: &wire.Preview{Status: wire.PayoutFailed, Amount: 1234, FailureCode: &frozen, AttemptCount: 1, OrderNo: &order}}
	changed := item
	changed.Changed = true
	refused := false
	desk, err := New(Config{SessionKeys: [][32]byte{{1}}, StaffAPI: funcAPI{newKeys(map[string]access.Role{"f": access.RoleFinance}),
		func(r *http.Request) any {
			switch {
			case r.Method == http.MethodPost:
				refused = true
				return &client.Problem{Problem: wire.Problem{Status: http.StatusConflict, Code: wire.CodeDecisionChanged, Preview: item.Preview}}
			case r.URL.Path == "/v1/staff/approvals" && refused:
				return wire.List[wire.ApprovalItem]{Items: []wire.ApprovalItem{changed}}
			case r.URL.Path == "/v1/staff/approvals":
				return wire.List[wire.ApprovalItem]{Items: []wire.ApprovalItem{item}}
			}
			return nil
		}}})
	if err != nil {
		t.Fatal(err)
	}
	v := newVisitor(t, desk)
	v.signIn("f")
	page := func(res *http.Response) string {
		t.Helper()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	before := page(v.do("GET", "/approvals?status=waiting", nil))
	for _, want := range []string{`action="/approvals/aMINE/approve"`, "¥12.34", order, "account_frozen"} {
		if !strings.Contains(before, want) {
			t.Errorf("before: no %q in\n%s", want, before)
		}
	}
	s, _ := desk.seal.decrypt(v.cookies[sessionCookie])
	res := v.do("POST", "/approvals/aMINE/approve", url.Values{"csrf": {s.CSRF}, "key": {"k"}, "who": {"owner of f"},
		"reason": {"I agree to it"},
		"back":   {"/approvals?status=waiting"}})
	after := page(res)
	for _, want := range []string{"No money has moved: reject the request", "the request cannot be approved",
		`action="/approvals/aMINE/reject"`,
		"I agree to it", order} {
		if !strings.Contains(after, want) {
			t.Errorf("after: no %q in\n%s", want, after)
		}
	}
	if res.StatusCode != http.StatusConflict || strings.Contains(after, `action="/approvals/aMINE/approve"`) {
		t.Errorf("%d\n%s", res.StatusCode, after)
	}
}

// funcAPI is a staff API that answers with the result of a function.
type funcAPI struct {
	keys
	answer func(*http.Request) any
}

func (d funcAPI) ActAs(string) http.RoundTripper { return d }

func (d funcAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := d.answer(r)
	if answer == nil {
		return unavailableAPI{}.RoundTrip(r)
	}
	body, err := json.Marshal(answer)
	status := http.StatusOK
	if p, refused := answer.(*client.Problem); refused {
		status = p.Status
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(body))), Request: r},
		err
}
