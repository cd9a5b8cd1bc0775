package access

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// Limit allows N requests in a span of time: a burst of N after an idle time, then one per Span/N.
// The zero value limits nothing.
type Limit struct {
	N    int64
	Span time.Duration
}

// The bounds of a limit.
const (
	MaxLimit     = 1_000_000
	MinLimitSpan = time.Second
	MaxLimitSpan = 24 * time.Hour
)

// LimitForm describes the syntax of limits, for error messages.
const LimitForm = "0, or a number and a span of time such as 20/1m: 1 to 1000000 in 1s to 24h"

var errLimitForm = errors.New("is not " + LimitForm)

// ParseLimit reads a limit as it is configured: 20/1m, or 0 for none.
func ParseLimit(text string) (Limit, error) {
	if text == "0" {
		return Limit{}, nil
	}
	number, span, _ := strings.Cut(text, "/")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != number {
		return Limit{}, errLimitForm
	}
	d, err := time.ParseDuration(span)
	if l := (Limit{N: n, Span: d}); err == nil && l.Valid() && l != (Limit{}) {
		return l, nil
	}
	return Limit{}, errLimitForm
}

// Valid reports whether a limit is within the bounds, or none.
func (l Limit) Valid() bool {
	return l == Limit{} || l.N >= 1 && l.N <= MaxLimit && l.Span >= MinLimitSpan && l.Span <= MaxLimitSpan
}

// AppliedLimit is one limit of a request, and the party it is counted for.
type AppliedLimit struct {
	Kind  string // the kind of limit, as in metrics and Redis keys
	Party string
	Limit
}
