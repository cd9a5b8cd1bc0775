package sandbox

import (
	"log/slog"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"
)

// problem is an RFC 9457 answer. The values below are shared: copy before filling in.
type problem struct {
	Type      string       `json:"type"`
	Title     string       `json:"title"`
	Status    int          `json:"status"`
	Detail    string       `json:"detail"`
	Instance  string       `json:"instance"`
	Code      string       `json:"code"`
	RequestID string       `json:"request_id"`
	Errors    []fieldError `json:"errors,omitempty"`

	retryAfter int    // seconds; 0 sends no Retry-After
	allow      string // of 405
}

// fieldError names one member or parameter that is wrong.
type fieldError struct {
	Field   string `json:"field"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

func newProblem(status int, code, detail string) *problem {
	return &problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}

var (
	problemMalformed       = newProblem(400, "malformed_json", "The body is not JSON.")
	problemUnauthenticated = newProblem(401, "unauthenticated", "The bearer key is missing or unknown, or of another merchant account.")
	problemLowBalance      = newProblem(403, "low_balance", "The merchant's balance does not cover this now. Nothing was stored; send it "+
		"again later.")
	problemForbidden          = newProblem(403, "forbidden", "Only for callers on this machine.")
	problemNotFound           = newProblem(404, "not_found", "There is nothing here.")
	problemOrderNotFound      = newProblem(404, "order_not_found", "No order has this number.")
	problemOrderConflict      = newProblem(409, "order_conflict", "The order number was used before with other parameters.")
	problemRefundExceeds      = newProblem(409, "refund_exceeds_charge", "The refund is above what is left of the charge.")
	problemNotAwaiting        = newProblem(409, "order_not_awaiting", "The order does not wait for a confirmation.")
	problemOrderPaid          = newProblem(409, "order_paid", "The order was paid: it cannot be closed.")
	problemNotAwaitingPayment = newProblem(409, "order_not_awaiting", "The order does not wait for a payment.")
	problemTooLarge           = newProblem(413, "body_too_large", "The body is too large.")
	problemMediaType          = newProblem(415, "unsupported_media_type", "The body must be application/json.")
	problemInvalid            = newProblem(422, "invalid_request", "The request is not valid.")
	problemRateLimited        = newProblem(429, "rate_limited", "Too many requests. Nothing was stored; send it again later.")
	problemInternal           = newProblem(500, "internal", "Something went wrong. The outcome is not known; query the order.")
	problemUnavailable        = newProblem(503, "unavailable", "The provider is stopping.")
)

func init() {
	problemRateLimited.retryAfter = 1
	problemUnavailable.retryAfter = 1
}

// invalid is a 422 about one field.
func invalid(field, code, message string) *problem {
	p := *problemInvalid
	p.Errors = []fieldError{{Field: field, Code: code, Message: message}}
	return &p
}

func methodNotAllowed(allow string) *problem {
	p := newProblem(405, "method_not_allowed", "The method is not allowed here.")
	p.allow = allow
	return p
}

// writeProblem fills in the members of the request and sends the problem.
func (s *Server) writeProblem(w http.ResponseWriter, r *http.Request, shared *problem) {
	p := *shared
	p.Instance, p.RequestID = r.URL.EscapedPath(), w.Header().Get(headerRequestID)
	if p.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.retryAfter))
	}
	if p.allow != "" {
		w.Header().Set("Allow", p.allow)
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	s.writeBody(w, p.Status, "application/problem+json", p)
}

func (s *Server) writeJSON(w http.ResponseWriter, status int, value any) {
	s.writeBody(w, status, "application/json", value)
}

func (s *Server) writeBody(w http.ResponseWriter, status int, contentType string, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		s.log.Error("answer not encoded", slog.Any("error", err))
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the caller may be gone
}
