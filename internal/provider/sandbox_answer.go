package provider

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"hongbao/internal/money"
	"hongbao/internal/payout"
)

const (
	retryAfterDefault = time.Second
	retryAfterMax     = payout.LongestPause
	// retryAfterKeyRefused: a wrong key is a configuration error, not a failed payment; staff have
	// to correct it.
	retryAfterKeyRefused = 30 * time.Second
	currency             = "CNY"
)

// Codes of observations that are set by this adapter, not by the provider.
const (
	codeUndecodable = "undecodable_answer"
	codeUnexpected  = "unexpected_answer" // decodable, but about another op or currency, or with an unknown status
	codeTimeout     = "timeout"
	codeConnection  = "connection"
)

// refusals are the documented answers to a send that store nothing under the number. Any other 4xx
// is an unknown outcome: an unknown code proves nothing.
var refusals = map[string]payout.ObservationKind{
	"malformed_json":         payout.ObsDeclined,
	"body_too_large":         payout.ObsDeclined,
	"unsupported_media_type": payout.ObsDeclined,
	"invalid_request":        payout.ObsDeclined,
	"order_conflict":         payout.ObsDeclined,
	"refund_exceeds_charge":  payout.ObsDeclined,
	"rate_limited":           payout.ObsRetryAfter,
	"low_balance":            payout.ObsRetryAfter,
	"unauthenticated":        payout.ObsRetryAfter,
}

// statuses maps the provider's statuses. Any other status is an unknown outcome.
var statuses = map[string]payout.ObservationKind{
	"processing":            payout.ObsPending,
	"succeeded":             payout.ObsSucceeded,
	"declined":              payout.ObsDeclined,
	"awaiting_confirmation": payout.ObsNeedsRecipient,
	"returned":              payout.ObsReturned,
	"awaiting_payment":      payout.ObsNeedsPayer,
}

// orderAnswer is the provider's order object. Unknown members are allowed: providers add some.
type orderAnswer struct {
	OrderNo      string    `json:"order_no"`
	Op           payout.Op `json:"op"`
	Account      string    `json:"account"`
	Amount       money.Fen `json:"amount"`
	Currency     string    `json:"currency"`
	Status       string    `json:"status"`
	ProviderRef  string    `json:"provider_ref"`
	Code         string    `json:"code"`
	Message      string    `json:"message"`
	ConfirmToken string    `json:"confirm_token"`
	ExpiresAt    time.Time `json:"expires_at"`
	Method       string    `json:"method"`
	PayToken     string    `json:"pay_token"`
	Coupon       money.Fen `json:"coupon"` // the part of a paid charge that a coupon paid
}

// problemAnswer has the evaluated members of a problem.
type problemAnswer struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// observe sets the observation from an answer or its absence.
func observe(o *payout.Observation, a answer, op payout.Op) {
	o.EndedAt = time.Now().UTC()
	switch {
	case a.err != nil:
		observeSilence(o, a)
	case a.status == http.StatusOK:
		observeOrder(o, a, op)
	default:
		observeProblem(o, a)
	}
}

func observeSilence(o *payout.Observation, a answer) {
	o.Kind, o.Code = payout.ObsNoAnswer, codeConnection
	if timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](a.err); ok && timeout.Timeout() {
		o.Code = codeTimeout
	}
	if !a.mayHaveLeft {
		o.Kind = payout.ObsNotSent
	}
}

func observeOrder(o *payout.Observation, a answer, op payout.Op) {
	var v orderAnswer
	if err := json.Unmarshal(a.body, &v); err != nil || v.OrderNo == "" || v.Account == "" || v.Amount == 0 {
		o.Kind, o.Code = payout.ObsNoAnswer, codeUndecodable
		return
	}
	o.OrderNo, o.Account, o.Amount, o.ProviderRef = v.OrderNo, v.Account, v.Amount, v.ProviderRef
	kind, known := statuses[v.Status]
	if !known || v.Op != op || v.Currency != currency {
		o.Kind, o.Code = payout.ObsNoAnswer, codeUnexpected
		return
	}
	o.Kind, o.Code, o.Message = kind, v.Code, v.Message
	if kind == payout.ObsSucceeded && v.Coupon > 0 && a.refusesCoupons {
		o.Code = payout.FailureCouponNotAllowed
	}
	if kind == payout.ObsNeedsRecipient {
		o.Until = v.ExpiresAt
	}
	if kind == payout.ObsNeedsRecipient && v.ConfirmToken != "" {
		o.Action = &payout.ClientAction{Type: payout.ClientSDK, ValidUntil: v.ExpiresAt,
			Parameters: map[string]string{"order_no": v.OrderNo, "confirm_token": v.ConfirmToken}}
	}
	if kind == payout.ObsNeedsPayer && o.Source == payout.SourceSend && v.PayToken != "" {
		o.Action, o.Until = v.action(a.base), v.ExpiresAt
	}
}

func observeProblem(o *payout.Observation, a answer) {
	o.Kind, o.Code = payout.ObsNoAnswer, "http_"+strconv.Itoa(a.status)
	var p problemAnswer
	if json.Unmarshal(a.body, &p) != nil || p.Code == "" {
		return
	}
	o.Code, o.Message = p.Code, p.Detail
	if a.status < 400 || a.status > 499 {
		return
	}
	if o.Source == payout.SourceQuery {
		switch {
		case a.status == http.StatusNotFound && p.Code == "order_not_found":
			o.Kind = payout.ObsNeverReceived
		case p.Code == "rate_limited":
			o.Kind = payout.ObsRetryAfter
		}
	} else if kind, ok := refusals[p.Code]; ok {
		o.Kind = kind
	}
	if o.Kind == payout.ObsRetryAfter {
		o.RetryAfter = retryAfter(a.header)
		if p.Code == "unauthenticated" {
			o.RetryAfter = retryAfterKeyRefused
		}
	}
}

// retryAfter reads the header's seconds; dates and nonsense mean the default.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 1 {
		return retryAfterDefault
	}
	if seconds > int(retryAfterMax/time.Second) {
		return retryAfterMax
	}
	return time.Duration(seconds) * time.Second
}

// ErrNotification is wrapped when a notification is not the provider's, too old or too new (5
// minutes), or not understood (then payout.ErrUnknownNotification too). It must not be used.
var ErrNotification = errors.New("notification not verified")

// VerifyNotification checks the Standard Webhooks signature over the exact body. It returns the
// event's id, the same at every delivery, and the order number. The id is that of the header, which
// is signed too; the body may omit it, but must not name another. The event itself is not returned:
// the order has to be queried.
func (s *Sandbox) VerifyNotification(header http.Header, body []byte) (eventID, orderNo string, err error) {
	if s.hook == nil {
		return "", "", fmt.Errorf("%w: no secret is configured", ErrNotification)
	}
	if err := s.hook.Verify(body, header); err != nil {
		return "", "", fmt.Errorf("%w: %w", ErrNotification, err)
	}
	var n struct {
		EventID *string `json:"event_id"`
		OrderNo string  `json:"order_no"`
	}
	if err := json.Unmarshal(body, &n); err != nil {
		return "", "", fmt.Errorf("%w: %w: %w", ErrNotification, payout.ErrUnknownNotification, err)
	}
	eventID = header.Get(standardwebhooks.HeaderWebhookID)
	if n.OrderNo == "" || eventID == "" || n.EventID != nil && *n.EventID != eventID {
		return "", "", fmt.Errorf("%w: %w: no event id or order number, or two event ids", ErrNotification, payout.ErrUnknownNotification)
	}
	return eventID, n.OrderNo, nil
}

// AnswerNotification returns nil: the sandbox understands the answers of the API.
func (s *Sandbox) AnswerNotification(error) *payout.NotificationAnswer { return nil }
