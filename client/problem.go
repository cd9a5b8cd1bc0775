package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Code identifies an error for programs.
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

// Problem is an answer of the API that is not 2xx (RFC 9457). An answer of another server,
// such as a proxy, has a Status and no Code.
type Problem struct {
	Type      string       `json:"type"`
	Title     string       `json:"title"`
	Status    int          `json:"status"`
	Detail    string       `json:"detail"` // for people
	Instance  string       `json:"instance"`
	Code      Code         `json:"code"`
	RequestID string       `json:"request_id"` // to quote in support requests
	Errors    []FieldError `json:"errors"`     // CodeInvalidRequest: all faults
	OpensAt   *time.Time   `json:"opens_at"`   // CodeNotOpenYet
	PacketID  string       `json:"packet_id"`  // CodeFundingDeclined: the rejected packet
	Failure   *Failure     `json:"failure"`    // CodeFundingDeclined: why
	Preview   *Preview     `json:"preview"`    // CodeDecisionChanged: what the decision would now do

	// RetryAfter is how long to wait before the request is repeated; 0: not given.
	RetryAfter time.Duration `json:"-"`
	// Raw is the answer as received, JSON or not.
	Raw []byte `json:"-"`
}

// FieldError is one fault of a member, parameter or path segment.
type FieldError struct {
	Field   string `json:"field"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error implements error.
func (p *Problem) Error() string {
	var b strings.Builder
	switch {
	case p.Code == "":
		fmt.Fprintf(&b, "status %d %s", p.Status, http.StatusText(p.Status))
	case len(p.Errors) > 0: // they are more specific than the detail
		fmt.Fprintf(&b, "%s:", p.Code)
	default:
		fmt.Fprintf(&b, "%s: %s", p.Code, p.Detail)
	}
	if p.Failure != nil {
		fmt.Fprintf(&b, " (%s: %s)", p.Failure.Code, p.Failure.Message)
	}
	if p.Preview != nil {
		fmt.Fprintf(&b, " (now: %s)", p.Preview)
	}
	for i, f := range p.Errors {
		if i > 0 {
			b.WriteByte(';')
		}
		fmt.Fprintf(&b, " %s %s", f.Field, f.Message)
	}
	return b.String()
}

// IsCode reports whether err is a *Problem with one of the codes.
func IsCode(err error, codes ...Code) bool {
	p, ok := errors.AsType[*Problem](err)
	return ok && slices.Contains(codes, p.Code)
}

func readProblem(res *http.Response, text []byte) *Problem {
	p := new(Problem)
	if err := json.Unmarshal(text, p); err != nil {
		p = new(Problem) // partly decoded
	}
	p.Status = res.StatusCode
	p.RetryAfter = retryAfter(res.Header, time.Now())
	if p.RequestID == "" {
		p.RequestID = res.Header.Get("X-Request-Id")
	}
	p.Raw = text
	return p
}
