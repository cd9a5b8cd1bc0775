package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// shownOfPacket is the largest number of refunds and of breaks in a packet's detail.
const shownOfPacket = 200

func (s *Server) renderStaffPacket(snap snapshot) (wire.StaffPacket, error) {
	p, err := s.render(snap)
	out := wire.StaffPacket{Packet: p, App: snap.App, CloseReason: textOrNull(string(snap.reason)), Workflow: s.workflowLink(p.Workflow.ID)}
	if snap.stored != "" {
		stored := wire.StoredStatus(snap.stored)
		out.StoredStatus = &stored
	}
	return out, err
}

func listStaffPackets(r *request) (answer, error) {
	q := readQuery(r)
	filters := q.staffFilters(checkPacketStatus)
	limit, cursor := q.page()
	if err := q.done(); err != nil {
		return answer{}, err
	}
	const list = "staff packets"
	after, filters, err := resume(cursor, list, filters)
	if err != nil {
		return answer{}, err
	}
	f, err := staffPacketFilter(filters)
	if err != nil {
		return answer{}, err
	}
	if cursor == "" && !f.to.IsZero() {
		after = packet.Cursor{At: f.to} // start for staged packets
	}
	found, next, err := r.server.packetsAfter(r.ctx, f, after, limit)
	if err != nil {
		return answer{}, err
	}
	page := wire.List[wire.StaffPacket]{Items: []wire.StaffPacket{}}
	if next != nil {
		page.NextCursor = next.cursor(list, filters)
	}
	for _, snap := range found {
		item, err := r.server.renderStaffPacket(snap)
		if err != nil {
			return answer{}, err
		}
		page.Items = append(page.Items, item)
	}
	return answer{status: http.StatusOK, body: page}, nil
}

// staffFilters reads the filters of the staff list of packets in the form that a cursor keeps.
func (q *query) staffFilters(checkStatus func(string) *fault) map[string]string {
	filters := map[string]string{}
	put(filters, "app", q.text("app", checkFilter))
	put(filters, "sender_id", q.text("sender_id", checkID))
	put(filters, "status", q.text("status", checkStatus))
	q.span("created_from", "created_to")
	put(filters, "created_from", q.only("created_from"))
	put(filters, "created_to", q.only("created_to"))
	put(filters, "overdue", q.text("overdue", checkBool))
	return filters
}

// only returns a parameter that was checked before.
func (q *query) only(name string) string {
	if values := q.values[name]; len(values) == 1 {
		return values[0]
	}
	return ""
}

// staffPacketFilter parses the filters that a cursor keeps. Errors: badCursor for a forged
// cursor.
func staffPacketFilter(kept map[string]string) (packetFilter, error) {
	q := filtersOf(kept)
	f := packetFilter{app: q.text("app", checkFilter), sender: q.text("sender_id", checkID),
		status: packet.Status(q.text("status", checkPacketStatus))}
	f.from, f.to = q.span("created_from", "created_to")
	if q.flag("overdue") {
		f.overdue = time.Now().Add(-payout.RefundLateAfter)
	}
	f.books = true
	if q.done() != nil {
		return f, badCursor()
	}
	return f, nil
}

func getStaffPacket(r *request) (answer, error) {
	id, err := r.packetID()
	if err != nil {
		return answer{}, err
	}
	snap, err := r.server.find(r.ctx, id)
	if err != nil && asRefusal(err).code == wire.CodeUnavailable { // Redis is unavailable; MySQL has the packet
		if rec, rowErr := r.server.record(r.ctx, id); rowErr == nil {
			snap, err = ofRecord(rec, r.server.cfg.Now()), nil
		}
	}
	if err != nil {
		return answer{}, err
	}
	if snap.stored == "" { // read from Redis; MySQL may have more
		rec, err := r.server.row(r.ctx, id)
		if err != nil && !errors.Is(err, packet.ErrNotFound) {
			return answer{}, err
		}
		snap.stored, snap.reason = rec.Stored, cmp.Or(snap.reason, rec.Reason)
	}
	out := wire.StaffPacketDetail{}
	if out.StaffPacket, err = r.server.renderStaffPacket(snap); err != nil {
		return answer{}, err
	}
	ctx, cancel := context.WithTimeout(r.ctx, detailLimit)
	defer cancel()
	if err := r.server.addMoney(ctx, id, &out); err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: out}, nil
}

const (
	// detailLimit bounds the read of a packet's payments.
	detailLimit = 6 * time.Second
	// countedShares is the largest packet whose payouts are counted.
	countedShares = 100_000
)

// addMoney adds the packet's payments and breaks from MySQL.
func (s *Server) addMoney(ctx context.Context, id string, out *wire.StaffPacketDetail) error {
	charge, err := s.cfg.Store.Payment(ctx, payout.ID(payout.KindCharge, id, 0))
	switch {
	case err == nil:
		out.Charge = s.renderCharge(charge)
	case !errors.Is(err, packet.ErrNotFound):
		return err
	}
	if out.ShareCount <= countedShares {
		sums, err := s.cfg.Store.PayoutSums(ctx, id)
		if err != nil {
			return err
		}
		out.Payouts = renderSums(sums)
	}
	rows, err := s.cfg.Store.Payments(ctx, staff.PaymentFilter{Kind: payout.KindRefund, PacketID: id, Limit: shownOfPacket})
	if err != nil {
		return err
	}
	out.Refunds = s.renderRefunds(rows)
	breaks, err := s.cfg.Store.Breaks(ctx, staff.BreakFilter{PacketID: id, Limit: shownOfPacket})
	if err != nil {
		return err
	}
	out.Breaks = []wire.Break{}
	for _, b := range breaks {
		out.Breaks = append(out.Breaks, renderBreak(b, s.cfg.Now()))
	}
	return nil
}

func renderSums(sums map[payout.Status]staff.Sum) []wire.PayoutSum {
	out := []wire.PayoutSum{}
	for _, status := range payout.Statuses {
		if sum, ok := sums[status]; ok {
			out = append(out, wire.PayoutSum{Status: wire.PayoutStatus(status), Count: sum.Count, Amount: sum.Amount})
		}
	}
	return out
}

func (s *Server) renderCharge(d staff.PaymentDetail) *wire.Charge {
	p := s.renderPayout(d.PaymentRow)
	return &wire.Charge{ID: p.ID, Amount: p.Amount, Status: p.Status, OrderNo: p.OrderNo, Provider: p.Provider, ProviderRef: p.ProviderRef,
		Failure:      p.Failure,
		AttemptCount: p.AttemptCount, CreatedAt: p.CreatedAt, UpdatedAt: p.UpdatedAt, Attempts: renderAttempts(d),
		Timeline: storedEntries(d, payout.EventPacketRecorded)}
}

// getStaffProof returns the proof of a packet of any app.
func getStaffProof(r *request) (answer, error) {
	id, err := r.packetID()
	if err != nil {
		return answer{}, err
	}
	if _, err := r.server.find(r.ctx, id); err != nil {
		return answer{}, err
	}
	return r.proofOf(id)
}
