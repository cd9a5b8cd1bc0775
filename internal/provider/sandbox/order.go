package sandbox

import (
	"crypto/rand"
	"encoding/hex"
	"time"
)

// Status of an order as the provider knows it.
type Status string

// The statuses. Declined and returned are final; succeeded is, unless the money is returned.
const (
	StatusProcessing           Status = "processing"
	StatusSucceeded            Status = "succeeded"
	StatusDeclined             Status = "declined"
	StatusAwaitingConfirmation Status = "awaiting_confirmation"
	StatusAwaitingPayment      Status = "awaiting_payment"
	StatusReturned             Status = "returned"
)

// The operations of orders, and of the movements they make.
const (
	opCharge   = "charge"
	opTransfer = "transfer"
	opRefund   = "refund"
	opReturn   = "return" // movements only: money that was returned
	opQuery    = "query"  // fault rules only: a query of an order
)

// opsWithoutOrder are the movements that belong to no order (POST /_movements).
var opsWithoutOrder = []string{"fee", "fee_returned", "top_up", "withdrawal"}

// params is the content of a send; an order number is bound to it.
type params struct {
	Op            string `json:"op"`
	OrderNo       string `json:"order_no"`
	Account       string `json:"account"`
	Amount        int64  `json:"amount"`
	Currency      string `json:"currency"`
	Remark        string `json:"remark"`
	ChargeOrderNo string `json:"charge_order_no"`
	// Of a charge that its payer has to pay.
	Method     string `json:"method,omitempty"`
	PayUntilMS int64  `json:"pay_until_ms,omitzero"` // the payer may begin until then; 0: no limit
	ReturnURL  string `json:"return_url,omitempty"`
}

// record is an order as it is stored.
type record struct {
	params
	Status       Status `json:"status"`
	Code         string `json:"code,omitempty"`
	Message      string `json:"message,omitempty"`
	ProviderRef  string `json:"provider_ref"`
	ConfirmToken string `json:"confirm_token,omitempty"`
	ExpiresMS    int64  `json:"expires_ms,omitzero"`
	CreatedMS    int64  `json:"created_ms"`
	UpdatedMS    int64  `json:"updated_ms"`
	// Next is what a processing order becomes when it is due, and one that waits for its payer when it is
	// paid.
	Next *outcome `json:"next,omitempty"`
	// Returns: the money is returned after the success.
	Returns bool `json:"returns,omitzero"`
	// Masked: a pending_forever rule applied; shown as processing while such a rule exists.
	Masked bool `json:"masked,omitzero"`
	// Coupon is the part of a paid charge that a coupon paid.
	Coupon int64 `json:"coupon,omitzero"`
	// Reported is the last final status in an answer, for contradict on queries.
	Reported Status `json:"told,omitempty"`
}

// outcome is the outcome of an order, chosen by its account.
type outcome struct {
	Status  Status `json:"status"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// orderView is the order object of the API.
type orderView struct {
	OrderNo       string  `json:"order_no"`
	Op            string  `json:"op"`
	Account       string  `json:"account"`
	Amount        int64   `json:"amount"`
	Currency      string  `json:"currency"`
	Remark        string  `json:"remark"`
	ChargeOrderNo *string `json:"charge_order_no"`
	Status        Status  `json:"status"`
	ProviderRef   string  `json:"provider_ref"`
	Code          *string `json:"code"`
	Message       *string `json:"message"`
	ConfirmToken  *string `json:"confirm_token"`
	ExpiresAt     *string `json:"expires_at"`
	Method        *string `json:"method,omitzero"`
	PayToken      *string `json:"pay_token,omitzero"`
	Coupon        int64   `json:"coupon,omitzero"`
	CreatedAt     string  `json:"created_at"`
	UpdatedAt     string  `json:"updated_at"`
}

// view is the order object of the record.
func (r *record) view() *orderView {
	v := &orderView{OrderNo: r.OrderNo, Op: r.Op, Account: r.Account, Amount: r.Amount, Currency: r.Currency,
		Remark: r.Remark, ChargeOrderNo: optional(r.ChargeOrderNo), Status: r.Status, ProviderRef: r.ProviderRef,
		Code: optional(r.Code), Message: optional(r.Message),
		CreatedAt: formatTime(r.CreatedMS), UpdatedAt: formatTime(r.UpdatedMS)}
	if r.Status == StatusAwaitingConfirmation {
		v.ConfirmToken = optional(r.ConfirmToken)
		v.ExpiresAt = optional(formatTime(r.ExpiresMS))
	}
	v.Method, v.Coupon = optional(r.Method), r.Coupon
	if r.Status == StatusAwaitingPayment {
		v.PayToken, v.ExpiresAt = optional(r.ConfirmToken), optional(formatTime(r.ExpiresMS))
	}
	return v
}

// viewAs is the order object with another status, as in a spoiled answer.
func (r *record) viewAs(f outcome) *orderView {
	v := r.view()
	v.Status, v.Code, v.Message = f.Status, optional(f.Code), optional(f.Message)
	v.ConfirmToken, v.PayToken, v.ExpiresAt = nil, nil, nil
	return v
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// final reports whether the status states where the money is.
func (s Status) final() bool {
	return s == StatusSucceeded || s == StatusDeclined || s == StatusReturned
}

const timeLayout = "2006-01-02T15:04:05.000Z"

func formatTime(ms int64) string { return time.UnixMilli(ms).UTC().Format(timeLayout) }

// newID returns a prefix and 128 random bits in hex.
func newID(prefix string) string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return prefix + hex.EncodeToString(b[:])
}
