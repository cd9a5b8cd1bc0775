package console

import (
	"html"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"hongbao/internal/access"
	"hongbao/internal/payout"
	"hongbao/wire"
)

// TestEqualLinesAreOne: a payout that waits for its recipient says so, and repeated queries are
// one timeline line from first to last.
func TestEqualLinesAreOne(t *testing.T) {
	began := time.Date(2026, 2, 17, 12, 0, 0, 0, time.UTC)
	d := wire.PayoutDetail{Payout: wire.Payout{Payment: wire.Payment{ID: "p1", Status: wire.PayoutAwaitingRecipient}}}
	line := func(minute int, event payout.EventCode, outcome payout.ObservationKind) {
		d.Timeline = append(d.Timeline, entryOf(payout.Event{At: began.Add(time.Duration(minute) * time.Minute), Source: "provider",
			Event: event, OrderNo: "t1", Outcome: string(outcome)}))
	}
	line(0, payout.EventSent, payout.ObsNeedsRecipient)
	for minute := range 43 {
		line(1+minute, payout.EventQueried, payout.ObsNeedsRecipient)
	}
	line(50, payout.EventQueried, payout.ObsNoAnswer)
	line(51, payout.EventQueried, payout.ObsNeedsRecipient)
	desk, err := New(Config{SessionKeys: [][32]byte{{1}}, StaffAPI: funcAPI{newKeys(map[string]access.Role{"o": access.RoleOps}),
		func(r *http.Request) any {
			return map[string]any{"/v1/staff/payouts/p1": d, "/v1/staff/approvals": wire.List[wire.ApprovalItem]{},
				"/v1/staff/holds": wire.List[wire.StaffHold]{}}[r.URL.Path]
		}}})
	if err != nil {
		t.Fatal(err)
	}
	v := newVisitor(t, desk)
	v.signIn("o")
	for lang, want := range map[string][3]string{
		"en": {"43 times", "Queried t1: awaiting recipient", "The recipient has to accept the money"},
		"zh": {"共 43 次", "查询单号 t1：待收款人确认", "等待收款人"},
	} {
		v.header.Set("Accept-Language", lang)
		res := v.do("GET", "/payouts/p1", nil)
		text, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%d %v\n%s", res.StatusCode, err, text)
		}
		page := html.UnescapeString(string(text))
		lines := regexp.MustCompile(`(?s)<ol class="timeline">.*</ol>`).FindString(page)
		if n := strings.Count(lines, "<li>"); n != 4 {
			t.Errorf("%d lines: %s", n, lines)
		}
		for _, part := range []string{want[0], want[1], "2026-02-17T12:01:00.000Z", "2026-02-17T12:43:00.000Z"} {
			if !strings.Contains(lines, part) {
				t.Errorf("%s: no %q in %s", lang, part, lines)
			}
		}
		if !strings.Contains(page, want[2]) {
			t.Errorf("%s: the page does not say what the payout waits for", lang)
		}
	}
}
