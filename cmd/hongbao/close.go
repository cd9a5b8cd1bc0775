package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/wire"
)

func newCloseCommand(env environment) *cobra.Command {
	group := &cobra.Command{
		Use:   "close",
		Short: "Show day-end closes: balances, movements and the match with the provider's statement",
		Long: `Show day-end closes: the opening and closing balances of the ledger, the transfers
between them, and how they match the provider's statement of the day. Workers close days
automatically. A close is final once the day is over, its statement is read and none of
its breaks is open. A final close never changes.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	group.AddCommand(newCloseListCommand(env), newCloseShowCommand(env), newCloseExportCommand(env), newCloseBalancesCommand(env))
	return group
}

func newCloseListCommand(env environment) *cobra.Command {
	f, page := newFinanceFlags(), pageFlags{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List day-end closes, newest first",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := page.check(); err != nil {
				return err
			}
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				columns := []any{"day", "status", "waits for", "funded", "paid", "refunded", "owed", "refunding", "differences", "open breaks"}
				return printList(ctx, t.appCommand, page, t.staff.ListCloses, columns, func(c *wire.CloseSummary) []any {
					return []any{c.Date, c.Status, strings.Join(c.Pending, ", "), formatYuan(c.Funded.Amount), formatYuan(c.Paid.Amount),
						formatYuan(c.Refunded.Amount),
						formatSums(c.Owed), formatSums(c.Refunding), formatOptional(c.Differences), formatOptional(c.OpenBreaks)}
				})
			})
		},
	}
	f.add(cmd, false)
	page.add(cmd)
	return cmd
}

// formatSums formats a count and an amount.
func formatSums(s wire.Sums) string { return fmt.Sprintf("%d: %s", s.Count, formatYuan(s.Amount)) }

// formatOptional formats a value that may be missing.
func formatOptional[T any](v *T) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(*v)
}

// oneDayArg accepts exactly one argument, a day.
func oneDayArg(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return &usageError{fmt.Errorf("give exactly one day such as 2026-02-17, not %d", len(args))}
	}
	if _, err := payout.ParseDay(args[0]); err != nil {
		return &usageError{fmt.Errorf("parse day %q: write YYYY-MM-DD, such as 2026-02-17", args[0])}
	}
	return nil
}

func newCloseShowCommand(env environment) *cobra.Command {
	f := newFinanceFlags()
	cmd := &cobra.Command{
		Use:   "show <day>",
		Short: "Show the close of a day",
		Long: "Show the close of a day, YYYY-MM-DD in the time zone of the provider's statement.\n\nExit code: 0 final; 1 not final; " +
			"the output says what the close waits for.",
		Example: "  hongbao close show 2026-02-17",
		Args:    oneDayArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				c, err := t.staff.DayClose(ctx, args[0])
				if err != nil {
					return err
				}
				if t.json {
					err = t.printAnswer()
				} else {
					t.printClose(c)
				}
				if err == nil && c.Status != "final" {
					err = errReported
				}
				return err
			})
		},
	}
	f.add(cmd, false)
	return cmd
}

// printClose prints the close of a day.
func (t *staffCommand) printClose(c *wire.Close) {
	t.printFacts([][]any{
		{"day", c.Date}, {"status", c.Status}, {"waits for", strings.Join(c.Pending, ", ")}, {"from", formatTime(c.From)}, {"to",
			formatTime(c.To)},
		{"closing balances at", formatTime(c.At)}, {"final since", formatOptionalTime(c.FinalAt)}, {"postings", c.Entries},
		{"opening + movements = closing", yesNo(c.Checked)}, {"payouts in flight at the end", formatSums(c.Owed)},
		{"refunds in flight at the end", formatSums(c.Refunding)},
	})
	accounts := newGrid(t.out, "account", "opening", "debits", "credits", "closing")
	for _, a := range c.Accounts {
		accounts.row(a.Account, formatSigned(a.Opening), formatYuan(a.Debits), formatYuan(a.Credits), formatSigned(a.Closing))
	}
	accounts.render()
	movements := newGrid(t.out, "movement", "from", "to", "count", "amount")
	for _, m := range c.Movements {
		if m.Count > 0 {
			movements.row(m.Kind, m.Debit, m.Credit, m.Count, formatYuan(m.Amount))
		}
	}
	movements.render()
	if c.Statement == nil {
		return
	}
	t.printFacts([][]any{{"statement of", c.Statement.Provider}, {"read up to", formatTime(c.Statement.ReadAt)}, {"matches", yesNo(c.Ties)},
		{"differences", formatOptional(c.Differences)}, {"open breaks", formatOptional(c.OpenBreaks)}})
	sides := newGrid(t.out, "operation", "ledger", "amount", "statement", "amount", "explained", "amount")
	for _, o := range c.Statement.Operations {
		sides.row(o.Op, o.Ours.Count, formatYuan(o.Ours.Amount), o.Theirs.Count, formatYuan(o.Theirs.Amount), o.Explained.Count,
			formatSigned(o.Explained.Amount))
	}
	sides.render()
	if len(c.Statement.Differences) == 0 {
		return
	}
	differences := newGrid(t.out, "difference", "operation", "order number", "ledger", "statement", "booked", "moved", "breaks")
	for _, d := range c.Statement.Differences {
		var breaks []string
		for _, b := range d.Breaks {
			state := "resolved"
			if b.Open {
				state = "open"
			}
			breaks = append(breaks, b.ID+" "+b.Kind+" "+state)
		}
		differences.row(d.Kind, d.Op, d.OrderNo, formatYuan(d.Ours), formatYuan(d.Theirs), formatOptionalTime(d.BookedAt),
			formatOptionalTime(d.MovedAt),
			strings.Join(breaks, ", "))
	}
	differences.render()
}

// formatSigned formats an amount that may be negative.
func formatSigned(f money.Fen) string {
	if f < 0 {
		return "-" + formatYuan(-f)
	}
	return formatYuan(f)
}

func yesNo(v *bool) string {
	switch {
	case v == nil:
		return ""
	case *v:
		return "yes"
	}
	return "NO"
}

func newCloseExportCommand(env environment) *cobra.Command {
	f := newFinanceFlags()
	cmd := &cobra.Command{
		Use:     "export <day>",
		Short:   "Print the close of a day as CSV",
		Example: "  hongbao close export 2026-02-17 > close-2026-02-17.csv",
		Args:    oneDayArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error { return t.staff.ExportClose(ctx, args[0], t.out) })
		},
	}
	f.add(cmd, false)
	return cmd
}

func newCloseBalancesCommand(env environment) *cobra.Command {
	f, text := newFinanceFlags(), ""
	cmd := &cobra.Command{
		Use:     "balances",
		Short:   "Show the balances of the ledger at a point in time",
		Example: "  hongbao close balances --at 2026-02-17T16:00:00Z",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var at time.Time
			if text != "" {
				var err error
				if at, err = time.Parse(time.RFC3339, text); err != nil {
					return &usageError{fmt.Errorf("parse --at %q: write an RFC 3339 time such as 2026-02-17T20:00:00+08:00", text)}
				}
			}
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				b, err := t.staff.Balances(ctx, at)
				if err != nil {
					return err
				}
				if t.json {
					return t.printAnswer()
				}
				return t.printBalances(b)
			})
		},
	}
	f.add(cmd, false)
	cmd.Flags().StringVar(&text, "at", "", "`time` of the balances, RFC 3339; default: now")
	complete(cmd, "at")
	return cmd
}

// printBalances prints the balances of all apps together and of each app.
func (t *staffCommand) printBalances(b *wire.Balances) error {
	t.printFacts([][]any{{"at", formatTime(b.At)}, {"settled", yesNo(&b.Settled)}, {"postings", b.Entries}, {"sound", yesNo(&b.Sound)}})
	show := newGrid(t.out, "app", "account", "balance", "payments")
	add := func(app string, accounts []wire.AccountBalance) {
		for _, a := range accounts {
			show.row(app, a.Account, formatSigned(a.Balance), formatOptional(a.Payments))
		}
	}
	add("all", b.Accounts)
	for _, app := range b.Apps {
		add(app.AppID, app.Accounts)
	}
	show.render()
	if !b.Sound {
		return errReported
	}
	return nil
}
