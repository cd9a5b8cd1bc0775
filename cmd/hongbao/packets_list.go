package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"hongbao/client"
	"hongbao/wire"
)

func newPacketsListCommand(env environment) *cobra.Command {
	f, page, want, status := newOpsFlags(), pageFlags{}, client.StaffPacketFilter{}, ""
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the packets of the app, or of all apps as staff, newest first",
		Long: `List the packets that match all filters, newest first. With a key of operations or
finance (HONGBAO_OPS_KEY) these are the packets of all apps, otherwise those of the app
whose key is HONGBAO_APP_KEY. --app-key overrides HONGBAO_OPS_KEY.`,
		Example: "  hongbao packets list --sender alice\n  hongbao packets list --overdue",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := page.check(); err != nil {
				return err
			}
			want.Status = wire.PacketStatus(status)
			asApp, err := listsAsApp(cmd, env)
			switch {
			case err != nil:
				return err
			case asApp:
				app := appFlags{json: f.json, timeout: f.timeout}
				return app.run(cmd, env, func(ctx context.Context, t *appCommand) error { return t.listPackets(ctx, want, page) })
			}
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error { return t.listPackets(ctx, want, page) })
		},
	}
	f.add(cmd, false)
	addSettings(cmd, cmdPackets)
	flags := cmd.Flags()
	flags.StringVar(&status, "status", "", "only packets in this `status`: funding, rejected, scheduled, open, sold_out, closing, closed")
	complete(cmd, "status", "funding", "rejected", "scheduled", "open", "sold_out", "closing", "closed")
	appID.flag(cmd, &want.App, "app", "only packets of this `app`; as staff")
	flags.StringVar(&want.SenderID, "sender", "", "only packets of this `user`; as staff, in every app")
	flags.BoolVar(&want.Overdue, "overdue", false, "only packets that expired 5 minutes ago or earlier and are not closed; as staff")
	for _, name := range []string{"app", "sender", "overdue"} {
		complete(cmd, name)
	}
	page.add(cmd)
	return cmd
}

// listsAsApp reports whether the list is that of an app: without a key of staff, or with --app-key.
func listsAsApp(cmd *cobra.Command, env environment) (bool, error) {
	app, _, _ := gatherConfig(cmd, cmdPackets, env)
	staff, _, _ := gatherConfig(cmd, cmdOps, env)
	switch {
	case app.values["app-key"] == "" && staff.values["ops-key"] == "":
		return false, &usageError{errors.New("a key is required: HONGBAO_APP_KEY (--app-key) for the packets of an app, " +
			"HONGBAO_OPS_KEY (--ops-key) for those of all apps")}
	case staff.values["ops-key"] != "" && !cmd.Flags().Changed("app-key"):
		return false, nil
	}
	for _, name := range []string{"app", "overdue", "ops-key", "staff-url"} {
		if cmd.Flags().Changed(name) {
			return false, &usageError{fmt.Errorf("--%s is for staff: use a key of operations or finance, HONGBAO_OPS_KEY, without --app-key", name)}
		}
	}
	return true, nil
}

func (t *appCommand) listPackets(ctx context.Context, want client.StaffPacketFilter, page pageFlags) error {
	fetch := func(ctx context.Context, p client.Page) (*wire.List[wire.Packet], error) {
		return t.client.ListPackets(ctx, client.PacketFilter{SenderID: want.SenderID, Status: want.Status}, p)
	}
	return printList(ctx, t, page, fetch, []any{"packet", "sender", "status", "total", "claimed", "created"}, func(p *wire.Packet) []any {
		return []any{p.ID, p.SenderID, p.Status, formatYuan(p.TotalAmount), claimedText(p), formatTime(p.CreatedAt)}
	})
}

func (t *staffCommand) listPackets(ctx context.Context, want client.StaffPacketFilter, page pageFlags) error {
	fetch := func(ctx context.Context, p client.Page) (*wire.List[wire.StaffPacket], error) {
		return t.staff.ListPackets(ctx, want, p)
	}
	columns := []any{"packet", "app", "sender", "status", "total", "claimed", "created"}
	return printList(ctx, t.appCommand, page, fetch, columns, func(p *wire.StaffPacket) []any {
		return []any{p.ID, p.App, p.SenderID, p.Status, formatYuan(p.TotalAmount), claimedText(&p.Packet), formatTime(p.CreatedAt)}
	})
}

func claimedText(p *wire.Packet) string {
	return fmt.Sprintf("%d of %d", p.ClaimedCount, p.ShareCount)
}
