package api

import (
	"context"
	"sync/atomic"
	"time"

	"hongbao/api/rest"
)

// deadlineStep is how long requests share one deadline; a request may exceed its timeout by
// as much.
const deadlineStep = 250 * time.Millisecond

// deadlines returns the contexts of requests. A context per request would cost a timer and a
// place in the parent's list, under the parent's lock. Requests that begin within deadlineStep
// share one context instead. It ends with its deadline or with the server, not with the
// request.
type deadlines struct {
	base    context.Context
	current atomic.Pointer[sharedDeadline]
}

type sharedDeadline struct {
	ctx   context.Context
	stop  context.CancelFunc
	until time.Time // valid for requests that begin before
}

// from returns the context of a request that begins now.
func (d *deadlines) from(now time.Time) context.Context {
	current := d.current.Load()
	if current != nil && now.Before(current.until) {
		return current.ctx
	}
	fresh := &sharedDeadline{until: now.Add(deadlineStep)}
	fresh.ctx, fresh.stop = context.WithDeadline(d.base, fresh.until.Add(rest.RequestTimeout))
	if d.current.CompareAndSwap(current, fresh) {
		return fresh.ctx
	}
	fresh.stop() // another request stored its context first
	return d.current.Load().ctx
}
