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
)

// newPacketsCommand is what app developers use to try the API by hand and in scripts.
func newPacketsCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "packets",
		Short: "Create, look at, grab from and watch packets as an app does; find and recall them as staff",
		Long: `Create, look at, grab from and watch packets, through the API and with the key
of an app. In a second terminal beside "hongbao dev":

  . .hongbao/dev.env
  export HONGBAO_URL HONGBAO_APP_KEY
  hongbao packets create --sender alice --total 10000 --shares 10

"list", "recall" and "show --staff" are for staff, with a key of operations or finance
and packets of every app: HONGBAO_STAFF_URL and HONGBAO_OPS_KEY.

Amounts are typed in fen (100 fen are one yuan) and shown in yuan. --json prints
what the API said instead of tables, also when it refused.`,
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

// teller is one command of an app at work: where it asks and how it tells.
type appCommand struct {
	client *client.Client
	out    io.Writer
	notes  io.Writer // what belongs beside the result, which alone goes to out
	json   bool
}

// appFlags are the flags that every command of an app, about packets or campaigns,
// has besides its settings.
type appFlags struct {
	json    bool
	timeout time.Duration
}

// addAppFlags declares settings and common flags. timeout 0: none.
func addAppFlags(cmd *cobra.Command, f *appFlags, timeout time.Duration) {
	addSettings(cmd, cmdPackets)
	cmd.Flags().BoolVar(&f.json, "json", false, "print what the API said instead of tables")
	cmd.Flags().DurationVar(&f.timeout, "timeout", timeout, "give up after this `time`; 0 = never")
}

// run reads the settings, makes the client and does the work within the timeout.
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
	t := &appCommand{client: api, out: cmd.OutOrStdout(), notes: cmd.ErrOrStderr(), json: f.json}
	return t.problemText(work(ctx, t))
}

// within is ctx for as long as --timeout says; 0: for ever.
func within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc, error) {
	switch {
	case timeout < 0:
		return nil, nil, &usageError{errors.New("--timeout is below zero")}
	case timeout == 0:
		return ctx, func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	return ctx, cancel, nil
}

// refused shortens an error to what the API said: code and detail, and the number
// to tell when asking for help. With --json the refusal itself is printed too.
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
	told := &problemError{p, p.Error()}
	if p.RequestID != "" {
		told.text = fmt.Sprintf("%v (request %s)", p, p.RequestID)
	}
	return withIdempotencyKey(told, err)
}

// withIdempotencyKey adds to an error of which it is not known whether what was asked for was
// done the key to ask with again: under another one it would be done once more.
func withIdempotencyKey(told, err error) error {
	call, called := errors.AsType[*client.CallError](err)
	p, said := errors.AsType[*client.Problem](err)
	if !called || call.Tries == 0 || call.IdempotencyKey == "" || said && p.Status < http.StatusInternalServerError &&
		p.Code != client.CodeRequestInProgress {
		return told
	}
	return fmt.Errorf("%w\nit is not known whether that was done: run it again with --idempotency-key %s", told, call.IdempotencyKey)
}

// problemError is a refusal as it is shown: on one line, whatever it quotes.
type problemError struct {
	problem *client.Problem
	text    string
}

func (p *problemError) Error() string { return visible.Text(p.text) }
func (p *problemError) Unwrap() error { return p.problem }

// raw prints JSON as it came, on a line of its own, safe for a terminal.
func (t *appCommand) printRaw(text []byte) error { return printJSON(t.out, text) }

// packet prints a packet.
func (t *appCommand) printPacket(p *client.Packet) error {
	if t.json {
		return t.printRaw(p.Raw)
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

// byTicket is said of packets whose grabs need one.
const byTicket = "by ticket"

// bounds says how a packet is split.
func splitText(split client.Split, least money.Fen, most *money.Fen) string {
	if most != nil {
		return fmt.Sprintf("%s, %s to %s each", split, formatYuan(least), formatYuan(*most))
	}
	return fmt.Sprintf("%s, %s or more each", split, formatYuan(least))
}

// claimTable starts a table of claims.
func claimTable(out io.Writer) *grid {
	return newGrid(out, "share", "user", "amount", "claimed", "payout", "luck")
}

func claimRow(c *client.Claim) []any {
	luck := ""
	if c.BestLuck {
		luck = "best"
	}
	return []any{c.ShareIndex, c.UserID, formatYuan(c.Amount), formatTime(c.ClaimedAt), c.Payout.Status, luck}
}

// shown is an amount for people: yuan with its sign.
func formatYuan(f money.Fen) string { return "¥" + f.String() }

// amount is shown with the fen that are typed.
func formatAmount(f money.Fen) string { return fmt.Sprintf("%s (%s fen)", formatYuan(f), f.Digits()) }

func formatTime(at time.Time) string { return at.Local().Format("2006-01-02 15:04:05") }

// onePacketArg takes exactly one argument, a packet id.
func onePacketArg(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return &usageError{fmt.Errorf("exactly one packet id is needed, not %d", len(args))}
	}
	return nil
}

// completePackets offers the newest packets of the app.
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

// completeOwn offers what find finds with the app's key, for the first argument. Whatever
// goes wrong, nothing is offered: a shell waits for the answer.
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
