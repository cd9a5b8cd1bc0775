package api

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/wire"
)

// packetColumns are the members of a StaffPacket, one per column, followed by columns
// formatted for people.
var packetColumns = []string{
	"id", "app", "status", "stored_status", "close_reason", "sender_id", "currency", "total_amount", "share_count", "split", "min_share",
	"max_share", "greeting", "group_id", "metadata", "claimed_count", "claimed_amount", "remaining_count", "remaining_amount",
	"refunded_amount", "created_at", "opens_at", "expires_at", "closed_at", "failure_code", "failure_message", "fairness_algorithm",
	"fairness_commitment", "fairness_seed", "workflow_id", "workflow_url", "tickets", "total_amount_yuan", "claimed_amount_yuan",
	"remaining_amount_yuan", "refunded_amount_yuan", "created_local", "opens_local", "expires_local", "closed_local", "local_zone",
}

func packetLine(p wire.StaffPacket, form fileForm) ([]string, error) {
	metadata, err := json.Marshal(p.Metadata, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("metadata of packet %s: %w", p.ID, err)
	}
	most, failure := "", wire.Failure{}
	if p.MaxShare != nil {
		most = fenCell(*p.MaxShare)
	}
	if p.Failure != nil {
		failure = *p.Failure
	}
	closed, closedAt := "", time.Time{}
	if p.ClosedAt != nil {
		closed, closedAt = p.ClosedAt.String(), p.ClosedAt.Time
	}
	yuan := func(amount money.Fen) string { return amount.String() }
	return []string{
		cell(p.ID), cell(p.App), string(p.Status), optionalCell(p.StoredStatus), optionalCell(p.CloseReason), cell(p.SenderID), p.Currency,
		fenCell(p.TotalAmount), strconv.Itoa(p.ShareCount), string(p.Split), fenCell(p.MinShare), most, cell(p.Greeting), optionalCell(p.GroupID),
		cell(string(metadata)), strconv.Itoa(p.ClaimedCount), fenCell(p.ClaimedAmount), strconv.Itoa(p.RemainingCount),
		fenCell(p.RemainingAmount), fenCell(p.RefundedAmount), p.CreatedAt.String(), p.OpensAt.String(), p.ExpiresAt.String(), closed,
		cell(failure.Code), cell(failure.Message), p.Fairness.Algorithm, cell(p.Fairness.Commitment), optionalCell(p.Fairness.Seed),
		cell(p.Workflow.ID),
		p.Workflow.URL, strconv.FormatBool(p.Tickets), yuan(p.TotalAmount), yuan(p.ClaimedAmount), yuan(p.RemainingAmount),
		yuan(p.RefundedAmount), form.local(p.CreatedAt.Time), form.local(p.OpensAt.Time), form.local(p.ExpiresAt.Time),
		form.local(closedAt), form.zone.String(),
	}, nil
}

func exportPackets(r *request) (answer, error) {
	q := readQuery(r)
	filters := q.staffFilters(checkPacketStatus)
	form, err := q.fileForm()
	if err != nil {
		return answer{}, err
	}
	f, err := staffPacketFilter(filters)
	if err != nil {
		return answer{}, err
	}
	server, after := r.server, packet.Cursor{At: f.to} // as in the list
	return r.sendFile(form, listFile{name: "packets", columns: packetColumns, more: func(ctx context.Context) (lines [][]string, end bool,
		err error) {
		found, next, err := server.packetsAfter(ctx, f, after, exportStep)
		if err != nil {
			return nil, false, err
		}
		for _, snap := range found {
			one, err := server.renderStaffPacket(snap)
			if err != nil {
				return nil, false, err
			}
			line, err := packetLine(one, form)
			if err != nil {
				return nil, false, err
			}
			lines = append(lines, line)
		}
		if next == nil {
			return lines, true, nil
		}
		after = next.Cursor
		return lines, false, nil
	}})
}
