package api

import (
	"context"
	"slices"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// countedStatuses are the statuses that rows of MySQL decide. Other statuses depend on Redis,
// packet by packet.
var countedStatuses = []packet.Status{"", packet.StatusFunding, packet.StatusRejected, packet.StatusClosed}

// countList renders a total, without an amount when it did not reach the end.
func countList(found staff.ListTotal, err error) (*wire.ListSum, error) {
	out := &wire.ListSum{ListCount: wire.ListCount{Count: found.Count, More: found.AtLeast}}
	if !found.AtLeast {
		out.Amount = &found.Amount
	}
	return out, err
}

func (s *Server) sumStaffPackets(ctx context.Context, in *filtered[wire.StaffPacketFilter]) (*wire.ListSum, error) {
	f := staffPacketFilter(in.Filter)
	switch {
	case !f.overdue.IsZero() && final(f.status):
		return countList(staff.ListTotal{}, nil) // ended packets are never overdue
	case !slices.Contains(countedStatuses, f.status):
		return countList(s.scanPackets(ctx, f, scanMost, scanTime))
	}
	return countList(s.cfg.Store.PacketTotal(ctx, f.records(packet.Cursor{}, 0)))
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

func (s *Server) countBreaks(ctx context.Context, in *filtered[wire.BreakFilter]) (*wire.ListCount, error) {
	sum, err := s.sumBreaks(ctx, in)
	return &sum.ListCount, err
}

func (s *Server) sumBreaks(ctx context.Context, in *filtered[wire.BreakFilter]) (*wire.BreakSum, error) {
	found, err := s.cfg.Store.BreakTotal(ctx, breakFilter(in.Filter, in.now()))
	sum, err := countList(found, err)
	return &wire.BreakSum{ListSum: *sum, WithoutAmount: found.WithoutAmount}, err
}

func (s *Server) countAudit(ctx context.Context, in *filtered[wire.AuditFilter]) (*wire.ListCount, error) {
	sum, err := countList(s.cfg.Store.AuditTotal(ctx, auditFilter(in.Filter)))
	return &sum.ListCount, err
}
