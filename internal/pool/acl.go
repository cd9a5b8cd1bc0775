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
		get set del unlink exists type pexpire pexpireat
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
	var args []any
	var needed []right
	keyed := 0
	for _, r := range rights {
		if r.unless != nil && r.unless(cfg) {
			continue
		}
		args = append(args, strings.Join(probeCommand(r.command, keyLanes(0)), " "))
		needed = append(needed, r)
		if !r.keyless {
			keyed++
		}
	}
	refused, err := aclScript.Run(ctx, c, nil, args...).Int64Slice()
	if err != nil || len(refused) == 0 {
		return redisError("ask about rights", err)
	}
	lack := &RightsError{}
	for _, place := range refused {
		r := needed[place-1]
		lack.Rules = append(lack.Rules, r.rule())
		if !r.keyless {
			keyed--
		}
	}
	if keyed == 0 { // none of them on our keys: it may be the keys
		lack.Rules = slices.Insert(lack.Rules, 0, "~"+keyPattern)
	}
	return lack
}

// minWords is how many words a command has at least, its own among them; two where it is
// missing. A server with the security releases of 2025 asks for them even when it is only
// asked about a right (redis.acl_check_cmd); one without them ends when words are missing
// between which it looks for keys.
var minWords = map[string]int{
	"time": 1, "ping": 1, "info": 1, "role": 1, "asking": 1, "bgrewriteaof": 1,
	"hget": 3, "hmget": 3, "hscan": 3, "incrby": 3, "lindex": 3, "pexpire": 3, "pexpireat": 3, "rpush": 3, "sadd": 3, "set": 3,
	"smismember": 3, "xdel": 3, "xpending": 3, "zrem": 3, "config get": 3, "script load": 3, "wait": 3, "xinfo groups": 3,
	"hincrby": 4, "hset": 4, "hsetnx": 4, "lrange": 4, "ltrim": 4, "xack": 4, "xrange": 4, "xrevrange": 4, "zadd": 4, "zrange": 4,
	"zrangebyscore": 4, "zrevrangebylex": 4, "xinfo consumers": 4,
	"xadd": 5, "xgroup create": 5, "xgroup delconsumer": 5, "xclaim": 6, "xreadgroup": 7,
}

// probeCommand returns the words with which a server is asked whether its user may run a
// command on a key.
func probeCommand(command, key string) []string {
	if command == "eval" || command == "evalsha" {
		return []string{command, key, "0"} // Valkey 9.1 ends when it is asked without a number of keys
	}
	words := strings.Fields(command)
	least, ok := minWords[command]
	if !ok {
		least = 2
	}
	for len(words) < least {
		words = append(words, key)
	}
	return words
}
