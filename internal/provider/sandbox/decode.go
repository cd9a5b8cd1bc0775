package sandbox

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Limits of requests.
const (
	maxBody        = 4 << 10
	maxFaultsBody  = 256 << 10
	maxOrderNo     = 32
	maxAccount     = 64 // bytes
	maxRemark      = 64 // characters
	maxReturnURL   = 512
	maxAmount      = 1<<53 - 1
	maxRules       = 200
	maxTimes       = 1 << 31
	maxDelayMS     = 10 * 60 * 1000
	bodyReadWithin = 10 * time.Second
)

// readBody reads the whole body within a deadline. Only after its end does net/http detect that the
// caller has disconnected.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, *problem) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyReadWithin)) // real connections support it
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, problemTooLarge
	}
	if err != nil {
		return nil, problemMalformed
	}
	return body, nil
}

func isJSON(r *http.Request) bool {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && mediaType == "application/json"
}

// decode reads JSON strictly: unknown and duplicate members, wrong types and fractions are 422,
// invalid JSON is 400.
func decode(body []byte, into any) *problem {
	err := json.Unmarshal(body, into, json.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok {
		field := semantic.JSONPointer.LastToken()
		if errors.Is(err, json.ErrUnknownName) {
			return invalid(field, "unknown", "is not a known member")
		}
		return invalid(field, "wrong_type", "has the wrong type or is out of range")
	}
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok && errors.Is(err, jsontext.ErrDuplicateName) {
		return invalid(syntactic.JSONPointer.LastToken(), "duplicate", "appears more than once")
	}
	return problemMalformed
}

// sendBody is the body of a charge, transfer or refund; nil is a missing member.
type sendBody struct {
	OrderNo       *string `json:"order_no"`
	Account       *string `json:"account"`
	Amount        *int64  `json:"amount"`
	Currency      *string `json:"currency"`
	Remark        *string `json:"remark"`
	ChargeOrderNo *string `json:"charge_order_no"`
	Method        *string `json:"method"`
	PayUntil      *string `json:"pay_until"`
	ReturnURL     *string `json:"return_url"`
}

// decodeSend reads and checks the body of a send and names every wrong field.
func decodeSend(op string, body []byte) (params, *problem) {
	var b sendBody
	if p := decode(body, &b); p != nil {
		return params{}, p
	}
	var wrong []fieldError
	fail := func(field, code, message string) { wrong = append(wrong, fieldError{field, code, message}) }
	required := func(field string, missing bool) bool {
		if missing {
			fail(field, "required", "is required")
		}
		return !missing
	}
	if required("order_no", b.OrderNo == nil) && !validOrderNo(*b.OrderNo) {
		fail("order_no", "invalid", "must be 1 to 32 letters and digits")
	}
	if required("account", b.Account == nil) && !validAccount(*b.Account) {
		fail("account", "invalid", "must be 1 to 64 bytes of UTF-8")
	}
	if required("amount", b.Amount == nil) && (*b.Amount < 1 || *b.Amount > maxAmount) {
		fail("amount", "out_of_range", "must be 1 to 2^53-1 fen")
	}
	if required("currency", b.Currency == nil) && *b.Currency != "CNY" {
		fail("currency", "invalid", "must be CNY")
	}
	if b.Remark != nil && utf8.RuneCountInString(*b.Remark) > maxRemark {
		fail("remark", "too_long", "must be at most 64 characters")
	}
	if b.ChargeOrderNo != nil && (op != opRefund || !validOrderNo(*b.ChargeOrderNo)) {
		fail("charge_order_no", "invalid", "must be the order number of a charge, and only of refunds")
	}
	p := params{}
	b.payer(op, &p, fail)
	if len(wrong) > 0 {
		p := *problemInvalid
		p.Errors = wrong
		return params{}, &p
	}
	p.Op, p.OrderNo, p.Account, p.Amount, p.Currency = op, *b.OrderNo, *b.Account, *b.Amount, *b.Currency
	if b.Remark != nil {
		p.Remark = *b.Remark
	}
	if b.ChargeOrderNo != nil {
		p.ChargeOrderNo = *b.ChargeOrderNo
	}
	return p, nil
}

// payer reads and checks the members of a charge that its payer has to pay.
func (b sendBody) payer(op string, p *params, fail func(field, code, message string)) {
	if b.Method == nil {
		if b.PayUntil != nil || b.ReturnURL != nil {
			fail("method", "required", "is required with pay_until and return_url")
		}
		return
	}
	if op != opCharge || !slices.Contains(payerMethods, *b.Method) {
		fail("method", "invalid", "must be sandbox_app or sandbox_qr, and only of charges")
	}
	p.Method = *b.Method
	if b.PayUntil != nil {
		at, err := time.Parse(time.RFC3339, *b.PayUntil)
		if err != nil {
			fail("pay_until", "invalid", "must be a time as in RFC 3339")
		}
		p.PayUntilMS = at.UnixMilli()
	}
	if b.ReturnURL != nil {
		if len(*b.ReturnURL) > maxReturnURL {
			fail("return_url", "too_long", "must be at most 512 bytes")
		}
		p.ReturnURL = *b.ReturnURL
	}
}

func validOrderNo(s string) bool { return len(s) <= maxOrderNo && isAlnum(s) }

func isAlnum(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return s != ""
}

func validAccount(s string) bool { return s != "" && len(s) <= maxAccount && utf8.ValidString(s) }

// rest returns the path after prefix, percent-decoded once. It uses the escaped path, so that an
// account may hold slashes and dots.
func rest(r *http.Request, prefix string) (string, bool) {
	escaped, ok := strings.CutPrefix(r.URL.EscapedPath(), prefix)
	if !ok {
		return "", false
	}
	plain, err := url.PathUnescape(escaped)
	return plain, err == nil
}

// page reads after (default 0) and limit from the query and refuses parameters other than those and
// the names in others.
func page(r *http.Request, defaultLimit, maxLimit int, others ...string) (url.Values, uint64, int, *problem) {
	query, p := parameters(r, append(others, "after", "limit")...)
	if p != nil {
		return nil, 0, 0, p
	}
	var after uint64
	limit := defaultLimit
	if query.Has("after") {
		n, err := strconv.ParseUint(query.Get("after"), 10, 63)
		if err != nil {
			return nil, 0, 0, invalid("after", "invalid", "must be a whole number from 0")
		}
		after = n
	}
	if query.Has("limit") {
		n, err := strconv.Atoi(query.Get("limit"))
		if err != nil || n < 1 || n > maxLimit {
			return nil, 0, 0, invalid("limit", "out_of_range", "must be 1 to "+strconv.Itoa(maxLimit))
		}
		limit = n
	}
	return query, after, limit, nil
}

// parameters parses the query and refuses unknown names.
func parameters(r *http.Request, known ...string) (url.Values, *problem) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, invalid("query", "invalid", "is not a query string")
	}
next:
	for name := range query {
		for _, k := range known {
			if name == k {
				continue next
			}
		}
		return nil, invalid(name, "unknown", "is not a known parameter")
	}
	return query, nil
}
