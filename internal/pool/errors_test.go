package pool

import (
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/packet"
	"hongbao/test/wait"
)

// reply is an error reply of a server.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

// TestReplies: transient error replies are ErrUnavailable, by each code, alone and repeated
// by a script. Replies to mistakes of ours are not.
func TestReplies(t *testing.T) {
	t.Parallel()
	for _, said := range []string{
		"LOADING Redis is loading the dataset in memory",
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
		"READONLY You can't write against a read only replica.",
		"MISCONF Errors writing to the AOF file: No space left on device",
		"NOREPLICAS Not enough good replicas to write.",
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
		"CLUSTERDOWN Hash slot not served", "TRYAGAIN Multiple keys request during rehashing of slot",
		"OOM command not allowed when used memory > 'maxmemory'.", "EXECABORT Transaction discarded because of previous errors.",
		"UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)",
		"NOSCRIPT No matching script. Please use EVAL.", "ERR max number of clients reached",
		"MOVED 3999 127.0.0.1:6381", "ASK 3999 127.0.0.1:6381", "REDIRECT 127.0.0.1:6381",
		"NOMASTERLINK Can't SYNC while not connected with my master",
		"INPROG Failover already in progress", "IOERR error or timeout writing to target instance",
		"ERR Script killed by user with SCRIPT KILL... script: 694c, on @user_script:1.",
	} {
		for _, text := range []string{said, said + " script: f1a5, on @user_script:7."} {
			err := redisError("grab", reply(text))
			if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrAccess) || !strings.Contains(err.Error(), said) {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
	for _, said := range []string{"WRONGTYPE Operation against a key holding the wrong kind of value", "ERR unknown command 'HMGET'",
		"ERR user_script:7: attempt to compare nil with number script: f1a5, on @user_script:7.", "BUSYGROUP Consumer Group name already exists",
		"CROSSSLOT Keys in request don't hash to the same slot"} {
		if err := redisError("grab", reply(said)); errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v", said, err)
		}
	}
	wantErr(t, redisError("grab", reply("DENIED Redis is running in protected mode because")), ErrProtected, ErrAccess, ErrUnavailable)
}

// TestScriptKilled: a script that an operator kills has changed nothing, and its call may be
// repeated. While it runs, no connection is served.
func TestScriptKilled(t *testing.T) {
	t.Parallel()
	server := stacktest.FreshRedis(t, "--busy-reply-threshold", "20")
	p := openAt(t, Config{Addr: server.Addr})
	pk := newPacket(t, 2)
	openPacket(t, p, pk)
	c := admin(t, server.Addr)
	killed := make(chan error)
	go func() {
		err := p.rdb.Eval(t.Context(), "while true do end", nil).Err()
		killed <- redisError("ask", err)
	}()
	wait.Until(t, "the script keeps the server busy", func() bool { return redis.HasErrorPrefix(c.Ping(t.Context()).Err(), "BUSY") })
	_, errGrab := p.Grab(t.Context(), pk.ID, "u", packet.Profile{})
	_, errOpen := Open(t.Context(), Config{Addr: server.Addr, Timeout: patience, Logger: quiet})
	for what, err := range map[string]error{"grab": errGrab, "open": errOpen, "ping": p.Ping(t.Context()), "durable": p.Durable(t.Context())} {
		if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrVolatile) {
			t.Errorf("%s of a busy server: %v", what, err)
		}
	}
	must(t, c.ScriptKill(t.Context()).Err())
	if err := wait.For(t, "the script ends", killed); !errors.Is(err, ErrUnavailable) {
		t.Errorf("killed: %v", err)
	}
	if g := mustGrab(t, p, pk.ID, "u"); g.Result != packet.GrabWon {
		t.Errorf("afterwards: %+v", g)
	}
}
