package wechat

import (
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"hongbao/internal/money"
	"hongbao/internal/payout"
)

// observe sets the observation from an answer or its absence; read reads a positive one.
func (a *Adapter) observe(o *payout.Observation, op payout.Op, res answer, read func(body []byte)) {
	o.EndedAt = time.Now().UTC()
	switch {
	case res.err != nil:
		o.Kind, o.Code = payout.ObsNoAnswer, res.code
		if !res.mayHaveLeft {
			o.Kind = payout.ObsNotSent
		}
	case res.status == http.StatusOK:
		read(res.body)
	default:
		observeRefusal(o, op, res)
	}
}

// unusable makes an answer an unknown outcome.
func unusable(o *payout.Observation, code string) { o.Kind, o.Code = payout.ObsNoAnswer, code }

// errorAnswer is the body of every refusal. The message is for staff; it changes without notice.
type errorAnswer struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// observeRefusal reads a signed refusal. A code that is not documented, and every 5xx, is an unknown
// outcome.
func observeRefusal(o *payout.Observation, op payout.Op, res answer) {
	unusable(o, "http_"+strconv.Itoa(res.status))
	var e errorAnswer
	if json.Unmarshal(res.body, &e) != nil || e.Code == "" {
		return
	}
	o.Code, o.Message = e.Code, e.Message
	table := sendRefusals
	if o.Source == payout.SourceQuery {
		table = queryRefusals
	}
	r, ok := table.of(op, e.Code)
	if !ok || res.status != r.status {
		return
	}
	o.Kind, o.RetryAfter = r.kind, r.pause
	if r.code != "" {
		o.Code = r.code
	}
}

// billAnswer is a transfer bill. Unknown members are allowed.
type billAnswer struct {
	MerchantID     string    `json:"mch_id"`
	AppID          string    `json:"appid"`
	OutBillNo      string    `json:"out_bill_no"`
	TransferBillNo string    `json:"transfer_bill_no"`
	State          string    `json:"state"`
	Amount         money.Fen `json:"transfer_amount"`
	OpenID         string    `json:"openid"`
	FailReason     string    `json:"fail_reason"`
	PackageInfo    string    `json:"package_info"`
	CreateTime     time.Time `json:"create_time"`
}

// billStates are the states of a transfer bill; FAIL has a reason of its own.
var billStates = map[string]payout.ObservationKind{
	"ACCEPTED":          payout.ObsPending,
	"PROCESSING":        payout.ObsPending,
	"WAIT_USER_CONFIRM": payout.ObsNeedsRecipient,
	"TRANSFERING":       payout.ObsPending, //nolint:misspell // the vendor's spelling
	"CANCELING":         payout.ObsPending,
	"SUCCESS":           payout.ObsSucceeded,
	"FAIL":              payout.ObsDeclined,
	"CANCELLED":         payout.ObsDeclined,
}

// observeBill reads a transfer bill. The answer to a first send has no merchant, recipient or amount.
func (a *Adapter) observeBill(o *payout.Observation, body []byte) {
	var v billAnswer
	if json.Unmarshal(body, &v) != nil || v.TransferBillNo == "" || v.CreateTime.IsZero() ||
		o.Source == payout.SourceQuery && (v.MerchantID == "" || v.Amount < 1) {
		unusable(o, codeUndecodable)
		return
	}
	kind, known := billStates[v.State]
	if !known || v.OutBillNo != o.OrderNo || v.MerchantID != "" && v.MerchantID != a.cfg.MerchantID ||
		v.AppID != "" && v.AppID != a.cfg.PayoutAppID {
		unusable(o, codeUnexpected)
		return
	}
	o.Kind, o.Account, o.Amount, o.ProviderRef = kind, v.OpenID, v.Amount, v.TransferBillNo
	switch kind {
	case payout.ObsNeedsRecipient:
		o.Action, o.Until = a.confirmAction(v.PackageInfo, v.CreateTime), v.CreateTime.Add(confirmWithin).UTC()
	case payout.ObsDeclined:
		reason := v.FailReason
		if v.State == "CANCELLED" {
			reason = "MCH_CANCEL"
		}
		o.Code, o.Message = failCode(reason), reason
	}
}

// confirmAction is what the recipient's client passes to requestMerchantTransfer in order to confirm a transfer or an
// agreement; nil: the answer has no package.
func (a *Adapter) confirmAction(pack string, created time.Time) *payout.ClientAction {
	if pack == "" {
		return nil
	}
	return &payout.ClientAction{Type: payout.ClientSDK, ValidUntil: created.Add(confirmWithin).UTC(),
		Parameters: map[string]string{"mchId": a.cfg.MerchantID, "appId": a.cfg.PayoutAppID, "package": pack}}
}

// chargeAnswer is an order that a sender pays.
type chargeAnswer struct {
	AppID         string `json:"appid"`
	MerchantID    string `json:"mchid"`
	OutTradeNo    string `json:"out_trade_no"`
	TransactionID string `json:"transaction_id"`
	TradeState    string `json:"trade_state"`
	Amount        struct {
		Total      money.Fen  `json:"total"`
		PayerTotal *money.Fen `json:"payer_total"` // without coupons
		Currency   string     `json:"currency"`
	} `json:"amount"`
}

// chargeStates are the states of such an order. REFUND means paid, with at least one refund accepted,
// ours included: it is no return. A failed attempt of the sender stays NOTPAY.
var chargeStates = map[string]payout.ObservationKind{
	"NOTPAY":     payout.ObsNeedsPayer,
	"USERPAYING": payout.ObsNeedsPayer,
	"SUCCESS":    payout.ObsSucceeded,
	"REFUND":     payout.ObsSucceeded,
	"CLOSED":     payout.ObsDeclined,
	"REVOKED":    payout.ObsDeclined,
	"PAYERROR":   payout.ObsDeclined,
}

// observeCharge reads the answer to the query of a charge. The total counts, never what the sender
// paid of it after coupons. Who paid is not compared: the sender has another name at the app, and only
// the user named by a JSAPI order can pay it.
func (a *Adapter) observeCharge(o *payout.Observation, body []byte) {
	var v chargeAnswer
	if json.Unmarshal(body, &v) != nil || v.OutTradeNo == "" || v.MerchantID == "" {
		unusable(o, codeUndecodable)
		return
	}
	kind, known := chargeStates[v.TradeState]
	paid := kind == payout.ObsSucceeded
	if !known || v.OutTradeNo != o.OrderNo || v.MerchantID != a.cfg.MerchantID || !a.ownApp(v.AppID) ||
		v.Amount.Currency != currency && (paid || v.Amount.Currency != "") {
		unusable(o, codeUnexpected)
		return
	}
	if paid && (v.TransactionID == "" || v.Amount.Total < 1) {
		unusable(o, codeUndecodable)
		return
	}
	o.Kind, o.Amount, o.ProviderRef = kind, v.Amount.Total, v.TransactionID
	switch of := v.Amount.PayerTotal; {
	case kind == payout.ObsDeclined:
		o.Code, o.Message = codeChargeClosed, v.TradeState
	case paid && a.cfg.RefuseCoupons && of != nil && *of < v.Amount.Total:
		o.Code = payout.FailureCouponNotAllowed
	}
}

// ownApp reports whether an app id is one of the account's.
func (a *Adapter) ownApp(id string) bool {
	for _, own := range a.cfg.AppIDs {
		if own == id {
			return true
		}
	}
	return false
}

// refundAnswer is a refund.
type refundAnswer struct {
	RefundID    string `json:"refund_id"`
	OutRefundNo string `json:"out_refund_no"`
	Status      string `json:"status"`
	Amount      struct {
		Refund   money.Fen `json:"refund"`
		Currency string    `json:"currency"`
	} `json:"amount"`
}

// refundStates are the states of a refund. ABNORMAL is not final: the money has left our account, and
// staff direct it to another account of the sender at the merchant platform, under the same number.
// CLOSED is: nothing moved, because our balance did not cover it for seven days.
var refundStates = map[string]struct {
	kind payout.ObservationKind
	code string
}{
	"SUCCESS":    {payout.ObsSucceeded, ""},
	"PROCESSING": {payout.ObsPending, ""},
	"ABNORMAL":   {payout.ObsPending, codeRefundAbnormal},
	"CLOSED":     {payout.ObsDeclined, codeRefundClosed},
}

// observeRefund reads a refund.
func (a *Adapter) observeRefund(o *payout.Observation, body []byte) {
	var v refundAnswer
	if json.Unmarshal(body, &v) != nil || v.RefundID == "" || v.Amount.Refund < 1 {
		unusable(o, codeUndecodable)
		return
	}
	state, known := refundStates[v.Status]
	if !known || v.OutRefundNo != o.OrderNo || v.Amount.Currency != currency {
		unusable(o, codeUnexpected)
		return
	}
	o.Kind, o.Code, o.Amount, o.ProviderRef = state.kind, state.code, v.Amount.Refund, v.RefundID
	if state.code != "" {
		o.Message = v.Status
	}
}
