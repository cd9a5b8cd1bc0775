package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hongbao/client"
	"hongbao/wire"
)

// staffGroup has the commands of staff about packets and campaigns of all apps.
func staffGroup() command {
	recall, campaigns := packetsRecall(), campaignsStaff()
	recall.example = "  hongbao staff packets recall 97h0uojo11oljc4bchnk --reason 'the sender was deceived, ticket 4711'"
	campaigns.use = "campaigns"
	return command{
		use:   "staff",
		short: "List, show and recall packets, and list, pause and end campaigns of all apps",
		long: `List, show and recall packets, and list, pause and end campaigns of all apps, with a key
of operations or finance (HONGBAO_STAFF_URL and HONGBAO_OPS_KEY).`,
		sub: []command{campaigns, {
			use: "packets", short: "List, show and recall the packets of all apps", sub: []command{staffPacketsList(), staffPacketsShow(), recall},
		}},
	}
}

var packetStatuses = []wire.PacketStatus{wire.PacketFunding, wire.PacketRejected, wire.PacketScheduled, wire.PacketOpen, wire.PacketSoldOut,
	wire.PacketClosing, wire.PacketClosed}

// packetsList lists the packets of an app, or those of all apps with a key of staff.
func packetsList() command {
	var filter wire.StaffPacketFilter
	return command{
		use:   "list",
		short: "List the packets of the app, or of all apps as staff, newest first",
		long: `List the packets that match all filters, newest first. With a key of operations or
finance (HONGBAO_OPS_KEY) these are the packets of all apps, otherwise those of the app
whose key is HONGBAO_APP_KEY. --app-key overrides HONGBAO_OPS_KEY.`,
		example: "  hongbao packets list --sender alice\n  hongbao packets list --overdue",
		as:      callerOps, or: callerApp, choose: listCaller, pages: true,
		flags: func(flags *pflag.FlagSet) { staffPacketFlags(flags, &filter) },
		run: func(ctx context.Context, t *call) error {
			if t.staff != nil {
				return t.listStaffPackets(ctx, filter)
			}
			return printList(t, t.page, func(p client.Page) (*wire.List[wire.Packet], error) {
				return t.app.ListPackets(ctx, wire.PacketFilter{SenderID: filter.SenderID, Status: filter.Status}, p)
			}, []any{"packet", "sender", "status", "total", "claimed", "created"}, func(p *wire.Packet) []any {
				return []any{p.ID, p.SenderID, p.Status, formatYuan(p.TotalAmount), claimedText(p), formatTime(p.CreatedAt)}
			})
		},
	}
}

// listCaller is the app without a key of staff, or with --app-key.
func listCaller(t *call) (caller, error) {
	app, _, _ := gatherConfig(t.cmd, cmdPackets, t.env)
	staff, _, _ := gatherConfig(t.cmd, cmdOps, t.env)
	switch {
	case app.values["app-key"] == "" && staff.values["ops-key"] == "":
		return caller{}, &usageError{errors.New("a key is required: HONGBAO_APP_KEY (--app-key) for the packets of an app, " +
			"HONGBAO_OPS_KEY (--ops-key) for those of all apps")}
	case staff.values["ops-key"] != "" && !t.cmd.Flags().Changed("app-key"):
		return callerOps, nil
	}
	for _, name := range []string{"app", "overdue", "ops-key", "staff-url"} {
		if t.cmd.Flags().Changed(name) {
			return caller{}, &usageError{fmt.Errorf("--%s is for staff: use a key of operations or finance, HONGBAO_OPS_KEY, "+
				"without --app-key", name)}
		}
	}
	return callerApp, nil
}

func staffPacketFlags(flags *pflag.FlagSet, filter *wire.StaffPacketFilter) {
	choice(flags, &filter.Status, "status", "only packets in this `status`: ", packetStatuses)
	appID.flag(flags, &filter.App, "app", "only packets of this `app`; as staff")
	flags.StringVar(&filter.SenderID, "sender", "", "only packets of this `user`; as staff, in every app")
	flags.BoolVar(&filter.Overdue, "overdue", false, "only packets that expired 5 minutes ago or earlier and are not closed; as staff")
}

func staffPacketsList() command {
	var filter wire.StaffPacketFilter
	return command{
		use: "list", short: "List the packets of all apps that match all filters, newest first",
		example: "  hongbao staff packets list --overdue", as: callerOps, pages: true,
		flags: func(flags *pflag.FlagSet) { staffPacketFlags(flags, &filter) },
		run:   func(ctx context.Context, t *call) error { return t.listStaffPackets(ctx, filter) },
	}
}

func (t *call) listStaffPackets(ctx context.Context, filter wire.StaffPacketFilter) error {
	return printList(t, t.page, func(p client.Page) (*wire.List[wire.StaffPacket], error) {
		return t.staff.ListPackets(ctx, filter, p)
	}, []any{"packet", "app", "sender", "status", "total", "claimed", "created"}, func(p *wire.StaffPacket) []any {
		return []any{p.ID, p.App, p.SenderID, p.Status, formatYuan(p.TotalAmount), claimedText(&p.Packet), formatTime(p.CreatedAt)}
	})
}

func packetsRecall() command {
	return command{
		use:   "recall <packet id> --reason <text>",
		short: "Recall a packet of any app and refund the unclaimed remainder, as staff",
		long: `Recall a packet of any app, with a key of operations or finance: grabs stop and the
unclaimed remainder is refunded to the sender. Claims are paid. A packet that has ended
does not change. The audit records the recall.`,
		example: "  hongbao packets recall 97h0uojo11oljc4bchnk --reason 'the sender was deceived, ticket 4711'",
		args:    packetID.arg, complete: staffPackets, as: callerOps, writes: true,
		run: func(ctx context.Context, t *call) error {
			p, err := t.staff.RecallPacket(ctx, t.args[0], t.why(), t.key())
			return t.shown(err, func() error {
				return printf(t.out, "%s is %s: %s claimed, %s refunded to %s.\n", p.ID, p.Status, formatYuan(p.ClaimedAmount),
					formatYuan(p.RemainingAmount), p.SenderID)
			})
		},
	}
}

// staffPackets completes the newest packets of all apps.
func staffPackets(ctx context.Context, t *call) ([]cobra.Completion, error) {
	list, err := t.staff.ListPackets(ctx, wire.StaffPacketFilter{}, newest)
	return completions(list, err, func(p *wire.StaffPacket) (string, string) { return p.ID, aboutPacket(&p.Packet) })
}

func staffPacketsShow() command {
	return command{
		use: "show <packet id>", short: "Show a packet of any app with its payouts by status, its refunds and its newest claims",
		args: packetID.arg, complete: staffPackets, as: callerOps,
		run: func(ctx context.Context, t *call) error { return t.showStaffPacket(ctx) },
	}
}

// showStaffPacket prints a packet as staff sees it. Without Redis it omits the claims and says so.
func (t *call) showStaffPacket(ctx context.Context) error {
	p, err := t.staff.Packet(ctx, t.args[0])
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
	list, err := t.staff.PacketGrabs(ctx, p.ID, client.Page{Limit: shownClaims})
	if client.IsCode(err, wire.CodeUnavailable) {
		return printf(t.notes, "Claims cannot be listed: Redis does not answer.\n")
	}
	if err != nil {
		return err
	}
	return printSome(t, list, claimColumns, claimRow, "The newest %d of %d.\n", len(list.Items), p.ClaimedCount)
}
