package rest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"hongbao/internal/access"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/wire"
)

// catalogue has the status, the title and the usual detail of each code.
var catalogue = []struct {
	code   wire.Code
	status int
	title  string
	detail string
}{
	{wire.CodeMalformedJSON, http.StatusBadRequest, "Malformed JSON", "The body is not valid JSON in UTF-8, or it was truncated."},
	{wire.CodeMalformedRequest, http.StatusBadRequest, "Malformed request", "The request is not well-formed HTTP."},
	{wire.CodeKeyRequired, http.StatusBadRequest, "Idempotency key required",
		"The Idempotency-Key header is missing or is not 1 to 128 visible ASCII characters."},
	{wire.CodeUnauthenticated, http.StatusUnauthorized, "Unauthenticated", "The API key is missing, malformed or unknown."},
	{wire.CodeFundingDeclined, http.StatusPaymentRequired, "Funding declined",
		"The provider declined to charge the sender. No money was taken."},
	{wire.CodeInsufficientBalance, http.StatusPaymentRequired, "Insufficient balance",
		"The balance of the app does not suffice. No money was taken."},
	{wire.CodeForbidden, http.StatusForbidden, "Forbidden", "The role of the API key does not permit this operation."},
	{wire.CodeNotEligible, http.StatusForbidden, "Not eligible",
		"The user is not on the packet's list, has no valid ticket, or has won in its campaign."},
	{wire.CodeNotFound, http.StatusNotFound, "Not found", "Nothing exists at this path."},
	{wire.CodePacketNotFound, http.StatusNotFound, "Packet not found", "There is no such packet."},
	{wire.CodeClaimNotFound, http.StatusNotFound, "Claim not found", "The user has no claim in this packet."},
	{wire.CodePayoutNotFound, http.StatusNotFound, "Payout not found", "There is no such payout."},
	{wire.CodeRefundNotFound, http.StatusNotFound, "Refund not found", "There is no such refund."},
	{wire.CodeChargeNotFound, http.StatusNotFound, "Charge not found", "There is no such charge."},
	{wire.CodeCampaignNotFound, http.StatusNotFound, "Campaign not found", "There is no such campaign."},
	{wire.CodeMethodNotAllowed, http.StatusMethodNotAllowed, "Method not allowed", "This path does not support the method."},
	{wire.CodeRequestTimeout, http.StatusRequestTimeout, "Request timeout", "The request did not arrive completely in time."},
	{wire.CodeNotOpenYet, http.StatusConflict, "Not open yet", "The packet is not open yet: it cannot be grabbed or closed."},
	{wire.CodeSoldOut, http.StatusConflict, "Sold out", "All shares of the packet are claimed."},
	{wire.CodeRequestInProgress, http.StatusConflict, "Request in progress", "The first request with this Idempotency-Key is still running."},
	{wire.CodeNotRetryable, http.StatusConflict, "Not retryable", "The current status does not permit this decision."},
	{wire.CodeRecipientFixed, http.StatusConflict, "Recipient fixed",
		"The payout was sent to its recipient, and that order has not failed. Nothing was changed."},
	{wire.CodeDecisionPending, http.StatusConflict, "Decision pending",
		"Another decision about this payment waits for a second person or is being carried out."},
	{wire.CodeDecisionChanged, http.StatusConflict, "Decision changed",
		"What was decided on has changed since. Nothing has moved, and the decision still waits."},
	{wire.CodeReferenceUsed, http.StatusConflict, "Reference used",
		"Another credit or debit of the app has this reference. Nothing has moved."},
	{wire.CodeRecoveryRequired, http.StatusConflict, "Recovery required", "Only another recovery of MySQL ends this hold."},
	{wire.CodeHeld, http.StatusConflict, "Held", "A hold on the packet, the payment or the balances of apps stops this."},
	{wire.CodeOwnKey, http.StatusConflict, "Own key", "The request would end the key that sent it."},
	{wire.CodeLastAdminKey, http.StatusConflict, "Last admin key", "No other admin key without an expiry would remain."},
	{wire.CodeKeyEnded, http.StatusConflict, "Key ended", "The key was revoked, has expired or was rotated already."},
	{wire.CodeCampaignEnded, http.StatusConflict, "Campaign ended", "The campaign has ended and cannot be resumed."},
	{wire.CodeManyCampaigns, http.StatusConflict, "Too many campaigns", "The app has 1000 campaigns that have not ended."},
	{wire.CodeManyUnpaid, http.StatusConflict, "Too many unpaid packets",
		"The sender has 20 packets that wait for a payment, or the app 10000 (fewer for a packet with a long guest list)."},
	{wire.CodeExpired, http.StatusGone, "Expired", "The packet is over: its shares can no longer be grabbed."},
	{wire.CodeBodyTooLarge, http.StatusRequestEntityTooLarge, "Body too large", "The body is larger than this operation accepts."},
	{wire.CodeUnsupportedMedia, http.StatusUnsupportedMediaType, "Unsupported media type",
		"The body is not application/json, or it has a content coding."},
	{wire.CodeInvalidRequest, http.StatusUnprocessableEntity, "Invalid request", "The request is invalid; see errors. Nothing was changed."},
	{wire.CodeRecipientIncomplete, http.StatusUnprocessableEntity, "Recipient incomplete",
		"The recipient lacks what the provider needs; see errors. No share was taken."},
	{wire.CodeKeyReused, http.StatusUnprocessableEntity, "Idempotency key reused", "This Idempotency-Key was used with another body."},
	{wire.CodeRateLimited, http.StatusTooManyRequests, "Rate limited", "Too many requests; see Retry-After. Nothing was taken or changed."},
	{wire.CodeHeadersTooLarge, http.StatusRequestHeaderFieldsTooLarge, "Headers too large", "The request line and headers are too large."},
	{wire.CodeInternal, http.StatusInternalServerError, "Internal error", "An unexpected error occurred on the server."},
	{wire.CodeUnavailable, http.StatusServiceUnavailable, "Unavailable", "The request cannot be answered now. Nothing is lost; repeat it."},
}

// rowOf returns the catalogue entry of a code, for an unknown code that of internal.
func rowOf(code wire.Code) (status int, title, detail string) {
	for _, r := range catalogue {
		if r.code == code {
			return r.status, r.title, r.detail
		}
	}
	return rowOf(wire.CodeInternal)
}

// Refusal is an error that is rendered for the client.
type Refusal struct {
	Code       wire.Code
	Fields     []wire.FieldError
	OpensAt    time.Time
	PacketID   string
	Failure    *packet.Failure
	RetryAfter time.Duration
	status     int    // 0: the usual status of the code
	Detail     string // "": the usual detail of the code
	RequestID  string // of the first answer, if this answer is a replay
	Replayed   bool
	Cause      error // for the log, never for the client
}

// Error implements error.
func (e *Refusal) Error() string {
	if e.Cause != nil {
		return string(e.Code) + ": " + e.Cause.Error()
	}
	return string(e.Code)
}

// Unwrap returns the cause.
func (e *Refusal) Unwrap() error { return e.Cause }

// The answer to a decision while MySQL is behind after a restore. The state lasts
// until operations have run hongbao recover.
const (
	restoredPause  = time.Minute
	restoredDetail = "The database was restored from an older backup and lacks later changes. Decisions are refused until operations " +
		"have recovered it; repeat the request then."
)

// ShortPause is the default of Retry-After.
const ShortPause = time.Second

// Refuse returns the refusal with the usual status and detail of a code.
func Refuse(code wire.Code) *Refusal { return &Refusal{Code: code} }

// noSuch refuses an unknown id on a staff path. The path itself is right, so the usual
// detail of the code would mislead.
func noSuch(thing string) *Refusal {
	return &Refusal{Code: wire.CodeNotFound, Detail: "There is no such " + thing + "."}
}

// Unavailable keeps the cause for the log.
func Unavailable(cause error) *Refusal {
	return &Refusal{Code: wire.CodeUnavailable, RetryAfter: ShortPause, Cause: cause}
}

// Invalid returns the refusal of a request with faults.
func Invalid(fields ...wire.FieldError) *Refusal {
	return &Refusal{Code: wire.CodeInvalidRequest, Fields: fields}
}

// InvalidField returns the refusal of a request with one fault.
func InvalidField(field, code, message string) *Refusal {
	return Invalid(wire.FieldError{Field: field, Code: code, Message: message})
}

// AsRefusal converts an error to one that may be returned to the client. Unknown errors
// become internal.
func AsRefusal(err error) *Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	if f, ok := errors.AsType[*fiber.Error](err); ok {
		switch f.Code {
		case http.StatusNotFound:
			return Refuse(wire.CodeNotFound)
		case http.StatusMethodNotAllowed:
			return Refuse(wire.CodeMethodNotAllowed)
		}
		return &Refusal{Code: wire.CodeInternal, Cause: err}
	}
	if errors.Is(err, payout.ErrMySQLRestored) {
		return &Refusal{Code: wire.CodeUnavailable, RetryAfter: restoredPause, Detail: restoredDetail, Cause: err}
	}
	if errors.Is(err, packet.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return Unavailable(err)
	}
	return &Refusal{Code: wire.CodeInternal, Cause: err}
}

// Problem returns the body of the refusal.
func (e *Refusal) Problem(instance, requestID string) wire.Problem {
	status, title, detail := rowOf(e.Code)
	if e.status != 0 {
		status = e.status
	}
	if e.RequestID != "" {
		requestID = e.RequestID
	}
	if e.Detail != "" {
		detail = e.Detail
	}
	p := wire.Problem{
		Type: "/errors/" + string(e.Code), Title: title, Status: status, Detail: detail, Instance: instance,
		Code: e.Code, RequestID: requestID, Errors: e.Fields, PacketID: e.PacketID, Failure: FailureOf(e.Failure),
	}
	if !e.OpensAt.IsZero() {
		at := wire.At(e.OpensAt)
		p.OpensAt = &at
	}
	return p
}

// RetryAfterSeconds rounds up to whole seconds, at least one.
func RetryAfterSeconds(d time.Duration) int {
	return max(1, int(math.Ceil(d.Seconds())))
}

// FailureOf renders why a packet was rejected; nil: it was not.
func FailureOf(f *packet.Failure) *wire.Failure {
	if f == nil {
		return nil
	}
	return &wire.Failure{Code: f.Code, Message: f.Message}
}

// RefuseKey returns the refusal of a missing or wrong key.
func RefuseKey(detail string) *Refusal {
	return &Refusal{Code: wire.CodeUnauthenticated, Detail: detail}
}

// StaffRoles are the roles of staff.
var StaffRoles = slices.DeleteFunc(slices.Clone(access.Roles), func(r access.Role) bool { return !r.Staff() })

// RefuseRole is the refusal of a key whose role is not one of the required.
func RefuseRole(has access.Role, required []access.Role) *Refusal {
	names := make([]string, len(required))
	for i, role := range required {
		names[i] = string(role)
	}
	return &Refusal{Code: wire.CodeForbidden,
		Detail: fmt.Sprintf("The request needs a key of role %s; the role of this key is %s.", strings.Join(names, " or "), has)}
}

// Details of 401 answers.
const (
	KeyMissing   = "The request has no API key. Send exactly one header Authorization: Bearer <key>."
	KeyMalformed = "The API key is malformed: it is incomplete or mistyped. Copy it again."
	KeyUnknown   = "The API key is unknown, revoked, expired or not approved yet."
)

// ServerError reports whether the server is at fault.
func (e *Refusal) ServerError() bool {
	status, _, _ := rowOf(e.Code)
	return status >= http.StatusInternalServerError
}
