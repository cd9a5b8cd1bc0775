package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hongbao/client"

	"hongbao/internal/visible"
)

// newCampaignsCommand is for apps, as are all of "packets" that are not for staff.
func newCampaignsCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "campaigns",
		Short: "Create, look at, pause, resume and end campaigns: a packet that opens every day at the same time",
		Long: `Create, look at, pause, resume and end campaigns as an app does: a packet like a
template opens on every day at the same local time. Ten minutes before, it is created
and its sender charged; from there on it is a packet as any other, also when the
campaign is paused or ended: "hongbao packets show". In a second terminal beside
"hongbao dev":

  . .hongbao/dev.env
  export HONGBAO_URL HONGBAO_APP_KEY
  hongbao campaigns create --name 'evening rain' --opens-daily-at 20:00 --sender alice --total 10000 --shares 10

"hongbao campaigns staff" is for staff, and campaigns of every app.

Amounts are typed in fen (100 fen are one yuan), those of one packet, and shown in yuan.
--json prints what the API said instead of tables, also when it refused.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newCampaignsListCommand(env),
		newCampaignsShowCommand(env),
		newCampaignsDaysCommand(env),
		newCampaignsCreateCommand(env),
		newCampaignsChangeCommand(env, "pause", "Make no packets until the campaign is resumed",
			"Pause a campaign: no packets are made until it is resumed, but for one that is being\nmade by then. Those that are made live on.",
			(*client.Client).PauseCampaign),
		newCampaignsChangeCommand(env, "resume", "Go on with a campaign that is paused",
			"Go on with a campaign that is paused, from the first day whose packet opens from now\non: days of the pause are not made up for. "+
				"When no day is left, it ends.", (*client.Client).ResumeCampaign),
		newCampaignsChangeCommand(env, "end", "Make no more packets, for ever",
			"End a campaign, for ever: no more packets are made, but for one that is being made by\nthen. Those that are made live on.",
			(*client.Client).EndCampaign),
		newCampaignsStaffCommand(env),
	)
	return cmd
}

var campaignStatuses = []string{string(client.CampaignActive), string(client.CampaignPaused), string(client.CampaignEnded)}

// campaignStatusFlag declares the filter by a campaign's status.
func campaignStatusFlag(cmd *cobra.Command, status *string) {
	cmd.Flags().StringVar(status, "status", "", "campaigns in this `status` now: "+strings.Join(campaignStatuses, ", "))
	complete(cmd, "status", campaignStatuses...)
}

func newCampaignsListCommand(env environment) *cobra.Command {
	var f packetsFlags
	var page pageFlags
	var status string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the campaigns of the app, newest first",
		Example: "  hongbao campaigns list --status active",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := page.check(); err != nil {
				return err
			}
			return f.run(cmd, env, func(ctx context.Context, t *teller) error {
				fetch := func(ctx context.Context, p client.Page) (*client.List[client.Campaign], error) {
					return t.client.ListCampaigns(ctx, client.CampaignFilter{Status: client.CampaignStatus(status)}, p)
				}
				columns := []any{"campaign", "name", "status", "sender", "each packet", "shares", "opens daily", "next packet opens"}
				return tellList(ctx, t, page, fetch, columns, func(c *client.Campaign) []any {
					return []any{c.ID, clipped(c.Name), c.Status, c.Packet.SenderID, shown(c.Packet.TotalAmount), c.Packet.ShareCount, opensDaily(c),
						whenever(c.NextOpensAt)}
				})
			})
		},
	}
	addPacketsFlags(cmd, &f, time.Minute)
	campaignStatusFlag(cmd, &status)
	page.add(cmd)
	return cmd
}

func newCampaignsShowCommand(env environment) *cobra.Command {
	var f packetsFlags
	cmd := &cobra.Command{
		Use:               "show <campaign id>",
		Short:             "Show a campaign and what became of its last days",
		Long:              "Show a campaign and what became of its last days. With --json it prints the campaign\nalone.",
		Example:           "  hongbao campaigns show 3q5k9v0c1m7e2u8h4r6t",
		Args:              oneCampaign,
		ValidArgsFunction: completeCampaigns(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, env, func(ctx context.Context, t *teller) error { return t.showCampaign(ctx, args[0]) })
		},
	}
	addPacketsFlags(cmd, &f, time.Minute)
	return cmd
}

// shownDays is of how many days "show" tells.
const shownDays = 7

func (t *teller) showCampaign(ctx context.Context, id string) error {
	c, err := t.client.Campaign(ctx, id)
	if err != nil {
		return err
	}
	if err := t.campaign(c); err != nil || t.json {
		return err
	}
	list, err := t.client.ListCampaignDays(ctx, id, client.Page{Limit: shownDays})
	if err != nil || len(list.Items) == 0 {
		return err
	}
	days := newGrid(t.out, dayColumns...)
	for i := range list.Items {
		days.row(dayRow(&list.Items[i])...)
	}
	days.render()
	if list.NextCursor != nil {
		return printf(t.out, "The last %d days; more of them: hongbao campaigns days %s\n", len(list.Items), id)
	}
	return nil
}

func newCampaignsDaysCommand(env environment) *cobra.Command {
	var f packetsFlags
	var page pageFlags
	cmd := &cobra.Command{
		Use:   "days <campaign id>",
		Short: "List what became of the days of a campaign, newest first",
		Long: `List what became of the days of a campaign, newest first: of a day that is "made" the
packet was created, and "hongbao packets show" tells how it is; of one that is "missed"
nothing could be created until it would have expired. Days of a pause are not there.`,
		Example:           "  hongbao campaigns days 3q5k9v0c1m7e2u8h4r6t --all",
		Args:              oneCampaign,
		ValidArgsFunction: completeCampaigns(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := page.check(); err != nil {
				return err
			}
			return f.run(cmd, env, func(ctx context.Context, t *teller) error {
				fetch := func(ctx context.Context, p client.Page) (*client.List[client.CampaignDay], error) {
					return t.client.ListCampaignDays(ctx, args[0], p)
				}
				return tellList(ctx, t, page, fetch, dayColumns, dayRow)
			})
		},
	}
	addPacketsFlags(cmd, &f, time.Minute)
	page.add(cmd)
	return cmd
}

var dayColumns = []any{"day", "status", "packet", "opens", "decided"}

func dayRow(d *client.CampaignDay) []any {
	return []any{d.Day, d.Status, orNone(d.PacketID), when(d.OpensAt), when(d.DecidedAt)}
}

// campaignFlags are a campaign that is wanted, as typed.
type campaignFlags struct {
	packetsFlags
	shapeFlags
	campaign client.CampaignRequest
}

func newCampaignsCreateCommand(env environment) *cobra.Command {
	var f campaignFlags
	cmd := &cobra.Command{
		Use:   "create --name <text> --opens-daily-at <HH:MM> --sender <user> --total <fen> --shares <n>",
		Short: "Create a campaign, which begins with the first packet that opens from now on",
		Long: `Create a campaign. It begins with the first packet that opens from now on, not before
--starts-on. Nobody is charged by creating it: the sender is charged for each packet
ten minutes before it opens; where that is declined, the packet of that day is rejected,
and the next one is made all the same. When the answer does not come, run it again with
the --idempotency-key it prints: no second campaign is made.`,
		Example: "  hongbao campaigns create --name 'evening rain' --opens-daily-at 20:00 --starts-on 2027-02-01 --ends-on 2027-02-28 " +
			"--sender alice --total 10000 --shares 10",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.read(); err != nil {
				return &usageError{err}
			}
			return f.run(cmd, env, f.create)
		},
	}
	addPacketsFlags(cmd, &f.packetsFlags, time.Minute)
	flags := cmd.Flags()
	flags.StringVar(&f.campaign.Name, "name", "", "what people call it: `text` of at most 64 characters (required)")
	flags.StringVar(&f.campaign.OpensDailyAt, "opens-daily-at", "", "at what `time` of the day packets open, such as 20:00 (required)")
	flags.StringVar(&f.campaign.TimeZone, "time-zone", "", "the time zone of that time and of the days, an IANA `name`; empty = Asia/Shanghai")
	flags.StringVar(&f.campaign.StartsOn, "starts-on", "", "the first `day`, YYYY-MM-DD; empty = the first whose packet opens from now on")
	flags.StringVar(&f.campaign.EndsOn, "ends-on", "", "the last `day`, YYYY-MM-DD; empty = it goes on until it is ended")
	flags.BoolVar(&f.campaign.OneWin, "one-win-per-user", false, "a user wins in one of its packets at most")
	flags.StringVar(&f.campaign.IdempotencyKey, "idempotency-key", "", "names this create; the same `key` makes no second campaign; empty "+
		"= a new one")
	for _, name := range []string{"name", "opens-daily-at", "time-zone", "starts-on", "ends-on", "one-win-per-user", "idempotency-key"} {
		complete(cmd, name)
	}
	f.add(cmd)
	return cmd
}

func (f *campaignFlags) read() error {
	var problems error
	if f.campaign.Name == "" {
		problems = errors.Join(problems, missingFlag("name"))
	}
	if f.campaign.OpensDailyAt == "" {
		problems = errors.Join(problems, missingFlag("opens-daily-at"))
	}
	problems = errors.Join(problems, f.shapeFlags.read())
	p := f.request
	f.campaign.Packet = client.CampaignPacket{
		SenderID: p.SenderID, TotalAmount: p.TotalAmount, ShareCount: p.ShareCount, Split: p.Split, MinShare: p.MinShare, MaxShare: p.MaxShare,
		Greeting: p.Greeting, ExpiresInSeconds: p.ExpiresInSeconds, EligibleUserIDs: p.EligibleUserIDs, Tickets: p.Tickets, GroupID: p.GroupID,
		Metadata: p.Metadata,
	}
	return problems
}

func (f *campaignFlags) create(ctx context.Context, t *teller) error {
	c, err := t.client.CreateCampaign(ctx, f.campaign)
	if err != nil {
		return withKey(err)
	}
	return t.campaign(c)
}

// newCampaignsChangeCommand is a command that changes the status of a campaign.
func newCampaignsChangeCommand(env environment, verb, short, long string,
	change func(*client.Client, context.Context, string) (*client.Campaign, error)) *cobra.Command {
	var f packetsFlags
	cmd := &cobra.Command{
		Use:               verb + " <campaign id>",
		Short:             short,
		Long:              long + "\nIt may be repeated.",
		Example:           "  hongbao campaigns " + verb + " 3q5k9v0c1m7e2u8h4r6t",
		Args:              oneCampaign,
		ValidArgsFunction: completeCampaigns(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, env, func(ctx context.Context, t *teller) error {
				c, err := change(t.client, ctx, args[0])
				if err != nil {
					return err
				}
				return t.campaign(c)
			})
		},
	}
	addPacketsFlags(cmd, &f, time.Minute)
	return cmd
}

// campaign prints a campaign.
func (t *teller) campaign(c *client.Campaign) error {
	if t.json {
		return t.raw(c.Raw)
	}
	p, show := &c.Packet, newGrid(t.out)
	for _, line := range [][]any{
		{"campaign", c.ID},
		{"name", c.Name},
		{"status", c.Status},
		{"opens daily", opensDaily(c)},
		{"first day", c.StartsOn},
		{"last day", cmp.Or(orNone(c.EndsOn), "none")},
		{"next packet opens", cmp.Or(whenever(c.NextOpensAt), "none")},
		{"sender", p.SenderID},
		{"each packet", amount(p.TotalAmount)},
		{"shares", fmt.Sprintf("%d, %s", p.ShareCount, bounds(p.Split, p.MinShare, p.MaxShare))},
		{"expires", fmt.Sprintf("%v after it opens", time.Duration(p.ExpiresInSeconds)*time.Second)},
	} {
		show.row(line...)
	}
	if p.EligibleCount > 0 {
		show.row("may grab", fmt.Sprintf("%d users", p.EligibleCount))
	}
	if p.Tickets {
		show.row("may grab", byTicket)
	}
	if c.OneWin {
		show.row("wins", "one a user, in all its packets")
	}
	if p.Greeting != "" {
		show.row("greeting", p.Greeting)
	}
	if c.EndedAt != nil {
		show.row("ended", when(*c.EndedAt))
	}
	show.row("schedule", c.Schedule.ID)
	show.render()
	return nil
}

func opensDaily(c *client.Campaign) string { return c.OpensDailyAt + " " + c.TimeZone }

// oneCampaign takes exactly one argument, a campaign id.
func oneCampaign(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return &usageError{fmt.Errorf("exactly one campaign id is needed, not %d", len(args))}
	}
	return nil
}

// completeCampaigns offers the newest campaigns of the app.
func completeCampaigns(env environment) cobra.CompletionFunc {
	return completeOwn(env, func(ctx context.Context, t *teller) (found []cobra.Completion, err error) {
		list, err := t.client.ListCampaigns(ctx, client.CampaignFilter{}, client.Page{Limit: 20})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			c := &list.Items[i]
			found = append(found, cobra.CompletionWithDesc(c.ID, visible.Text(fmt.Sprintf("%s, %s at %s", c.Name, c.Status, opensDaily(c)))))
		}
		return found, nil
	})
}
