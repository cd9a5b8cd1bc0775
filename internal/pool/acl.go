package pool

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// keyPattern matches all keys of hongbao.
const keyPattern = "hb:*"

// right is a command that hongbao sends or that a script calls. Redis checks the user's
// rights for every command of a script. docs/scaling.md lists them for operators.
type right struct {
	command string              // a subcommand follows a blank
	keyless bool                // no key, or none that the check finds
	unless  func(c Config) bool // nil: always needed
}

// rights are all rights that the Redis user needs. Sentinels have users of their own.
var rights = func() []right {
	var all []right
	for command := range strings.FieldsSeq(`
		get mget set append getrange setrange strlen del unlink exists type pexpire pexpireat
		hget hmget hgetall hscan hlen hset hsetnx hincrby
		llen lrange rpush
		sadd smembers smismember
		zadd zcard zrem zrange zrangebyscore zrevrangebylex
		xadd xlen xrange xrevrange xack xdel xclaim xpending
		xgroup|create xgroup|delconsumer xinfo|groups xinfo|consumers
	`) {
		all = append(all, right{command: strings.ReplaceAll(command, "|", " ")})
	}
	never := func(Config) bool { return true }
	return append(all,
		// The keys of these come after more words than the check sends.
		right{command: "xread", keyless: true}, right{command: "xreadgroup", keyless: true},
		right{command: "eval", keyless: true}, right{command: "evalsha", keyless: true}, right{command: "script load", keyless: true},
		right{command: "ping", keyless: true}, right{command: "time", keyless: true}, right{command: "info", keyless: true},
		right{command: "config get", keyless: true, unless: func(c Config) bool { return c.AllowVolatile }},
		right{command: "bgrewriteaof", keyless: true, unless: never}, // hosted services do not grant it
		right{command: "wait", keyless: true, unless: func(c Config) bool { return c.Replicas == 0 }},
		right{command: "role", keyless: true, unless: func(c Config) bool { return c.Mode != ModeSentinel }},
		right{command: "cluster slots", keyless: true, unless: func(c Config) bool { return c.Mode != ModeCluster }},
		right{command: "asking", keyless: true, unless: func(c Config) bool { return c.Mode != ModeCluster }},
	)
}()

// rule returns the right as ACL SETUSER writes it.
func (r right) rule() string { return "+" + strings.ReplaceAll(r.command, " ", "|") }

// RightsError is an ErrRights that lists the missing rights.
type RightsError struct {
	// Rules grant the missing rights, as words of ACL SETUSER.
	Rules []string
}

// Error implements error.
func (e *RightsError) Error() string {
	return fmt.Sprintf("%v: %s", ErrRights, strings.Join(e.Rules, " "))
}

// Unwrap returns ErrRights and ErrUnavailable.
func (e *RightsError) Unwrap() []error { return []error{ErrRights, ErrUnavailable} }

// checkRights returns a *RightsError when the user lacks a needed right. Otherwise a missing
// right shows only at the first call that needs it, and in a script as an error without a
// code (Redis 7.0).
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
		return redisError("check rights", err)
	}
	lack := &RightsError{}
	for _, position := range refused {
		r := needed[position-1]
		lack.Rules = append(lack.Rules, r.rule())
		if !r.keyless {
			keyed--
		}
	}
	if keyed == 0 { // all commands with keys are refused: the key pattern may be missing
		lack.Rules = slices.Insert(lack.Rules, 0, "~"+keyPattern)
	}
	return lack
}

// minWords is the minimum number of words of a command, its name included; 2 when missing
// here. Servers with the security releases of 2025 require it even for a rights check
// (redis.acl_check_cmd). Earlier servers crash when words are missing among which they look
// for keys.
var minWords = map[string]int{
	"time": 1, "ping": 1, "info": 1, "role": 1, "asking": 1, "bgrewriteaof": 1,
	"append": 3, "hget": 3, "hmget": 3, "hscan": 3, "incrby": 3, "pexpire": 3, "pexpireat": 3, "rpush": 3, "sadd": 3, "set": 3,
	"smismember": 3, "xdel": 3, "xpending": 3, "zrem": 3, "config get": 3, "script load": 3, "wait": 3, "xinfo groups": 3,
	"hincrby": 4, "hset": 4, "hsetnx": 4, "lrange": 4, "getrange": 4, "setrange": 4, "xack": 4, "xrange": 4, "xrevrange": 4, "zadd": 4,
	"zrange": 4, "xread": 4, "zrangebyscore": 4, "zrevrangebylex": 4, "xinfo consumers": 4,
	"xadd": 5, "xgroup create": 5, "xgroup delconsumer": 5, "xclaim": 6, "xreadgroup": 7,
}

// probeCommand returns the words with which the rights check tests a command on a key.
func probeCommand(command, key string) []string {
	if command == "eval" || command == "evalsha" {
		return []string{command, key, "0"} // Valkey 9.1 crashes without the number of keys
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
