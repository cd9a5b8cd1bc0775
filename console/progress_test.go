package console

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"hongbao/internal/access"
	"hongbao/wire"
)

// writeOnlyAPI is a staff API that carries out decisions but answers every read with 503.
type writeOnlyAPI struct {
	keys
	retried wire.BulkRetried
	asked   map[string]int // by path
}

func (h writeOnlyAPI) ActAs(string) http.RoundTripper { return h }

func (h writeOnlyAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	h.asked[r.URL.Path]++
	if r.Method != http.MethodPost {
		return unavailableAPI{}.RoundTrip(r)
	}
	body, err := json.Marshal(h.retried)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(body))), Request: r},
		err
}

// TestDecisionsAreSeen: the page shows the decisions of a bulk retry even if all reads fail, and
// reads all statuses in one request.
func TestDecisionsAreSeen(t *testing.T) {
	h := writeOnlyAPI{keys: newKeys(map[string]access.Role{"f": access.RoleFinance}), asked: map[string]int{}}
	for i := range 150 {
		h.retried.Items = append(h.retried.Items, wire.BulkItem{ID: fmt.Sprintf("p%024d", i), BulkResult: wire.BulkResult{Result: "retried"}})
	}
	desk, err := New(Config{StaffAPI: h, SessionKeys: [][32]byte{{1}}})
	if err != nil {
		t.Fatal(err)
	}
	v := newVisitor(t, desk)
	v.signIn("f")
	s, _ := desk.seal.decrypt(v.cookies[sessionCookie])
	form := url.Values{"csrf": {s.CSRF}, "key": {"k"}, "reason": {"r"}, "do": {"retry"}, "scope": {"all"}, "filter": {"status=failed"}}
	res := v.do("POST", "/payouts/retry", form)
	page, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%d %v\n%s", res.StatusCode, err, page)
	}
	for _, want := range []string{h.retried.Items[0].ID, h.retried.Items[149].ID, "progress is unavailable; the decisions stand",
		"0 of 150 final", "hx-post"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	// after a failure the second hundred is not read
	if h.asked["/v1/staff/payouts/statuses"] != 1 || h.asked["/v1/staff/payouts/"+h.retried.Items[0].ID] != 0 {
		t.Errorf("asked: %v", h.asked)
	}
	form = url.Values{"csrf": {s.CSRF}, "began": {"1"}, "pause": {"15"}, "unread": {"true"}}
	for _, item := range h.retried.Items {
		form.Add("item", bulkRunItem{BulkItem: item}.String())
	}
	v.header.Set("HX-Request", "true")
	if res := v.do("POST", "/payouts/progress", form); res.StatusCode != http.StatusNoContent {
		t.Errorf("nothing new: %d", res.StatusCode)
	}
	form.Set("unread", "false")
	if res := v.do("POST", "/payouts/progress", form); res.StatusCode != http.StatusOK {
		t.Errorf("it cannot be read any more: %d", res.StatusCode)
	}
}
