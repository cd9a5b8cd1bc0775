package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"hongbao/client"
	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/wire"
)

func balancesCommand() command {
	return command{
		use:   "balances",
		short: "Show, credit or debit the prefunded balances of apps",
		long: `Show the balances that apps have paid in for packets of their own, and record credits and debits.

A credit or debit is requested by one person of finance and approved by another one with
"hongbao approvals approve". No money has moved before. Its reference, by default the evidence,
counts once per app.`,
		sub: []command{balancesList(), balanceHistory(), balanceExport(),
			moveBalance("credit", "Request a credit: the app has paid money in", (*client.Staff).CreditBalance),
			moveBalance("debit", "Request a debit: the app is paid money out", (*client.Staff).DebitBalance)},
	}
}

func balancesList() command {
	return command{
		use: "list", short: "List the balance of every app", example: "  hongbao balances list", as: callerFinance,
		run: func(ctx context.Context, t *call) error {
			b, err := t.staff.Balances(ctx, time.Time{})
			return t.shown(err, func() error {
				show := newGrid(t.out, "app", "name", "available", "reserved")
				for _, a := range b.Items {
					show.row(a.App, a.Name, formatSigned(a.Available), formatYuan(a.Reserved))
				}
				show.render()
				return nil
			})
		},
	}
}

var entryKinds = []payout.TransferKind{payout.PostCredit, payout.PostDebit, payout.PostReserve, payout.PostRelease}

func entryKind(flags *pflag.FlagSet, f *client.AppBalanceFilter) {
	choice(flags, &f.Kind, "kind", "only this `kind`: ", entryKinds)
}

func balanceHistory() command {
	var f client.AppBalanceFilter
	return command{
		use: "history <app>", short: "List the history of an app's balance, newest first", example: "  hongbao balances history shop",
		args: appID.arg, as: callerFinance, pages: true, flags: func(flags *pflag.FlagSet) { entryKind(flags, &f) },
		run: func(ctx context.Context, t *call) error {
			f.App = t.args[0]
			return printList(t, t.page, func(p client.Page) (*wire.List[wire.BalanceEntry], error) {
				return t.staff.ListBalanceMovements(ctx, f, p)
			}, []any{"entry", "at", "kind", "amount", "available", "packet", "reference"}, func(e *wire.BalanceEntry) []any {
				return []any{e.ID, formatTime(e.At), e.Kind, formatYuan(e.Amount), formatSigned(e.Available), optionalText(e.PacketID),
					optionalText(e.Reference)}
			})
		},
	}
}

func balanceExport() command {
	var f client.AppBalanceFilter
	return command{
		use: "export <app>", short: "Print the history of an app's balance as CSV", example: "  hongbao balances export shop > shop.csv",
		args: appID.arg, as: callerFinance, flags: func(flags *pflag.FlagSet) { entryKind(flags, &f) },
		run: func(ctx context.Context, t *call) error {
			f.App = t.args[0]
			return t.staff.ExportBalanceMovements(ctx, f, t.out)
		},
	}
}

// moveBalance is the command that requests a credit or debit.
func moveBalance(verb, short string,
	move func(*client.Staff, context.Context, string, wire.MoveBalance, ...client.Key) (*wire.DecidedMovement, error)) command {
	var amount int64
	var m wire.MoveBalance
	return command{
		use: verb + " <app> --amount <fen> --reason <text> --evidence <text>", short: short,
		example: "  hongbao balances " + verb + " shop --amount 1000000 --reason 'June' --evidence 'bank slip 2026-06-01/4711'",
		args:    appID.arg, as: callerFinance, writes: true,
		flags: func(flags *pflag.FlagSet) {
			flags.Int64Var(&amount, "amount", 0, "whole fen (required)")
			flags.StringVar(&m.Evidence, "evidence", "", "evidence of the money at the bank, such as a bank slip (required)")
			flags.StringVar(&m.Reference, "reference", "", "identifies the movement, once per app (default: the evidence)")
		},
		run: func(ctx context.Context, t *call) error {
			switch {
			case amount < 1:
				return &usageError{fmt.Errorf("parse --amount %d: amounts are whole fen above 0, write 1050 for 10.50 yuan", amount)}
			case m.Evidence == "":
				return &usageError{missingFlag("evidence")}
			}
			m.Amount, m.Reason = money.Fen(amount), t.reason
			done, err := move(t.staff, ctx, t.args[0], m, t.key())
			if err != nil {
				return err
			}
			return t.printDecision(decided{done.Decision, done.Approval, aboutMovement(&done.Movement)})
		},
	}
}

// aboutMovement says what a credit or debit moves.
func aboutMovement(m *wire.BalanceMovement) string {
	return fmt.Sprintf("%s of %s, app %s, reference %q, available balance %s", m.Kind, formatYuan(m.Amount), m.App, m.Reference,
		formatSigned(m.Available))
}
