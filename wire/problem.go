package wire

// Code identifies an error for programs; people read the detail.
type Code string

// The codes, in the order of their statuses.
const (
	CodeMalformedJSON    Code = "malformed_json"
	CodeMalformedRequest Code = "malformed_request"
	CodeKeyRequired      Code = "idempotency_key_required"
	CodeUnauthenticated  Code = "unauthenticated"
	CodeFundingDeclined  Code = "funding_declined"
	// CodeInsufficientBalance is 402 of a packet and 409 of a debit.
	CodeInsufficientBalance Code = "insufficient_balance"
	CodeForbidden           Code = "forbidden"
	CodeNotEligible         Code = "not_eligible"
	CodeNotFound            Code = "not_found"
	CodePacketNotFound      Code = "packet_not_found"
	CodeClaimNotFound       Code = "claim_not_found"
	CodePayoutNotFound      Code = "payout_not_found"
	CodeRefundNotFound      Code = "refund_not_found"
	CodeChargeNotFound      Code = "charge_not_found"
	CodeCampaignNotFound    Code = "campaign_not_found"
	CodeMethodNotAllowed    Code = "method_not_allowed"
	CodeRequestTimeout      Code = "request_timeout"
	CodeNotOpenYet          Code = "not_open_yet"
	CodeSoldOut             Code = "sold_out"
	CodeRequestInProgress   Code = "request_in_progress"
	CodeNotRetryable        Code = "not_retryable"
	CodeRecipientIncomplete Code = "recipient_incomplete"
	CodeRecipientFixed      Code = "recipient_fixed"
	CodeDecisionPending     Code = "decision_pending"
	CodeDecisionChanged     Code = "decision_changed"
	CodeHeld                Code = "held"
	CodeReferenceUsed       Code = "reference_used"
	CodeRecoveryRequired    Code = "recovery_required"
	CodeOwnKey              Code = "own_key"
	CodeLastAdminKey        Code = "last_admin_key"
	CodeKeyEnded            Code = "key_ended"
	CodeCampaignEnded       Code = "campaign_ended"
	CodeManyCampaigns       Code = "too_many_campaigns"
	CodeManyUnpaid          Code = "too_many_unpaid"
	CodeExpired             Code = "expired"
	CodeBodyTooLarge        Code = "body_too_large"
	CodeUnsupportedMedia    Code = "unsupported_media_type"
	CodeInvalidRequest      Code = "invalid_request"
	CodeKeyReused           Code = "idempotency_key_reused"
	CodeRateLimited         Code = "rate_limited"
	CodeHeadersTooLarge     Code = "headers_too_large"
	CodeInternal            Code = "internal"
	CodeUnavailable         Code = "unavailable"
)

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
	OpensAt   *Time        `json:"opens_at,omitempty" doc:"With not_open_yet: when the packet opens."`
	PacketID  string       `json:"packet_id,omitempty" doc:"With funding_declined and insufficient_balance: the rejected packet."`
	Failure   *Failure     `json:"failure,omitempty" doc:"With funding_declined and insufficient_balance: why the charge was declined."`
	Preview   *Preview     `json:"preview,omitempty" doc:"With decision_changed: what the decision would now do."`
}
