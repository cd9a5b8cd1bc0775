package wechat

import (
	"net/http"
	"time"

	"hongbao/internal/payout"
)

// Codes of failures and pending orders, see payout.FailureCodes.
const (
	codeChargeClosed   = "closed"
	codeRefundClosed   = "refund_unfunded"
	codeRefundAbnormal = "refund_abnormal"
)

const (
	// busyPause follows a rate limit, moneyPause a refusal for our balance, and settingPause a refusal of
	// every call of ours: a wrong key or a missing permission, which staff have to correct.
	busyPause    = time.Second
	moneyPause   = 5 * time.Second
	settingPause = 30 * time.Second
	// refundPause follows a second refund of a charge within a minute.
	refundPause = time.Minute
)

// refusal is what a documented code means for the order of the call. code replaces the vendor's;
// "": the vendor's is kept.
type refusal struct {
	status int
	kind   payout.ObservationKind
	code   string
	pause  time.Duration
}

// refusals are the documented codes of one kind of call: op "" is for every operation.
type refusals map[payout.Op]map[string]refusal

func (r refusals) of(op payout.Op, code string) (refusal, bool) {
	if row, ok := r[op][code]; ok {
		return row, true
	}
	row, ok := r[""][code]
	return row, ok
}

func declined(status int) refusal { return refusal{status: status, kind: payout.ObsDeclined} }

func setting(status int) refusal {
	return refusal{status: status, kind: payout.ObsRetryAfter, pause: settingPause}
}

func busy(pause time.Duration) refusal {
	return refusal{status: http.StatusTooManyRequests, kind: payout.ObsRetryAfter, code: payout.CodeRateLimited, pause: pause}
}

var lowBalance = refusal{status: http.StatusForbidden, kind: payout.ObsRetryAfter, code: payout.CodeLowBalance, pause: moneyPause}

// sendRefusals are refusals of sends that store nothing under the number, or leave what is stored as it
// is. Each refusal is confirmed by a query before the payment fails. SYSTEM_ERROR and every code that
// is not listed are unknown outcomes.
//
// Sources: error tables of transfer-bills (pay.weixin.qq.com/doc/v3/merchant/4012716434), JSAPI orders
// (…/4012525167) and refunds (comments of wechatpay-go services/refunddomestic/api_refunds.go).
var sendRefusals = refusals{
	"": {
		"PARAM_ERROR":            declined(http.StatusBadRequest),
		"INVALID_REQUEST":        declined(http.StatusBadRequest),
		"SIGN_ERROR":             setting(http.StatusUnauthorized),
		"NO_AUTH":                setting(http.StatusForbidden),
		"MCH_NOT_EXISTS":         setting(http.StatusBadRequest),
		"APPID_MCHID_NOT_MATCH":  setting(http.StatusBadRequest),
		"FREQUENCY_LIMITED":      busy(busyPause),
		"FREQUENCY_LIMIT_EXCEED": busy(busyPause),
		"RATELIMIT_EXCEED":       busy(busyPause),
		"NOT_ENOUGH":             lowBalance,
	},
	payout.OpCharge: {
		"OUT_TRADE_NO_USED": declined(http.StatusForbidden),
		"ORDER_CLOSED":      declined(http.StatusBadRequest),
		"ORDERPAID":         declined(http.StatusBadRequest),
		"ORDER_PAID":        declined(http.StatusBadRequest),
	},
	payout.OpRefund: {
		"USER_ACCOUNT_ABNORMAL": declined(http.StatusForbidden),
		"RESOURCE_NOT_EXISTS":   declined(http.StatusNotFound),
		"NO_AUTH":               declined(http.StatusForbidden), // for this order
		"FREQUENCY_LIMITED":     busy(refundPause),
	},
}

// queryRefusals are refusals of queries. Only "not found" says something about the order.
var queryRefusals = refusals{
	"": {
		"SIGN_ERROR":             setting(http.StatusUnauthorized),
		"NO_AUTH":                setting(http.StatusForbidden),
		"FREQUENCY_LIMITED":      busy(busyPause),
		"FREQUENCY_LIMIT_EXCEED": busy(busyPause),
		"RATELIMIT_EXCEED":       busy(busyPause),
	},
	payout.OpTransfer: {"NOT_FOUND": {status: http.StatusNotFound, kind: payout.ObsNeverReceived}},
	payout.OpRefund:   {"RESOURCE_NOT_EXISTS": {status: http.StatusNotFound, kind: payout.ObsNeverReceived}},
	payout.OpCharge: {
		"ORDER_NOT_EXIST": {status: http.StatusNotFound, kind: payout.ObsNeverReceived},
		"ORDERNOTEXIST":   {status: http.StatusNotFound, kind: payout.ObsNeverReceived},
	},
}

// failReasons maps the reasons of a failed transfer to codes of payout.FailureCodes, which say whether
// a retry helps and what finance and the recipient do.
var failReasons = map[string]string{
	"ACCOUNT_FROZEN":                         "account_frozen",
	"ACCOUNT_NOT_EXIST":                      "payee_unknown",
	"OPENID_INVALID":                         "payee_unknown",
	"PAYEE_ACCOUNT_ABNORMAL":                 "payee_declined",
	"REAL_NAME_CHECK_FAIL":                   "payee_not_verified",
	"NAME_NOT_CORRECT":                       "payee_name_differs",
	"ID_CARD_NOT_CORRECT":                    "payee_name_differs",
	"REALNAME_ACCOUNT_RECEIVED_QUOTA_EXCEED": "payee_limit_reached",
	"DAY_RECEIVED_COUNT_EXCEED":              "payee_limit_reached",
	"DAY_RECEIVED_QUOTA_EXCEED":              "payee_limit_reached",
	"BLOCK_B2C_USERLIMITAMOUNT_MONTH":        "payee_limit_reached",
	"BLOCK_B2C_USERLIMITAMOUNT_BSRULE_MONTH": "payee_limit_reached",
	"TRANSFER_QUOTA_EXCEED":                  "merchant_limit_reached",
	"PRODUCT_AUTH_CHECK_FAIL":                "merchant_not_enabled",
	"PAYER_ACCOUNT_ABNORMAL":                 "merchant_not_enabled",
	"RECEIVE_ACCOUNT_NOT_CONFIGURE":          "merchant_not_enabled",
	"MERCHANT_REJECT":                        "merchant_rejected",
	"MERCHANT_NOT_CONFIRM":                   "merchant_rejected",
	"OVERDUE_CLOSE":                          "confirmation_expired",
	"MCH_CANCEL":                             "transfer_cancelled",
}

// failCode is the code of a reason; a reason that is not known is a plain refusal.
func failCode(reason string) string {
	if code, ok := failReasons[reason]; ok {
		return code
	}
	return "declined"
}
