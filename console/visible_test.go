package console

import (
	"html"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"hongbao/internal/access"
	"hongbao/internal/visible"
	"hongbao/wire"
)

// disguised is a text with invisible and reordering characters; it displays as attack.org.
const disguised = "\u202egro.kcatta\u2066\u200b\ufeff\u3164\u2028</b>"

// words are valid values of fields that only the platform writes.
var words = map[string]string{
	"Payment.Status": "failed", "Refund.Kind": "remainder", "PayoutRef.Status": "paid",
	"Decision.Kind": "retry", "ApprovalItem.Status": "waiting", "Preview.Status": "failed", "RetryPreview.Code": "not_retryable",
	"RetryPreview.Undecided": "packet",
	"Packet.Status":          "open", "Packet.Split": "random", "PayoutSum.Status": "paid",
	"Campaign.Status": "active", "CampaignDay.Status": "made", "CampaignTemplate.Split": "random", "StaffPacket.CloseReason": "expired",
	"CloseSummary.Status": "open", "CloseSummary.Pending": "day", "Reconciliation.Status": "done", "OpSums.Op": "charge",
	"AccountDay.Account": "holding", "KindSum.Kind": "charge", "KindSum.Debit": "holding", "KindSum.Credit": "owed",
	"DayDifference.Kind": "amount_differs", "Unfinished.Kind": "payout", "Unfinished.Status": "failed", "DecisionDue.Reason": "break",
	"Health.Status": "wrong", "HealthPart.Status": "wrong", "HealthCheck.Status": "wrong",
}

// filled sets every text field that is not in words to the disguised text.
func filled(v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(v.Elem(), name)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		filled(v.Index(0), name)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(disguised), reflect.ValueOf(disguised))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Now()))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				filled(v.Field(i), v.Type().Name()+"."+v.Type().Field(i).Name)
			}
		}
	case reflect.String:
		if word, ok := words[name]; ok {
			v.SetString(word)
		} else {
			v.SetString(disguised)
		}
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	}
}

// disguisedBalances are balances whose first app has the id p1.
func disguisedBalances() any {
	out := new(wire.Balances)
	filled(reflect.ValueOf(out).Elem(), "")
	out.Items[0].App = "p1"
	return out
}

func disguise[T any]() any {
	out := new(T)
	filled(reflect.ValueOf(out).Elem(), "")
	return out
}

// TestNothingIsHidden: no page in any language contains an invisible or reordering character,
// whatever names users choose.
func TestNothingIsHidden(t *testing.T) {
	answers := map[string]any{
		"overview": disguise[wire.Overview](), "activity": disguise[wire.Activity](), "health": disguise[wire.Health](),
		"providers": disguise[wire.List[wire.PaymentProvider]](), "payouts": disguise[wire.List[wire.Payout]](),
		"payouts/sum": disguise[wire.PaymentSum](), "payouts/p1": disguise[wire.PayoutDetail](),
		"refunds": disguise[wire.List[wire.Refund]](), "refunds/sum": disguise[wire.PaymentSum](),
		"refunds/p1": disguise[wire.RefundDetail](), "charges": disguise[wire.List[wire.Payment]](),
		"charges/sum": disguise[wire.PaymentSum](), "charges/p1": disguise[wire.ChargeDetail](),
		"approvals":     disguise[wire.List[wire.ApprovalItem]](),
		"approvals/sum": disguise[wire.ListSum](), "packets": disguise[wire.List[wire.StaffPacket]](),
		"packets/sum": disguise[wire.ListSum](), "packets/p1": disguise[wire.StaffPacketDetail](),
		"packets/p1/grabs": disguise[wire.List[wire.Claim]](), "packets/p1/proof": disguise[wire.Proof](),
		"campaigns": disguise[wire.List[wire.StaffCampaign]](), "campaigns/p1": disguise[wire.StaffCampaign](),
		"campaigns/p1/days": disguise[wire.List[wire.CampaignDay]](), "audit": disguise[wire.List[wire.AuditEntry]](),
		"audit/count": disguise[wire.ListCount](), "audit/verify": disguise[wire.AuditVerdict](),
		"reconciliations": disguise[wire.List[wire.Reconciliation]](), "reconciliations/p1": disguise[wire.Reconciliation](),
		"breaks": disguise[wire.List[wire.Break]](), "breaks/sum": disguise[wire.BreakSum](),
		"holds": disguise[wire.List[wire.StaffHold]](), "holds/p1": disguise[wire.HeldItem](),
		"balances": disguisedBalances(), "balances/movements": disguise[wire.List[wire.BalanceEntry]](),
		"closes": disguise[wire.List[wire.CloseSummary]](), "closes/2026-02-17": disguise[wire.Close](),
	}
	roles := map[string]access.Role{"f": access.RoleFinance, "a": access.RoleAuditor}
	desk, err := New(Config{SessionKeys: [][32]byte{{1}}, StaffAPI: funcAPI{newKeys(roles), func(r *http.Request) any {
		return answers[strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/v1/staff/"), "/v1/")]
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for key := range roles {
		for _, lang := range []string{"en", "zh"} {
			v := newVisitor(t, desk)
			v.header.Set("Accept-Language", lang)
			v.signIn(key)
			for pattern, one := range desk.routes() {
				method, path := pathOf(pattern)
				if method != http.MethodGet || one.handle == nil || strings.HasSuffix(path, ".csv") || path == "/live" {
					continue
				}
				for _, member := range []string{"", "user", "q", "code", "actor", "kind", "sender", "status"} {
					if _, ok := one.query[member]; !ok && member != "" {
						continue
					}
					where := path + "?" + strings.TrimPrefix(url.Values{member: {disguised}}.Encode(), "=")
					if member == "" {
						where = path
					}
					res := v.do(method, where, nil)
					text, err := io.ReadAll(res.Body)
					if err != nil || res.StatusCode != http.StatusOK {
						t.Errorf("%s for %s: %d %v\n%s", where, key, res.StatusCode, err, text)
						continue
					}
					noneHidden(t, where, string(text))
					if !strings.Contains(string(text), `\u202egro.kcatta\u2066\u200b\ufeff\u3164\u2028&lt;/b&gt;`) &&
						path != "/search" && path != "/share-conflicts" {
						t.Errorf("%s for %s does not show the name", where, key)
					}
				}
			}
		}
	}
}

func noneHidden(t *testing.T, where, text string) {
	t.Helper()
	for i, r := range text {
		if r != '\n' && visible.Hidden(r) {
			t.Errorf("%s: U+%04X is hidden in %q", where, r, text[max(0, i-80):min(len(text), i+80)])
			return
		}
	}
}

// TestKeptAsItIs: a form submits exactly the text that was entered.
func TestKeptAsItIs(t *testing.T) {
	const family = "\U0001f469\u200d\U0001f467 \u202egro & <b>"
	desk, err := New(Config{SessionKeys: [][32]byte{{1}}, StaffAPI: funcAPI{newKeys(map[string]access.Role{"f": access.RoleFinance}),
		func(r *http.Request) any {
			if r.Method == http.MethodPost {
				return nil
			}
			return map[string]any{"/v1/staff/payouts": disguise[wire.List[wire.Payout]](),
				"/v1/staff/payouts/sum": wire.PaymentSum{}}[r.URL.Path]
		}}})
	if err != nil {
		t.Fatal(err)
	}
	v := newVisitor(t, desk)
	v.signIn("f")
	s, _ := desk.seal.decrypt(v.cookies[sessionCookie])
	sent := v.do("POST", "/payouts/retry", url.Values{"csrf": {s.CSRF}, "key": {"k"}, "id": {"p1"}, "reason": {family},
		"filter": {"status=failed"}})
	listed := v.do("GET", "/payouts?"+url.Values{"user": {family}, "status": {"failed"}}.Encode(), nil)
	for field, res := range map[string]*http.Response{`<textarea name="reason"[^>]* id="kept">([^<]*)<`: sent,
		`<input type="hidden" name="user" value="([^"]*)">`: listed} {
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(field).FindStringSubmatch(string(text))
		if m == nil || html.UnescapeString(m[1]) != family {
			t.Errorf("%s: %q\n%s", field, m, text)
		}
		noneHidden(t, field, string(text))
	}
}
