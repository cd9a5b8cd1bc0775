package client

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"hongbao/wire"
)

// Retry is the retry policy of calls. Only broken connections, timed-out tries, 503, 429 and
// 409 request_in_progress are retried.
type Retry struct {
	// Tries is the total number of tries; 1: no retry. 0: 8.
	Tries int
	// MinPause is the shortest pause before the second try. The upper bound doubles with every
	// try up to MaxPause, and each pause is random between MinPause and that bound. 0: 100 ms
	// and 5 s.
	MinPause, MaxPause time.Duration
	// TryTimeout bounds one try; the context bounds all tries. 0: 15 s.
	TryTimeout time.Duration
	// MaxRetryAfter is the longest Retry-After that is waited for; an answer with a longer one
	// is returned at once. 0: 30 s.
	MaxRetryAfter time.Duration
}

func (r Retry) withDefaults() Retry {
	set := func(d *time.Duration, value time.Duration) {
		if *d <= 0 {
			*d = value
		}
	}
	if r.Tries <= 0 {
		r.Tries = 8
	}
	set(&r.MinPause, 100*time.Millisecond)
	set(&r.MaxPause, 5*time.Second)
	set(&r.TryTimeout, 15*time.Second)
	set(&r.MaxRetryAfter, 30*time.Second)
	r.MaxPause = max(r.MaxPause, r.MinPause)
	return r
}

// pauseAfter returns the pause after the given try, from 1. It is never below after, the
// Retry-After of the server; the random part spreads callers that were refused together.
func (r Retry) pauseAfter(try int, after time.Duration) time.Duration {
	limit := r.MinPause
	for range try {
		limit = min(2*limit, r.MaxPause)
	}
	drawn := r.MinPause + rand.N(limit-r.MinPause+1)
	if after <= 0 {
		return drawn
	}
	return after + rand.N(r.MinPause)
}

// worthRepeating reports whether a repeat may succeed.
func worthRepeating(p *Problem) bool {
	switch p.Status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return true
	case http.StatusConflict:
		return p.Code == wire.CodeRequestInProgress
	}
	return false
}

// retryAfter reads a Retry-After header: seconds or a date. 0: none.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
