package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"hongbao/client"
	"hongbao/wire"
)

func newPacketsShowCommand(env environment) *cobra.Command {
	var f appFlags
	ops, staff := newOpsFlags(), false
	cmd := &cobra.Command{
		Use:   "show <packet id>",
		Short: "Show a packet and its newest claims",
		Long: `Show a packet and its newest 20 claims. --json prints the packet alone, as input of
"hongbao verify". --staff shows a packet of any app, with its payouts by status and its
refunds.`,
		Example:           "  hongbao packets show 97h0uojo11oljc4bchnk\n  hongbao packets show --staff 97h0uojo11oljc4bchnk",
		Args:              packetID.arg,
		ValidArgsFunction: completePackets(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			if staff {
				ops.json, ops.timeout = f.json, f.timeout
				return ops.run(cmd, env, func(ctx context.Context, t *staffCommand) error { return t.showPacket(ctx, args[0]) })
			}
			return f.run(cmd, env, func(ctx context.Context, t *appCommand) error { return t.printPacketAndClaims(ctx, args[0]) })
		},
	}
	addAppFlags(cmd, &f, time.Minute)
	addSettings(cmd, cmdOps)
	cmd.Flags().BoolVar(&staff, "staff", false, "show a packet of any app as staff, with --staff-url and --ops-key instead of --url and "+
		"--app-key")
	return cmd
}

// shownClaims is the number of claims that "show" lists.
const shownClaims = 20

func (t *appCommand) printPacketAndClaims(ctx context.Context, id string) error {
	p, err := t.client.Packet(ctx, id)
	if err != nil {
		return err
	}
	if err := t.printPacket(p); err != nil || t.json || p.ClaimedCount == 0 {
		return err
	}
	list, err := t.client.ListGrabs(ctx, id, client.Page{Limit: shownClaims})
	if err != nil {
		return err
	}
	claims := claimTable(t.out)
	for i := range list.Items {
		claims.row(claimRow(&list.Items[i])...)
	}
	claims.render()
	if list.NextCursor != nil {
		return printf(t.out, "The newest %d of %d. For all: hongbao packets claims %s\n", len(list.Items), p.ClaimedCount, id)
	}
	return nil
}

func newPacketsClaimsCommand(env environment) *cobra.Command {
	var f appFlags
	cmd := &cobra.Command{
		Use:   "claims <packet id>",
		Short: "List all claims of a packet",
		Long: `List all claims of a packet, newest first. --json prints all pages as one,
{"items":[...],"next_cursor":null}, as input of "hongbao verify --claims".`,
		Args:              packetID.arg,
		ValidArgsFunction: completePackets(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, env, func(ctx context.Context, t *appCommand) error { return t.printClaims(ctx, args[0]) })
		},
	}
	addAppFlags(cmd, &f, 10*time.Minute)
	return cmd
}

func (t *appCommand) printClaims(ctx context.Context, id string) error {
	return printList(ctx, t, pageFlags{all: true}, func(ctx context.Context, p client.Page) (*wire.List[wire.Claim], error) {
		return t.client.ListGrabs(ctx, id, p)
	}, claimColumns, claimRow)
}

func newPacketsGrabCommand(env environment) *cobra.Command {
	var f appFlags
	var request wire.Grab
	cmd := &cobra.Command{
		Use:   "grab <packet id> --user <user>",
		Short: "Grab a share for a user",
		Long: `Grab a share for a user. A printed claim is on disk and will be paid. A repeated grab
of the same user returns the same claim.`,
		Example:           "  hongbao packets grab 97h0uojo11oljc4bchnk --user bob",
		Args:              packetID.arg,
		ValidArgsFunction: completePackets(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			if request.UserID == "" {
				return &usageError{missingFlag("user")}
			}
			return f.run(cmd, env, func(ctx context.Context, t *appCommand) error { return t.grab(ctx, args[0], request) })
		},
	}
	addAppFlags(cmd, &f, time.Minute)
	flags := cmd.Flags()
	flags.StringVar(&request.UserID, "user", "", "id of the `user` who grabs (required)")
	flags.StringVar(&request.Nickname, "nickname", "", "display `name` of the user, stored with the claim")
	flags.StringVar(&request.AvatarURL, "avatar-url", "", "`url` of the user's picture, stored with the claim")
	flags.StringVar(&request.Recipient, "recipient", "", "`account` that is paid; default: the user id")
	flags.StringVar(&request.Ticket, "ticket", "", "`ticket` that the app signed for this user, if the packet requires one")
	for _, name := range []string{"user", "nickname", "avatar-url", "recipient", "ticket"} {
		complete(cmd, name)
	}
	return cmd
}

func (t *appCommand) grab(ctx context.Context, id string, request wire.Grab) error {
	c, err := t.client.Grab(ctx, id, request)
	if err != nil {
		return err
	}
	if t.json {
		return t.printAnswer()
	}
	verb := "won"
	if c.Replayed {
		verb = "had won"
	}
	return printf(t.out, "%s %s %s: share %d, payout %s is %s\n", c.UserID, verb, formatAmount(c.Amount), c.ShareIndex, c.Payout.ID,
		c.Payout.Status)
}
