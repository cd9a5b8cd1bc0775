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
)

// StaffPacket is a packet in answers to staff.
type StaffPacket struct {
	Packet
	App          string                 `json:"app" doc:"The app that created it."`
	StoredStatus Nullable[StoredStatus] `json:"stored_status" doc:"The status in MySQL; null: no row yet. status also takes the time and Redis into account."`
	CloseReason  Nullable[string]       `json:"close_reason" doc:"Why it was ended: expired, sold_out, recalled or unopened; null before."`
	Workflow     WorkflowLink           `json:"workflow" doc:"The Temporal workflow of the packet."`
}

// StoredStatus is the status of a packet's row.
type StoredStatus packet.Status

// StaffPackets is a page of packets.
type StaffPackets struct {
	Items      []StaffPacket    `json:"items" nullable:"false" doc:"Newest first. A page may have fewer items than limit; the list ends when next_cursor is null."`
	NextCursor Nullable[string] `json:"next_cursor" doc:"The cursor of the next page; null on the last page."`
}

// Charge is the payment that funds a packet.
type Charge struct {
	ID           string                  `json:"id" doc:"The payment's id." example:"c3q5k9v0c1m7e2u8h4r6t0000"`
	Amount       Fen                     `json:"amount" doc:"The amount charged to the sender."`
	Status       PayoutStatus            `json:"status" doc:"The status; the values are those of a payout."`
	OrderNo      Nullable[string]        `json:"order_no" doc:"The order number of the current attempt; null before the first."`
	Provider     string                  `json:"provider" doc:"The provider." example:"sandbox"`
	ProviderRef  Nullable[string]        `json:"provider_ref" doc:"The provider's reference; null until it is known."`
	Failure      Nullable[PayoutFailure] `json:"failure" doc:"The failure; null unless the status is failed or returned."`
	AttemptCount int                     `json:"attempt_count" minimum:"0" doc:"The number of attempts; each has its own order number."`
	CreatedAt    Stamp                   `json:"created_at" doc:"When it was recorded."`
	UpdatedAt    Stamp                   `json:"updated_at" doc:"When it last changed."`
	Attempts     []Attempt               `json:"attempts" nullable:"false" doc:"Oldest first."`
	Timeline     []TimelineEntry         `json:"timeline" nullable:"false" doc:"Oldest first."`
}

// PayoutSum is the count and sum of the payouts of a packet in one status.
type PayoutSum struct {
	Status PayoutStatus `json:"status" doc:"The status."`
	Count  int64        `json:"count" minimum:"0" doc:"How many payouts have this status."`
	Amount Fen          `json:"amount" doc:"The sum."`
}

// shownOfPacket is the largest number of refunds and of breaks in a packet's detail.
const shownOfPacket = 200

// StaffPacketDetail is a packet with its payments and breaks.
type StaffPacketDetail struct {
	StaffPacket
	Charge  Nullable[Charge]      `json:"charge" doc:"The charge of the packet; null: not in MySQL yet."`
	Payouts Nullable[[]PayoutSum] `json:"payouts" doc:"Its recorded payouts by status, in the order of the state machine, without empty groups. null for packets of more than 100,000 shares, because counting takes too long. /v1/staff/payouts?packet_id= lists them."`
	Refunds []Refund              `json:"refunds" nullable:"false" doc:"Newest first, 200 at most; /v1/staff/refunds?packet_id= lists all."`
	Breaks  []Break               `json:"breaks" nullable:"false" doc:"Newest first, 200 at most, resolved ones too; /v1/staff/breaks?packet_id= lists all."`
}

func (s *Server) renderStaffPacket(snap snapshot) (StaffPacket, error) {
	p, err := s.render(snap)
	out := StaffPacket{Packet: p, App: snap.App, CloseReason: textOrNull(string(snap.reason)), Workflow: s.workflowLink(p.Workflow.ID)}
	if snap.stored != "" {
		stored := StoredStatus(snap.stored)
		out.StoredStatus = orNull(&stored)
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
	page := StaffPackets{Items: []StaffPacket{}}
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
	if err != nil && asRefusal(err).code == CodeUnavailable { // Redis is unavailable; MySQL has the packet
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
	out := StaffPacketDetail{}
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
func (s *Server) addMoney(ctx context.Context, id string, out *StaffPacketDetail) error {
	charge, err := s.cfg.Store.Payment(ctx, payout.ID(payout.KindCharge, id, 0))
	switch {
	case err == nil:
		out.Charge = orNull(s.renderCharge(charge))
	case !errors.Is(err, packet.ErrNotFound):
		return err
	}
	if out.ShareCount <= countedShares {
		sums, err := s.cfg.Store.PayoutSums(ctx, id)
		if err != nil {
			return err
		}
		out.Payouts = orNull(renderSums(sums))
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
	out.Breaks = []Break{}
	for _, b := range breaks {
		out.Breaks = append(out.Breaks, renderBreak(b, s.cfg.Now()))
	}
	return nil
}

func renderSums(sums map[payout.Status]staff.Sum) *[]PayoutSum {
	out := []PayoutSum{}
	for _, status := range payout.Statuses {
		if sum, ok := sums[status]; ok {
			out = append(out, PayoutSum{Status: PayoutStatus(status), Count: sum.Count, Amount: Fen(sum.Amount)})
		}
	}
	return &out
}

func (s *Server) renderCharge(d staff.PaymentDetail) *Charge {
	p := s.renderPayout(d.PaymentRow)
	return &Charge{ID: p.ID, Amount: p.Amount, Status: p.Status, OrderNo: p.OrderNo, Provider: p.Provider, ProviderRef: p.ProviderRef,
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
