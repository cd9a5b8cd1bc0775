package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hongbao/client"
	"hongbao/internal/money"
	"hongbao/wire"
)

// packetsCommand has the packet commands of apps, for trying the API by hand and in scripts, and of staff.
func packetsCommand() command {
	return command{
		use:   "packets",
		short: "Create, list, show, grab and watch packets as an app; list and recall packets as staff",
		long: `Create, list, show, grab and watch packets through the API with the key of an app. In a
second terminal beside "hongbao dev":

  . .hongbao/dev.env
  export HONGBAO_URL HONGBAO_APP_KEY
  hongbao packets create --sender alice --total 10000 --shares 10

"recall" and "show --staff" are for staff and cover the packets of every app, and so does
"list" with the key of staff. They need a key of operations or finance: HONGBAO_STAFF_URL
and HONGBAO_OPS_KEY. "hongbao staff packets" has the same commands.

Write amounts in fen (100 fen = ¥1); tables show yuan. --json prints the API's response
instead of tables, also of a refusal.`,
		sub: []command{packetsCreate(), packetsShow(), packetsClaims(), packetsGrab(), packetsWatch(), packetsLimits(), packetsList(),
			packetsRecall()},
	}
}

// shownClaims is the number of claims that "show" lists.
const shownClaims = 20

func packetsShow() command {
	staff := false
	return command{
		use:   "show <packet id>",
		short: "Show a packet and its newest claims",
		long: `Show a packet and its newest 20 claims. --json prints the packet alone, as input of
"hongbao verify". --staff shows a packet of any app, with its payouts by status and its
refunds.`,
		example: "  hongbao packets show 97h0uojo11oljc4bchnk\n  hongbao packets show --staff 97h0uojo11oljc4bchnk",
		args:    packetID.arg, complete: ownPackets, as: callerApp, or: callerOps,
		flags: func(flags *pflag.FlagSet) {
			flags.BoolVar(&staff, "staff", false, "show a packet of any app as staff, with --staff-url and --ops-key instead of --url and "+
				"--app-key")
		},
		choose: func(*call) (caller, error) {
			if staff {
				return callerOps, nil
			}
			return callerApp, nil
		},
		run: func(ctx context.Context, t *call) error {
			if staff {
				return t.showStaffPacket(ctx)
			}
			return t.showPacket(ctx)
		},
	}
}

func (t *call) showPacket(ctx context.Context) error {
	p, err := t.app.Packet(ctx, t.args[0])
	if err != nil {
		return err
	}
	if err := t.printPacket(p); err != nil || t.json || p.ClaimedCount == 0 {
		return err
	}
	list, err := t.app.ListGrabs(ctx, p.ID, client.Page{Limit: shownClaims})
	if err != nil {
		return err
	}
	return printSome(t, list, claimColumns, claimRow, "The newest %d of %d. For all: hongbao packets claims %s\n", len(list.Items),
		p.ClaimedCount, p.ID)
}

func packetsClaims() command {
	user := ""
	return command{
		use:   "claims <packet id>",
		short: "List all claims of a packet",
		long: `List all claims of a packet, newest first. --json prints all pages as one,
{"items":[...],"next_cursor":null}, as input of "hongbao verify --claims". --user shows the
claim of one user, with what their app needs while they have to confirm: keep it secret.`,
		args: packetID.arg, complete: ownPackets, as: callerApp, timeout: 10 * time.Minute,
		flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&user, "user", "", "show only the claim of this `user`")
		},
		run: func(ctx context.Context, t *call) error {
			if user != "" {
				c, err := t.app.Claim(ctx, t.args[0], user)
				return t.shown(err, func() error { return t.printClaim(c) })
			}
			return printList(t, pageFlags{all: true}, func(p client.Page) (*wire.List[wire.Claim], error) {
				return t.app.ListGrabs(ctx, t.args[0], p)
			}, claimColumns, claimRow)
		},
	}
}

// printClaim prints the claim of one user.
func (t *call) printClaim(c *wire.Claim) error {
	action := ""
	if c.RecipientAction != nil {
		action = string(*c.RecipientAction)
	}
	facts := [][]any{{"user", c.UserID}, {"share", c.ShareIndex}, {"amount", formatAmount(c.Amount)}, {"claimed", formatTime(c.ClaimedAt)},
		{"payout", c.Payout.ID}, {"status", c.Payout.Status}, {"recipient can", action}}
	if c.Confirm != nil {
		for _, name := range slices.Sorted(maps.Keys(c.Confirm.Parameters)) {
			facts = append(facts, []any{"confirm " + name, c.Confirm.Parameters[name]})
		}
		facts = append(facts, []any{"confirm until", formatTime(c.Confirm.ValidUntil)})
	}
	t.printFacts(facts)
	return nil
}

func packetsGrab() command {
	var request wire.Grab
	var to wire.Recipient
	return command{
		use:   "grab <packet id> --user <user>",
		short: "Grab a share for a user",
		long: `Grab a share for a user. A printed claim is on disk and will be paid. A repeated grab
of the same user returns the same claim.`,
		example: "  hongbao packets grab 97h0uojo11oljc4bchnk --user bob",
		args:    packetID.arg, complete: ownPackets, as: callerApp,
		flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&request.UserID, "user", "", "id of the `user` who grabs (required)")
			flags.StringVar(&request.Nickname, "nickname", "", "display `name` of the user, stored with the claim")
			flags.StringVar(&request.AvatarURL, "avatar-url", "", "`url` of the user's picture, stored with the claim")
			flags.StringVar(&to.Account, "recipient", "", "`account` that is paid; default: the user id")
			flags.StringVar(&to.Name, "recipient-name", "", "real `name` of the recipient, if the packet requires it")
			flags.StringVar(&to.Authorization, "authorization", "", "`number` of the recipient's agreement to be paid without confirming")
			flags.StringVar(&request.Ticket, "ticket", "", "`ticket` that the app signed for this user, if the packet requires one")
		},
		run: func(ctx context.Context, t *call) error {
			if request.UserID == "" {
				return &usageError{missingFlag("user")}
			}
			if to != (wire.Recipient{}) {
				request.Recipient = &to
			}
			c, err := t.app.Grab(ctx, t.args[0], request)
			return t.shown(err, func() error {
				verb := "won"
				if c.Replayed {
					verb = "had won"
				}
				return printf(t.out, "%s %s %s: share %d, payout %s is %s\n", c.UserID, verb, formatAmount(c.Amount), c.ShareIndex,
					c.Payout.ID, c.Payout.Status)
			})
		},
	}
}

// printPacket prints a packet.
func (t *call) printPacket(p *wire.Packet) error {
	if t.json {
		return t.printAnswer()
	}
	mayGrab, failure := "", ""
	if p.Tickets {
		mayGrab = byTicket
	}
	if p.Failure != nil {
		failure = p.Failure.Code + ": " + p.Failure.Message
	}
	t.printFacts([][]any{{"packet", p.ID}, {"status", p.Status}, {"sender", p.SenderID}, {"total", formatAmount(p.TotalAmount)},
		{"shares", fmt.Sprintf("%d, %s", p.ShareCount, splitText(p.Split, p.MinShare, p.MaxShare))},
		{"claimed", fmt.Sprintf("%d, %s", p.ClaimedCount, formatAmount(p.ClaimedAmount))},
		{"remaining", fmt.Sprintf("%d, %s", p.RemainingCount, formatAmount(p.RemainingAmount))},
		{"refunded", formatAmount(p.RefundedAmount)}, {"opens", formatTime(p.OpensAt)}, {"expires", formatTime(p.ExpiresAt)},
		{"may grab", mayGrab}, {"closed", formatOptionalTime(p.ClosedAt)}, {"failure", failure}, {"greeting", p.Greeting},
		{"commitment", p.Fairness.Commitment}, {"seed", optionalText(p.Fairness.Seed)}})
	return nil
}

// byTicket describes packets whose grabs need a ticket.
const byTicket = "by ticket"

// splitText describes the split of a packet with its bounds.
func splitText(split wire.Split, least money.Fen, most *money.Fen) string {
	if most != nil {
		return fmt.Sprintf("%s, %s to %s each", split, formatYuan(least), formatYuan(*most))
	}
	return fmt.Sprintf("%s, %s or more each", split, formatYuan(least))
}

var claimColumns = []any{"share", "user", "amount", "claimed", "payout", "luck"}

func claimRow(c *wire.Claim) []any {
	luck := ""
	if c.BestLuck {
		luck = "best"
	}
	return []any{c.ShareIndex, c.UserID, formatYuan(c.Amount), formatTime(c.ClaimedAt), c.Payout.Status, luck}
}

// ownPackets completes the newest packets of the app.
func ownPackets(ctx context.Context, t *call) ([]cobra.Completion, error) {
	list, err := t.app.ListPackets(ctx, wire.PacketFilter{}, newest)
	return completions(list, err, func(p *wire.Packet) (string, string) { return p.ID, aboutPacket(p) })
}

// aboutPacket describes a packet in a completion.
func aboutPacket(p *wire.Packet) string {
	return fmt.Sprintf("%s, %s of %s, %s claimed", p.Status, formatYuan(p.TotalAmount), p.SenderID, claimedText(p))
}

func claimedText(p *wire.Packet) string { return fmt.Sprintf("%d of %d", p.ClaimedCount, p.ShareCount) }
