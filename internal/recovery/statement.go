package recovery

import (
	"context"
	"maps"
	"slices"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// orderMoves is what the statement has about an order number.
type orderMoves struct {
	first    time.Time
	returned bool
	moved    bool
}

// readStatement stores what moved since the backup, by packet.
func (r *Recovery) readStatement(ctx context.Context) error {
	r.statementLines = map[string]map[string]orderMoves{}
	for _, p := range r.Providers.Stated() {
		if err := r.readStatementOf(ctx, p); err != nil {
			return err
		}
	}
	return r.dropBookedLines(ctx)
}

func (r *Recovery) readStatementOf(ctx context.Context, from payout.Stated) error {
	zone := from.Zone()
	last := payout.DayOf(r.began, zone)
	for day := payout.DayOf(r.since, zone); day <= last; day = day.Add(1) {
		for after := ""; ; {
			page, err := from.Statement(ctx, day, after)
			if err != nil {
				return err
			}
			for _, l := range page.Lines {
				r.addLine(l)
			}
			if after = page.Next; after == "" {
				break
			}
		}
	}
	return nil
}

func (r *Recovery) addLine(l payout.StatementLine) {
	parts, err := payout.Parse(l.OrderNo)
	if l.At.Before(r.since) || err != nil || parts.Attempt == 0 { // not ours: reconciliation reports it
		return
	}
	r.report.Lines++
	of := r.statementLines[parts.PacketID]
	if of == nil {
		of = map[string]orderMoves{}
		r.statementLines[parts.PacketID] = of
	}
	m, seen := of[l.OrderNo]
	if !seen {
		m.first = l.At
	}
	if l.Op == payout.OpReturn {
		m.returned = true
	} else {
		m.moved = true
	}
	of[l.OrderNo] = m
}

// dropBookedLines drops lines that MySQL has booked.
func (r *Recovery) dropBookedLines(ctx context.Context) error {
	for id, of := range r.statementLines {
		unknown, err := r.unbookedOrders(ctx, id)
		if err != nil {
			return err
		}
		r.report.Unknown += len(unknown)
		maps.DeleteFunc(of, func(no string, _ orderMoves) bool { return !slices.Contains(unknown, no) })
		if len(of) == 0 {
			delete(r.statementLines, id)
		}
	}
	return nil
}

// unbookedOrders lists the order numbers of a packet's lines that MySQL does not have as the
// statement does.
func (r *Recovery) unbookedOrders(ctx context.Context, packetID string) ([]string, error) {
	of := r.statementLines[packetID]
	var out []string
	for some := range slices.Chunk(slices.Sorted(maps.Keys(of)), recoverPage) {
		known, err := r.Store.FindOrders(ctx, some)
		if err != nil {
			return nil, err
		}
		for _, no := range some {
			if k, ok := known[no]; !ok || of[no].moved && !k.Booked || of[no].returned && !k.ReturnBooked {
				out = append(out, no)
			}
		}
	}
	return out, nil
}

// refundOrder returns the order number that refunded a packet's remainder: by the statement the
// first that moved money, or else the first of the refund, with moved false.
func (r *Recovery) refundOrder(id string) (no string, moved bool) {
	refund := payout.ID(payout.KindRefund, id, 0)
	for candidate, line := range r.statementLines[id] {
		if line.moved && candidate[:payout.IDLen] == refund && (!moved || candidate < no) {
			no, moved = candidate, true
		}
	}
	if !moved {
		no = payout.OrderNo(refund, 1)
	}
	return no, moved
}

// leaveUnproven leaves to staff what the provider cannot prove: order numbers that moved money by the
// statement and that MySQL still lacks (honoured share conflicts, for example, and contradictions), and a
// packet whose order numbers the provider may have forgotten.
func (r *Recovery) leaveUnproven(ctx context.Context, id string) error {
	unexplained, err := r.unbookedOrders(ctx, id)
	if err != nil {
		return err
	}
	why := map[string]string{}
	for _, no := range unexplained {
		if !r.isUnanswered(no) {
			why[no] = "the provider's statement has it, and MySQL has no matching payment"
		}
	}
	forgotten, err := r.mayBeForgotten(ctx, id)
	if err != nil {
		return err
	}
	if forgotten {
		why[payout.ID(payout.KindCharge, id, 0)] = "it is older than the provider's memory of order numbers: look up what was sent and when"
	}
	for _, subject := range slices.Sorted(maps.Keys(why)) {
		if err := r.leaveToStaff(ctx, id, subject, why[subject]); err != nil {
			return err
		}
	}
	return nil
}

// mayBeForgotten reports whether order numbers of a packet may have been sent so long ago that the
// provider has forgotten them. Its "never received" proves nothing then.
func (r *Recovery) mayBeForgotten(ctx context.Context, id string) (bool, error) {
	if !r.since.Before(r.memoryBegin) {
		return false, nil
	}
	rec, err := r.Store.Packet(ctx, id)
	if err != nil || !rec.CreatedAt.Before(r.memoryBegin) {
		return false, err
	}
	open, err := r.Store.UnsettledPayments(ctx, id)
	return err == nil && (rec.Stored != packet.StatusClosed || len(open) > 0), err
}
