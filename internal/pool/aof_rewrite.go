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

// RewriteAfterStart makes every master rewrite its append-only file once after each start,
// in the background. After a crash in the middle of a write a server ignores the incomplete
// effects of a script, but leaves them in the file and appends after them. Its next start
// then applies them as part of another script (Redis 7 and 8;
// https://github.com/valkey-io/valkey/pull/4342). The rewritten file holds the data in
// memory and nothing else.
//
// Errors: ErrUnavailable; ErrRights without ErrUnavailable when a server refuses, as hosted
// services may. Nothing depends on it.
func (h *Handoffs) RewriteAfterStart(ctx context.Context) error {
	var mu sync.Mutex
	var denied error
	results := h.pool.everyMaster(ctx, "rewrite the append-only file", func(ctx context.Context, c redis.Cmdable) error {
		err := rewriteOnce(ctx, c)
		if !redis.IsPermissionError(err) {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		denied = fmt.Errorf("rewrite the append-only file: %w: %w", ErrRights, err)
		return nil
	})
	return errors.Join(results.allErr(), denied)
}

// rewriteOnce makes one server rewrite its file, unless it did so since its start.
func rewriteOnce(ctx context.Context, c redis.Cmdable) error {
	due, err := rewriteDue(ctx, c)
	if err != nil || !due {
		return err
	}
	if refused := c.BgRewriteAOF(ctx).Err(); refused != nil {
		if due, err = rewriteDue(ctx, c); err != nil || due { // else another worker has just started it
			return refused
		}
	}
	return nil
}

// rewriteDue reports whether a server has an append-only file that was not rewritten since
// its start, and no rewrite is running or scheduled.
func rewriteDue(ctx context.Context, c redis.Cmdable) (bool, error) {
	info, err := c.Info(ctx, "persistence").Result()
	if err != nil {
		return false, err
	}
	due := map[string]string{"loading": "0", "aof_enabled": "1", "aof_rewrite_in_progress": "0", "aof_rewrite_scheduled": "0",
		"aof_last_rewrite_time_sec": "-1"}
	met := 0
	for lines := bufio.NewScanner(strings.NewReader(info)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		if want, ok := due[name]; ok && value == want {
			met++
		}
	}
	return met == len(due), nil
}
