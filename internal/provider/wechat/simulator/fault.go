package simulator

import (
	"math/rand/v2"
	"net/http"
	"slices"
)

// The kinds of faults. "before" kinds store nothing, "after" kinds carry the order out and spoil the
// answer; FaultLate answers at once and carries it out later. Of queries and other calls the two do
// not differ.
const (
	ErrorBefore   = "error_before"
	ErrorAfter    = "error_after"
	ErrorLate     = "error_late"
	SilenceBefore = "timeout_before"
	SilenceAfter  = "timeout_after"
	RateLimit     = "rate_limit"
	LowBalance    = "low_balance"
	NotFoundYet   = "not_found_yet"
	BadSignature  = faultSignature
	Unsigned      = faultUnsigned
	ClockBehind   = faultClock
	LongAnswer    = faultLong
)

const (
	faultSilence   = "timeout"
	faultSignature = "bad_signature"
	faultUnsigned  = "unsigned"
	faultClock     = "clock_behind"
	faultLong      = "long_answer"
)

// Fault is a misbehaviour towards one account.
type Fault struct {
	Op      string `json:"op"` // transfer, charge, refund or query
	Kind    string `json:"kind"`
	Account string `json:"account"` // the openid; "": everyone
	// Rate is the part of the calls that meet the fault. 0: all.
	Rate float64 `json:"rate"`
}

// SetFaults replaces the faults.
func (s *Server) SetFaults(faults []Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = slices.Clone(faults)
}

// faultOf returns the kind of the fault for an account, or "". The caller holds the lock.
func (s *Server) faultOf(op, account string) string {
	for _, f := range s.faults {
		if f.Op == op && (f.Account == "" || f.Account == account) && (f.Rate == 0 || rand.Float64() < f.Rate) {
			return f.Kind
		}
	}
	return ""
}

// before answers what a fault keeps from being carried out.
func before(kind string) (reply, bool) {
	switch kind {
	case ErrorBefore, ErrorLate:
		return systemError, true
	case SilenceBefore:
		return reply{fault: faultSilence}, true
	case RateLimit:
		return refusal(http.StatusTooManyRequests, "FREQUENCY_LIMITED", "频率超限"), true
	case LowBalance:
		return refusal(http.StatusForbidden, "NOT_ENOUGH", "资金不足"), true
	}
	return reply{}, false
}

// spoil changes the answer about an order that was carried out.
func spoil(kind string, out reply) reply {
	switch kind {
	case ErrorAfter:
		return systemError
	case SilenceAfter:
		out.fault = faultSilence
	case BadSignature, Unsigned, ClockBehind, LongAnswer:
		out.fault = kind
	}
	return out
}

// asked is the answer to a query about an order of an account. The caller holds the lock.
func (s *Server) asked(account string, out, unknown reply) reply {
	kind := s.faultOf("query", account)
	if kind == NotFoundYet {
		return unknown
	}
	if early, ok := before(kind); ok {
		return early
	}
	return spoil(kind, out)
}
