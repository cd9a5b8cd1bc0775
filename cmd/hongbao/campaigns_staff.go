package main

import (
	"context"

	"github.com/spf13/cobra"

	"hongbao/client"
	"hongbao/internal/visible"
	"hongbao/wire"
)

// newCampaignsStaffCommand returns the commands of staff about campaigns of every app.
func newCampaignsStaffCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "staff",
		Short: "List, pause and end the campaigns of all apps, as staff",
		Long: `List, pause and end the campaigns of all apps, with the key of operations or finance
(HONGBAO_STAFF_URL and HONGBAO_OPS_KEY).`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newStaffCampaignsListCommand(env),
		newStaffCampaignsStopCommand(env, "pause", "Pause a campaign of any app, until its app resumes it",
			"Pause a campaign of any app until its app resumes it: no packets are created, except\none whose creation has begun. "+
				"The audit records it.", (*client.Staff).PauseCampaign),
		newStaffCampaignsStopCommand(env, "end", "End a campaign of any app for good",
			"End a campaign of any app for good: no more packets are created, except one whose\ncreation has begun; \"hongbao packets "+
				"recall\" stops that one. The audit records it.", (*client.Staff).EndCampaign),
	)
	return cmd
}

func newStaffCampaignsListCommand(env environment) *cobra.Command {
	f, page, want, status := newOpsFlags(), pageFlags{}, client.StaffCampaignFilter{}, ""
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the campaigns of all apps, newest first",
		Long:    "List the campaigns of all apps that match all filters, newest first.",
		Example: "  hongbao campaigns staff list --status active --app shop",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := page.check(); err != nil {
				return err
			}
			want.Status = wire.CampaignStatus(status)
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				fetch := func(ctx context.Context, p client.Page) (*wire.List[wire.StaffCampaign], error) {
					return t.staff.ListCampaigns(ctx, want, p)
				}
				columns := []any{"campaign", "app", "name", "status", "sender", "each packet", "shares", "opens daily", "next packet opens"}
				return printList(ctx, t.appCommand, page, fetch, columns, func(c *wire.StaffCampaign) []any {
					return []any{c.ID, c.App, truncate(c.Name), c.Status, c.Packet.SenderID, formatYuan(c.Packet.TotalAmount), c.Packet.ShareCount,
						opensDaily(&c.Campaign), formatOptionalTime(c.NextOpensAt)}
				})
			})
		},
	}
	f.add(cmd, false)
	campaignStatusFlag(cmd, &status)
	appID.flag(cmd, &want.App, "app", "only campaigns of this `app`")
	complete(cmd, "app")
	page.add(cmd)
	return cmd
}

func newStaffCampaignsStopCommand(env environment, verb, short, long string,
	stop func(*client.Staff, context.Context, string, wire.Reason, ...client.Key) (*wire.StaffCampaign, error)) *cobra.Command {
	f := newOpsFlags()
	cmd := &cobra.Command{
		Use:               verb + " <campaign id> --reason <text>",
		Short:             short,
		Long:              long,
		Example:           "  hongbao campaigns staff " + verb + " 3q5k9v0c1m7e2u8h4r6t --reason 'the sender has left, ticket 4711'",
		Args:              campaignID.arg,
		ValidArgsFunction: completeStaffCampaigns(env, &f),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				c, err := stop(t.staff, ctx, args[0], f.decision(), client.Key(f.idempotencyKey))
				if err != nil {
					return err
				}
				return t.printCampaign(&c.Campaign)
			})
		},
	}
	f.add(cmd, true)
	return cmd
}

// completeStaffCampaigns completes the newest campaigns of all apps.
func completeStaffCampaigns(env environment, f *staffFlags) cobra.CompletionFunc {
	return completeItems(env, f, func(ctx context.Context, t *staffCommand) (found []cobra.Completion, err error) {
		list, err := t.staff.ListCampaigns(ctx, client.StaffCampaignFilter{}, client.Page{Limit: 20})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			c := &list.Items[i]
			found = append(found, cobra.CompletionWithDesc(c.ID, visible.Text(c.Name+", "+string(c.Status)+", of "+c.App)))
		}
		return found, nil
	})
}
