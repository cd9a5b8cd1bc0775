package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"hongbao/wire"
)

// Problem is an answer of the API that is not 2xx (RFC 9457). An answer of another server,
// such as a proxy, has a Status and no Code.
type Problem struct {
	wire.Problem

	// RetryAfter is how long to wait before the request is repeated; 0: not given.
	RetryAfter time.Duration `json:"-"`
	// Raw is the answer as received, JSON or not.
	Raw []byte `json:"-"`
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
func IsCode(err error, codes ...wire.Code) bool {
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
