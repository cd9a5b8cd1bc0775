package pool

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// VolatileError is an ErrVolatile with the settings that were met. It is an
// ErrUnavailable too: without durable writes no grabs are taken.
type VolatileError struct {
	AppendOnly      string // must be yes
	AppendFsync     string // must be always
	MaxMemoryPolicy string // must be noeviction
	// Denied: our user may not ask for them (config|get), which makes it an ErrRights.
	Denied bool
}

// Error implements error.
func (e *VolatileError) Error() string {
	text := fmt.Sprintf("redis may lose acknowledged writes: appendonly %s (needs yes), appendfsync %s (needs always), maxmemory-policy %s "+
		"(needs noeviction)",
		e.AppendOnly, e.AppendFsync, e.MaxMemoryPolicy)
	if e.Denied {
		text += "; our user may not ask for them, rights are missing: +config|get"
	}
	return text
}

// Is makes it an ErrVolatile and an ErrUnavailable, and an ErrRights when it is denied.
func (e *VolatileError) Is(target error) bool {
	return target == ErrVolatile || target == ErrUnavailable || e.Denied && (target == ErrRights || target == ErrAccess)
}

// Durable checks again that Redis keeps what it acknowledges: three
// commands as cheap as a ping. It returns nil when that is so or when volatile
// writes are allowed, and enough replicas keep up; else ErrVolatile, or
// ErrUnavailable alone.
//
// On a Cluster it is so when some master answers and none that answers loses
// writes: as long as one lane can be served, its callers need this process.
func (p *Pool) Durable(ctx context.Context) error {
	check := checkDurable
	if p.cfg.AllowVolatile {
		check = func(ctx context.Context, c redis.Cmdable) error { return c.Ping(ctx).Err() }
	}
	return p.everyMaster(ctx, "check durability", func(ctx context.Context, c redis.Cmdable) error {
		if err := check(ctx, c); err != nil {
			return err
		}
		return p.checkReplicas(ctx, c)
	}).living()
}

// unknownSetting stands for a setting that the server does not tell. What
// cannot be confirmed counts as missing.
const unknownSetting = "unknown"

// checkDurable returns nil, a *VolatileError or the client's error.
func checkDurable(ctx context.Context, c redis.Cmdable) error {
	found := &VolatileError{AppendOnly: unknownSetting, AppendFsync: unknownSetting, MaxMemoryPolicy: unknownSetting}
	err := found.fromConfig(ctx, c)
	if err != nil && isReply(err) && !redis.IsLoadingError(err) {
		found.Denied = redis.IsPermissionError(err)
		err = found.fromInfo(ctx, c) // CONFIG is forbidden, as hosted servers do
	}
	if err != nil {
		return err
	}
	if found.AppendOnly == "yes" && found.AppendFsync == "always" && found.MaxMemoryPolicy == "noeviction" {
		return nil
	}
	return found
}

func (e *VolatileError) fromConfig(ctx context.Context, c redis.Cmdable) error {
	for name, to := range map[string]*string{"appendonly": &e.AppendOnly, "appendfsync": &e.AppendFsync,
		"maxmemory-policy": &e.MaxMemoryPolicy} {
		values, err := c.ConfigGet(ctx, name).Result()
		if err != nil {
			return err
		}
		if v, ok := values[name]; ok {
			*to = v
		}
	}
	return nil
}

func (e *VolatileError) fromInfo(ctx context.Context, c redis.Cmdable) error {
	text, err := c.Info(ctx).Result()
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		switch {
		case name == "aof_enabled" && value == "1":
			e.AppendOnly = "yes"
		case name == "aof_enabled":
			e.AppendOnly = "no"
		case name == "maxmemory_policy":
			e.MaxMemoryPolicy = value
		}
	}
	return nil
}
