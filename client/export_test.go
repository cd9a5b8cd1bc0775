package client

import (
	"context"
	"time"
)

// WithPause replaces waiting, so that tests see each pause and need none.
func WithPause(f func(context.Context, time.Duration) error) Option {
	return func(c *caller) { c.pause = f }
}

// Segment is segment.
var Segment = segment

// MaxAnswer is maxAnswer.
const MaxAnswer = maxAnswer
