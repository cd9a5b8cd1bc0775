package api

import (
	"context"
	"slices"
	"time"

	"hongbao/api/rest"
	"hongbao/internal/packet"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// countedStatuses are the statuses that rows of MySQL decide. Other statuses depend on Redis,
// packet by packet.
var countedStatuses = []packet.Status{"", packet.StatusFunding, packet.StatusRejected, packet.StatusClosed}

func (s *Server) sumStaffPackets(ctx context.Context, in *rest.Filtered[wire.StaffPacketFilter]) (*wire.ListSum, error) {
	f := staffPacketFilter(in.Filter)
	switch {
	case !f.overdue.IsZero() && final(f.status):
		return rest.SumOf(staff.ListTotal{}, nil) // ended packets are never overdue
	case !slices.Contains(countedStatuses, f.status):
		return rest.SumOf(s.scanPackets(ctx, f, scanMost, scanTime))
	}
	return rest.SumOf(s.cfg.Store.PacketTotal(ctx, f.records(packet.Cursor{}, 0)))
}

// Packets whose status depends on Redis are read like a list: scanStep at a time, at most
// scanMost, for at most scanTime.
const (
	scanStep = 100
	scanMost = 10_000
	scanTime = 2 * time.Second
)

// scanPackets counts the packets of a filter by reading every candidate, at most most of them
// and for about limit.
func (s *Server) scanPackets(ctx context.Context, f packetFilter, most int, limit time.Duration) (t staff.ListTotal, err error) {
	began := time.Now()
	after := packet.Cursor{At: f.to} // newest first
	for scanned := 0; ; {
		candidates, end, err := s.packetStep(ctx, f, after, min(scanStep, most-scanned))
		if err != nil {
			return t, err
		}
		for _, c := range candidates {
			if c.known && f.passes(c.status) {
				t.Count++
				t.Amount = t.Amount.Plus(c.TotalAmount)
			}
			after = c.at
		}
		scanned += len(candidates)
		if t.AtLeast = !end && (scanned >= most || time.Since(began) > limit); end || t.AtLeast {
			return t, nil
		}
	}
}
