// Package logs gives tests loggers that fail them for unwanted records.
package logs

import (
	"context"
	"log/slog"
)

// SignalsLeft is the SDK's message about a run that ended with unread signals.
const SignalsLeft = "Workflow has unhandled signals"

// Refuse returns a handler that calls refused for every record with a message, and passes on the
// records that next accepts.
func Refuse(next slog.Handler, message string, refused func(slog.Record)) slog.Handler {
	return &refusing{next: next, message: message, refused: refused}
}

type refusing struct {
	next    slog.Handler
	message string
	refused func(slog.Record)
}

// Enabled is true at every level, because refused messages must be seen whatever next accepts.
func (h *refusing) Enabled(context.Context, slog.Level) bool { return true }

func (h *refusing) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == h.message {
		h.refused(r)
	}
	if !h.next.Enabled(ctx, r.Level) {
		return nil
	}
	return h.next.Handle(ctx, r)
}

func (h *refusing) WithAttrs(attrs []slog.Attr) slog.Handler {
	return Refuse(h.next.WithAttrs(attrs), h.message, h.refused)
}

func (h *refusing) WithGroup(name string) slog.Handler {
	return Refuse(h.next.WithGroup(name), h.message, h.refused)
}
