package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hongbao/client"
	"hongbao/wire"
)

// campaignsCommand has the commands of apps about campaigns, and "campaigns staff".
func campaignsCommand() command {
	return command{
		use:   "campaigns",
		short: "Create, list, pause, resume and end campaigns: a packet that opens every day at the same time",
		long: `Create, list, pause, resume and end campaigns as an app. A campaign opens one packet
every day at the same local time. The packet is created and its sender charged ten
minutes earlier. From then on it is an ordinary packet ("hongbao packets show"), also
when the campaign is paused or ended. In a second terminal beside "hongbao dev":

  . .hongbao/dev.env
  export HONGBAO_URL HONGBAO_APP_KEY
  hongbao campaigns create --name 'evening rain' --opens-daily-at 20:00 --sender alice --total 10000 --shares 10

"hongbao campaigns staff" is for staff and covers the campaigns of every app.

Amounts are those of one packet. Write them in fen (100 fen = ¥1); tables show yuan.
--json prints the API's response instead of tables, also of a refusal.`,
		sub: []command{
			campaignsList(), campaignsShow(), campaignsDays(), campaignsCreate(),
			campaignsChange("pause", "Create no packets until the campaign is resumed",
				"Pause a campaign: no packets are created until it is resumed, except one whose creation\nhas begun. "+
					"Existing packets are not affected.",
				(*client.Client).PauseCampaign),
			campaignsChange("resume", "Resume a paused campaign",
				"Resume a paused campaign with the next day whose packet opens. Days of the pause are\nnot caught up. "+
					"When no day is left, the campaign ends.", (*client.Client).ResumeCampaign),
			campaignsChange("end", "End a campaign for good",
				"End a campaign for good: no more packets are created, except one whose creation has\nbegun. Existing packets are not affected.",
				(*client.Client).EndCampaign),
			campaignsStaff(),
		},
	}
}

// campaignStatusFlag declares the filter by a campaign's status.
func campaignStatusFlag(flags *pflag.FlagSet, status *wire.CampaignStatus) {
	choice(flags, status, "status", "only campaigns in this `status`: ",
		[]wire.CampaignStatus{wire.CampaignActive, wire.CampaignPaused, wire.CampaignEnded})
}

func campaignsList() command {
	var filter wire.CampaignFilter
	return command{
		use: "list", short: "List the campaigns of the app, newest first", example: "  hongbao campaigns list --status active",
		as: callerApp, pages: true,
		flags: func(flags *pflag.FlagSet) { campaignStatusFlag(flags, &filter.Status) },
		run: func(ctx context.Context, t *call) error {
			return printList(t, t.page, func(p client.Page) (*wire.List[wire.Campaign], error) {
				return t.app.ListCampaigns(ctx, filter, p)
			}, []any{"campaign", "name", "status", "sender", "each packet", "shares", "opens daily", "next packet opens"}, campaignRow)
		},
	}
}

func campaignRow(c *wire.Campaign) []any {
	return []any{c.ID, truncate(c.Name), c.Status, c.Packet.SenderID, formatYuan(c.Packet.TotalAmount), c.Packet.ShareCount, opensDaily(c),
		formatOptionalTime(c.NextOpensAt)}
}

// shownDays is the number of days that "show" lists.
const shownDays = 7

func campaignsShow() command {
	return command{
		use:     "show <campaign id>",
		short:   "Show a campaign and the outcome of its last days",
		long:    "Show a campaign and the outcome of its last 7 days. --json prints the campaign alone.",
		example: "  hongbao campaigns show 3q5k9v0c1m7e2u8h4r6t",
		args:    campaignID.arg, complete: ownCampaigns, as: callerApp,
		run: func(ctx context.Context, t *call) error {
			c, err := t.app.Campaign(ctx, t.args[0])
			if err != nil {
				return err
			}
			if err := t.printCampaign(c); err != nil || t.json {
				return err
			}
			list, err := t.app.ListCampaignDays(ctx, c.ID, client.Page{Limit: shownDays})
			if err != nil || len(list.Items) == 0 {
				return err
			}
			return printSome(t, list, dayColumns, dayRow, "The last %d days. For more: hongbao campaigns days %s\n", len(list.Items), c.ID)
		},
	}
}

func campaignsDays() command {
	return command{
		use:   "days <campaign id>",
		short: "List the days of a campaign, newest first",
		long: `List the days of a campaign with their outcome, newest first. made: the packet was
created; "hongbao packets show" shows it. missed: no packet could be created before it
would have expired. Days of a pause are not listed.`,
		example: "  hongbao campaigns days 3q5k9v0c1m7e2u8h4r6t --all",
		args:    campaignID.arg, complete: ownCampaigns, as: callerApp, pages: true,
		run: func(ctx context.Context, t *call) error {
			return printList(t, t.page, func(p client.Page) (*wire.List[wire.CampaignDay], error) {
				return t.app.ListCampaignDays(ctx, t.args[0], p)
			}, dayColumns, dayRow)
		},
	}
}

var dayColumns = []any{"day", "status", "packet", "opens", "decided"}

func dayRow(d *wire.CampaignDay) []any {
	return []any{d.Day, d.Status, optionalText(d.PacketID), formatTime(d.OpensAt), formatTime(d.DecidedAt)}
}

func campaignsCreate() command {
	var shape shapeFlags
	var campaign wire.CreateCampaign
	var key string
	return command{
		use:   "create --name <text> --opens-daily-at <HH:MM> --sender <user> --total <fen> --shares <n>",
		short: "Create a campaign",
		long: `Create a campaign. Its first packet is the next one that opens, not before --starts-on.
Creating a campaign charges nothing: the sender is charged for each packet ten minutes
before it opens. A declined charge rejects the packet of that day; the next day is not
affected. When no answer arrives, run the command again with the --idempotency-key that
it prints: no second campaign is created.`,
		example: "  hongbao campaigns create --name 'evening rain' --opens-daily-at 20:00 --starts-on 2027-02-01 --ends-on 2027-02-28 " +
			"--sender alice --total 10000 --shares 10",
		as: callerApp,
		flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&campaign.Name, "name", "", "display name: `text` of at most 64 characters (required)")
			flags.StringVar(&campaign.OpensDailyAt, "opens-daily-at", "", "`time` of day at which packets open, HH:MM (required)")
			flags.StringVar(&campaign.TimeZone, "time-zone", "", "IANA `name` of the time zone of time and days; default Asia/Shanghai")
			flags.StringVar((*string)(&campaign.StartsOn), "starts-on", "", "first `day`, YYYY-MM-DD; default: the next day whose packet can open")
			flags.StringVar((*string)(&campaign.EndsOn), "ends-on", "", "last `day`, YYYY-MM-DD; default: none, until the campaign is ended")
			flags.BoolVar(&campaign.OneWin, "one-win-per-user", false, "let each user win in at most one of its packets")
			flags.StringVar(&key, "idempotency-key", "",
				"`key` of this request: a repeat with the same key creates no second campaign; default: a new key")
			shape.add(flags)
		},
		run: func(ctx context.Context, t *call) error {
			if err := completeCampaign(&campaign, &shape); err != nil {
				return &usageError{err}
			}
			c, err := t.app.CreateCampaign(ctx, campaign, client.Key(key))
			if err != nil {
				return err
			}
			return t.printCampaign(c)
		},
	}
}

// completeCampaign adds the packet to a campaign.
func completeCampaign(campaign *wire.CreateCampaign, shape *shapeFlags) error {
	var problems error
	if campaign.Name == "" {
		problems = errors.Join(problems, missingFlag("name"))
	}
	if campaign.OpensDailyAt == "" {
		problems = errors.Join(problems, missingFlag("opens-daily-at"))
	}
	problems = errors.Join(problems, shape.read())
	p := shape.request
	campaign.Packet = wire.CampaignCreate{
		SenderID: p.SenderID, TotalAmount: p.TotalAmount, ShareCount: p.ShareCount, Split: p.Split, MinShare: p.MinShare, MaxShare: p.MaxShare,
		Greeting: p.Greeting, ExpiresInSeconds: p.ExpiresInSeconds, EligibleUserIDs: p.EligibleUserIDs, Tickets: p.Tickets, GroupID: p.GroupID,
		Metadata: p.Metadata,
	}
	if p.Funding != nil {
		campaign.Packet.Funding = &wire.CampaignFunding{Source: p.Funding.Source}
	}
	return problems
}

// campaignsChange is a command that changes the status of a campaign.
func campaignsChange(verb, short, long string, change func(*client.Client, context.Context, string) (*wire.Campaign, error)) command {
	return command{
		use:     verb + " <campaign id>",
		short:   short,
		long:    long + "\nRepeating it changes nothing.",
		example: "  hongbao campaigns " + verb + " 3q5k9v0c1m7e2u8h4r6t",
		args:    campaignID.arg, complete: ownCampaigns, as: callerApp,
		run: func(ctx context.Context, t *call) error {
			c, err := change(t.app, ctx, t.args[0])
			if err != nil {
				return err
			}
			return t.printCampaign(c)
		},
	}
}

// printCampaign prints a campaign.
func (t *call) printCampaign(c *wire.Campaign) error {
	if t.json {
		return t.printAnswer()
	}
	p, mayGrab, wins := &c.Packet, "", ""
	if p.EligibleCount > 0 {
		mayGrab = fmt.Sprintf("%d users", p.EligibleCount)
	}
	if p.Tickets {
		mayGrab = byTicket
	}
	if c.OneWin {
		wins = "at most one per user, over all packets"
	}
	t.printFacts([][]any{
		{"campaign", c.ID}, {"name", c.Name}, {"status", c.Status}, {"opens daily", opensDaily(c)}, {"first day", c.StartsOn},
		{"last day", cmp.Or(formatOptional(c.EndsOn), "none")}, {"next packet opens", cmp.Or(formatOptionalTime(c.NextOpensAt), "none")},
		{"sender", p.SenderID}, {"paid by", p.Funding.Source}, {"each packet", formatAmount(p.TotalAmount)},
		{"shares", fmt.Sprintf("%d, %s", p.ShareCount, splitText(p.Split, p.MinShare, p.MaxShare))},
		{"expires", fmt.Sprintf("%v after opening", time.Duration(p.ExpiresInSeconds)*time.Second)}, {"may grab", mayGrab}, {"wins", wins},
		{"greeting", p.Greeting}, {"ended", formatOptionalTime(c.EndedAt)}, {"schedule", c.Schedule.ID},
	})
	return nil
}

func opensDaily(c *wire.Campaign) string { return c.OpensDailyAt + " " + c.TimeZone }

// ownCampaigns completes the newest campaigns of the app.
func ownCampaigns(ctx context.Context, t *call) ([]cobra.Completion, error) {
	list, err := t.app.ListCampaigns(ctx, wire.CampaignFilter{}, newest)
	return completions(list, err, func(c *wire.Campaign) (string, string) {
		return c.ID, fmt.Sprintf("%s, %s at %s", c.Name, c.Status, opensDaily(c))
	})
}

// campaignsStaff has the commands of staff about campaigns of all apps.
func campaignsStaff() command {
	return command{
		use:   "staff",
		short: "List, pause and end the campaigns of all apps, as staff",
		long: `List, pause and end the campaigns of all apps, with the key of operations or finance
(HONGBAO_STAFF_URL and HONGBAO_OPS_KEY).`,
		sub: []command{
			staffCampaignsList(),
			staffCampaignsStop("pause", "Pause a campaign of any app, until its app resumes it",
				"Pause a campaign of any app until its app resumes it: no packets are created, except\none whose creation has begun. "+
					"The audit records it.", (*client.Staff).PauseCampaign),
			staffCampaignsStop("end", "End a campaign of any app for good",
				"End a campaign of any app for good: no more packets are created, except one whose\ncreation has begun; \"hongbao packets "+
					"recall\" stops that one. The audit records it.", (*client.Staff).EndCampaign),
		},
	}
}

func staffCampaignsList() command {
	var filter wire.StaffCampaignFilter
	return command{
		use:     "list",
		short:   "List the campaigns of all apps, newest first",
		long:    "List the campaigns of all apps that match all filters, newest first.",
		example: "  hongbao campaigns staff list --status active --app shop",
		as:      callerOps, pages: true,
		flags: func(flags *pflag.FlagSet) {
			campaignStatusFlag(flags, &filter.Status)
			appID.flag(flags, &filter.App, "app", "only campaigns of this `app`")
		},
		run: func(ctx context.Context, t *call) error {
			columns := []any{"campaign", "app", "name", "status", "sender", "each packet", "shares", "opens daily", "next packet opens"}
			return printList(t, t.page, func(p client.Page) (*wire.List[wire.StaffCampaign], error) {
				return t.staff.ListCampaigns(ctx, filter, p)
			}, columns, func(c *wire.StaffCampaign) []any { return slices.Insert(campaignRow(&c.Campaign), 1, any(c.App)) })
		},
	}
}

func staffCampaignsStop(verb, short, long string,
	stop func(*client.Staff, context.Context, string, wire.Reason, ...client.Key) (*wire.StaffCampaign, error)) command {
	return command{
		use:     verb + " <campaign id> --reason <text>",
		short:   short,
		long:    long,
		example: "  hongbao campaigns staff " + verb + " 3q5k9v0c1m7e2u8h4r6t --reason 'the sender has left, ticket 4711'",
		args:    campaignID.arg, as: callerOps, writes: true,
		complete: func(ctx context.Context, t *call) ([]cobra.Completion, error) {
			list, err := t.staff.ListCampaigns(ctx, wire.StaffCampaignFilter{}, newest)
			return completions(list, err, func(c *wire.StaffCampaign) (string, string) {
				return c.ID, c.Name + ", " + string(c.Status) + ", of " + c.App
			})
		},
		run: func(ctx context.Context, t *call) error {
			c, err := stop(t.staff, ctx, t.args[0], t.why(), t.key())
			if err != nil {
				return err
			}
			return t.printCampaign(&c.Campaign)
		},
	}
}
