package api

import (
	"context"
	"errors"
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

// Code names an error for programs; people read the detail. This file is the
// only one that knows which HTTP status belongs to which code.
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

// catalogue says the status, the title and the usual detail of every code.
var catalogue = []struct {
	code   Code
	status int
	title  string
	detail string
}{
	{CodeMalformedJSON, http.StatusBadRequest, "Malformed JSON", "The body is not JSON in UTF-8, or it is cut off."},
	{CodeMalformedRequest, http.StatusBadRequest, "Malformed request", "The request is not well-formed HTTP."},
	{CodeKeyRequired, http.StatusBadRequest, "Idempotency key required", "Send an Idempotency-Key header of 1 to 128 visible ASCII " +
		"characters."},
	{CodeUnauthenticated, http.StatusUnauthorized, "Unauthenticated", "The API key is missing or unknown."},
	{CodeFundingDeclined, http.StatusPaymentRequired, "Funding declined", "The provider declined to charge the sender. Nothing was taken."},
	{CodeForbidden, http.StatusForbidden, "Forbidden", "The role of this API key may not do this."},
	{CodeNotEligible, http.StatusForbidden, "Not eligible",
		"The user is not on the packet's list, without a valid ticket, or has won in its campaign."},
	{CodeNotFound, http.StatusNotFound, "Not found", "There is nothing at this path."},
	{CodePacketNotFound, http.StatusNotFound, "Packet not found", "There is no such packet."},
	{CodeClaimNotFound, http.StatusNotFound, "Claim not found", "This user has no claim of this packet."},
	{CodePayoutNotFound, http.StatusNotFound, "Payout not found", "There is no such payout."},
	{CodeRefundNotFound, http.StatusNotFound, "Refund not found", "There is no such refund."},
	{CodeCampaignNotFound, http.StatusNotFound, "Campaign not found", "There is no such campaign."},
	{CodeMethodNotAllowed, http.StatusMethodNotAllowed, "Method not allowed", "The Allow header lists the methods of this path."},
	{CodeRequestTimeout, http.StatusRequestTimeout, "Request timeout", "The request did not arrive in time."},
	{CodeNotOpenYet, http.StatusConflict, "Not open yet", "The packet cannot be grabbed or closed yet."},
	{CodeSoldOut, http.StatusConflict, "Sold out", "The last share was claimed."},
	{CodeRequestInProgress, http.StatusConflict, "Request in progress", "The first request with this Idempotency-Key is still running."},
	{CodeNotRetryable, http.StatusConflict, "Not retryable", "The status does not allow this decision, or does not any more."},
	{CodeDecisionPending, http.StatusConflict, "Decision pending", "Another decision about this payment waits for a second person, or is " +
		"being carried out."},
	{CodeDecisionChanged, http.StatusConflict, "Decision changed", "What the decision is about has changed since it was made; see preview. " +
		"Nothing has moved, and it goes on waiting."},
	{CodeOwnKey, http.StatusConflict, "Own key", "This is the key that asks. Revoke it with another one, or rotate it with a grace of at " +
		"least 60 seconds."},
	{CodeLastAdminKey, http.StatusConflict, "Last admin key", "No other key of role admin would be left that does not end by itself. Make " +
		"another one first."},
	{CodeKeyEnded, http.StatusConflict, "Key ended", "The key was revoked, has expired or was rotated already."},
	{CodeCampaignEnded, http.StatusConflict, "Campaign ended", "The campaign has ended, and does not begin again."},
	{CodeManyCampaigns, http.StatusConflict, "Too many campaigns", "The app has 1000 campaigns that have not ended."},
	{CodeExpired, http.StatusGone, "Expired", "The packet does not give out shares any more."},
	{CodeBodyTooLarge, http.StatusRequestEntityTooLarge, "Body too large", "The body is larger than this endpoint accepts."},
	{CodeUnsupportedMedia, http.StatusUnsupportedMediaType, "Unsupported media type", "Send the body as application/json, without content " +
		"coding."},
	{CodeInvalidRequest, http.StatusUnprocessableEntity, "Invalid request", "The request has faults; see errors."},
	{CodeKeyReused, http.StatusUnprocessableEntity, "Idempotency key reused", "This Idempotency-Key was used with another body."},
	{CodeRateLimited, http.StatusTooManyRequests, "Rate limited", "Too many requests; see Retry-After."},
	{CodeHeadersTooLarge, http.StatusRequestHeaderFieldsTooLarge, "Headers too large", "The request line and headers are too large."},
	{CodeInternal, http.StatusInternalServerError, "Internal error", "Something went wrong on our side."},
	{CodeUnavailable, http.StatusServiceUnavailable, "Unavailable", "This cannot be answered now. Nothing is lost; ask again."},
}

// row finds a code's line of the catalogue; an unknown code is internal.
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
	s := &huma.Schema{Type: huma.TypeString, Description: "What went wrong, for programs."}
	for _, r := range catalogue {
		s.Enum = append(s.Enum, string(r.code))
	}
	return s
}

// FieldError is one fault of one member, parameter or path segment.
type FieldError struct {
	Field   string `json:"field" doc:"Where: the member's path with dots and indexes, or the parameter's name." example:"total_amount"`
	Code    string `json:"code" doc:"What is wrong with it, for programs." example:"out_of_range"`
	Message string `json:"message" doc:"What is wrong with it, for people." example:"must be from 1 to 9007199254740991"`
}

// Problem is the body of every error (RFC 9457).
type Problem struct {
	Type      string       `json:"type" format:"uri-reference" doc:"Names the kind of error; stable." example:"/errors/invalid_request"`
	Title     string       `json:"title" doc:"The kind of error, for people." example:"Invalid request"`
	Status    int          `json:"status" doc:"The HTTP status." example:"422"`
	Detail    string       `json:"detail" doc:"This error, for people."`
	Instance  string       `json:"instance" doc:"The path that was asked for." example:"/v1/packets"`
	Code      Code         `json:"code" doc:"What went wrong, for programs." example:"invalid_request"`
	RequestID string       `json:"request_id" doc:"The X-Request-Id of the answer; of a replayed answer that of the first one."`
	Errors    []FieldError `json:"errors,omitempty" nullable:"false" doc:"With invalid_request: every fault that was found."`
	OpensAt   *Stamp       `json:"opens_at,omitempty" doc:"With not_open_yet: when the packet opens."`
	PacketID  string       `json:"packet_id,omitempty" doc:"With funding_declined: the rejected packet."`
	Failure   *Failure     `json:"failure,omitempty" doc:"With funding_declined: why the charge was declined."`
	Preview   *Preview     `json:"preview,omitempty" doc:"With decision_changed: what the decision would do now."`
}

// refusal is an error on its way to the client.
type refusal struct {
	code       Code
	fields     []FieldError
	opensAt    time.Time
	packetID   string
	failure    *packet.Failure
	retryAfter time.Duration
	detail     string // "": the code's usual one
	requestID  string // of the first answer, when this one is a replay
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

// What is answered to a decision while MySQL is older than reality (rule R13). It
// lasts until operators have recovered it.
const (
	restoredPause  = time.Minute
	restoredDetail = "The database was restored from an older backup, and what happened since is not in it yet. Nothing is decided or " +
		"changed until operations have recovered it; ask again then."
)

// What is answered while the recovery of such books has left something to people: a state,
// which lasts until one of them has looked into it.
const (
	undecidedDetail = "A break of kind restored about this packet is open: nothing of it is decided until somebody has resolved it. Then " +
		"send this with a new Idempotency-Key."
	cancelLeftDetail = "Whether this payout was cancelled, and its sender has the money, could not be recovered: it can be cancelled or " +
		"marked as paid, not retried. A further recovery tells."
)

// shortPause is what Retry-After says where nothing better is known.
const shortPause = time.Second

func refuse(code Code) *refusal { return &refusal{code: code} }

// noSuch refuses an id of staff that nothing has. The path is right, so the usual detail of
// the code would send people to look for another one.
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

// asRefusal turns every error into one that may be told. What is not known
// here is internal.
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

// fromTransport classifies what the HTTP server found before any handler ran,
// or while a body was read.
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

// problem renders the refusal.
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

// warnPause is the shortest time between two lines about the same trouble: it is told, not
// once for each request that meets it or, from somebody without a key, makes it.
const warnPause = time.Second

// logThrottle lets through what is told now and then only.
type logThrottle struct{ last atomic.Int64 } // Unix time in ns

func (s *logThrottle) allow() bool {
	last, now := s.last.Load(), time.Now().UnixNano()
	return now-last >= int64(warnPause) && s.last.CompareAndSwap(last, now)
}

var unavailableLog logThrottle

// ours reports whether something went wrong on our side.
func (e *refusal) ours() bool {
	status, _, _ := e.code.row()
	return status >= http.StatusInternalServerError
}

// log writes what went wrong on our side: every internal error, once, and what
// was not available now and then.
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
	slog.LogAttrs(ctx, level, "request was not answered", attrs...)
}

// retryAfterSeconds rounds up to whole seconds, at least one.
func retryAfterSeconds(d time.Duration) int {
	return max(1, int(math.Ceil(d.Seconds())))
}
