package pool

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// acknowledgedScripts are the scripts whose outcome is acknowledged to a caller. A failover
// to a replica without it must not undo it.
var acknowledgedScripts = []*redis.Script{createScript, answerScript, openScript, rejectScript, actionScript,
	grabScript, dryRunScript, recallScript,
	closeScript, keepScript, retireScript}

// replicaHook makes a client of one server return such a script's reply only when enough
// replicas have everything the server has written by then: it sends WAIT after it, on the
// same connection. Reads of the script count too, because WAIT covers everything up to the
// connection's last command. So an earlier claim is not returned before the replicas have it
// either.
//
// A failover then loses only unacknowledged writes. This is no consensus: a master that was
// partitioned from clients and replicas must not return as master.
type replicaHook struct {
	client  *redis.Client
	n       int
	timeout time.Duration
}

// acknowledgedTexts are the hashes and sources of these scripts.
var acknowledgedTexts = func() map[string]bool {
	all := map[string]bool{}
	for _, s := range acknowledgedScripts {
		all[s.Hash()], all[sources[s]] = true, true
	}
	return all
}()

// addReplicated adds the hook to the client of one server.
func addReplicated(c *redis.Client, cfg Config) *redis.Client {
	if cfg.Replicas > 0 {
		c.AddHook(&replicaHook{client: c, n: cfg.Replicas, timeout: replicaWait(cfg)})
	}
	return c
}

// replicaWait is the timeout of WAIT. The reply must still arrive within one round trip's
// timeout.
func replicaWait(cfg Config) time.Duration { return cfg.Timeout / 2 }

// DialHook implements redis.Hook.
func (*replicaHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (r *replicaHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !isAcknowledged(cmd) {
			return next(ctx, cmd)
		}
		pipe := r.client.Pipeline() // both on one connection
		_ = pipe.Process(ctx, cmd)
		_, _ = pipe.Exec(ctx) // the command keeps its error
		return cmd.Err()
	}
}

// ProcessPipelineHook implements redis.Hook.
func (r *replicaHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if !slices.ContainsFunc(cmds, isAcknowledged) {
			return next(ctx, cmds)
		}
		wait := r.wait(ctx)
		err := next(ctx, append(slices.Clone(cmds), wait))
		if why := r.waitError(wait); why != nil {
			for _, cmd := range cmds {
				if isAcknowledged(cmd) && cmd.Err() == nil {
					cmd.SetErr(why)
				}
			}
			if err == nil {
				err = why
			}
		}
		return err
	}
}

func (r *replicaHook) wait(ctx context.Context) *redis.IntCmd {
	return redis.NewIntCmd(ctx, "wait", r.n, r.timeout.Milliseconds())
}

// waitError returns why it is unknown that enough replicas have the write.
func (r *replicaHook) waitError(wait *redis.IntCmd) error {
	got, err := wait.Result()
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrReplicas, err)
	case int(got) < r.n:
		return fmt.Errorf("%w: %d of %d within %v", ErrReplicas, got, r.n, r.timeout)
	}
	return nil
}

// isAcknowledged reports whether a command is a script whose outcome is acknowledged to a
// caller.
func isAcknowledged(cmd redis.Cmder) bool {
	args := cmd.Args()
	if len(args) < 2 || cmd.Name() != "evalsha" && cmd.Name() != "eval" {
		return false
	}
	text, ok := args[1].(string)
	return ok && acknowledgedTexts[text]
}

// checkReplicated returns ErrReplicas unless enough replicas have what the master of a lane
// has, and the master has the hand-off with id entry ("" for none), which may have been read
// from its predecessor. Hand-offs and claims are only used then. Otherwise a failover could
// undo a claim after its payout started: the payout would go to a user without a claim, and
// another user would get the share.
func (p *Pool) checkReplicated(ctx context.Context, lane int, entry string) error {
	if p.cfg.Replicas == 0 {
		return nil
	}
	master, err := p.masterOf(ctx, lane)
	if err != nil {
		return err
	}
	if entry == "" {
		return p.checkReplicas(ctx, master)
	}
	r := replicaHook{n: p.cfg.Replicas, timeout: replicaWait(p.cfg)}
	var found *redis.XMessageSliceCmd
	var wait *redis.IntCmd
	_, _ = master.Pipelined(ctx, func(pipe redis.Pipeliner) error { // the commands keep their errors
		found = pipe.XRange(ctx, p.keys.handoff(lane), entry, entry)
		wait = r.wait(ctx)
		return pipe.Process(ctx, wait)
	})
	switch messages, err := found.Result(); {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrReplicas, err)
	case len(messages) == 0:
		return fmt.Errorf("%w: the master lacks hand-off %s", ErrReplicas, entry)
	}
	return r.waitError(wait)
}

// masterOf returns the master of a lane.
func (p *Pool) masterOf(ctx context.Context, lane int) (redis.Cmdable, error) {
	if c, ok := p.rdb.(*redis.ClusterClient); ok {
		return c.MasterForKey(ctx, p.keys.handoff(lane))
	}
	return p.rdb, nil
}

// markReplicated marks the lanes whose data just read is on enough replicas. Only their
// positions count: what a failover undoes was not acknowledged, and is no loss.
func (p *Pool) markReplicated(ctx context.Context, lanes []laneSnapshot) {
	checked := map[redis.Cmdable]bool{}
	for lane := range lanes {
		if p.cfg.Replicas == 0 {
			lanes[lane].replicated = true
			continue
		}
		master, err := p.masterOf(ctx, lane)
		if err != nil {
			continue
		}
		yes, known := checked[master]
		if !known {
			yes = p.checkReplicas(ctx, master) == nil
			checked[master] = yes
		}
		lanes[lane].replicated = yes
	}
}

// checkReplicas returns ErrReplicas while a server has too few replicas that keep up.
func (p *Pool) checkReplicas(ctx context.Context, c redis.Cmdable) error {
	if p.cfg.Replicas == 0 {
		return nil
	}
	r := replicaHook{n: p.cfg.Replicas, timeout: replicaWait(p.cfg)}
	var wait *redis.IntCmd
	_, _ = c.Pipelined(ctx, func(pipe redis.Pipeliner) error { // the command keeps its error
		pipe.Ping(ctx) // WAIT covers this command, not only earlier ones of the connection
		wait = r.wait(ctx)
		return pipe.Process(ctx, wait)
	})
	return r.waitError(wait)
}
