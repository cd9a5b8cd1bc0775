package wechat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"

	"hongbao/internal/payout"
)

// ErrNotification is wrapped when a notification is not the vendor's, too old or too new (5 minutes),
// not decryptable with our key, or about another merchant. It must not be used.
var ErrNotification = errors.New("notification not verified")

// gcmNonce is the length of the nonce of an encrypted resource in bytes.
const gcmNonce = 12

// noticeBody has the members that are read before the resource is decrypted.
type noticeBody struct {
	ID       string `json:"id"`
	Event    string `json:"event_type"`
	Resource *struct {
		Nonce string `json:"nonce"`
	} `json:"resource"`
}

// resource has the members of the three kinds of resource.
type resource struct {
	MerchantID  string `json:"mchid"`
	MchID       string `json:"mch_id"` // of a transfer
	OutTradeNo  string `json:"out_trade_no"`
	OutRefundNo string `json:"out_refund_no"`
	OutBillNo   string `json:"out_bill_no"`
}

// VerifyNotification verifies and decrypts a notification and returns its id, the same at every
// delivery, and the order number. What it says about the order is not used: the order is queried.
// Errors: ErrNotification, with payout.ErrWrongProvider for an event of another merchant that is encrypted with our key;
// an event of ours that is about no order, payout.ErrUnknownNotification.
func (a *Adapter) VerifyNotification(header http.Header, body []byte) (eventID, orderNo string, err error) {
	ctx, cancel := context.WithTimeout(a.ctx, a.cfg.Timeout) // certificates may have to be downloaded
	defer cancel()
	req := (&http.Request{Header: header, Body: io.NopCloser(bytes.NewReader(body))}).WithContext(ctx)
	if err := a.keys.notices.Validate(ctx, req); err != nil {
		return "", "", fmt.Errorf("%w: %w", ErrNotification, err)
	}
	unknown := func(what string) (string, string, error) {
		return "", "", fmt.Errorf("%w: %s", payout.ErrUnknownNotification, what)
	}
	var n noticeBody
	if err := json.Unmarshal(body, &n); err != nil || n.ID == "" || n.Resource == nil || len(n.Resource.Nonce) != gcmNonce {
		return unknown("no id, or no encrypted resource")
	}
	var r resource
	if _, err := a.notices.ParseNotifyRequest(ctx, req, &r); err != nil {
		// The vendor's error quotes the whole request.
		return "", "", fmt.Errorf("%w: event %s cannot be decrypted with this account's APIv3 key", ErrNotification, n.ID)
	}
	switch merchant := r.MerchantID + r.MchID; merchant {
	case a.cfg.MerchantID:
	case "":
		return "", "", fmt.Errorf("%w: event %s names no merchant", ErrNotification, n.ID)
	default: // encrypted with our APIv3 key: nobody else can make one
		return "", "", fmt.Errorf("%w: event %s is about merchant %q: %w", ErrNotification, n.ID, merchant, payout.ErrWrongProvider)
	}
	switch {
	case strings.HasPrefix(n.Event, "TRANSACTION."):
		orderNo = r.OutTradeNo
	case strings.HasPrefix(n.Event, "REFUND."):
		orderNo = r.OutRefundNo
	case strings.HasPrefix(n.Event, "MCHTRANSFER."):
		orderNo = r.OutBillNo
	}
	if orderNo == "" {
		return unknown("event " + n.ID + " of type " + n.Event)
	}
	return n.ID, orderNo, nil
}

// AnswerNotification returns the vendor's form of an answer: 200 without a body when the notification
// is stored, or can never be; 401 FAIL for one that is not this account's; 500 FAIL, and with it a
// repeat, when it could not be stored.
func (a *Adapter) AnswerNotification(err error) *payout.NotificationAnswer {
	switch {
	case err == nil, errors.Is(err, payout.ErrUnknownNotification):
		return &payout.NotificationAnswer{Status: http.StatusOK}
	case errors.Is(err, ErrNotification):
		return failAnswer(http.StatusUnauthorized, "not verified")
	}
	return failAnswer(http.StatusInternalServerError, "not stored")
}

func failAnswer(status int, message string) *payout.NotificationAnswer {
	return &payout.NotificationAnswer{Status: status, Type: "application/json",
		Body: []byte(`{"code":"FAIL","message":"` + message + `"}`)}
}
