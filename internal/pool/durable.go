package pool

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// VolatileError is an ErrVolatile with the server's settings. It is an ErrUnavailable too:
// without durable writes no grabs are accepted.
type VolatileError struct {
	AppendOnly      string // must be yes
	AppendFsync     string // must be always
	MaxMemoryPolicy string // must be noeviction
	// NoFsyncOnRewrite is no-appendfsync-on-rewrite, which must be no: with yes, every
	// fsync is suspended during a rewrite of the file, even with appendfsync always.
	NoFsyncOnRewrite string
	// Denied: our user may not read them (config|get). Then it is an ErrRights too.
	Denied bool
}

// Error implements error.
func (e *VolatileError) Error() string {
	text := fmt.Sprintf("redis may lose acknowledged writes: appendonly %s (needs yes), appendfsync %s (needs always), maxmemory-policy %s "+
		"(needs noeviction), no-appendfsync-on-rewrite %s (needs no)",
		e.AppendOnly, e.AppendFsync, e.MaxMemoryPolicy, e.NoFsyncOnRewrite)
	if e.Denied {
		text += "; our user may not read them, rights are missing: +config|get"
	}
	return text
}

// Unwrap returns ErrVolatile and ErrUnavailable, and ErrRights when reading is denied.
func (e *VolatileError) Unwrap() []error {
	errs := []error{ErrVolatile, ErrUnavailable}
	if e.Denied {
		errs = append(errs, ErrRights)
	}
	return errs
}

func (e *VolatileError) durable() bool {
	return e.AppendOnly == "yes" && e.AppendFsync == "always" && e.MaxMemoryPolicy == "noeviction" && e.NoFsyncOnRewrite == "no"
}

// Durable checks again that Redis keeps what it acknowledges, in two round trips. It returns
// nil when that is so or volatile writes are allowed, and enough replicas keep up. Otherwise
// it returns ErrVolatile, or an ErrUnavailable such as ErrRewrite.
//
// On a Cluster one reachable master suffices, when no reachable master loses writes: callers
// of its lanes need this process.
func (p *Pool) Durable(ctx context.Context) error {
	check := p.cfg.durability.checkConnected
	if p.cfg.AllowVolatile {
		check = func(ctx context.Context, c redis.Cmdable) error { return c.Ping(ctx).Err() }
	}
	return p.everyMaster(ctx, "check durability", func(ctx context.Context, c redis.Cmdable) error {
		if err := check(ctx, c); err != nil {
			return err
		}
		return p.checkReplicas(ctx, c)
	}).availableErr()
}

// unknownSetting stands for a setting that the server does not return. It counts as wrong.
const unknownSetting = "unknown"

// durabilityChecker remembers the masters that append to a file named in their manifest. A
// server whose append-only file was switched on while it ran does not. Until its first
// rewrite ends, it appends to a file that no start reads, although settings and INFO look
// right (aof_state AOF_WAIT_REWRITE of Redis). A replica switches its file on after each
// full synchronisation; on a master CONFIG SET appendonly yes does.
//
// An ordinary rewrite looks the same in INFO and loses nothing. WAITAOF (Redis 7.2) does not
// distinguish them: Redis 8.0.2 confirms writes that a kill loses. A rewrite on a known
// master is ordinary. A promotion changes the replication id, and a start the run id.
type durabilityChecker struct {
	mu    sync.Mutex
	known map[string]bool // run id and replication id
	// rechecks are the due checks of servers with open connections, by address.
	rechecks map[string]*recheck
}

func newDurabilityChecker() *durabilityChecker {
	return &durabilityChecker{known: map[string]bool{}, rechecks: map[string]*recheck{}}
}

func (s *durabilityChecker) note(server string, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !is {
		delete(s.known, server)
		return
	}
	s.known[server] = true
}

func (s *durabilityChecker) knows(server string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[server]
}

// durableSettings are the settings that make Redis keep what it acknowledges.
var durableSettings = []string{"appendonly", "appendfsync", "maxmemory-policy", "no-appendfsync-on-rewrite"}

// check returns nil, a *VolatileError, ErrRewrite, ErrUnavailable while the server loads its
// file, or the client's error.
func (s *durabilityChecker) check(ctx context.Context, c redis.Cmdable) error {
	ctx = skipRecheck(ctx)
	values := map[string]string{}
	for _, name := range durableSettings {
		values[name] = unknownSetting
	}
	var replies []*redis.MapStringStringCmd
	var info *redis.StringCmd
	_, _ = c.Pipelined(ctx, func(pipe redis.Pipeliner) error { // each command keeps its error
		for _, name := range durableSettings {
			replies = append(replies, pipe.ConfigGet(ctx, name))
		}
		info = pipe.Info(ctx, "server", "memory", "persistence", "replication")
		return nil
	})
	fields, err := readInfo(info)
	if err != nil {
		return err
	}
	if fields["loading"] == "1" { // INFO says aof_enabled:0 until the file is read
		return fmt.Errorf("redis is loading its data: %w", ErrUnavailable)
	}
	found := &VolatileError{}
	for i, name := range durableSettings {
		got, err := replies[i].Result()
		switch {
		case err == nil:
			if v, ok := got[name]; ok {
				values[name] = v
			}
		case !isReply(err) || isTransient(err):
			return err
		default: // CONFIG is forbidden, as on hosted servers
			found.Denied = found.Denied || redis.IsPermissionError(err)
			values["maxmemory-policy"] = fields["maxmemory_policy"]
			values["appendonly"] = map[string]string{"0": "no", "1": "yes"}[fields["aof_enabled"]]
		}
	}
	if fields["aof_enabled"] == "0" { // switched off while a replica synchronises
		values["appendonly"] = "no"
	}
	found.AppendOnly, found.AppendFsync = values["appendonly"], values["appendfsync"]
	found.MaxMemoryPolicy, found.NoFsyncOnRewrite = values["maxmemory-policy"], values["no-appendfsync-on-rewrite"]
	server := fields["run_id"] + " " + fields["master_replid"]
	if !found.durable() {
		s.note(server, false)
		return found
	}
	return s.checkFile(server, fields)
}

// checkFile returns ErrRewrite unless the server appends to a file that its next start
// reads. fields is its INFO.
func (s *durabilityChecker) checkFile(server string, fields map[string]string) error {
	if fields["aof_rewrite_in_progress"] == "0" && fields["aof_rewrite_scheduled"] == "0" {
		s.note(server, fields["role"] == "master") // a replica may switch its file off again
		return nil
	}
	kept := s.knows(server) || neverSwitched(fields)
	s.note(server, kept)
	if !kept {
		return fmt.Errorf("%w: aof_rewrite_in_progress %s, aof_rewrite_scheduled %s, aof_last_bgrewrite_status %s", ErrRewrite,
			fields["aof_rewrite_in_progress"], fields["aof_rewrite_scheduled"], fields["aof_last_bgrewrite_status"])
	}
	return nil
}

// neverSwitched reports whether INFO proves that the append-only file is the one of the
// server's start: it was no replica (master_replid2 is its former master's), it has read or
// rewritten a file, and no rewrite failed.
func neverSwitched(fields map[string]string) bool {
	return fields["role"] == "master" && fields["master_replid2"] == strings.Repeat("0", 40) &&
		fields["aof_base_size"] != "" && fields["aof_base_size"] != "0" && fields["aof_last_bgrewrite_status"] == "ok"
}

// readInfo returns the fields of INFO.
func readInfo(cmd *redis.StringCmd) (map[string]string, error) {
	text, err := cmd.Result()
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}

// isLossy reports whether an error means that a server may lose acknowledged writes.
func isLossy(err error) bool {
	return errors.Is(err, ErrVolatile) || errors.Is(err, ErrReplicas) || errors.Is(err, ErrRewrite)
}
