package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"hongbao/internal/observe"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// Code identifies an error for programs; people read the detail. Only this file maps
// codes to HTTP statuses.
type Code string

// The codes, in the order of their statuses.
const (
	CodeMalformedJSON     Code = "malformed_json"
	CodeMalformedRequest  Code = "malformed_request"
	CodeKeyRequired       Code = "idempotency_key_required"
	CodeUnauthenticated   Code = "unauthenticated"
	CodeFundingDeclined   Code = "funding_declined"
	CodeForbidden         Code = "forbidden"
	CodeNotEligible       Code = "not_eligible"
	CodeNotFound          Code = "not_found"
	CodePacketNotFound    Code = "packet_not_found"
	CodeClaimNotFound     Code = "claim_not_found"
	CodePayoutNotFound    Code = "payout_not_found"
	CodeRefundNotFound    Code = "refund_not_found"
	CodeCampaignNotFound  Code = "campaign_not_found"
	CodeMethodNotAllowed  Code = "method_not_allowed"
	CodeRequestTimeout    Code = "request_timeout"
	CodeNotOpenYet        Code = "not_open_yet"
	CodeSoldOut           Code = "sold_out"
	CodeRequestInProgress Code = "request_in_progress"
	CodeNotRetryable      Code = "not_retryable"
	CodeDecisionPending   Code = "decision_pending"
	CodeDecisionChanged   Code = "decision_changed"
	CodeHeld              Code = "held"
	CodeRecoveryRequired  Code = "recovery_required"
	CodeOwnKey            Code = "own_key"
	CodeLastAdminKey      Code = "last_admin_key"
	CodeKeyEnded          Code = "key_ended"
	CodeCampaignEnded     Code = "campaign_ended"
	CodeManyCampaigns     Code = "too_many_campaigns"
	CodeExpired           Code = "expired"
	CodeBodyTooLarge      Code = "body_too_large"
	CodeUnsupportedMedia  Code = "unsupported_media_type"
	CodeInvalidRequest    Code = "invalid_request"
	CodeKeyReused         Code = "idempotency_key_reused"
	CodeRateLimited       Code = "rate_limited"
	CodeHeadersTooLarge   Code = "headers_too_large"
	CodeInternal          Code = "internal"
	CodeUnavailable       Code = "unavailable"
)

// catalogue has the status, the title and the usual detail of each code.
var catalogue = []struct {
	code   Code
	status int
	title  string
	detail string
}{
	{CodeMalformedJSON, http.StatusBadRequest, "Malformed JSON", "The body is not valid JSON in UTF-8, or it was truncated."},
	{CodeMalformedRequest, http.StatusBadRequest, "Malformed request", "The request is not well-formed HTTP."},
	{CodeKeyRequired, http.StatusBadRequest, "Idempotency key required",
		"The Idempotency-Key header is missing or is not 1 to 128 visible ASCII characters."},
	{CodeUnauthenticated, http.StatusUnauthorized, "Unauthenticated", "The API key is missing, malformed or unknown."},
	{CodeFundingDeclined, http.StatusPaymentRequired, "Funding declined",
		"The provider declined to charge the sender. No money was taken."},
	{CodeForbidden, http.StatusForbidden, "Forbidden", "The role of the API key does not permit this operation."},
	{CodeNotEligible, http.StatusForbidden, "Not eligible",
		"The user is not on the packet's list, has no valid ticket, or has won in its campaign."},
	{CodeNotFound, http.StatusNotFound, "Not found", "Nothing exists at this path."},
	{CodePacketNotFound, http.StatusNotFound, "Packet not found", "There is no such packet."},
	{CodeClaimNotFound, http.StatusNotFound, "Claim not found", "The user has no claim in this packet."},
	{CodePayoutNotFound, http.StatusNotFound, "Payout not found", "There is no such payout."},
	{CodeRefundNotFound, http.StatusNotFound, "Refund not found", "There is no such refund."},
	{CodeCampaignNotFound, http.StatusNotFound, "Campaign not found", "There is no such campaign."},
	{CodeMethodNotAllowed, http.StatusMethodNotAllowed, "Method not allowed", "This path does not support the method."},
	{CodeRequestTimeout, http.StatusRequestTimeout, "Request timeout", "The request did not arrive completely in time."},
	{CodeNotOpenYet, http.StatusConflict, "Not open yet", "The packet is not open yet: it cannot be grabbed or closed."},
	{CodeSoldOut, http.StatusConflict, "Sold out", "All shares of the packet are claimed."},
	{CodeRequestInProgress, http.StatusConflict, "Request in progress", "The first request with this Idempotency-Key is still running."},
	{CodeNotRetryable, http.StatusConflict, "Not retryable", "The current status does not permit this decision."},
	{CodeDecisionPending, http.StatusConflict, "Decision pending",
		"Another decision about this payment waits for a second person or is being carried out."},
	{CodeDecisionChanged, http.StatusConflict, "Decision changed",
		"What was decided on has changed since. Nothing has moved, and the decision still waits."},
	{CodeRecoveryRequired, http.StatusConflict, "Recovery required", "Only another recovery of MySQL ends this hold."},
	{CodeHeld, http.StatusConflict, "Held", "A hold on the packet or payment stops this decision."},
	{CodeOwnKey, http.StatusConflict, "Own key", "The request would end the key that sent it."},
	{CodeLastAdminKey, http.StatusConflict, "Last admin key", "No other admin key without an expiry would remain."},
	{CodeKeyEnded, http.StatusConflict, "Key ended", "The key was revoked, has expired or was rotated already."},
	{CodeCampaignEnded, http.StatusConflict, "Campaign ended", "The campaign has ended and cannot be resumed."},
	{CodeManyCampaigns, http.StatusConflict, "Too many campaigns", "The app has 1000 campaigns that have not ended."},
	{CodeExpired, http.StatusGone, "Expired", "The packet is over: its shares can no longer be grabbed."},
	{CodeBodyTooLarge, http.StatusRequestEntityTooLarge, "Body too large", "The body is larger than this operation accepts."},
	{CodeUnsupportedMedia, http.StatusUnsupportedMediaType, "Unsupported media type",
		"The body is not application/json, or it has a content coding."},
	{CodeInvalidRequest, http.StatusUnprocessableEntity, "Invalid request", "The request is invalid; see errors. Nothing was changed."},
	{CodeKeyReused, http.StatusUnprocessableEntity, "Idempotency key reused", "This Idempotency-Key was used with another body."},
	{CodeRateLimited, http.StatusTooManyRequests, "Rate limited", "Too many requests; see Retry-After. Nothing was taken or changed."},
	{CodeHeadersTooLarge, http.StatusRequestHeaderFieldsTooLarge, "Headers too large", "The request line and headers are too large."},
	{CodeInternal, http.StatusInternalServerError, "Internal error", "An unexpected error occurred on the server."},
	{CodeUnavailable, http.StatusServiceUnavailable, "Unavailable", "The request cannot be answered now. Nothing is lost; repeat it."},
}

// row returns the catalogue entry of a code, for an unknown code that of internal.
func (c Code) row() (status int, title, detail string) {
	for _, r := range catalogue {
		if r.code == c {
			return r.status, r.title, r.detail
		}
	}
	return CodeInternal.row()
}

// Schema implements huma.SchemaProvider.
func (Code) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString, Description: "The error code, for programs."}
	for _, r := range catalogue {
		s.Enum = append(s.Enum, string(r.code))
	}
	return s
}

// FieldError is one fault of a member, parameter or path segment.
type FieldError struct {
	Field   string `json:"field" doc:"The path of the member with dots and indexes, or the name of the parameter." example:"total_amount"`
	Code    string `json:"code" doc:"The fault, for programs." example:"out_of_range"`
	Message string `json:"message" doc:"The fault, for people." example:"must be from 1 to 9007199254740991"`
}

// Problem is the body of every error (RFC 9457).
type Problem struct {
	Type      string       `json:"type" format:"uri-reference" doc:"Identifies the kind of error, stable: a URI reference to a page about the code. Resolve it against the URL of the request." example:"/errors/invalid_request"`
	Title     string       `json:"title" doc:"The kind of error, for people." example:"Invalid request"`
	Status    int          `json:"status" doc:"The HTTP status." example:"422"`
	Detail    string       `json:"detail" doc:"What happened, for people." example:"The request is invalid; see errors. Nothing was changed."`
	Instance  string       `json:"instance" doc:"The path of the request." example:"/v1/packets"`
	Code      Code         `json:"code" doc:"The error code, for programs." example:"invalid_request"`
	RequestID string       `json:"request_id" doc:"The X-Request-Id of the answer; in a replayed answer that of the first answer."`
	Errors    []FieldError `json:"errors,omitempty" nullable:"false" doc:"With invalid_request: all faults."`
	OpensAt   *Stamp       `json:"opens_at,omitempty" doc:"With not_open_yet: when the packet opens."`
	PacketID  string       `json:"packet_id,omitempty" doc:"With funding_declined: the rejected packet."`
	Failure   *Failure     `json:"failure,omitempty" doc:"With funding_declined: why the charge was declined."`
	Preview   *Preview     `json:"preview,omitempty" doc:"With decision_changed: what the decision would now do."`
}

// refusal is an error that is rendered for the client.
type refusal struct {
	code       Code
	fields     []FieldError
	opensAt    time.Time
	packetID   string
	failure    *packet.Failure
	retryAfter time.Duration
	detail     string // "": the usual detail of the code
	requestID  string // of the first answer, if this answer is a replay
	replayed   bool
	cause      error // for the log, never for the client
}

// Error implements error.
func (e *refusal) Error() string {
	if e.cause != nil {
		return string(e.code) + ": " + e.cause.Error()
	}
	return string(e.code)
}

// Unwrap returns the cause.
func (e *refusal) Unwrap() error { return e.cause }

// The answer to a decision while MySQL is behind after a restore (R13). The state lasts
// until operations have run hongbao recover.
const (
	restoredPause  = time.Minute
	restoredDetail = "The database was restored from an older backup and lacks later changes. Decisions are refused until operations " +
		"have recovered it; repeat the request then."
)

// refuseHeld is the refusal of a decision that a hold stops.
func refuseHeld(h payout.Hold) *refusal {
	return &refusal{code: CodeHeld, detail: fmt.Sprintf("Hold %d on the %s %s stops this: %s. Release it, then repeat the request with a "+
		"new Idempotency-Key.", h.ID, h.Scope, h.Name, h.Reason)}
}

// shortPause is the default of Retry-After.
const shortPause = time.Second

func refuse(code Code) *refusal { return &refusal{code: code} }

// noSuch refuses an unknown id on a staff path. The path itself is right, so the usual
// detail of the code would mislead.
func noSuch(thing string) *refusal {
	return &refusal{code: CodeNotFound, detail: "There is no such " + thing + "."}
}

// unavailable keeps the cause for the log.
func unavailable(cause error) *refusal {
	return &refusal{code: CodeUnavailable, retryAfter: shortPause, cause: cause}
}

func invalid(fields ...FieldError) *refusal {
	return &refusal{code: CodeInvalidRequest, fields: fields}
}

// asRefusal converts an error to one that may be returned to the client. Unknown errors
// become internal.
func asRefusal(err error) *refusal {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r
	}
	if f, ok := errors.AsType[*fiber.Error](err); ok {
		switch f.Code {
		case http.StatusNotFound:
			return refuse(CodeNotFound)
		case http.StatusMethodNotAllowed:
			return refuse(CodeMethodNotAllowed)
		}
		return &refusal{code: CodeInternal, cause: err}
	}
	if errors.Is(err, payout.ErrMySQLRestored) {
		return &refusal{code: CodeUnavailable, retryAfter: restoredPause, detail: restoredDetail, cause: err}
	}
	if errors.Is(err, packet.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return unavailable(err)
	}
	return &refusal{code: CodeInternal, cause: err}
}

// fromTransport classifies errors of the HTTP server before a handler runs, or while a
// body is read.
func fromTransport(err error) *refusal {
	timeout, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.As(err, new(*fasthttp.ErrSmallBuffer)):
		return refuse(CodeHeadersTooLarge)
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		return refuse(CodeBodyTooLarge)
	case isNet && timeout.Timeout():
		return refuse(CodeRequestTimeout)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return refuse(CodeMalformedJSON)
	}
	return refuse(CodeMalformedRequest)
}

// problem returns the body of the refusal.
func (e *refusal) problem(instance, requestID string) Problem {
	status, title, detail := e.code.row()
	if e.requestID != "" {
		requestID = e.requestID
	}
	if e.detail != "" {
		detail = e.detail
	}
	p := Problem{
		Type: "/errors/" + string(e.code), Title: title, Status: status, Detail: detail, Instance: instance,
		Code: e.code, RequestID: requestID, Errors: e.fields, PacketID: e.packetID, Failure: failureOf(e.failure),
	}
	if !e.opensAt.IsZero() {
		at := Stamp(e.opensAt)
		p.OpensAt = &at
	}
	return p
}

// warnPause is the shortest time between two log lines about the same condition, so that
// requests, also those without a key, cannot flood the log.
const warnPause = time.Second

// logThrottle permits one log line per warnPause.
type logThrottle struct{ last atomic.Int64 } // Unix time in ns

func (s *logThrottle) allow() bool {
	last, now := s.last.Load(), time.Now().UnixNano()
	return now-last >= int64(warnPause) && s.last.CompareAndSwap(last, now)
}

var unavailableLog logThrottle

// ours reports whether the error is a server error.
func (e *refusal) ours() bool {
	status, _, _ := e.code.row()
	return status >= http.StatusInternalServerError
}

// log writes server errors: every internal error, and unavailable ones at most once per
// warnPause.
func (e *refusal) log(ctx context.Context, requestID, route string) {
	if !e.ours() {
		return
	}
	if e.code == CodeUnavailable && !unavailableLog.allow() {
		return
	}
	attrs := []slog.Attr{slog.String(observe.LogRequest, requestID), slog.String("route", route), slog.String("code", string(e.code))}
	if e.cause != nil {
		attrs = append(attrs, slog.String("error", e.cause.Error()))
	}
	level := slog.LevelError
	if e.code == CodeUnavailable {
		level = slog.LevelWarn
	}
	slog.LogAttrs(ctx, level, "request failed", attrs...)
}

// retryAfterSeconds rounds up to whole seconds, at least one.
func retryAfterSeconds(d time.Duration) int {
	return max(1, int(math.Ceil(d.Seconds())))
}
