package wechat

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/provider/wechat/simulator"
)

func paidOut(openid string) payout.Instruction {
	return payout.Instruction{Op: payout.OpTransfer, Account: openid, Amount: 8800, Remark: "恭喜发财"}
}

// TestTap: without an authorisation the recipient gets client data and a day; what ends the wait is a code
// of the catalogue.
func TestTap(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	a, o := r.adapter(t, func(c *Config) { c.Style = "RED_PACKET" }), &orders{}
	for what, v := range map[string]struct {
		end  func(no string) bool
		kind payout.ObservationKind
		code string
	}{
		"confirmed": {r.sim.Confirm, payout.ObsSucceeded, ""},
		"expired":   {r.sim.Expire, payout.ObsDeclined, "confirmation_expired"},
	} {
		order := o.order(t, a, paidOut(payer))
		sent := a.Send(t.Context(), order)
		wantKind(t, what, sent, payout.ObsNeedsRecipient, "")
		if p := sent.Action.Parameters; len(p) != 3 || p["mchId"] != testMerchant || p["appId"] != testApp || p["package"] == "" ||
			!sent.Action.ValidUntil.After(time.Now().Add(23*time.Hour)) {
			t.Errorf("%s: %+v", what, sent.Action)
		}
		if again := a.Send(t.Context(), order); !reflect.DeepEqual(again.Action, sent.Action) {
			t.Errorf("%s: sent again, the client gets %+v, before %+v", what, again.Action, sent.Action)
		}
		seen := a.Query(t.Context(), payout.OpTransfer, order.OrderNo)
		wantKind(t, what+", waiting", seen, payout.ObsNeedsRecipient, "")
		if seen.Action != nil || !seen.Until.Equal(sent.Action.ValidUntil) {
			t.Errorf("%s: a query has %+v, until %v", what, seen.Action, seen.Until)
		}
		if !v.end(order.OrderNo) {
			t.Fatalf("%s: the simulator does not know it", what)
		}
		wantKind(t, what, a.Query(t.Context(), payout.OpTransfer, order.OrderNo), v.kind, v.code)
	}
	if limits := a.Limits(); limits.MaxPayout != 20_000 || limits.MinPayout != 10 {
		t.Errorf("limits of red packets: %d to %d", limits.MinPayout, limits.MaxPayout)
	}
}

// TestCloseTransfer: a transfer that waits for its recipient is cancelled; what has ended, or is unknown, answers too. A
// repeat has the package, or has not: Tencent does not say.
func TestCloseTransfer(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	a, o := r.adapter(t, nil), &orders{}
	order := o.order(t, a, paidOut(payer+simulator.Once))
	if sent := a.Send(t.Context(), order); sent.Action == nil {
		t.Errorf("%+v", sent)
	}
	again := a.Send(t.Context(), order)
	if wantKind(t, "sent again", again, payout.ObsNeedsRecipient, ""); again.Action != nil {
		t.Errorf("sent again: %+v", again.Action)
	}
	for range 2 {
		if err := a.CloseOrder(t.Context(), payout.OpTransfer, order.OrderNo); err != nil {
			t.Error(err)
		}
		wantKind(t, "closed", a.Query(t.Context(), payout.OpTransfer, order.OrderNo), payout.ObsDeclined, "transfer_cancelled")
	}
	paid := o.order(t, a, paidOut(payer))
	a.Send(t.Context(), paid)
	if !r.sim.Confirm(paid.OrderNo) {
		t.Fatal("the transfer does not wait")
	}
	for what, no := range map[string]string{"paid": paid.OrderNo, "unknown": o.next(payout.OpTransfer)} {
		if err := a.CloseOrder(t.Context(), payout.OpTransfer, no); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	wantKind(t, "paid", a.Query(t.Context(), payout.OpTransfer, paid.OrderNo), payout.ObsSucceeded, "")
}

// TestAuthorisedPaysAtOnce: with an authorisation there is nothing to confirm.
func TestAuthorisedPaysAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	a, o := r.adapter(t, nil), &orders{}
	r.sim.Authorise("auth1", payer)
	in := paidOut(payer)
	in.Authorization = "auth1"
	seen := a.Send(t.Context(), o.order(t, a, in))
	wantKind(t, "sent", seen, payout.ObsSucceeded, "")
	if seen.Account != payer || seen.Amount != 8800 || seen.ProviderRef == "" {
		t.Errorf("paid: %+v", seen)
	}
}

// TestName: the name is encrypted once; when its key is retired, nothing is sent any more.
func TestName(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	a, o := r.adapter(t, nil), &orders{}
	in := paidOut(payer)
	in.Amount, in.RecipientName = nameFrom, "张三"
	order := o.order(t, a, in)
	if bytes.Contains(order.Request, []byte("张三")) || !strings.Contains(string(order.Request), headerSerial+": "+testKeyID+"\n") {
		t.Fatalf("stored as %s", order.Request)
	}
	for range 2 {
		wantKind(t, "sent", a.Send(t.Context(), order), payout.ObsNeedsRecipient, "")
	}
	next, err := simulator.NewPublicKey("PUB_KEY_ID_next")
	if err != nil {
		t.Fatal(err)
	}
	other := r.adapter(t, func(c *Config) { c.PublicKeyID, c.PublicKey = next.ID, next.PublicPEM() })
	unsent := o.order(t, a, in)
	wantKind(t, "its key is retired", other.Send(t.Context(), unsent), payout.ObsDeclined, codeKeyRetired)
	if r.sim.Moved(unsent.OrderNo) != 0 {
		t.Error("it was sent")
	}
	wantKind(t, "queried", a.Query(t.Context(), payout.OpTransfer, unsent.OrderNo), payout.ObsNeverReceived, "NOT_FOUND")
	in.Amount, in.RecipientName = nameMin-1, "张三"
	if small := o.order(t, a, in); strings.Contains(string(small.Request), "user_name") {
		t.Errorf("the name of a payout below 30 fen: %s", small.Request)
	}
}

// TestTextsAtWeChat: recipient and sender read the texts of the settings; refunds come from the fund of the
// settings.
func TestTextsAtWeChat(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	a := r.adapter(t, func(c *Config) {
		c.Remark, c.Description, c.RefundAccount = "开工红包", "公司红包", "AVAILABLE"
	})
	for _, c := range []struct {
		in   payout.Instruction
		want []string
	}{
		{paidOut(payer), []string{`"transfer_remark":"开工红包"`}},
		{payout.Instruction{Op: payout.OpRefund, Account: payer, Amount: 1, ChargeOrderNo: "c1", ChargeTotal: 2, Remark: "x"},
			[]string{`"reason":"公司红包"`, `"funds_account":"AVAILABLE"`}},
	} {
		c.in.OrderNo, c.in.Currency = "p1", currency
		raw, err := a.EncodeRequest(c.in)
		for _, part := range c.want {
			if err != nil || !strings.Contains(string(raw), part) {
				t.Errorf("%s: %s, %v", c.in.Op, raw, err)
			}
		}
	}
}

// TestStoredRequest: what cannot be read is not sent.
func TestStoredRequest(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	a := r.adapter(t, nil)
	for _, raw := range []string{"", "POST /v3/x", "GET /v3/x\n\n{}", "POST https://elsewhere/v3/x\n\n{}", "POST /v3/x\nHost: y\n\n{}",
		"POST /v3/x\nWechatpay-Serial: \n\n{}"} {
		seen := a.Send(t.Context(), payout.Order{Op: payout.OpTransfer, OrderNo: "p1", Request: []byte(raw)})
		wantKind(t, raw, seen, payout.ObsNotSent, codeBadRequest)
	}
	for text, want := range map[string]string{"红包": "红包", strings.Repeat("红", 50): strings.Repeat("红", 42)} {
		if got := clipBytes(text, maxDescription); got != want {
			t.Errorf("%d bytes: %d bytes", len(text), len(got))
		}
	}
	if got := clipRunes(strings.Repeat("红", 50), maxRemark); got != strings.Repeat("红", maxRemark) {
		t.Errorf("%d bytes", len(got))
	}
}

// TestFailReasons: every reason has a code of the catalogue, so that finance and the recipient know
// what to do.
func TestFailReasons(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, c := range payout.FailureCodes {
		known[c.Code] = true
	}
	for reason := range failReasons {
		if !known[failCode(reason)] {
			t.Errorf("%s: %s is not in the catalogue", reason, failCode(reason))
		}
	}
	for _, code := range []string{codeChargeClosed, codeRefundClosed, codeKeyRetired, failCode("A_NEW_REASON")} {
		if !known[code] {
			t.Errorf("%s is not in the catalogue", code)
		}
	}
}

// TestReportInfos: the contents that the scene requires have the texts of the packet, clipped to what WeChat Pay takes,
// and never none. The limits say whether the adapter needs them.
func TestReportInfos(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	plain := r.adapter(t, nil)
	a, o := r.adapter(t, func(c *Config) {
		c.ReportInfos = []ReportInfo{{"活动名称", "{campaign}"}, {"奖励说明", "祝福：{greeting}{greeting}"}}
	}), &orders{}
	if plain.Limits().PayoutTexts || !a.Limits().PayoutTexts {
		t.Error("the limits do not say whether texts are needed")
	}
	long := strings.Repeat("福", 40)
	for _, c := range []struct{ campaign, greeting, name, note string }{
		{"新年{greeting}", "恭喜", "新年{greeting}", "祝福：恭喜恭喜"},
		{long, long, long[:32*3], "祝福：" + long[:29*3]},
		{"", " ", "红包", "祝福：红包红包"},
	} {
		in := paidOut(payer)
		in.Campaign, in.Greeting = c.campaign, c.greeting
		order := o.order(t, a, in)
		for _, want := range []string{`"info_content":"` + c.name + `"`, `"info_content":"` + c.note + `"`} {
			if !strings.Contains(string(order.Request), want) {
				t.Errorf("%q, %q: %s lacks %s", c.campaign, c.greeting, order.Request, want)
			}
		}
		wantKind(t, "with texts", a.Send(t.Context(), order), payout.ObsNeedsRecipient, "")
	}
}
