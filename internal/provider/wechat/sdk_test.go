package wechat

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/wechatpay-apiv3/wechatpay-go/core"
	"github.com/wechatpay-apiv3/wechatpay-go/core/auth/verifiers"
	"github.com/wechatpay-apiv3/wechatpay-go/core/notify"
	"github.com/wechatpay-apiv3/wechatpay-go/core/option"
	"github.com/wechatpay-apiv3/wechatpay-go/services/payments"
	"github.com/wechatpay-apiv3/wechatpay-go/services/payments/jsapi"
	"github.com/wechatpay-apiv3/wechatpay-go/services/refunddomestic"

	"hongbao/internal/payout"
)

// TestVendorsClient: the vendor's own client works with the simulator, and its handler verifies and
// decrypts the simulator's notifications. So adapter and simulator do not share a misunderstanding.
func TestVendorsClient(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	base, err := url.Parse(r.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	plain := &http.Transport{DisableKeepAlives: true}
	client, err := core.NewClient(t.Context(), option.WithWechatPayPublicKeyAuthCipher(testMerchant, testSerial, testKeys().merchant,
		testKeyID, &testKeys().public.Private.PublicKey), option.WithHTTPClient(&http.Client{Transport: toBase{base, plain}}))
	if err != nil {
		t.Fatal(err)
	}
	const no = "c00000000000000000000000001"
	service := jsapi.JsapiApiService{Client: client}
	order := jsapi.PrepayRequest{Appid: core.String(testApp), Mchid: core.String(testMerchant), Description: core.String("红包"),
		OutTradeNo: core.String(no), NotifyUrl: core.String(r.cfg.NotifyBase), Amount: &jsapi.Amount{Total: core.Int64(8800),
			Currency: core.String("CNY")}, Payer: &jsapi.Payer{Openid: core.String(payer)}}
	prepaid, _, err := service.PrepayWithRequestPayment(t.Context(), order)
	if err != nil || *prepaid.PrepayId == "" {
		t.Fatalf("prepay: %v, %v", prepaid, err)
	}
	query := jsapi.QueryOrderByOutTradeNoRequest{OutTradeNo: core.String(no), Mchid: core.String(testMerchant)}
	for _, want := range []string{"NOTPAY", "SUCCESS"} {
		seen, _, err := service.QueryOrderByOutTradeNo(t.Context(), query)
		if err != nil || *seen.TradeState != want {
			t.Errorf("query: %v, %v: want %s", seen, err, want)
		}
		r.sim.Pay(no, "", 0)
	}
	end := jsapi.CloseOrderRequest{OutTradeNo: core.String(no), Mchid: core.String(testMerchant)}
	if _, err := service.CloseOrder(t.Context(), end); err == nil || !core.IsAPIError(err, "ORDER_PAID") {
		t.Errorf("close of a paid order: %v", err)
	}
	refunds := refunddomestic.RefundsApiService{Client: client}
	back, _, err := refunds.Create(t.Context(), refunddomestic.CreateRequest{OutTradeNo: core.String(no), OutRefundNo: core.String("r1"),
		Amount: &refunddomestic.AmountReq{Refund: core.Int64(100), Total: core.Int64(8800), Currency: core.String("CNY")}})
	if err != nil || *back.Status != refunddomestic.STATUS_PROCESSING {
		t.Errorf("refund: %v, %v", back, err)
	}

	// A transfer, for which the vendor's SDK has no service: its client sends our stored bytes.
	a, o := r.adapter(t, nil), &orders{}
	stored, err := decodeRequest(o.order(t, a, paidOut(payer)).Request)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := client.Post(t.Context(), r.server.URL+stored.path, rawJSON(stored.body)); err != nil {
		t.Errorf("transfer: %v, %v", res, err)
	}

	d := r.await(t.Context(), no)
	handler, err := notify.NewRSANotifyHandler(testAPIKey, verifiers.NewSHA256WithRSAPubkeyVerifier(testKeyID,
		testKeys().public.Private.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	var paid payments.Transaction
	event, err := handler.ParseNotifyRequest(t.Context(), &http.Request{Header: d.header, Body: io.NopCloser(bytes.NewReader(d.body))}, &paid)
	if err != nil || event.EventType != "TRANSACTION.SUCCESS" || *paid.OutTradeNo != no || *paid.Amount.Total != 8800 {
		t.Errorf("notification: %v, %v", event, err)
	}
	if _, own, err := a.VerifyNotification(d.header, d.body); err != nil || own != no {
		t.Errorf("our adapter: %q, %v", own, err)
	}
	wantKind(t, "the vendor's order, queried by us", a.Query(t.Context(), payout.OpCharge, no), payout.ObsSucceeded, "")
}

// rawJSON is encoded as it is.
type rawJSON []byte

// MarshalJSON implements json.Marshaler.
func (r rawJSON) MarshalJSON() ([]byte, error) { return r, nil }
