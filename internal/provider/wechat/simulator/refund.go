package simulator

import (
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"time"
)

// maxRefunds is the number of refunds of one charge.
const maxRefunds = 50

type refundIn struct {
	OutTradeNo  string `json:"out_trade_no"`
	OutRefundNo string `json:"out_refund_no"`
	Reason      string `json:"reason"`
	NotifyURL   string `json:"notify_url"`
	Amount      struct {
		Refund   int64  `json:"refund"`
		Total    int64  `json:"total"`
		Currency string `json:"currency"`
	} `json:"amount"`
}

type refund struct {
	in      refundIn
	raw     map[string]any
	id      string
	status  string
	of      *charge
	created time.Time
	doneAt  time.Time
	moved   int
}

var outRefundNo = regexp.MustCompile(`^[0-9A-Za-z_|*@-]{1,64}$`)

func (s *Server) createRefund(c call) reply {
	var in refundIn
	raw, ok := decode(c.body, &in)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !ok || !outRefundNo.MatchString(in.OutRefundNo) || in.Amount.Currency != "CNY" || in.Amount.Refund < 1 || len(in.Reason) > 80 {
		return refusal(http.StatusBadRequest, "PARAM_ERROR", "参数错误")
	}
	of := s.charges[in.OutTradeNo]
	if of == nil || of.id == "" {
		return refusal(http.StatusNotFound, "RESOURCE_NOT_EXISTS", "订单不存在")
	}
	kind := s.faultOf("refund", of.openid)
	if known := s.refunds[in.OutRefundNo]; known != nil {
		if !reflect.DeepEqual(known.raw, raw) {
			return refusal(http.StatusBadRequest, "INVALID_REQUEST", "订单金额或退款金额与之前请求不一致")
		}
		return spoil(kind, reply{status: http.StatusOK, value: known.view()})
	}
	if out, ok := s.refundable(of, in); !ok {
		return out
	}
	if early, ok := before(kind); ok {
		return early
	}
	r := s.addRefund(of, in, raw)
	return spoil(kind, reply{status: http.StatusOK, value: r.view()})
}

// refundable refuses a refund that the charge does not allow. The caller holds the lock.
func (s *Server) refundable(of *charge, in refundIn) (reply, bool) {
	switch {
	case in.Amount.Total != of.in.Amount.Total || of.refunded+in.Amount.Refund > of.in.Amount.Total:
		return refusal(http.StatusBadRequest, "INVALID_REQUEST", "订单金额不一致或退款金额大于可退金额"), false
	case len(of.refunds) >= maxRefunds:
		return refusal(http.StatusBadRequest, "INVALID_REQUEST", "退款次数超过限制"), false
	case len(of.refunds) > 0 && time.Since(of.refunds[len(of.refunds)-1]) < s.cfg.RefundSpacing:
		return refusal(http.StatusTooManyRequests, "FREQUENCY_LIMITED", "同一笔订单多次退款的请求需相隔1分钟"), false
	}
	return reply{}, true
}

// addRefund stores a refund. It is always PROCESSING first. The caller holds the lock.
func (s *Server) addRefund(of *charge, in refundIn, raw map[string]any) *refund {
	now := time.Now()
	r := &refund{in: in, raw: raw, id: s.nextID("5030"), status: "PROCESSING", of: of, created: now}
	s.refunds[in.OutRefundNo] = r
	of.refunds, of.refunded, of.state = append(of.refunds, now), of.refunded+in.Amount.Refund, "REFUND"
	end := "SUCCESS"
	switch {
	case strings.HasSuffix(of.openid, Declined):
		end = "CLOSED"
		of.refunded -= in.Amount.Refund
	case strings.HasSuffix(of.openid, Abnormal):
		end = "ABNORMAL"
	}
	if end != "CLOSED" {
		s.move(flow{at: now, fund: basic, id: r.id, voucher: in.OutRefundNo, name: "退款", kind: "退款", out: true, amount: r.settled(),
			remark: in.Reason})
		left := of.in.Amount.Total - of.refunded // refunded counts this one
		s.moveFee(now, r.id, in.OutRefundNo, fee(of.settled(left))-fee(of.settled(left+in.Amount.Refund)))
	}
	s.after(s.cfg.PendingAfter, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		r.status, r.doneAt = end, time.Now()
		if end == "SUCCESS" {
			r.moved++
		}
		s.notify(in.NotifyURL, "REFUND."+end, "refund", r.notice())
	})
	return r
}

// settled is what the refund takes of the merchant's fund.
func (r *refund) settled() int64 { return r.of.settled(r.in.Amount.Refund) }

func (r *refund) view() map[string]any {
	total := r.of.in.Amount.Total
	v := map[string]any{"refund_id": r.id, "out_refund_no": r.in.OutRefundNo, "transaction_id": r.of.id, "out_trade_no": r.in.OutTradeNo,
		"channel": "ORIGINAL", "user_received_account": "支付用户零钱", "create_time": stamp(r.created), "status": r.status,
		"funds_account": "UNSETTLED", "amount": map[string]any{"total": total, "refund": r.in.Amount.Refund,
			"payer_total": total - r.of.coupon, "payer_refund": r.in.Amount.Refund, "settlement_refund": r.settled(),
			"settlement_total": r.of.settled(total), "discount_refund": 0, "currency": "CNY"}}
	if r.status == "SUCCESS" {
		v["success_time"] = stamp(r.doneAt)
	}
	return v
}

// notice is the resource of the notification.
func (r *refund) notice() map[string]any {
	return map[string]any{"mchid": r.of.in.MerchantID, "transaction_id": r.of.id, "out_trade_no": r.in.OutTradeNo, "refund_id": r.id,
		"out_refund_no": r.in.OutRefundNo, "refund_status": r.status, "success_time": stamp(r.doneAt), "user_received_account": "支付用户零钱",
		"amount": map[string]any{"total": r.of.in.Amount.Total, "refund": r.in.Amount.Refund, "payer_total": r.of.in.Amount.Total,
			"payer_refund": r.in.Amount.Refund}}
}

var noRefund = refusal(http.StatusNotFound, "RESOURCE_NOT_EXISTS", "退款单不存在")

func (s *Server) queryRefund(c call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.refunds[c.PathValue("no")]
	if r == nil {
		return noRefund
	}
	return s.asked(r.of.openid, reply{status: http.StatusOK, value: r.view()}, noRefund)
}
