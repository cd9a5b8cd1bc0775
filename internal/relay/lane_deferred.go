package relay

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/pause"
)

// packetLimit bounds the claims of one packet in a lane of this process. A lane is one stream.
// Without the limit the claims of a giant packet fill the lane's room, and small packets wait
// until nearly all of them are started. Entries above it are postponed: they stay pending in
// Redis under our name, and only their ids are kept.
const packetLimit = maxLaneClaims / 4

// packetOf returns the packet of a hand-off's claims. Those without claims are few and never postponed.
func packetOf(h packet.HandOff) string {
	switch {
	case len(h.Claims) > 0:
		return h.Claims[0].PacketID
	case len(h.SoldOut) > 0: // its claims could not be decoded
		return h.SoldOut[0]
	}
	return ""
}

// admit counts an entry's claims towards its packet's, or postpones the entry when the packet has
// enough of them here; it reports which.
func (l *laneReader) admit(id, packetID string, jobs int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if packetID == "" {
		return true
	}
	// Below half every entry is admitted, however large: postponed entries are read again then.
	if n := l.held[packetID]; n > packetLimit/2 && n+jobs > packetLimit {
		l.postponed[packetID] = append(l.postponed[packetID], id)
		return false
	}
	l.held[packetID] += jobs
	return true
}

// release ends admit. Postponed entries are read when half of the limit is free.
func (l *laneReader) release(packetID string, jobs int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if packetID == "" {
		return
	}
	if l.held[packetID] -= jobs; l.held[packetID] <= 0 {
		delete(l.held, packetID)
	}
	if len(l.postponed[packetID]) > 0 && l.held[packetID] <= packetLimit/2 {
		select {
		case l.resume <- struct{}{}:
		default: // the pending signal covers all packets
		}
	}
}

// readPostponed reads postponed entries, packet by packet, as there is room.
func (l *laneReader) readPostponed(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.resume:
		}
		for packetID, id := l.nextPostponed(); id != ""; packetID, id = l.nextPostponed() {
			batch, err := l.relay.handoffs.ReadOwnPending(ctx, l.lane, l.consumer, entryBefore(id), 1)
			if err != nil {
				l.relay.logger.WarnContext(ctx, "Postponed hand-offs not read; retrying.", slog.Int("lane", l.lane),
					slog.Any("error", err))
				if !pause.For(ctx, 200*time.Millisecond) {
					return ctx.Err()
				}
				continue
			}
			l.forgetPostponed(packetID, id) // also if it is gone: then another entry, or none, was read
			if err := l.take(ctx, batch); err != nil {
				return err
			}
		}
	}
}

// nextPostponed returns the first postponed entry of a packet that has room again; "" if there is
// none.
func (l *laneReader) nextPostponed() (packetID, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for packetID, ids := range l.postponed {
		if l.held[packetID] <= packetLimit/2 {
			return packetID, ids[0]
		}
	}
	return "", ""
}

// forgetPostponed removes the packet's first postponed entry, so that it can be taken as new.
func (l *laneReader) forgetPostponed(packetID, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.underway[id]; e != nil {
		if delete(e.known, packetID); len(e.known) == 0 {
			delete(l.underway, id)
		}
	}
	if l.postponed[packetID] = l.postponed[packetID][1:]; len(l.postponed[packetID]) == 0 {
		delete(l.postponed, packetID)
	}
}

// entryBefore returns the greatest id below that of an entry.
func entryBefore(id string) string {
	ms, seq, _ := strings.Cut(id, "-")
	if n, err := strconv.ParseUint(seq, 10, 64); err == nil && n > 0 {
		return ms + "-" + strconv.FormatUint(n-1, 10)
	}
	if n, err := strconv.ParseUint(ms, 10, 64); err == nil && n > 0 {
		return strconv.FormatUint(n-1, 10) + "-" + strconv.FormatUint(1<<64-1, 10)
	}
	return "0"
}
