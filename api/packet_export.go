package api

import (
	"context"

	"hongbao/internal/packet"
	"hongbao/wire"
)

// packetColumns are the members of a StaffPacket, one per column, followed by columns
// formatted for people.
var packetColumns = fileColumns{names: []string{
	"id", "app", "status", "stored_status", "close_reason", "sender_id", "currency", "total_amount", "share_count", "split", "min_share",
	"max_share", "greeting", "group_id", "metadata", "claimed_count", "claimed_amount", "remaining_count", "remaining_amount",
	"refunded_amount", "created_at", "opens_at", "expires_at", "closed_at", "failure_code", "failure_message", "fairness_algorithm",
	"fairness_commitment", "fairness_seed", "workflow_id", "workflow_url", "tickets", "total_amount_yuan", "claimed_amount_yuan",
	"remaining_amount_yuan", "refunded_amount_yuan", "created_local", "opens_local", "expires_local", "closed_local", "local_zone",
}}

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
	return exportItems(r, form, "packets", packetColumns, func(ctx context.Context) (items []wire.StaffPacket, end bool, err error) {
		found, next, err := server.packetsAfter(ctx, f, after, exportStep)
		for _, snap := range found {
			one, err := server.renderStaffPacket(snap)
			if err != nil {
				return nil, false, err
			}
			items = append(items, one)
		}
		if next != nil {
			after = next.Cursor
		}
		return items, next == nil, err
	})
}
