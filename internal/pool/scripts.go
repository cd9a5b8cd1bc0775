package pool

import (
	"context"
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// The scripts. Each has a header with its purpose, keys, arguments and results. KEYS[n]
// and ARGV[n] are single; KEYS[+n] and ARGV[+n] are the n-th of a group that follows the
// single ones and repeats any number of times.
//
// They begin with #!lua: then Redis refuses a script as a whole, before its first line,
// when it is read-only or cannot write to disk. At its memory limit it refuses the
// scripts that begin something new: create.lua, open.lua, grab.lua and limit.lua. All
// others have flags=allow-oom: they end, pay, lease or remove, and without them no memory
// would be freed. What they add is little, or is removed soon after.
//
//go:embed *.lua
var scriptFiles embed.FS

var (
	createScript   = newScript("create")
	answerScript   = newScript("answer")
	openScript     = newScript("open")
	rejectScript   = newScript("reject")
	actionScript   = newScript("action")
	grabScript     = newScript("grab")
	recallScript   = newScript("recall")
	closeScript    = newScript("close")
	keepScript     = newScript("keep")
	retireScript   = newScript("retire")
	indexScript    = newScript("index")
	viewScript     = newScript("view")
	acquireScript  = newScript("acquire")
	renewScript    = newScript("renew")
	releaseScript  = newScript("release")
	dismissScript  = newScript("dismiss")
	orphansScript  = newScript("orphans")
	groupScript    = newScript("group")
	ackScript      = newScript("ack")
	throttleScript = newScript("throttle")
	limitScript    = newScript("limit")
	raiseScript    = newScript("raise")
	aclScript      = newScript("acl")
)

// dryRunScript is grab.lua for a Redis at its memory limit: it takes nothing (dryRun), so
// it needs no memory.
var dryRunScript = func() *redis.Script {
	const writes, reads = "#!lua\n", "#!lua flags=no-writes\n"
	source := sources[grabScript]
	if !strings.HasPrefix(source, writes) {
		panic("grab.lua does not begin with " + writes) // a mistake at build time
	}
	source = reads + strings.TrimPrefix(source, writes)
	s := redis.NewScript(source)
	sources[s] = source
	return s
}()

// dryRun is the prefix of a call's mark with which grab.lua takes nothing.
const dryRun = "?"

// scripts are all scripts by name, sources their sources.
var (
	scripts = map[string]*redis.Script{}
	sources = map[*redis.Script]string{}
)

func newScript(name string) *redis.Script {
	source, err := scriptFiles.ReadFile(name + ".lua")
	if err != nil {
		panic(err) // the file is not embedded: a mistake at build time
	}
	text := string(source)
	if name != "grab" { // its writes are in an order in which a refused one does no harm
		text = withRights(text)
	}
	s := redis.NewScript(text)
	scripts[name], sources[s] = s, text
	return s
}

// commandNames finds the commands that a script calls.
var commandNames = regexp.MustCompile(`redis\.p?call\('([A-Z]+)'`)

// withRights adds to a writing script a check that its user may run all its commands. Redis
// checks each command only when it runs, and rolls nothing back. An operator may revoke a
// right at any time. The check is on the first line, so that line numbers stay.
func withRights(source string) string {
	head, rest, _ := strings.Cut(source, "\n")
	var checks, names []string
	for _, call := range commandNames.FindAllStringSubmatch(rest, -1) {
		if slices.Contains(names, call[1]) || call[1] == "XGROUP" || call[1] == "XINFO" { // their rights are by subcommand
			continue
		}
		names = append(names, call[1])
		words := probeCommand(strings.ToLower(call[1]), "KEYS[1]")
		words[0] = "'" + call[1] + "'"
		checks = append(checks, "{"+strings.Join(words, ", ")+"}")
	}
	if len(names) < 2 || strings.Contains(head, "no-writes") {
		return source
	}
	return head + "\nfor _, words in ipairs({" + strings.Join(checks, ", ") + "}) do if not redis.acl_check_cmd(unpack(words)) then return " +
		"redis.error_reply('NOPERM +' .. string.lower(words[1])) end end " + rest
}

// loadScripts loads all scripts into Redis, so that no call has to send a source. After a
// restart of Redis each is loaded by its next call (redis.Script.Run).
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
