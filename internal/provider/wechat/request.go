package wechat

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"hongbao/internal/money"
	"hongbao/internal/payout"
)

// The paths of the calls that move money, and of queries.
const (
	pathPrepay    = "/v3/pay/transactions/" // and jsapi, app or native
	pathCharge    = "/v3/pay/transactions/out-trade-no/"
	pathRefunds   = "/v3/refund/domestic/refunds"
	pathTransfers = "/v3/fund-app/mch-transfer/transfer-bills"
	pathBill      = pathTransfers + "/out-bill-no/"
	pathBillID    = pathTransfers + "/transfer-bill-no/"
	// pathAuthorised pays at once under a recipient's authorisation.
	pathAuthorised = pathTransfers + "/transfer"
)

const (
	currency = "CNY"
	// nameFrom is the payout from which the recipient's name is required, and nameMin the payout below
	// which it is refused.
	nameFrom money.Fen = 200_000
	nameMin  money.Fen = 30
	minScene money.Fen = 10

	maxDescription = 127
	maxReason      = 80
	maxStored      = 8 << 10
)

// china is the time zone of the vendor's times and of the days of its bills. A schedule is in it, so it has its IANA name.
var china = time.FixedZone("Asia/Shanghai", 8*60*60)

var (
	errAmount  = errors.New("amount must be 1 to 2^53-1 fen")
	errRequest = errors.New("stored request is not well formed")
)

// request is a stored request: everything that a repeat must not change. It is stored as
//
//	POST path
//	Wechatpay-Serial: key   (only when a member of the body is encrypted with that key)
//
//	body
type request struct {
	method, path, serial string
	body                 []byte
}

func (r request) encode() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s\n", r.method, r.path)
	if r.serial != "" {
		fmt.Fprintf(&b, "%s: %s\n", headerSerial, r.serial)
	}
	b.WriteByte('\n')
	b.Write(r.body)
	return b.Bytes()
}

// decodeRequest reads a stored request. Errors: errRequest.
func decodeRequest(raw []byte) (request, error) {
	head, body, ok := bytes.Cut(raw, []byte("\n\n"))
	first, rest, _ := strings.Cut(string(head), "\n")
	method, path, found := strings.Cut(first, " ")
	if !ok || !found || method != http.MethodPost || !strings.HasPrefix(path, "/v3/") {
		return request{}, errRequest
	}
	r := request{method: method, path: path, body: body}
	if rest != "" {
		name, serial, found := strings.Cut(rest, ": ")
		if !found || name != headerSerial || serial == "" || strings.Contains(serial, "\n") {
			return request{}, errRequest
		}
		r.serial = serial
	}
	return r, nil
}

// amountBody is the amount of a charge.
type amountBody struct {
	Total    money.Fen `json:"total"`
	Currency string    `json:"currency"`
}

type payerBody struct {
	OpenID string `json:"openid"`
}

// prepayBody is the body of an order that the sender pays.
type prepayBody struct {
	AppID       string     `json:"appid"`
	MerchantID  string     `json:"mchid"`
	Description string     `json:"description"`
	OutTradeNo  string     `json:"out_trade_no"`
	TimeExpire  string     `json:"time_expire,omitempty"`
	NotifyURL   string     `json:"notify_url"`
	Amount      amountBody `json:"amount"`
	Payer       *payerBody `json:"payer,omitempty"`
}

type refundAmount struct {
	Refund   money.Fen `json:"refund"`
	Total    money.Fen `json:"total"`
	Currency string    `json:"currency"`
}

// refundBody is the body of a refund.
type refundBody struct {
	OutTradeNo   string       `json:"out_trade_no"`
	OutRefundNo  string       `json:"out_refund_no"`
	Reason       string       `json:"reason,omitempty"`
	FundsAccount string       `json:"funds_account,omitempty"`
	NotifyURL    string       `json:"notify_url"`
	Amount       refundAmount `json:"amount"`
}

type recvStyle struct {
	Type string `json:"type"`
}

// transferBody is the body of a payout. OpenID or OutAuthorizationNo names the recipient.
type transferBody struct {
	AppID              string       `json:"appid"`
	OutBillNo          string       `json:"out_bill_no"`
	Scene              string       `json:"transfer_scene_id"`
	OpenID             string       `json:"openid,omitempty"`
	OutAuthorizationNo string       `json:"out_authorization_no,omitempty"`
	UserName           string       `json:"user_name,omitempty"`
	Amount             money.Fen    `json:"transfer_amount"`
	Remark             string       `json:"transfer_remark"`
	NotifyURL          string       `json:"notify_url"`
	Perception         string       `json:"user_recv_perception,omitempty"`
	ReportInfos        []ReportInfo `json:"transfer_scene_report_infos"`
	Style              *recvStyle   `json:"user_recv_style,omitempty"`
}

// EncodeRequest returns the exact bytes to store before the first send. A recipient's name is
// encrypted in them, once. Errors: a setting or member that the call needs is missing, an amount out
// of range, text that is not UTF-8; then nothing may be stored.
func (a *Adapter) EncodeRequest(in payout.Instruction) ([]byte, error) {
	fail := func(err error) ([]byte, error) { return nil, fmt.Errorf("encode request %s: %w", in.OrderNo, err) }
	if err := in.Amount.Check(); err != nil || in.Amount == 0 {
		return fail(fmt.Errorf("amount %d fen: %w", int64(in.Amount), errors.Join(errAmount, err)))
	}
	if in.Currency != currency {
		return fail(fmt.Errorf("currency %q is not %s", in.Currency, currency))
	}
	r := request{method: http.MethodPost}
	var body any
	var err error
	switch in.Op {
	case payout.OpCharge:
		r.path, body, err = a.prepay(in)
	case payout.OpRefund:
		r.path, body, err = a.refund(in)
	case payout.OpTransfer:
		r.path, r.serial, body, err = a.transfer(in)
	default:
		err = fmt.Errorf("unknown operation %q", in.Op)
	}
	if err == nil {
		r.body, err = json.Marshal(body)
	}
	if err != nil {
		return fail(err)
	}
	raw := r.encode()
	if len(raw) > maxStored {
		return fail(fmt.Errorf("%d bytes, at most %d", len(raw), maxStored))
	}
	return raw, nil
}

// prepay is an order that the sender pays by one of the methods.
func (a *Adapter) prepay(in payout.Instruction) (path string, body any, err error) {
	m, ok := a.Limits().Method(in.Method)
	if !ok {
		return "", nil, fmt.Errorf("method %q is not offered", in.Method)
	}
	b := prepayBody{AppID: a.cfg.AppIDs[m.Name], MerchantID: a.cfg.MerchantID, Description: clipBytes(a.cfg.Description, maxDescription),
		OutTradeNo: in.OrderNo, NotifyURL: a.cfg.notifyURL(), Amount: amountBody{Total: in.Amount, Currency: currency}}
	if !in.PayUntil.IsZero() {
		b.TimeExpire = in.PayUntil.In(china).Format(time.RFC3339)
	}
	if m.Name == MethodJSAPI {
		if in.Payer["openid"] == "" {
			return "", nil, errors.New("the payer's openid is missing")
		}
		b.Payer = &payerBody{OpenID: in.Payer["openid"]}
	}
	return pathPrepay + strings.TrimPrefix(m.Name, "wechat_"), b, nil
}

// refund returns a part of a charge to its sender.
func (a *Adapter) refund(in payout.Instruction) (path string, body any, err error) {
	if in.ChargeOrderNo == "" || in.ChargeTotal < in.Amount {
		return "", nil, errors.New("the order number or the total of the charge is missing")
	}
	return pathRefunds, refundBody{OutTradeNo: in.ChargeOrderNo, OutRefundNo: in.OrderNo, Reason: clipBytes(a.cfg.Description, maxReason),
		FundsAccount: a.cfg.RefundAccount, NotifyURL: a.cfg.notifyURL(),
		Amount: refundAmount{Refund: in.Amount, Total: in.ChargeTotal, Currency: currency}}, nil
}

// transfer pays a recipient: with a tap, or at once under an authorisation.
func (a *Adapter) transfer(in payout.Instruction) (path, serial string, body any, err error) {
	if a.cfg.Scene == "" {
		return "", "", nil, errors.New("no transfer scene is configured")
	}
	if in.Account == "" {
		return "", "", nil, errors.New("the recipient's openid is missing")
	}
	b := transferBody{AppID: a.cfg.PayoutAppID, OutBillNo: in.OrderNo, Scene: a.cfg.Scene, Amount: in.Amount, Remark: a.cfg.Remark,
		NotifyURL: a.cfg.notifyURL(), Perception: a.cfg.Perception, ReportInfos: a.reportInfos(in)}
	if in.RecipientName != "" && in.Amount >= nameMin {
		ctx, cancel := context.WithTimeout(a.ctx, a.cfg.Timeout) // certificates may have to be downloaded
		defer cancel()
		if serial, b.UserName, err = a.keys.encrypt(ctx, in.RecipientName); err != nil {
			return "", "", nil, err
		}
	}
	if in.Authorization != "" {
		if !utf8.ValidString(in.Account) {
			return "", "", nil, errors.New("the recipient's openid is not UTF-8")
		}
		b.OutAuthorizationNo = in.Authorization
		return pathAuthorised, serial, b, nil
	}
	b.OpenID = in.Account
	if a.cfg.Style != "" {
		b.Style = &recvStyle{Type: a.cfg.Style}
	}
	return pathTransfers, serial, b, nil
}

// reportInfos returns the facts about a payout. An empty text is replaced by the remark, because no content may be empty.
func (a *Adapter) reportInfos(in payout.Instruction) []ReportInfo {
	greeting, campaign := cmp.Or(strings.TrimSpace(in.Greeting), a.cfg.Remark), cmp.Or(strings.TrimSpace(in.Campaign), a.cfg.Remark)
	out := slices.Clone(a.cfg.ReportInfos)
	for i, info := range out {
		out[i].Content = clipRunes(fillContent(info.Content, greeting, campaign), maxInfoContent)
	}
	return out
}

// fillContent puts texts in the place of the placeholders; what looks like a placeholder in a text stays as it is.
func fillContent(content, greeting, campaign string) string {
	return strings.NewReplacer(greetingPlaceholder, greeting, campaignPlaceholder, campaign).Replace(content)
}

// clipBytes shortens a text to a number of bytes, between characters.
func clipBytes(text string, limit int) string {
	for i := range text {
		if i > limit {
			break
		}
		if _, size := utf8.DecodeRuneInString(text[i:]); i+size > limit {
			return text[:i]
		}
	}
	return text
}

// clipRunes shortens a text to a number of characters.
func clipRunes(text string, limit int) string {
	n := 0
	for i := range text {
		if n == limit {
			return text[:i]
		}
		n++
	}
	return text
}
