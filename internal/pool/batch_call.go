package pool

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/failpoint"
)

// call is one call of grab.lua: batches of packets of one lane.
type call struct {
	lane    *lane
	batches []*grabBatch
	grabs   int // in batches
	keys    []string
	args    []any
	mark    string
	cmd     *redis.Cmd // nil: no caller waits, or err is set
	seen    *positionTracker
	err     error // the fence of the lane is closed
	full    error // Redis is at its memory limit: nothing was taken
}

// markLen is the length of the mark of a call: 40 random bits, enough to distinguish the few
// calls for one user and one packet.
const markLen = 8

// arguments returns the keys and arguments of grab.lua; no keys when no caller waits.
func (c *call) arguments(keys keyspace, pass string) (names []string, args []any) {
	c.mark = rand.Text()[:markLen]
	args = append(args, pass, c.mark)
	for _, q := range c.batches {
		users, profiles := q.encode()
		if users == nil {
			continue
		}
		if len(names) == 0 {
			names = append(names, keys.epoch(c.lane.number), keys.handoff(c.lane.number))
		}
		k := keys.of(q.id)
		names = append(names, k.packet, k.shares, k.winners, k.eligible, k.order, k.wins)
		args = append(args, users, profiles)
	}
	return names, args
}

// decode gives each batch its part of the reply.
func (c *call) decode(p *Pool) error {
	reply, err := c.cmd.Slice()
	if err != nil {
		return redisError("grab", p.closeIfFenced(c.lane.number, c.seen, err))
	}
	const counts = 3 // seq, changes, grabs
	var n [counts]int64
	at := len(reply) - counts
	if at < 0 {
		return fmt.Errorf("%w: grab reply too short", ErrMalformed)
	}
	for i := range n {
		if n[i], err = number(reply, at+i); err != nil {
			return err
		}
	}
	c.seen.advance(n[0], n[1], n[2])
	reply = reply[:at]
	for _, q := range c.batches {
		q.full = c.full
		if q.users == 0 {
			continue
		}
		if len(reply) < replyFields {
			return fmt.Errorf("%w: grab reply too short", ErrMalformed)
		}
		if err := q.decode(reply[:replyFields]); err != nil {
			return err
		}
		reply = reply[replyFields:]
	}
	return nil
}

// serveCalls sends calls to one server in one pipeline and answers every caller in them. It
// has a deadline of its own: one caller's context must not end the grabs of the others.
func (p *Pool) serveCalls(calls []*call) {
	defer func() {
		var err error
		if r := recover(); r != nil {
			p.cfg.Logger.Error("panic while grabbing", slog.Any("panic", r), slog.String("stack", string(debug.Stack())))
			err = fmt.Errorf("%w: %v", errPanicked, r)
		}
		for _, c := range calls {
			for _, q := range c.batches {
				if err != nil {
					q.err = err
				}
				close(q.done)
			}
		}
	}()
	ctx, cancel := context.WithTimeout(p.base, (retries+1)*p.cfg.Timeout)
	defer cancel()
	_ = failpoint.Do(failpoint.GrabTake, func() error { return p.sendCalls(ctx, calls) }) // each call keeps its error
	for _, c := range calls {
		if c.cmd != nil {
			c.err = c.decode(p)
		}
		if c.err != nil {
			for _, q := range c.batches {
				q.err = c.err
			}
		}
	}
}

// sendCalls sends the calls. A Redis at its memory limit refuses them; a second attempt then
// takes nothing, and returns the existing claims.
func (p *Pool) sendCalls(ctx context.Context, calls []*call) error {
	var sent, full []*call
	for _, c := range calls {
		if c.seen, c.err = p.checkFence(c.lane.number); c.err != nil {
			continue
		}
		if c.keys, c.args = c.arguments(p.keys, token(c.seen.position(), p.process)); c.keys != nil {
			sent = append(sent, c)
		}
	}
	p.sendScript(ctx, grabScript, sent)
	for _, c := range sent {
		if redis.IsOOMError(c.cmd.Err()) {
			c.full = redisError("grab", c.cmd.Err())
			c.args[1] = dryRun + c.mark
			full = append(full, c)
		}
	}
	p.sendScript(ctx, dryRunScript, full)
	var failed error
	for _, c := range sent {
		failed = errors.Join(failed, c.cmd.Err())
	}
	return failed
}

// sendScript sends calls of one script in one pipeline. When Redis lost the script after a
// restart, the call changed nothing and is sent again with the script.
func (p *Pool) sendScript(ctx context.Context, s *redis.Script, calls []*call) {
	if len(calls) == 0 {
		return
	}
	_, _ = p.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error { // each command keeps its error
		for _, c := range calls {
			c.cmd = s.EvalSha(ctx, pipe, c.keys, c.args...)
		}
		return nil
	})
	for _, c := range calls {
		if redis.HasErrorPrefix(c.cmd.Err(), "NOSCRIPT") {
			c.cmd = s.Run(ctx, p.rdb, c.keys, c.args...)
		}
	}
}
