package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"hongbao/client"
	"hongbao/wire"
)

func newPacketsRecallCommand(env environment) *cobra.Command {
	f := newOpsFlags()
	cmd := &cobra.Command{
		Use:   "recall <packet id> --reason <text>",
		Short: "Recall a packet of any app and refund the unclaimed remainder, as staff",
		Long: `Recall a packet of any app, with a key of operations or finance: grabs stop and the
unclaimed remainder is refunded to the sender. Claims are paid. A packet that has ended
does not change. The audit records the recall.`,
		Example:           "  hongbao packets recall 97h0uojo11oljc4bchnk --reason 'the sender was deceived, ticket 4711'",
		Args:              packetID.arg,
		ValidArgsFunction: completeStaffPackets(env, &f),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				p, err := t.staff.RecallPacket(ctx, args[0], f.decision(), client.Key(f.idempotencyKey))
				switch {
				case err != nil:
					return err
				case t.json:
					return t.printAnswer()
				}
				return printf(t.out, "%s is %s: %s claimed, %s refunded to %s.\n", p.ID, p.Status, formatYuan(p.ClaimedAmount),
					formatYuan(p.RemainingAmount),
					p.SenderID)
			})
		},
	}
	f.add(cmd, true)
	return cmd
}

// completeStaffPackets completes the newest packets of all apps.
func completeStaffPackets(env environment, f *staffFlags) cobra.CompletionFunc {
	return completeItems(env, f, func(ctx context.Context, t *staffCommand) (found []cobra.Completion, err error) {
		list, err := t.staff.ListPackets(ctx, client.StaffPacketFilter{}, client.Page{Limit: 20})
		if err != nil {
			return nil, err
		}
		for _, p := range list.Items {
			about := fmt.Sprintf("%s, %s of %s, %d of %d claimed", p.Status, formatYuan(p.TotalAmount), p.SenderID, p.ClaimedCount, p.ShareCount)
			found = append(found, cobra.CompletionWithDesc(p.ID, about))
		}
		return found, nil
	})
}

// showPacket prints a packet as staff sees it. Without Redis it omits the claims and says so.
func (t *staffCommand) showPacket(ctx context.Context, id string) error {
	p, err := t.staff.Packet(ctx, id)
	if err != nil {
		return err
	}
	if err := t.printPacket(&p.Packet); err != nil || t.json {
		return err
	}
	t.printFacts([][]any{{"app", p.App}, {"closed because", optionalText(p.CloseReason)}, {"workflow", p.StaffPacket.Workflow.ID},
		{"Temporal UI", uiLink(p.StaffPacket.Workflow)}})
	sums := newGrid(t.out, "payouts", "count", "amount")
	for _, s := range p.Payouts {
		sums.row(s.Status, s.Count, formatYuan(s.Amount))
	}
	sums.render()
	refunds := newGrid(t.out, "refund", "kind", "amount", "status")
	for _, r := range p.Refunds {
		refunds.row(r.ID, r.Kind, formatYuan(r.Amount), r.Status)
	}
	refunds.render()
	list, err := t.staff.PacketGrabs(ctx, id, client.Page{Limit: shownClaims})
	if client.IsCode(err, wire.CodeUnavailable) {
		return printf(t.notes, "Claims cannot be listed: Redis does not answer.\n")
	}
	if err != nil {
		return err
	}
	claims := claimTable(t.out)
	for i := range list.Items {
		claims.row(claimRow(&list.Items[i])...)
	}
	claims.render()
	if list.NextCursor != nil {
		return printf(t.out, "The newest %d of %d.\n", len(list.Items), p.ClaimedCount)
	}
	return nil
}
