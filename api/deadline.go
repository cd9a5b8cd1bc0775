package api

import (
	"context"
	"sync/atomic"
	"time"
)

// deadlineStep is how long requests share one deadline, and by how much the work
// of a request may exceed requestTimeout.
const deadlineStep = 250 * time.Millisecond

// deadlines hands out the contexts of requests. A context of its own would cost
// every request a timer and a place in the parent's list, under the parent's lock;
// requests that begin within deadlineStep share one instead. It ends with its
// deadline, or with the server, not with the request.
type deadlines struct {
	base    context.Context
	current atomic.Pointer[sharedDeadline]
}

type sharedDeadline struct {
	ctx   context.Context
	stop  context.CancelFunc
	until time.Time // handed out to requests that begin before
}

// from returns the context of a request that begins now.
func (d *deadlines) from(now time.Time) context.Context {
	current := d.current.Load()
	if current != nil && now.Before(current.until) {
		return current.ctx
	}
	fresh := &sharedDeadline{until: now.Add(deadlineStep)}
	fresh.ctx, fresh.stop = context.WithDeadline(d.base, fresh.until.Add(requestTimeout))
	if d.current.CompareAndSwap(current, fresh) {
		return fresh.ctx
	}
	fresh.stop() // another request was faster
	return d.current.Load().ctx
}
