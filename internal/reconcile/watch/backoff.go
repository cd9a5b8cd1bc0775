package watch

import (
	"sync"
	"time"
)

// retryState stores since when something looks wrong and when it was last repaired, so that what
// cannot be repaired is not tried every round.
type retryState struct {
	mu   sync.Mutex
	seen map[string]*seen
}

type seen struct {
	first, last time.Time
	tries       int
	again       time.Time
}

const (
	retryFirst = 5 * time.Second
	retryMax   = 10 * time.Minute
	// forgetAfter is the time without a finding after which a key is new again.
	forgetAfter = 30 * time.Minute
)

func newRetryState() *retryState { return &retryState{seen: map[string]*seen{}} }

func (p *retryState) of(key string, now time.Time) *seen {
	s := p.seen[key]
	if s == nil {
		s = &seen{first: now}
		p.seen[key] = s
	}
	s.last = now
	return s
}

// since notes that key looks wrong, and returns for how long it has.
func (p *retryState) since(key string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Sub(p.of(key, now).first)
}

// clear notes that key does not look wrong any more.
func (p *retryState) clear(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.seen, key)
}

// allow reports whether key may be repaired now. Each time the pause before the next repair
// doubles.
func (p *retryState) allow(key string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.of(key, now)
	if now.Before(s.again) {
		return false
	}
	s.again = now.Add(min(retryFirst<<min(s.tries, 20), retryMax))
	s.tries++
	return true
}

func (p *retryState) forget(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, s := range p.seen {
		if now.Sub(s.last) > forgetAfter {
			delete(p.seen, key)
		}
	}
}
