package worker

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"hongbao/internal/packet"
)

// packetLimit is how many claims of one packet wait in a lane of this process. A
// lane is one stream: without it, a giant packet's claims fill the lane's room,
// and small packets of the lane wait until nearly all of them are started.
// Entries above it are left for later: they stay in Redis, pending under our name,
// and only their ids are kept.
const packetLimit = laneLimit / 4

// packetOf is whose claims an entry has: grabs of one call and packet share one.
// Entries without claims are few, and are never left for later.
func packetOf(h packet.HandOff) string {
	if len(h.Claims) == 0 {
		return ""
	}
	return h.Claims[0].PacketID
}

// hold counts an entry's claims towards its packet's, or leaves the entry for
// later when the packet has enough of them here; it reports which.
func (l *laneReader) admit(id, packetID string, jobs int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if packetID == "" {
		return true
	}
	// Below half any entry is taken, however large: what was left for later comes back then.
	if n := l.held[packetID]; n > packetLimit/2 && n+jobs > packetLimit {
		l.postponed[packetID] = append(l.postponed[packetID], id)
		return false
	}
	l.held[packetID] += jobs
	return true
}

// release is the end of hold; what was left for later comes when half is done.
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
		default: // it will look at all packets
		}
	}
}

// readPostponed brings back what was left for later, packet by packet, as there is room.
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
				l.relay.logger.WarnContext(ctx, "Hand-offs left for later could not be read; tried again.", slog.Int("lane", l.lane),
					slog.Any("error", err))
				if !pause(ctx, 200*time.Millisecond) {
					return ctx.Err()
				}
				continue
			}
			l.forgetPostponed(packetID, id) // also when it is gone: then what was read is another, or nothing
			if err := l.take(ctx, batch); err != nil {
				return err
			}
		}
	}
}

// nextPostponed is the first entry left for later of a packet that has room again;
// "" when there is none.
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

// forgetPostponed makes the packet's first entry that was left for later a new one again.
func (l *laneReader) forgetPostponed(packetID, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.underway, id)
	if l.postponed[packetID] = l.postponed[packetID][1:]; len(l.postponed[packetID]) == 0 {
		delete(l.postponed, packetID)
	}
}

// entryBefore is the greatest id that is less than that of an entry.
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
