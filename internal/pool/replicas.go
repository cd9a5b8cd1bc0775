package pool

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// promises are the scripts whose outcome somebody is told: it must not be undone by
// a replica that takes over and lacks it.
var acknowledgedScripts = []*redis.Script{createScript, answerScript, openScript, rejectScript, grabScript, dryRunScript, recallScript, closeScript,
	retireScript}

// replicated lets a client of one server answer such a script only when enough
// replicas have everything that the server had written by then: it sends WAIT behind
// it, on the same connection. Reads of the script count too: Redis takes the state at
// the end of a connection's last command, whatever that was, so an earlier claim is
// not told either before the replicas have it.
//
// That bounds what a failover loses to what nobody was told. It is no consensus: a
// master that was cut off from clients and replicas alike must not come back as one.
type replicaHook struct {
	client  *redis.Client
	n       int
	timeout time.Duration
}

// acknowledgedTexts are the names by which such a script is called: its hash, and its text.
var acknowledgedTexts = func() map[string]bool {
	all := map[string]bool{}
	for _, s := range acknowledgedScripts {
		all[s.Hash()], all[sources[s]] = true, true
	}
	return all
}()

// addReplicated hooks it into the client of one server.
func addReplicated(c *redis.Client, cfg Config) *redis.Client {
	if cfg.Replicas > 0 {
		c.AddHook(&replicaHook{client: c, n: cfg.Replicas, timeout: replicaWait(cfg)})
	}
	return c
}

// replicaWait is how long a call waits for replicas: its answer still has to come
// within the time of one round trip.
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

// missing says why it is not known that enough replicas have it.
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

// promised reports whether a command is a script whose outcome somebody is told.
func isAcknowledged(cmd redis.Cmder) bool {
	args := cmd.Args()
	if len(args) < 2 || cmd.Name() != "evalsha" && cmd.Name() != "eval" {
		return false
	}
	text, ok := args[1].(string)
	return ok && acknowledgedTexts[text]
}

// followed returns an ErrReplicas unless enough replicas have what the master of a lane
// has by now, and it has a hand-off that was read, perhaps from its predecessor: entry is
// its id, "" for none. Hand-offs and claims are read only then: the payout of a claim
// that a failover undoes would go to somebody who was told nothing, and whoever gets the
// share then is told that it is his.
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
		return fmt.Errorf("%w: the master lacks hand-off %s too", ErrReplicas, entry)
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

// markReplicated tells for each lane whether enough replicas have what was just read of
// it. How far a lane has come counts only then: what a failover takes back was told to
// nobody, and is nothing that the lane lacks afterwards (rule R9).
func (p *Pool) markReplicated(ctx context.Context, sights []laneSnapshot) {
	asked := map[redis.Cmdable]bool{}
	for lane := range sights {
		if p.cfg.Replicas == 0 {
			sights[lane].replicated = true
			continue
		}
		master, err := p.masterOf(ctx, lane)
		if err != nil {
			continue
		}
		yes, known := asked[master]
		if !known {
			yes = p.checkReplicas(ctx, master) == nil
			asked[master] = yes
		}
		sights[lane].replicated = yes
	}
}

// checkReplicas returns an ErrReplicas while a server has too few replicas that
// keep up.
func (p *Pool) checkReplicas(ctx context.Context, c redis.Cmdable) error {
	if p.cfg.Replicas == 0 {
		return nil
	}
	r := replicaHook{n: p.cfg.Replicas, timeout: replicaWait(p.cfg)}
	var wait *redis.IntCmd
	_, _ = c.Pipelined(ctx, func(pipe redis.Pipeliner) error { // the command keeps its error
		pipe.Ping(ctx) // the state at the end of this one, not of what the connection did before
		wait = r.wait(ctx)
		return pipe.Process(ctx, wait)
	})
	return r.waitError(wait)
}
