package api

import (
	"context"
	"log/slog"
	"strings"

	"hongbao/observe"
	"hongbao/packet"
	"hongbao/payout"
)

// named is the request's context with the ids by which its lines in the log are
// found: of the request, and of the packet or payment that its path names.
func (r *request) named() context.Context {
	ids := []slog.Attr{slog.String(observe.LogRequest, r.id)}
	if r.route != nil && strings.Contains(r.route.path, "{id}") {
		id := strings.Clone(r.c.Params("id")) // the request's memory is used again
		if _, err := payout.Parse(id); err == nil {
			ids = append(ids, slog.String(observe.LogPayment, id))
		} else if packet.ValidID(id) {
			ids = append(ids, slog.String(observe.LogPacket, id))
		}
	}
	return observe.Naming(r.ctx, ids...)
}
