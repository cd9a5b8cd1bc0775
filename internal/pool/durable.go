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

// VolatileError is an ErrVolatile with the settings that were met. It is an
// ErrUnavailable too: without durable writes no grabs are taken.
type VolatileError struct {
	AppendOnly      string // must be yes
	AppendFsync     string // must be always
	MaxMemoryPolicy string // must be noeviction
	// NoFsyncOnRewrite is no-appendfsync-on-rewrite, which must be no: with yes a rewrite
	// of the file, however long it takes, suspends every fsync, also that of always.
	NoFsyncOnRewrite string
	// Denied: our user may not ask for them (config|get), which makes it an ErrRights.
	Denied bool
}

// Error implements error.
func (e *VolatileError) Error() string {
	text := fmt.Sprintf("redis may lose acknowledged writes: appendonly %s (needs yes), appendfsync %s (needs always), maxmemory-policy %s "+
		"(needs noeviction), no-appendfsync-on-rewrite %s (needs no)",
		e.AppendOnly, e.AppendFsync, e.MaxMemoryPolicy, e.NoFsyncOnRewrite)
	if e.Denied {
		text += "; our user may not ask for them, rights are missing: +config|get"
	}
	return text
}

// Is makes it an ErrVolatile and an ErrUnavailable, and an ErrRights when it is denied.
func (e *VolatileError) Is(target error) bool {
	return target == ErrVolatile || target == ErrUnavailable || e.Denied && (target == ErrRights || target == ErrAccess)
}

func (e *VolatileError) durable() bool {
	return e.AppendOnly == "yes" && e.AppendFsync == "always" && e.MaxMemoryPolicy == "noeviction" && e.NoFsyncOnRewrite == "no"
}

// Durable checks again that Redis keeps what it acknowledges: two round trips. It returns
// nil when that is so or when volatile writes are allowed, and enough replicas keep up;
// else ErrVolatile, or ErrUnavailable alone, of which ErrRewrite is one.
//
// On a Cluster it is so when some master answers and none that answers loses
// writes: as long as one lane can be served, its callers need this process.
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

// unknownSetting stands for a setting that the server does not return. What
// cannot be confirmed counts as missing.
const unknownSetting = "unknown"

// settled knows the masters that were seen to append to a file which their manifest
// names. A server whose append-only file was switched on while it ran does not: until its
// first rewrite ends, it appends to a file that no start reads, although the settings and
// INFO say that all is well (aof_state AOF_WAIT_REWRITE of Redis). A replica switches its
// file on after each full synchronisation, CONFIG SET appendonly yes does it on a master.
//
// An ordinary rewrite looks the same in INFO, and loses nothing. WAITAOF (Redis 7.2) does
// not tell them apart: Redis 8.0.2 confirms what is gone after a kill. One seen on a settled
// master is ordinary. A promotion gives a master another replication id, and a start
// another run id.
type durabilityChecker struct {
	mu    sync.Mutex
	known map[string]bool // run id and replication id
	// suspicions is what became known of a server since its connections were opened, by address.
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

// durableSettings are what makes Redis keep what it acknowledges.
var durableSettings = []string{"appendonly", "appendfsync", "maxmemory-policy", "no-appendfsync-on-rewrite"}

// check returns nil, a *VolatileError, an ErrRewrite or the client's error.
func (s *durabilityChecker) check(ctx context.Context, c redis.Cmdable) error {
	ctx = skipRecheck(ctx)
	values := map[string]string{}
	for _, name := range durableSettings {
		values[name] = unknownSetting
	}
	var asked []*redis.MapStringStringCmd
	var info *redis.StringCmd
	_, _ = c.Pipelined(ctx, func(pipe redis.Pipeliner) error { // each command keeps its error
		for _, name := range durableSettings {
			asked = append(asked, pipe.ConfigGet(ctx, name))
		}
		info = pipe.Info(ctx, "server", "memory", "persistence", "replication")
		return nil
	})
	said, err := readInfo(info)
	if err != nil {
		return err
	}
	found := &VolatileError{}
	for i, name := range durableSettings {
		got, err := asked[i].Result()
		switch {
		case err == nil:
			if v, ok := got[name]; ok {
				values[name] = v
			}
		case !isReply(err) || isTransient(err):
			return err
		default: // CONFIG is forbidden, as hosted servers do
			found.Denied = found.Denied || redis.IsPermissionError(err)
			values["maxmemory-policy"] = said["maxmemory_policy"]
			values["appendonly"] = map[string]string{"0": "no", "1": "yes"}[said["aof_enabled"]]
		}
	}
	if said["aof_enabled"] == "0" { // it is switched off for as long as a replica synchronises
		values["appendonly"] = "no"
	}
	found.AppendOnly, found.AppendFsync = values["appendonly"], values["appendfsync"]
	found.MaxMemoryPolicy, found.NoFsyncOnRewrite = values["maxmemory-policy"], values["no-appendfsync-on-rewrite"]
	server := said["run_id"] + " " + said["master_replid"]
	if !found.durable() {
		s.note(server, false)
		return found
	}
	return s.checkFile(server, said)
}

// checkFile returns an ErrRewrite unless the server appends to a file that its next start
// reads. said is its INFO.
func (s *durabilityChecker) checkFile(server string, said map[string]string) error {
	if said["aof_rewrite_in_progress"] == "0" && said["aof_rewrite_scheduled"] == "0" {
		s.note(server, said["role"] == "master") // the file of a replica may be switched off again
		return nil
	}
	kept := s.knows(server) || neverSwitched(said)
	s.note(server, kept)
	if !kept {
		return fmt.Errorf("%w: aof_rewrite_in_progress %s, aof_rewrite_scheduled %s, aof_last_bgrewrite_status %s", ErrRewrite,
			said["aof_rewrite_in_progress"], said["aof_rewrite_scheduled"], said["aof_last_bgrewrite_status"])
	}
	return nil
}

// neverSwitched reports whether INFO shows that the append-only file is the one that the
// server started with: it was no replica before (master_replid2 is that of its master), it
// has read or rewritten a file, and no rewrite has failed.
func neverSwitched(said map[string]string) bool {
	return said["role"] == "master" && said["master_replid2"] == strings.Repeat("0", 40) &&
		said["aof_base_size"] != "" && said["aof_base_size"] != "0" && said["aof_last_bgrewrite_status"] == "ok"
}

// readInfo returns the fields of an INFO.
func readInfo(cmd *redis.StringCmd) (map[string]string, error) {
	text, err := cmd.Result()
	if err != nil {
		return nil, err
	}
	said := map[string]string{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok {
			said[name] = value
		}
	}
	return said, nil
}

// isLossy reports whether an error says that a server may lose what it acknowledges.
func isLossy(err error) bool {
	return errors.Is(err, ErrVolatile) || errors.Is(err, ErrReplicas) || errors.Is(err, ErrRewrite)
}
