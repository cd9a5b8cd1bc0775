package console

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"hongbao/access"
	"hongbao/client"
)

// TestWaitingAmongMany: a decision that waits is seen on the page of its payout, also when
// more than a page of others were made after it, as two bulk retries make them.
func TestWaitingAmongMany(t *testing.T) {
	const payout = "p3q5k9v0c1m7e2u8h4r6t0003"
	pending := "decision_pending"
	mine := client.ApprovalItem{ID: "aMINE", Status: "waiting", Decision: client.Decision{Kind: "cancel", Reason: "the oldest of all",
		By: "somebody"}, Payout: &client.Payout{ID: payout}}
	var others client.List[client.ApprovalItem]
	for i := range 200 {
		others.Items = append(others.Items, client.ApprovalItem{ID: fmt.Sprint("a", i), Status: "waiting",
			Decision: client.Decision{Kind: "retry", By: "somebody"}, Payout: &client.Payout{ID: fmt.Sprintf("p%024d", i)}})
	}
	desk, err := New(Config{SessionKeys: [][32]byte{{1}}, Desk: queried{newKeys(map[string]access.Role{"f": access.RoleFinance}),
		func(r *http.Request) any {
			switch {
			case r.URL.Path == "/v1/staff/payouts/"+payout:
				return client.PayoutDetail{Payout: client.Payout{ID: payout, Status: client.PayoutFailed}, Retry: client.RetryPreview{Code: &pending}}
			case r.URL.Query().Get("payment_id") == payout:
				return client.List[client.ApprovalItem]{Items: []client.ApprovalItem{mine}}
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

// queried is a desk whose API answers what a function says.
type queried struct {
	keys
	answer func(*http.Request) any
}

func (d queried) ActAs(string) http.RoundTripper { return d }

func (d queried) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := d.answer(r)
	if answer == nil {
		return silent{}.RoundTrip(r)
	}
	body, err := json.Marshal(answer)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(body))), Request: r},
		err
}
