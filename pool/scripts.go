package pool

import (
	"context"
	"embed"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// The scripts. Each has a header that says what it does, which keys and
// arguments it takes and what it returns. KEYS[n] and ARGV[n] are single;
// KEYS[+n] and ARGV[+n] are the n-th of a group that follows the single ones
// any number of times.
//
// They begin with #!lua: then Redis refuses them as a whole, before the first
// line, when it is out of memory, read-only or cannot write to disk.
//
//go:embed *.lua
var scriptFiles embed.FS

var (
	createScript  = newScript("create")
	answerScript  = newScript("answer")
	openScript    = newScript("open")
	rejectScript  = newScript("reject")
	grabScript    = newScript("grab")
	recallScript  = newScript("recall")
	closeScript   = newScript("close")
	retireScript  = newScript("retire")
	listScript    = newScript("list")
	viewScript    = newScript("view")
	acquireScript = newScript("acquire")
	renewScript   = newScript("renew")
	releaseScript = newScript("release")
	dismissScript = newScript("dismiss")
	strayScript   = newScript("stray")
	paceScript    = newScript("pace")
	signinScript  = newScript("signin")
	raiseScript   = newScript("raise")
)

// scripts are all scripts by name, sources their texts.
var (
	scripts = map[string]*redis.Script{}
	sources = map[*redis.Script]string{}
)

func newScript(name string) *redis.Script {
	source, err := scriptFiles.ReadFile(name + ".lua")
	if err != nil {
		panic(err) // the file is not part of the program: a mistake at build time
	}
	s := redis.NewScript(string(source))
	scripts[name], sources[s] = s, string(source)
	return s
}

// loadScripts puts all scripts into Redis, so that no call has to carry one.
// After a restart of Redis they come back one by one (redis.Script.Run).
func loadScripts(ctx context.Context, c redis.Cmdable) error {
	for name, s := range scripts {
		if err := s.Load(ctx, c).Err(); err != nil {
			return redisError("load script "+name, err)
		}
	}
	return nil
}

// text, number and list read one element of a script's reply.

func text(reply []any, i int) (string, error) {
	if i < len(reply) {
		if s, ok := reply[i].(string); ok {
			return s, nil
		}
	}
	return "", fmt.Errorf("%w: script reply has no text at %d", ErrMalformed, i)
}

func number(reply []any, i int) (int64, error) {
	if i < len(reply) {
		if n, ok := reply[i].(int64); ok {
			return n, nil
		}
	}
	return 0, fmt.Errorf("%w: script reply has no number at %d", ErrMalformed, i)
}

func list(reply []any, i int) ([]any, error) {
	if i < len(reply) {
		if l, ok := reply[i].([]any); ok {
			return l, nil
		}
	}
	return nil, fmt.Errorf("%w: script reply has no list at %d", ErrMalformed, i)
}
