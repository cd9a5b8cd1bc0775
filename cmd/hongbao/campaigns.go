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
	"hongbao/wire"
)

// newCampaignsCommand returns the commands of apps about campaigns, and "campaigns staff".
func newCampaignsCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "campaigns",
		Short: "Create, list, pause, resume and end campaigns: a packet that opens every day at the same time",
		Long: `Create, list, pause, resume and end campaigns as an app. A campaign opens one packet
every day at the same local time. The packet is created and its sender charged ten
minutes earlier. From then on it is an ordinary packet ("hongbao packets show"), also
when the campaign is paused or ended. In a second terminal beside "hongbao dev":

  . .hongbao/dev.env
  export HONGBAO_URL HONGBAO_APP_KEY
  hongbao campaigns create --name 'evening rain' --opens-daily-at 20:00 --sender alice --total 10000 --shares 10

"hongbao campaigns staff" is for staff and covers the campaigns of every app.

Amounts are those of one packet. Write them in fen (100 fen = ¥1); tables show yuan.
--json prints the API's response instead of tables, also of a refusal.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newCampaignsListCommand(env),
		newCampaignsShowCommand(env),
		newCampaignsDaysCommand(env),
		newCampaignsCreateCommand(env),
		newCampaignsChangeCommand(env, "pause", "Create no packets until the campaign is resumed",
			"Pause a campaign: no packets are created until it is resumed, except one whose creation\nhas begun. Existing packets are not affected.",
			(*client.Client).PauseCampaign),
		newCampaignsChangeCommand(env, "resume", "Resume a paused campaign",
			"Resume a paused campaign with the next day whose packet opens. Days of the pause are\nnot caught up. "+
				"When no day is left, the campaign ends.", (*client.Client).ResumeCampaign),
		newCampaignsChangeCommand(env, "end", "End a campaign for good",
			"End a campaign for good: no more packets are created, except one whose creation has\nbegun. Existing packets are not affected.",
			(*client.Client).EndCampaign),
		newCampaignsStaffCommand(env),
	)
	return cmd
}

var campaignStatuses = []string{string(wire.CampaignActive), string(wire.CampaignPaused), string(wire.CampaignEnded)}

// campaignStatusFlag declares the filter by a campaign's status.
func campaignStatusFlag(cmd *cobra.Command, status *string) {
	cmd.Flags().StringVar(status, "status", "", "only campaigns in this `status`: "+strings.Join(campaignStatuses, ", "))
	complete(cmd, "status", campaignStatuses...)
}

func newCampaignsListCommand(env environment) *cobra.Command {
	var f appFlags
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
			return f.run(cmd, env, func(ctx context.Context, t *appCommand) error {
				fetch := func(ctx context.Context, p client.Page) (*wire.List[wire.Campaign], error) {
					return t.client.ListCampaigns(ctx, client.CampaignFilter{Status: wire.CampaignStatus(status)}, p)
				}
				columns := []any{"campaign", "name", "status", "sender", "each packet", "shares", "opens daily", "next packet opens"}
				return printList(ctx, t, page, fetch, columns, func(c *wire.Campaign) []any {
					return []any{c.ID, truncate(c.Name), c.Status, c.Packet.SenderID, formatYuan(c.Packet.TotalAmount), c.Packet.ShareCount, opensDaily(c),
						formatOptionalTime(c.NextOpensAt)}
				})
			})
		},
	}
	addAppFlags(cmd, &f, time.Minute)
	campaignStatusFlag(cmd, &status)
	page.add(cmd)
	return cmd
}

func newCampaignsShowCommand(env environment) *cobra.Command {
	var f appFlags
	cmd := &cobra.Command{
		Use:               "show <campaign id>",
		Short:             "Show a campaign and the outcome of its last days",
		Long:              "Show a campaign and the outcome of its last 7 days. --json prints the campaign alone.",
		Example:           "  hongbao campaigns show 3q5k9v0c1m7e2u8h4r6t",
		Args:              campaignID.arg,
		ValidArgsFunction: completeCampaigns(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, env, func(ctx context.Context, t *appCommand) error { return t.showCampaign(ctx, args[0]) })
		},
	}
	addAppFlags(cmd, &f, time.Minute)
	return cmd
}

// shownDays is the number of days that "show" lists.
const shownDays = 7

func (t *appCommand) showCampaign(ctx context.Context, id string) error {
	c, err := t.client.Campaign(ctx, id)
	if err != nil {
		return err
	}
	if err := t.printCampaign(c); err != nil || t.json {
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
		return printf(t.out, "The last %d days. For more: hongbao campaigns days %s\n", len(list.Items), id)
	}
	return nil
}

func newCampaignsDaysCommand(env environment) *cobra.Command {
	var f appFlags
	var page pageFlags
	cmd := &cobra.Command{
		Use:   "days <campaign id>",
		Short: "List the days of a campaign, newest first",
		Long: `List the days of a campaign with their outcome, newest first. made: the packet was
created; "hongbao packets show" shows it. missed: no packet could be created before it
would have expired. Days of a pause are not listed.`,
		Example:           "  hongbao campaigns days 3q5k9v0c1m7e2u8h4r6t --all",
		Args:              campaignID.arg,
		ValidArgsFunction: completeCampaigns(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := page.check(); err != nil {
				return err
			}
			return f.run(cmd, env, func(ctx context.Context, t *appCommand) error {
				fetch := func(ctx context.Context, p client.Page) (*wire.List[wire.CampaignDay], error) {
					return t.client.ListCampaignDays(ctx, args[0], p)
				}
				return printList(ctx, t, page, fetch, dayColumns, dayRow)
			})
		},
	}
	addAppFlags(cmd, &f, time.Minute)
	page.add(cmd)
	return cmd
}

var dayColumns = []any{"day", "status", "packet", "opens", "decided"}

func dayRow(d *wire.CampaignDay) []any {
	return []any{d.Day, d.Status, optionalText(d.PacketID), formatTime(d.OpensAt), formatTime(d.DecidedAt)}
}

// campaignFlags are the flags of "campaigns create".
type campaignFlags struct {
	appFlags
	shapeFlags
	campaign       wire.CreateCampaign
	idempotencyKey string
}

func newCampaignsCreateCommand(env environment) *cobra.Command {
	var f campaignFlags
	cmd := &cobra.Command{
		Use:   "create --name <text> --opens-daily-at <HH:MM> --sender <user> --total <fen> --shares <n>",
		Short: "Create a campaign",
		Long: `Create a campaign. Its first packet is the next one that opens, not before --starts-on.
Creating a campaign charges nothing: the sender is charged for each packet ten minutes
before it opens. A declined charge rejects the packet of that day; the next day is not
affected. When no answer arrives, run the command again with the --idempotency-key that
it prints: no second campaign is created.`,
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
	addAppFlags(cmd, &f.appFlags, time.Minute)
	flags := cmd.Flags()
	flags.StringVar(&f.campaign.Name, "name", "", "display name: `text` of at most 64 characters (required)")
	flags.StringVar(&f.campaign.OpensDailyAt, "opens-daily-at", "", "`time` of day at which packets open, HH:MM (required)")
	flags.StringVar(&f.campaign.TimeZone, "time-zone", "", "IANA `name` of the time zone of time and days; default Asia/Shanghai")
	flags.StringVar((*string)(&f.campaign.StartsOn), "starts-on", "", "first `day`, YYYY-MM-DD; default: the next day whose packet can open")
	flags.StringVar((*string)(&f.campaign.EndsOn), "ends-on", "", "last `day`, YYYY-MM-DD; default: none, until the campaign is ended")
	flags.BoolVar(&f.campaign.OneWin, "one-win-per-user", false, "let each user win in at most one of its packets")
	flags.StringVar(&f.idempotencyKey, "idempotency-key", "",
		"`key` of this request: a repeat with the same key creates no second campaign; "+
			"default: a new key")
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
	f.campaign.Packet = wire.CampaignCreate{
		SenderID: p.SenderID, TotalAmount: p.TotalAmount, ShareCount: p.ShareCount, Split: p.Split, MinShare: p.MinShare, MaxShare: p.MaxShare,
		Greeting: p.Greeting, ExpiresInSeconds: p.ExpiresInSeconds, EligibleUserIDs: p.EligibleUserIDs, Tickets: p.Tickets, GroupID: p.GroupID,
		Metadata: p.Metadata,
	}
	return problems
}

func (f *campaignFlags) create(ctx context.Context, t *appCommand) error {
	c, err := t.client.CreateCampaign(ctx, f.campaign, client.Key(f.idempotencyKey))
	if err != nil {
		return withKeyIfUnanswered(err)
	}
	return t.printCampaign(c)
}

// newCampaignsChangeCommand returns a command that changes the status of a campaign.
func newCampaignsChangeCommand(env environment, verb, short, long string,
	change func(*client.Client, context.Context, string) (*wire.Campaign, error)) *cobra.Command {
	var f appFlags
	cmd := &cobra.Command{
		Use:               verb + " <campaign id>",
		Short:             short,
		Long:              long + "\nRepeating it changes nothing.",
		Example:           "  hongbao campaigns " + verb + " 3q5k9v0c1m7e2u8h4r6t",
		Args:              campaignID.arg,
		ValidArgsFunction: completeCampaigns(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, env, func(ctx context.Context, t *appCommand) error {
				c, err := change(t.client, ctx, args[0])
				if err != nil {
					return err
				}
				return t.printCampaign(c)
			})
		},
	}
	addAppFlags(cmd, &f, time.Minute)
	return cmd
}

// printCampaign prints a campaign.
func (t *appCommand) printCampaign(c *wire.Campaign) error {
	if t.json {
		return t.printAnswer()
	}
	p, show := &c.Packet, newGrid(t.out)
	for _, line := range [][]any{
		{"campaign", c.ID},
		{"name", c.Name},
		{"status", c.Status},
		{"opens daily", opensDaily(c)},
		{"first day", c.StartsOn},
		{"last day", cmp.Or(optionalText((*string)(c.EndsOn)), "none")},
		{"next packet opens", cmp.Or(formatOptionalTime(c.NextOpensAt), "none")},
		{"sender", p.SenderID},
		{"each packet", formatAmount(p.TotalAmount)},
		{"shares", fmt.Sprintf("%d, %s", p.ShareCount, splitText(p.Split, p.MinShare, p.MaxShare))},
		{"expires", fmt.Sprintf("%v after opening", time.Duration(p.ExpiresInSeconds)*time.Second)},
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
		show.row("wins", "at most one per user, over all packets")
	}
	if p.Greeting != "" {
		show.row("greeting", p.Greeting)
	}
	if c.EndedAt != nil {
		show.row("ended", formatTime(*c.EndedAt))
	}
	show.row("schedule", c.Schedule.ID)
	show.render()
	return nil
}

func opensDaily(c *wire.Campaign) string { return c.OpensDailyAt + " " + c.TimeZone }

// completeCampaigns completes the newest campaigns of the app.
func completeCampaigns(env environment) cobra.CompletionFunc {
	return completeOwn(env, func(ctx context.Context, t *appCommand) (found []cobra.Completion, err error) {
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
