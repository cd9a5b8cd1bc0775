package api

import (
	"time"

	"hongbao/wire"
)

// timeOrNull maps the zero time to null.
func timeOrNull(t time.Time) *wire.Time {
	if t.IsZero() {
		return nil
	}
	return &wire.Time{Time: t}
}

// textOrNull maps the empty text to null.
func textOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
