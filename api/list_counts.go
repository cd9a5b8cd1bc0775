package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// countedStatuses are the statuses that rows of MySQL decide. Other statuses depend on Redis,
// packet by packet.
var countedStatuses = []packet.Status{"", packet.StatusFunding, packet.StatusRejected, packet.StatusClosed}

// countList returns the result of count, and no amount when it did not reach the end.
func countList(r *request, count func(context.Context) (staff.ListTotal, error)) (wire.ListSum, error) {
	ctx, cancel := context.WithTimeout(r.ctx, listTimeout)
	defer cancel()
	found, err := count(ctx)
	out := wire.ListSum{ListCount: wire.ListCount{Count: found.Count, More: found.AtLeast}}
	if !found.AtLeast {
		amount := found.Amount
		out.Amount = &amount
	}
	return out, err
}

func sumStaffPackets(r *request) (answer, error) {
	q := readQuery(r)
	filters := q.staffFilters(checkPacketStatus)
	if err := q.done(); err != nil {
		return answer{}, err
	}
	f, err := staffPacketFilter(filters)
	if err != nil {
		return answer{}, err
	}
	out, err := countList(r, func(ctx context.Context) (staff.ListTotal, error) {
		if !f.overdue.IsZero() && final(f.status) {
			return staff.ListTotal{}, nil // ended packets are never overdue
		}
		if !slices.Contains(countedStatuses, f.status) {
			return r.server.scanPackets(ctx, f, scanMost, scanTime)
		}
		return r.server.cfg.Store.PacketTotal(ctx, f.records(packet.Cursor{}, 0))
	})
	return answer{status: http.StatusOK, body: out}, err
}

// Packets whose status depends on Redis are read like a list: scanStep at a time, at most
// scanMost, for at most scanTime.
const (
	scanStep = 500
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

func sumApprovals(r *request) (answer, error) {
	q := readQuery(r)
	f := readApprovalFilter(q, r.caller.key.Owner)
	if err := q.done(); err != nil {
		return answer{}, err
	}
	out, err := countList(r, func(ctx context.Context) (staff.ListTotal, error) { return r.server.cfg.Store.ApprovalTotal(ctx, f) })
	return answer{status: http.StatusOK, body: out}, err
}

func countBreaks(r *request) (answer, error) {
	sum, err := r.sumBreaks()
	return answer{status: http.StatusOK, body: sum.ListCount}, err
}

func sumBreaks(r *request) (answer, error) {
	sum, err := r.sumBreaks()
	return answer{status: http.StatusOK, body: sum}, err
}

func (r *request) sumBreaks() (out wire.BreakSum, err error) {
	q := readQuery(r)
	f := readBreakFilter(q, r.server.cfg.Now().UTC())
	if err := q.done(); err != nil {
		return out, err
	}
	out.ListSum, err = countList(r, func(ctx context.Context) (staff.ListTotal, error) {
		found, err := r.server.cfg.Store.BreakTotal(ctx, f)
		out.WithoutAmount = found.WithoutAmount
		return found, err
	})
	return out, err
}

func countAudit(r *request) (answer, error) {
	q := readQuery(r)
	f := readAuditFilter(q)
	if err := q.done(); err != nil {
		return answer{}, err
	}
	out, err := countList(r, func(ctx context.Context) (staff.ListTotal, error) { return r.server.cfg.Store.AuditTotal(ctx, f) })
	return answer{status: http.StatusOK, body: out.ListCount}, err
}
