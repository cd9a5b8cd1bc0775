package provider

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json"

	"hongbao/internal/payout"
)

// The sandbox's methods of payment.
const (
	sandboxAtOnce = "sandbox"     // charged at once
	sandboxApp    = "sandbox_app" // the payer's app opens a page with a button
	sandboxQR     = "sandbox_qr"  // the payer scans the address of that page
)

// action is what the payer's client needs to pay the order.
func (v orderAnswer) action(base string) *payout.ClientAction {
	page := base + "/pay/" + url.PathEscape(v.OrderNo) + "?token=" + url.QueryEscape(v.PayToken)
	out := &payout.ClientAction{Type: payout.ClientSDK, URL: page, ValidUntil: v.ExpiresAt}
	if v.Method == sandboxQR {
		out.Type, out.QRCode = payout.ClientQRCode, page
		return out
	}
	out.Parameters = map[string]string{"order_no": v.OrderNo, "pay_token": v.PayToken}
	return out
}

// closeAnswers are the problems that answer a close: a query says what they mean.
var closeAnswers = map[string]bool{"order_paid": true, "order_not_found": true}

// CloseOrder ends an unpaid charge; a transfer waits until its recipient has acted. Errors wrap ErrAnswer; the call may
// be repeated.
func (s *Sandbox) CloseOrder(ctx context.Context, op payout.Op, orderNo string) error {
	if op != payout.OpCharge {
		return nil
	}
	a := s.call(ctx, http.MethodPost, "/v1/charges/"+url.PathEscape(orderNo)+"/close", nil)
	if a.err != nil {
		return fmt.Errorf("close %s: %w: %w", orderNo, ErrAnswer, a.err)
	}
	var p problemAnswer
	if a.status == http.StatusOK || json.Unmarshal(a.body, &p) == nil && closeAnswers[p.Code] {
		return nil
	}
	return fmt.Errorf("close %s: %w: status %d %s", orderNo, ErrAnswer, a.status, p.Code)
}
