package simulator

import (
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"time"
)

// chargeIn is the body of an order that a sender pays.
type chargeIn struct {
	AppID       string `json:"appid"`
	MerchantID  string `json:"mchid"`
	Description string `json:"description"`
	OutTradeNo  string `json:"out_trade_no"`
	TimeExpire  string `json:"time_expire"`
	NotifyURL   string `json:"notify_url"`
	Amount      struct {
		Total    int64  `json:"total"`
		Currency string `json:"currency"`
	} `json:"amount"`
	Payer struct {
		OpenID string `json:"openid"`
	} `json:"payer"`
}

type charge struct {
	in             chargeIn
	raw            map[string]any
	method, openid string
	id, state      string // id: once paid
	coupon         int64  // granted by the merchant: it is not settled
	paidAt         time.Time
	refunded       int64
	refunds        []time.Time
}

// settled is what the merchant gets of a part of the charge, or gives back: at least one fen.
func (c *charge) settled(part int64) int64 { return part - part*c.coupon/c.in.Amount.Total }

var (
	outTradeNo = regexp.MustCompile(`^[0-9A-Za-z_|*-]{6,32}$`)
	methodOf   = map[string]string{"jsapi": "JSAPI", "app": "APP", "native": "NATIVE"}
)

func (s *Server) createCharge(c call) reply {
	var in chargeIn
	raw, ok := decode(c.body, &in)
	method, known := methodOf[c.PathValue("method")]
	s.mu.Lock()
	defer s.mu.Unlock()
	if !known {
		return refusal(http.StatusNotFound, "RESOURCE_NOT_EXISTS", "接口不存在")
	}
	if problem := s.checkCharge(ok, in, method); problem != "" {
		return refusal(http.StatusBadRequest, "PARAM_ERROR", problem)
	}
	kind := s.faultOf("charge", in.Payer.OpenID)
	order := s.charges[in.OutTradeNo]
	switch {
	case order != nil && !reflect.DeepEqual(order.raw, raw):
		return refusal(http.StatusForbidden, "OUT_TRADE_NO_USED", "商户订单号重复")
	case order != nil && order.state == "CLOSED":
		return refusal(http.StatusBadRequest, "ORDER_CLOSED", "该订单已关闭")
	case order != nil && order.state != "NOTPAY":
		return refusal(http.StatusBadRequest, "ORDERPAID", "该订单已支付")
	}
	if order == nil {
		if early, ok := before(kind); ok {
			return early
		}
		order = &charge{in: in, raw: raw, method: method, openid: in.Payer.OpenID, state: "NOTPAY"}
		s.charges[in.OutTradeNo] = order
		if s.cfg.PayAfter > 0 {
			s.after(s.cfg.PayAfter, func() { s.Pay(in.OutTradeNo, "", 0) })
		}
	}
	out := map[string]string{"prepay_id": s.nextID("wx")}
	if method == "NATIVE" {
		out = map[string]string{"code_url": "weixin://wxpay/bizpayurl?pr=" + nonce(6)}
	}
	return spoil(kind, reply{status: http.StatusOK, value: out})
}

func (s *Server) checkCharge(ok bool, in chargeIn, method string) string {
	switch {
	case !ok:
		return "请求体不是合法的JSON"
	case !s.hasApp(in.AppID) || in.MerchantID != s.cfg.MerchantID:
		return "appid 与 mchid 不匹配"
	case !outTradeNo.MatchString(in.OutTradeNo):
		return "out_trade_no 格式错误"
	case in.Description == "" || len(in.Description) > 127:
		return "description 长度错误"
	case in.Amount.Total < 1 || in.Amount.Currency != "CNY":
		return "amount 错误"
	case in.NotifyURL == "" || strings.ContainsAny(in.NotifyURL, "?#"):
		return "notify_url 错误"
	case method == "JSAPI" && in.Payer.OpenID == "":
		return "openid 必填"
	}
	if in.TimeExpire != "" {
		if _, err := time.Parse(time.RFC3339, in.TimeExpire); err != nil {
			return "time_expire 格式错误"
		}
	}
	return ""
}

// Pay is the sender's payment of a charge, perhaps with a coupon. payer is the openid where the order
// names none. It returns false when the charge cannot be paid.
func (s *Server) Pay(no, payer string, coupon int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.charges[no]
	if c == nil || c.state != "NOTPAY" {
		return false
	}
	if c.openid == "" {
		c.openid = payer
	}
	c.state, c.id, c.coupon, c.paidAt = "SUCCESS", s.nextID("4200"), min(coupon, c.in.Amount.Total-1), time.Now()
	s.move(flow{at: c.paidAt, fund: basic, id: c.id, voucher: no, name: "交易", kind: "交易", amount: c.settled(c.in.Amount.Total)})
	s.moveFee(c.paidAt, c.id, no, fee(c.settled(c.in.Amount.Total)))
	s.notify(c.in.NotifyURL, "TRANSACTION.SUCCESS", "transaction", c.view())
	return true
}

// view is the answer to a query, and the resource of the notification.
func (c *charge) view() map[string]any {
	v := map[string]any{"appid": c.in.AppID, "mchid": c.in.MerchantID, "out_trade_no": c.in.OutTradeNo, "trade_state": c.state,
		"trade_state_desc": c.state, "amount": map[string]any{"total": c.in.Amount.Total, "currency": "CNY"}}
	if c.state == "SUCCESS" || c.state == "REFUND" {
		v["transaction_id"], v["trade_type"], v["bank_type"] = c.id, c.method, "OTHERS"
		v["success_time"], v["payer"] = stamp(c.paidAt), map[string]string{"openid": c.openid}
		v["amount"] = map[string]any{"total": c.in.Amount.Total, "payer_total": c.in.Amount.Total - c.coupon, "currency": "CNY",
			"payer_currency": "CNY"}
	}
	return v
}

var noCharge = refusal(http.StatusNotFound, "ORDER_NOT_EXIST", "订单不存在")

func (s *Server) queryCharge(c call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	order := s.charges[c.PathValue("no")]
	if order == nil {
		return noCharge
	}
	if c.URL.Query().Get("mchid") != s.cfg.MerchantID {
		return refusal(http.StatusBadRequest, "PARAM_ERROR", "mchid 错误")
	}
	return s.asked(order.openid, reply{status: http.StatusOK, value: order.view()}, noCharge)
}

func (s *Server) closeCharge(c call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	order := s.charges[c.PathValue("no")]
	switch {
	case order == nil:
		return noCharge
	case order.state == "SUCCESS" || order.state == "REFUND":
		return refusal(http.StatusBadRequest, "ORDER_PAID", "订单已支付")
	}
	order.state = "CLOSED"
	return reply{status: http.StatusNoContent}
}
