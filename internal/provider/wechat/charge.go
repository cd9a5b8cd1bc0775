package wechat

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	sdk "github.com/wechatpay-apiv3/wechatpay-go/utils"

	"hongbao/internal/payout"
)

// ErrAnswer is wrapped when a call that moves no money got no usable answer. It may be repeated.
var ErrAnswer = errors.New("no usable answer from WeChat Pay")

// prepayAnswer is the answer to an order: one of the two.
type prepayAnswer struct {
	PrepayID string `json:"prepay_id"`
	CodeURL  string `json:"code_url"`
}

// observePrepay reads the answer to an order and signs what the sender's client needs.
func (a *Adapter) observePrepay(o *payout.Observation, r request, body []byte) {
	var v prepayAnswer
	var order struct {
		AppID string `json:"appid"`
	}
	native := strings.HasSuffix(r.path, "/native")
	if json.Unmarshal(body, &v) != nil || native && v.CodeURL == "" || !native && v.PrepayID == "" {
		unusable(o, codeUndecodable)
		return
	}
	if json.Unmarshal(r.body, &order) != nil || order.AppID == "" {
		unusable(o, codeBadRequest)
		return
	}
	action := &payout.ClientAction{Type: payout.ClientQRCode, QRCode: v.CodeURL, ValidUntil: o.StartedAt.Add(actionValid)}
	if !native {
		var err error
		if action, err = a.clientAction(order.AppID, v.PrepayID, strings.HasSuffix(r.path, "/app"), time.Now()); err != nil {
			unusable(o, codeUndecodable)
			return
		}
	}
	o.Kind, o.Action, o.Until = payout.ObsNeedsPayer, action, action.ValidUntil
}

// clientAction signs the parameters with which a client opens the cashier. The signed text ends with
// the package of JSAPI, but with the bare prepay_id of an app.
func (a *Adapter) clientAction(appID, prepayID string, app bool, now time.Time) (*payout.ClientAction, error) {
	nonce, err := sdk.GenerateNonce()
	if err != nil {
		return nil, fmt.Errorf("make a nonce: %w", err)
	}
	at := strconv.FormatInt(now.Unix(), 10)
	last := "prepay_id=" + prepayID
	if app {
		last = prepayID
	}
	signed, err := a.signer.Sign(a.ctx, clientText(appID, at, nonce, last))
	if err != nil {
		return nil, fmt.Errorf("sign the client's parameters: %w", err)
	}
	p := map[string]string{"appId": appID, "timeStamp": at, "nonceStr": nonce, "package": last, "signType": "RSA",
		"paySign": signed.Signature}
	if app {
		p = map[string]string{"appId": appID, "partnerId": a.cfg.MerchantID, "prepayId": prepayID, "package": "Sign=WXPay",
			"timeStamp": at, "nonceStr": nonce, "sign": signed.Signature}
	}
	return &payout.ClientAction{Type: payout.ClientSDK, Parameters: p, ValidUntil: now.Add(actionValid).UTC()}, nil
}

// clientText is the signed text of a client's parameters.
func clientText(appID, at, nonce, last string) string {
	return appID + "\n" + at + "\n" + nonce + "\n" + last + "\n"
}

// closeAnswers are the refusals of a close that answer it: what became of the order is queried.
var closeAnswers = map[string]bool{"ORDER_PAID": true, "ORDERPAID": true, "ORDER_CLOSED": true, "ORDERCLOSED": true,
	"ORDER_NOT_EXIST": true, "ORDERNOTEXIST": true, "INVALID_REQUEST": true, "NOT_FOUND": true}

// CloseOrder ends an unpaid charge, or a transfer that its recipient has not confirmed. Errors wrap ErrAnswer.
func (a *Adapter) CloseOrder(ctx context.Context, op payout.Op, orderNo string) error {
	r := request{method: http.MethodPost, path: pathBill + url.PathEscape(orderNo) + "/cancel"}
	if op == payout.OpCharge {
		var err error
		r.path = pathCharge + url.PathEscape(orderNo) + "/close"
		if r.body, err = json.Marshal(map[string]string{"mchid": a.cfg.MerchantID}); err != nil {
			return fmt.Errorf("close order %s: %w", orderNo, err)
		}
	}
	res := a.call(ctx, r)
	if res.err != nil {
		return fmt.Errorf("close order %s: %w: %s: %w", orderNo, ErrAnswer, res.code, res.err)
	}
	if res.status == http.StatusNoContent || res.status == http.StatusOK {
		return nil
	}
	var e errorAnswer
	if json.Unmarshal(res.body, &e) == nil && res.status < http.StatusInternalServerError && closeAnswers[e.Code] {
		return nil
	}
	return fmt.Errorf("close order %s: %w: status %d %s", orderNo, ErrAnswer, res.status, e.Code)
}
