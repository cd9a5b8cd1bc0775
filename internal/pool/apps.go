package pool

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// SaveApps stores a copy of the apps and their key hashes, so that an API process can start
// without MySQL. The format is the caller's.
//
// Errors: ErrUnavailable.
func (p *Pool) SaveApps(ctx context.Context, blob []byte) error {
	return redisError("save apps", p.rdb.Set(ctx, keyApps, blob, 0).Err())
}

// LoadApps returns the last copy that SaveApps stored.
//
// Errors: ErrNotFound when nothing was saved, ErrUnavailable.
func (p *Pool) LoadApps(ctx context.Context) ([]byte, error) {
	blob, err := p.rdb.Get(ctx, keyApps).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("apps: %w", ErrNotFound)
	}
	return blob, redisError("load apps", err)
}
