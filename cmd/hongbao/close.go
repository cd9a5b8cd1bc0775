package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hongbao/client"
	"hongbao/wire"
)

func closeCommand() command {
	return command{
		use:   "close",
		short: "Show day-end closes: balances, movements and the match with the providers' statements",
		long: `Show day-end closes: the opening and closing balances of the ledger, the transfers
between them, and how they match the providers' statements of the day. Workers close days
automatically. A close is final once the day is over, its statements are read and none of
its breaks is open. A final close never changes.`,
		sub: []command{closeList(), closeShow(), closeExport(), closeBalances()},
	}
}

func closeList() command {
	return command{
		use: "list", short: "List day-end closes, newest first", as: callerFinance, pages: true,
		run: func(ctx context.Context, t *call) error {
			columns := []any{"day", "status", "waits for", "funded", "paid", "refunded", "owed", "refunding", "differences", "open breaks"}
			return printList(t, t.page, func(p client.Page) (*wire.List[wire.CloseSummary], error) { return t.staff.ListCloses(ctx, p) },
				columns, func(c *wire.CloseSummary) []any {
					return []any{c.Date, c.Status, strings.Join(c.Pending, ", "), formatYuan(c.Funded.Amount), formatYuan(c.Paid.Amount),
						formatYuan(c.Refunded.Amount), formatSums(c.Owed), formatSums(c.Refunding), formatOptional(c.Differences),
						formatOptional(c.OpenBreaks)}
				})
		},
	}
}

// oneDayArg accepts exactly one argument, a day.
func oneDayArg(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return &usageError{fmt.Errorf("give exactly one day such as 2026-02-17, not %d", len(args))}
	}
	if err := checkDay(args[0]); err != nil {
		return &usageError{fmt.Errorf("parse day %q: %w", args[0], err)}
	}
	return nil
}

func closeShow() command {
	return command{
		use:   "show <day>",
		short: "Show the close of a day",
		long: `Show the close of a day, YYYY-MM-DD in the time zone of the payout provider's statement.

Exit code: 0 final; 1 not final; the output says what the close waits for.`,
		example: "  hongbao close show 2026-02-17",
		args:    oneDayArg, as: callerFinance,
		run: func(ctx context.Context, t *call) error {
			c, err := t.staff.DayClose(ctx, t.args[0])
			err = t.shown(err, func() error { return t.printClose(c) })
			if err == nil && c.Status != "final" {
				err = errReported
			}
			return err
		},
	}
}

// printClose prints the close of a day.
func (t *call) printClose(c *wire.Close) error {
	t.printFacts([][]any{
		{"day", c.Date}, {"status", c.Status}, {"waits for", strings.Join(c.Pending, ", ")}, {"from", formatTime(c.From)},
		{"to", formatTime(c.To)},
		{"closing balances at", formatTime(c.At)}, {"final since", formatOptionalTime(c.FinalAt)}, {"postings", c.Entries},
		{"opening + movements = closing", yesNo(c.Checked)}, {"payouts in flight at the end", formatSums(c.Owed)},
		{"refunds in flight at the end", formatSums(c.Refunding)},
	})
	accounts := newGrid(t.out, "account", "opening", "debits", "credits", "closing")
	for _, a := range c.Accounts {
		accounts.row(a.Account, formatSigned(a.Opening), formatYuan(a.Debits), formatYuan(a.Credits), formatSigned(a.Closing))
	}
	accounts.render()
	providers := newGrid(t.out, "provider", "opening", "debits", "credits", "closing")
	for _, p := range c.Providers {
		providers.row(p.Provider, formatSigned(p.Opening), formatYuan(p.Debits), formatYuan(p.Credits), formatSigned(p.Closing))
	}
	providers.render()
	movements := newGrid(t.out, "movement", "from", "to", "count", "amount")
	for _, m := range c.Movements {
		if m.Count > 0 {
			movements.row(m.Kind, m.Debit, m.Credit, m.Count, formatYuan(m.Amount))
		}
	}
	movements.render()
	for _, s := range c.Statements {
		t.printStatement(s)
	}
	if c.OpenBreaks != nil {
		t.printFacts([][]any{{"open breaks", *c.OpenBreaks}})
	}
	return nil
}

// printStatement prints the match with one statement.
func (t *call) printStatement(s wire.StatementTie) {
	t.printFacts([][]any{{"statement of", s.Provider}, {"read up to", formatTime(s.ReadAt)}, {"matches", yesNo(&s.Ties)},
		{"differences", s.Count}})
	sides := newGrid(t.out, "operation", "ledger", "amount", "statement", "amount", "explained", "amount")
	for _, o := range s.Operations {
		sides.row(o.Op, o.Ours.Count, formatYuan(o.Ours.Amount), o.Theirs.Count, formatYuan(o.Theirs.Amount), o.Explained.Count,
			formatSigned(o.Explained.Amount))
	}
	sides.render()
	if len(s.Differences) == 0 {
		return
	}
	differences := newGrid(t.out, "difference", "operation", "order number", "ledger", "statement", "booked", "moved", "breaks")
	for _, d := range s.Differences {
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

func closeExport() command {
	return command{
		use: "export <day>", short: "Print the close of a day as CSV", example: "  hongbao close export 2026-02-17 > close-2026-02-17.csv",
		args: oneDayArg, as: callerFinance,
		run: func(ctx context.Context, t *call) error { return t.staff.ExportClose(ctx, t.args[0], t.out) },
	}
}

func closeBalances() command {
	var at time.Time
	return command{
		use:     "balances",
		short:   "Show the balances of the ledger at a point in time",
		example: "  hongbao close balances --at 2026-02-17T16:00:00Z",
		as:      callerFinance,
		flags: func(flags *pflag.FlagSet) {
			timeFlag(flags, &at, "at", "`time` of the balances, RFC 3339; default: now")
		},
		run: func(ctx context.Context, t *call) error {
			b, err := t.staff.Balances(ctx, at)
			return t.shown(err, func() error { return t.printBalances(b) })
		},
	}
}

// printBalances prints the balances of all apps together and of each app.
func (t *call) printBalances(b *wire.Balances) error {
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
