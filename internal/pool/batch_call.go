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

// call is one call of grab.lua: questions about packets of one lane.
type call struct {
	lane    *lane
	batches []*grabBatch
	keys    []string
	args    []any
	mark    string
	cmd     *redis.Cmd // nil: nobody waits for an answer, or err
	seen    *positionTracker
	err     error // the gate of the lane is shut
	full    error // Redis has no memory for winners: nothing was taken
}

// markLen is the length of the mark of a call: 40 random bits to tell apart the
// few calls that ask for one user and one packet.
const markLen = 8

// arguments puts together what grab.lua gets; there are no keys when nobody waits.
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

// read gives each question its part of the reply.
func (c *call) decode(p *Pool) error {
	reply, err := c.cmd.Slice()
	if err != nil {
		return redisError("grab", p.closeIfFenced(c.lane.number, c.seen, err))
	}
	if reply, err = c.seen.readCounts(reply); err != nil {
		return err
	}
	for _, q := range c.batches {
		q.full = c.full
		if q.users == 0 {
			continue
		}
		if len(reply) < replyFields {
			return fmt.Errorf("%w: grab reply is too short", ErrMalformed)
		}
		if err := q.decode(reply[:replyFields]); err != nil {
			return err
		}
		reply = reply[replyFields:]
	}
	return nil
}

// fly makes calls to one server together and answers every caller in them. It has
// its own deadline: the context of one caller must not end the grabs of the others.
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

// send makes the calls. A Redis that is full refuses them, and is asked once more
// without anything to be taken: who has a claim hears of it all the same.
func (p *Pool) sendCalls(ctx context.Context, calls []*call) error {
	var made, full []*call
	for _, c := range calls {
		if c.seen, c.err = p.checkFence(c.lane.number); c.err != nil {
			continue
		}
		if c.keys, c.args = c.arguments(p.keys, c.seen.position().token(p.process)); c.keys != nil {
			made = append(made, c)
		}
	}
	p.sendScript(ctx, grabScript, made)
	for _, c := range made {
		if redis.IsOOMError(c.cmd.Err()) {
			c.full = redisError("grab", c.cmd.Err())
			c.args[1] = dryRun + c.mark
			full = append(full, c)
		}
	}
	p.sendScript(ctx, dryRunScript, full)
	var failed error
	for _, c := range made {
		failed = errors.Join(failed, c.cmd.Err())
	}
	return failed
}

// sendScript makes calls of one script in one pipeline. After a restart Redis has forgotten
// the script: then it did nothing, and is told it again.
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
