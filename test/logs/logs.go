// Package logs gives tests loggers that find fault with what is said.
package logs

import (
	"context"
	"log/slog"
)

// SignalsLeft is what the SDK says of a run that ended with signals it never took.
const SignalsLeft = "Workflow has unhandled signals"

// Refuse returns a handler that calls refused for every record with a message, and
// passes on what next wants to have.
func Refuse(next slog.Handler, message string, refused func(slog.Record)) slog.Handler {
	return &refusing{next: next, message: message, refused: refused}
}

type refusing struct {
	next    slog.Handler
	message string
	refused func(slog.Record)
}

// Enabled: what is refused is heard, whatever next does not want to have.
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
