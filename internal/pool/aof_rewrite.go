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

// RewriteAfterStart has every master write its append-only file anew, once after each
// start, in the background. A server that died in the middle of a write starts from what
// its file has, without a script's effects that are not all there; but it leaves them in
// the file, and goes on behind them, so that its next start brings them back, as part of
// another script's (Redis 7 and 8; https://github.com/valkey-io/valkey/pull/4342). The new
// file has what is in memory and nothing else.
//
// Errors: ErrUnavailable; another when a server does not let us, as hosted ones may, an
// ErrRights without ErrUnavailable among them: nothing else waits for that.
func (h *Handoffs) RewriteAfterStart(ctx context.Context) error {
	var mu sync.Mutex
	var denied error
	asked := h.pool.everyMaster(ctx, "write the append-only file anew", func(ctx context.Context, c redis.Cmdable) error {
		err := rewriteOnce(ctx, c)
		if !redis.IsPermissionError(err) {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		denied = fmt.Errorf("write the append-only file anew: %w: %w", ErrRights, err)
		return nil
	})
	return errors.Join(asked.allErr(), denied)
}

// rewriteOnce has one server do it, if it has not since it started.
func rewriteOnce(ctx context.Context, c redis.Cmdable) error {
	due, err := rewriteDue(ctx, c)
	if err != nil || !due {
		return err
	}
	if refused := c.BgRewriteAOF(ctx).Err(); refused != nil {
		if due, err = rewriteDue(ctx, c); err != nil || due { // else another worker has just asked for it
			return refused
		}
	}
	return nil
}

// rewriteDue reports whether a server writes an append-only file that it has not written
// anew since it started, nor is about to.
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
		if want, asked := due[name]; asked && value == want {
			met++
		}
	}
	return met == len(due), nil
}
