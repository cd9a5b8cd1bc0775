package wechat

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json"

	"hongbao/internal/money"
	"hongbao/internal/payout"
)

// Fund is an account of the merchant at WeChat Pay.
type Fund string

// The funds: charges, refunds and fees are of the basic account; transfers of the operating account.
const (
	FundBasic     Fund = "BASIC"
	FundOperation Fund = "OPERATION"
	FundFees      Fund = "FEES"
)

var errEcho = errors.New("the echo differs from the message")

// get makes a call that moves nothing and decodes its answer. Errors wrap ErrAnswer.
func (a *Adapter) get(ctx context.Context, r request, out any) error {
	res := a.call(ctx, r)
	if res.err != nil {
		return fmt.Errorf("%w: %s: %w", ErrAnswer, res.code, res.err)
	}
	if res.status != http.StatusOK {
		var e errorAnswer
		_ = json.Unmarshal(res.body, &e) // the status counts
		return &refusedError{status: res.status, code: e.Code, message: e.Message}
	}
	if err := json.Unmarshal(res.body, out); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrAnswer, codeUndecodable, err)
	}
	return nil
}

// refusedError is a signed refusal of a call that moves nothing.
type refusedError struct {
	status        int
	code, message string
}

// Error implements error.
func (e *refusedError) Error() string {
	return fmt.Sprintf("%v: status %d %s: %s", ErrAnswer, e.status, e.code, e.message)
}

// Unwrap implements errors.Unwrap.
func (e *refusedError) Unwrap() error { return ErrAnswer }

// Balance returns the balance of a fund: available, and not yet available. Errors wrap ErrAnswer.
func (a *Adapter) Balance(ctx context.Context, f Fund) (available, pending money.Fen, err error) {
	var v struct {
		Available *money.Fen `json:"available_amount"`
		Pending   money.Fen  `json:"pending_amount"`
	}
	err = a.get(ctx, request{method: http.MethodGet, path: "/v3/merchant/fund/balance/" + url.PathEscape(string(f))}, &v)
	if err == nil && v.Available == nil {
		err = fmt.Errorf("%w: %s", ErrAnswer, codeUndecodable)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("balance of %s: %w", f, err)
	}
	return *v.Available, v.Pending, nil
}

// Funds returns the accounts from which payouts and refunds are paid. Errors wrap ErrAnswer.
func (a *Adapter) Funds(ctx context.Context) ([]payout.Fund, error) {
	var out []payout.Fund
	for _, f := range []Fund{FundOperation, FundBasic} {
		available, _, err := a.Balance(ctx, f)
		if err != nil {
			return nil, err
		}
		out = append(out, payout.Fund{Name: string(f), Available: available, Payouts: f == FundOperation})
	}
	return out, nil
}

// Check checks host, clock, both signatures and encryption without moving money: WeChat Pay returns a
// message, signed, after it has decrypted another. Errors wrap ErrAnswer.
func (a *Adapter) Check(ctx context.Context) error {
	const message = "hongbao"
	serial, sealed, err := a.keys.encrypt(ctx, message)
	if err != nil {
		return fmt.Errorf("echo: %w: %w", ErrAnswer, err)
	}
	body, err := json.Marshal(map[string]string{"echo_message": message, "encrypted_echo_message": sealed}, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("echo: %w", err)
	}
	var v struct {
		Message string `json:"echo_message"`
	}
	r := request{method: http.MethodPost, path: "/v3/security/echo", serial: serial, body: body}
	if err := a.get(ctx, r, &v); err != nil {
		return fmt.Errorf("echo: %w", err)
	}
	if v.Message != message {
		return fmt.Errorf("echo: %w: %w", ErrAnswer, errEcho)
	}
	return nil
}
