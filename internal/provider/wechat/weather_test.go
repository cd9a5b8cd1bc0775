package wechat

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"hongbao/internal/payout"
	"hongbao/internal/provider/wechat/simulator"
)

// TestBadWeather: an answer that cannot be trusted is an unknown outcome with a clear code, although
// the money moved.
func TestBadWeather(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	a, o := r.adapter(t, nil), &orders{}
	for kind, code := range map[string]string{simulator.LongAnswer: codeTooLong, simulator.BadSignature: codeSignature,
		simulator.Unsigned: codeUnsigned, simulator.ClockBehind: codeClock, simulator.ErrorAfter: "SYSTEM_ERROR",
		simulator.SilenceAfter: codeTimeout} {
		openid := payer + kind
		r.sim.Authorise(strings.ReplaceAll(kind, "_", ""), openid)
		in := paidOut(openid)
		in.Authorization = strings.ReplaceAll(kind, "_", "")
		order := o.order(t, a, in)
		r.sim.SetFaults([]simulator.Fault{{Op: "transfer", Kind: kind, Account: openid}, {Op: "query", Kind: kind, Account: openid}})
		wantKind(t, kind+", sent", a.Send(t.Context(), order), payout.ObsNoAnswer, code)
		wantKind(t, kind+", queried", a.Query(t.Context(), payout.OpTransfer, order.OrderNo), payout.ObsNoAnswer, code)
		r.sim.SetFaults(nil)
		wantKind(t, kind+", over", a.Query(t.Context(), payout.OpTransfer, order.OrderNo), payout.ObsSucceeded, "")
		if n := r.sim.Moved(order.OrderNo); n != 1 {
			t.Errorf("%s: moved %d times", kind, n)
		}
	}
}

// TestSignedAnswers: what is signed is still compared with what was asked.
func TestSignedAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	a := r.adapter(t, nil)
	const no = "p00000000000000000000000001"
	bill := func(change string) string {
		v := `{"mch_id":"1900000109","out_bill_no":"` + no + `","transfer_bill_no":"1","appid":"wxd678efh567hg6787","state":"SUCCESS",` +
			`"transfer_amount":8800,"transfer_remark":"x","openid":"o","create_time":"2026-11-28T10:00:00+08:00"}`
		was, is, _ := strings.Cut(change, "=>")
		return strings.Replace(v, was, is, 1)
	}
	charge := func(change string) string {
		v := `{"appid":"wxd678efh567hg6787","mchid":"1900000109","out_trade_no":"` + no + `","transaction_id":"4","trade_type":"JSAPI",` +
			`"trade_state":"SUCCESS","payer":{"openid":"o"},"amount":{"total":8800,"payer_total":1,"currency":"CNY"}}`
		was, is, _ := strings.Cut(change, "=>")
		return strings.Replace(v, was, is, 1)
	}
	for i, v := range []struct {
		op     payout.Op
		status int
		body   string
		kind   payout.ObservationKind
		code   string
	}{
		{payout.OpTransfer, 200, bill(""), payout.ObsSucceeded, ""},
		{payout.OpTransfer, 200, bill("1900000109=>1900000110"), payout.ObsNoAnswer, codeUnexpected},
		{payout.OpTransfer, 200, bill("0001=>0002"), payout.ObsNoAnswer, codeUnexpected},
		{payout.OpTransfer, 200, bill("wxd678efh567hg6787=>wx1"), payout.ObsNoAnswer, codeUnexpected},
		{payout.OpTransfer, 200, bill("SUCCESS=>FINISHED"), payout.ObsNoAnswer, codeUnexpected},
		{payout.OpTransfer, 200, bill(`"transfer_amount":8800,=>`), payout.ObsNoAnswer, codeUndecodable},
		{payout.OpTransfer, 200, bill("SUCCESS=>CANCELLED"), payout.ObsDeclined, "transfer_cancelled"},
		{payout.OpTransfer, 202, bill(""), payout.ObsNoAnswer, "http_202"},
		{payout.OpTransfer, 404, `{"code":"NOT_FOUND","message":""}`, payout.ObsNeverReceived, "NOT_FOUND"},
		{payout.OpTransfer, 400, `{"code":"NOT_FOUND","message":""}`, payout.ObsNoAnswer, "NOT_FOUND"},
		{payout.OpTransfer, 404, `{"code":"ORDER_NOT_EXIST","message":""}`, payout.ObsNoAnswer, "ORDER_NOT_EXIST"},
		{payout.OpTransfer, 429, `{"code":"FREQUENCY_LIMIT_EXCEED","message":""}`, payout.ObsRetryAfter, payout.CodeRateLimited},
		{payout.OpTransfer, 403, `{"code":"NO_AUTH","message":""}`, payout.ObsRetryAfter, "NO_AUTH"},
		{payout.OpCharge, 200, charge(""), payout.ObsSucceeded, ""},
		{payout.OpCharge, 200, charge("SUCCESS=>REFUND"), payout.ObsSucceeded, ""},
		{payout.OpCharge, 200, charge("CNY=>USD"), payout.ObsNoAnswer, codeUnexpected},
		{payout.OpCharge, 200, charge("1900000109=>1900000110"), payout.ObsNoAnswer, codeUnexpected},
		{payout.OpCharge, 200, charge("wxd678efh567hg6787=>wx1"), payout.ObsNoAnswer, codeUnexpected},
		{payout.OpCharge, 200, charge("SUCCESS=>ACCEPT"), payout.ObsNoAnswer, codeUnexpected},
		{payout.OpCharge, 200, charge(`"total":8800=>"total":0`), payout.ObsNoAnswer, codeUndecodable},
		{payout.OpCharge, 404, `{"code":"ORDERNOTEXIST","message":""}`, payout.ObsNeverReceived, "ORDERNOTEXIST"},
		{payout.OpRefund, 404, `{"code":"RESOURCE_NOT_EXISTS","message":""}`, payout.ObsNeverReceived, "RESOURCE_NOT_EXISTS"},
		{payout.OpRefund, 200, `{"refund_id":"5","out_refund_no":"` + no + `","status":"SUCCESS","amount":{"refund":1,"currency":"USD"}}`,
			payout.ObsNoAnswer, codeUnexpected},
		{payout.OpRefund, 200, `{"refund_id":"5","out_refund_no":"other","status":"SUCCESS","amount":{"refund":1,"currency":"CNY"}}`,
			payout.ObsNoAnswer, codeUnexpected},
	} {
		r.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for name, values := range testKeys().public.Headers(time.Now(), []byte(v.body)) {
				w.Header()[name] = values
			}
			w.WriteHeader(v.status)
			_, _ = w.Write([]byte(v.body))
		})
		seen := a.Query(t.Context(), v.op, no)
		wantKind(t, fmt.Sprintf("%d: %s %d %s", i, v.op, v.status, v.body), seen, v.kind, v.code)
		if named := v.op != payout.OpCharge; seen.Kind == payout.ObsSucceeded && (seen.Amount != 8800 || named != (seen.Account == "o")) {
			t.Errorf("%d: %d fen to %q", i, seen.Amount, seen.Account)
		}
	}
}
