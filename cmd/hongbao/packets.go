package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"hongbao/client"
	"hongbao/internal/money"
	"hongbao/internal/visible"
	"hongbao/wire"
)

// newPacketsCommand returns the packet commands of apps, for trying the API by hand and in scripts, and of staff.
func newPacketsCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "packets",
		Short: "Create, list, show, grab and watch packets as an app; list and recall packets as staff",
		Long: `Create, list, show, grab and watch packets through the API with the key of an app. In a
second terminal beside "hongbao dev":

  . .hongbao/dev.env
  export HONGBAO_URL HONGBAO_APP_KEY
  hongbao packets create --sender alice --total 10000 --shares 10

"recall" and "show --staff" are for staff and cover the packets of every app, and so does
"list" with the key of staff. They need a key of operations or finance: HONGBAO_STAFF_URL
and HONGBAO_OPS_KEY.

Write amounts in fen (100 fen = ¥1); tables show yuan. --json prints the API's response
instead of tables, also of a refusal.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newPacketsCreateCommand(env),
		newPacketsShowCommand(env),
		newPacketsClaimsCommand(env),
		newPacketsGrabCommand(env),
		newPacketsWatchCommand(env),
		newPacketsListCommand(env),
		newPacketsRecallCommand(env),
	)
	return cmd
}

// appCommand is one run of an app's command: the API client and the outputs.
type appCommand struct {
	client *client.Client
	out    io.Writer
	notes  io.Writer // remarks; out gets the result alone
	json   bool
	answer func() []byte // the last answer of the API
}

// appFlags are the flags, besides settings, of every app command about packets or campaigns.
type appFlags struct {
	json    bool
	timeout time.Duration
}

// addAppFlags declares settings and common flags; timeout is the default of --timeout, 0 = none.
func addAppFlags(cmd *cobra.Command, f *appFlags, timeout time.Duration) {
	addSettings(cmd, cmdPackets)
	cmd.Flags().BoolVar(&f.json, "json", false, "print the API's response instead of tables")
	cmd.Flags().DurationVar(&f.timeout, "timeout", timeout, "give up after this `duration`; 0 = never")
}

// run reads the settings, creates the client and calls work with the timeout.
func (f *appFlags) run(cmd *cobra.Command, env environment, work func(context.Context, *appCommand) error, options ...client.Option) error {
	c, err := readConfig(cmd, cmdPackets, env)
	if err != nil {
		return err
	}
	options = append([]client.Option{client.WithUserAgent("hongbao-cli/" + version)}, options...)
	api, err := client.New(c.text("url"), c.secret("app-key").Reveal(), options...)
	if err != nil {
		return &usageError{err}
	}
	defer api.Close()
	ctx, cancel, err := within(cmd.Context(), f.timeout)
	if err != nil {
		return err
	}
	defer cancel()
	ctx, answer := client.KeepAnswer(ctx)
	t := &appCommand{client: api, answer: answer, out: cmd.OutOrStdout(), notes: cmd.ErrOrStderr(), json: f.json}
	return t.problemText(work(ctx, t))
}

// within returns ctx with the timeout of --timeout; 0 = none.
func within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc, error) {
	switch {
	case timeout < 0:
		return nil, nil, &usageError{fmt.Errorf("parse --timeout %q: write 0s or more; 0s = no limit", timeout)}
	case timeout == 0:
		return ctx, func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	return ctx, cancel, nil
}

// problemText shortens an API refusal to its code, detail and request id. With --json it prints the refusal too.
func (t *appCommand) problemText(err error) error {
	p, ok := errors.AsType[*client.Problem](err)
	if !ok {
		return err
	}
	if t.json && json.Valid(p.Raw) {
		if err := t.printRaw(p.Raw); err != nil {
			return err
		}
	}
	refusal := &problemError{p, p.Error()}
	if p.RequestID != "" {
		refusal.text = fmt.Sprintf("%v (request %s)", p, p.RequestID)
	}
	return withIdempotencyKey(refusal, err)
}

// withIdempotencyKey adds the idempotency key to an error whose outcome is unknown: a repeat with another key could act
// twice.
func withIdempotencyKey(refusal, err error) error {
	call, called := errors.AsType[*client.CallError](err)
	p, answered := errors.AsType[*client.Problem](err)
	if !called || call.Tries == 0 || call.IdempotencyKey == "" || answered && p.Status < http.StatusInternalServerError &&
		p.Code != wire.CodeRequestInProgress {
		return refusal
	}
	return fmt.Errorf("%w\nthe outcome is unknown: run the command again with --idempotency-key %s", refusal, call.IdempotencyKey)
}

// problemError is a refusal whose text fits one line and is safe for a terminal.
type problemError struct {
	problem *client.Problem
	text    string
}

func (p *problemError) Error() string { return visible.Text(p.text) }
func (p *problemError) Unwrap() error { return p.problem }

// printRaw prints JSON as received, on its own line, safe for a terminal.
func (t *appCommand) printRaw(text []byte) error { return printJSON(t.out, text) }

// printAnswer prints the last answer of the API as received.
func (t *appCommand) printAnswer() error { return t.printRaw(t.answer()) }

// printPacket prints a packet.
func (t *appCommand) printPacket(p *wire.Packet) error {
	if t.json {
		return t.printAnswer()
	}
	show := newGrid(t.out)
	for _, line := range [][]any{
		{"packet", p.ID},
		{"status", p.Status},
		{"sender", p.SenderID},
		{"total", formatAmount(p.TotalAmount)},
		{"shares", fmt.Sprintf("%d, %s", p.ShareCount, splitText(p.Split, p.MinShare, p.MaxShare))},
		{"claimed", fmt.Sprintf("%d, %s", p.ClaimedCount, formatAmount(p.ClaimedAmount))},
		{"remaining", fmt.Sprintf("%d, %s", p.RemainingCount, formatAmount(p.RemainingAmount))},
		{"refunded", formatAmount(p.RefundedAmount)},
		{"opens", formatTime(p.OpensAt)},
		{"expires", formatTime(p.ExpiresAt)},
	} {
		show.row(line...)
	}
	if p.Tickets {
		show.row("may grab", byTicket)
	}
	if p.ClosedAt != nil {
		show.row("closed", formatTime(*p.ClosedAt))
	}
	if p.Failure != nil {
		show.row("failure", p.Failure.Code+": "+p.Failure.Message)
	}
	if p.Greeting != "" {
		show.row("greeting", p.Greeting)
	}
	show.row("commitment", p.Fairness.Commitment)
	if p.Fairness.Seed != nil {
		show.row("seed", *p.Fairness.Seed)
	}
	show.render()
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

// claimTable starts a table of claims.
func claimTable(out io.Writer) *grid { return newGrid(out, claimColumns...) }

func claimRow(c *wire.Claim) []any {
	luck := ""
	if c.BestLuck {
		luck = "best"
	}
	return []any{c.ShareIndex, c.UserID, formatYuan(c.Amount), formatTime(c.ClaimedAt), c.Payout.Status, luck}
}

// formatYuan formats an amount in yuan with the currency sign.
func formatYuan(f money.Fen) string { return "¥" + f.String() }

// formatAmount formats an amount in yuan and in fen.
func formatAmount(f money.Fen) string { return fmt.Sprintf("%s (%s fen)", formatYuan(f), f.Digits()) }

// formatTime formats a time, of the API or of Go.
func formatTime(at interface{ Local() time.Time }) string {
	return at.Local().Format("2006-01-02 15:04:05")
}

// completePackets completes the newest packets of the app.
func completePackets(env environment) cobra.CompletionFunc {
	return completeOwn(env, func(ctx context.Context, t *appCommand) (found []cobra.Completion, err error) {
		list, err := t.client.ListPackets(ctx, client.PacketFilter{}, client.Page{Limit: 20})
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

// completeOwn completes the first argument with the results of find. Errors complete nothing: a shell waits for the
// answer.
func completeOwn(env environment, find func(context.Context, *appCommand) ([]cobra.Completion, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (found []cobra.Completion, _ cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		quick := appFlags{timeout: 2 * time.Second}
		err := quick.run(cmd, env, func(ctx context.Context, t *appCommand) (err error) {
			found, err = find(ctx, t)
			return err
		}, client.WithRetry(client.Retry{Tries: 1}))
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}
