// Package pause waits without outliving its caller.
package pause

import (
	"context"
	"time"
)

// For waits for d and reports false when ctx ended first.
func For(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
