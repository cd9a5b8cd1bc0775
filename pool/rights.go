package pool

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// keyPattern is what all our keys begin with.
const keyPattern = "hb:*"

// right is a command that we send, or that a script calls: Redis looks at the rights of
// the user of a script for every command in it. docs/scaling.md tells operators.
type right struct {
	command string              // a blank before a subcommand
	keyless bool                // it names no key, or none where Redis looks when asked
	unless  func(c Config) bool // nil: it is always needed
}

// rights are all that the user of Redis has to have. Sentinels are asked by theirs.
var rights = func() []right {
	var all []right
	for command := range strings.FieldsSeq(`
		get set incrby del unlink exists type pexpire pexpireat
		hget hmget hgetall hscan hlen hset hsetnx hincrby
		lindex llen lpop lrange ltrim rpush
		sadd smembers smismember
		zadd zcard zrem zrange zrangebyscore zrevrangebylex
		xadd xlen xrange xrevrange xack xdel xclaim xpending
		xgroup|create xgroup|delconsumer xinfo|groups xinfo|consumers
	`) {
		all = append(all, right{command: strings.ReplaceAll(command, "|", " ")})
	}
	never := func(Config) bool { return true }
	return append(all,
		right{command: "xreadgroup", keyless: true}, // its keys stand behind more than we ask with
		right{command: "eval", keyless: true}, right{command: "evalsha", keyless: true}, right{command: "script load", keyless: true},
		right{command: "ping", keyless: true}, right{command: "time", keyless: true}, right{command: "info", keyless: true},
		right{command: "config get", keyless: true, unless: func(c Config) bool { return c.AllowVolatile }},
		right{command: "bgrewriteaof", keyless: true, unless: never}, // hosted ones keep it for themselves
		right{command: "wait", keyless: true, unless: func(c Config) bool { return c.Replicas == 0 }},
		right{command: "role", keyless: true, unless: func(c Config) bool { return c.Mode != ModeSentinel }},
		right{command: "cluster slots", keyless: true, unless: func(c Config) bool { return c.Mode != ModeCluster }},
		right{command: "asking", keyless: true, unless: func(c Config) bool { return c.Mode != ModeCluster }},
	)
}()

// rule is how ACL SETUSER names the right.
func (r right) rule() string { return "+" + strings.ReplaceAll(r.command, " ", "|") }

// RightsError is an ErrRights that says what the user lacks.
type RightsError struct {
	// Rules give it, as words of ACL SETUSER.
	Rules []string
}

// Error implements error.
func (e *RightsError) Error() string {
	return fmt.Sprintf("%v: %s", ErrRights, strings.Join(e.Rules, " "))
}

// Is makes it an ErrRights, an ErrAccess and an ErrUnavailable.
func (e *RightsError) Is(target error) bool {
	return target == ErrRights || target == ErrAccess || target == ErrUnavailable
}

// checkRights returns a *RightsError when the user of a server may not do all that we
// need. Without it a lack would show only where it is met, and in a script as an error
// that older servers give no code (Redis 7.0).
func checkRights(ctx context.Context, c redis.Cmdable, cfg Config) error {
	args := []any{keyLanes(0)}
	needed := map[string]right{}
	keyed := 0
	for _, r := range rights {
		if r.unless != nil && r.unless(cfg) {
			continue
		}
		args = append(args, r.command)
		needed[r.command] = r
		if !r.keyless {
			keyed++
		}
	}
	refused, err := rightsScript.Run(ctx, c, nil, args...).StringSlice()
	if err != nil || len(refused) == 0 {
		return redisError("ask about rights", err)
	}
	lack := &RightsError{}
	for _, command := range refused {
		lack.Rules = append(lack.Rules, needed[command].rule())
		if !needed[command].keyless {
			keyed--
		}
	}
	if keyed == 0 { // none of them on our keys: it may be the keys
		lack.Rules = slices.Insert(lack.Rules, 0, "~"+keyPattern)
	}
	return lack
}
