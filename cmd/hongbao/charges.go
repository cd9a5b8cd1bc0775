package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hongbao/client"
	"hongbao/wire"
)

var charges = payments{
	one: "charge", many: "charges", example: "c3q5k9v0c1m7e2u8h4r6t0000", id: chargeID,
	failed: func(ctx context.Context, t *call) ([]cobra.Completion, error) {
		open := wire.PayoutFilter{PaymentFilter: wire.PaymentFilter{Status: wire.PayoutUnknown}}
		list, err := t.staff.ListCharges(ctx, open, newest)
		return completions(list, err, func(p *wire.Payment) (string, string) { return p.ID, aboutFailed(p.Amount, p.UserID, p.Failure) })
	},
}

func chargesCommand() command {
	return command{
		use:   "charges",
		short: "Find charges, and query the provider about them",
		long: `Find what senders and apps pay for packets, and query the provider about it. A charge has no
other decision: it ends by an answer of the provider, or by a break about its order number.`,
		sub: []command{
			chargesList(), chargesShow(),
			paymentDecision(charges, "ask", "Query the provider about every order number of a charge",
				`Query the provider about every order number of a charge, in any status once an attempt
was sent. A query moves no money; its answers are settled.`, (*client.Staff).AskCharge, ofCharge),
		},
	}
}

func ofCharge(d *wire.DecidedCharge) decided {
	c := d.Charge
	return decided{d.Decision, d.Approval, fmt.Sprintf("charge %s of %s from %s is %s", c.ID, formatYuan(c.Amount), c.UserID, c.Status)}
}

func chargesList() command {
	var filter paymentFlags
	return command{
		use:     "list",
		short:   "List charges, newest first",
		long:    "List charges that match all filters, newest first. The user of a charge is the sender.",
		example: "  hongbao charges list --status unknown",
		as:      callerFinance, pages: true,
		flags: func(flags *pflag.FlagSet) { filterFlags(flags, &filter) },
		run: func(ctx context.Context, t *call) error {
			if err := checkFilter(t, &filter); err != nil {
				return err
			}
			return printList(t, t.page, func(p client.Page) (*wire.List[wire.Payment], error) {
				return t.staff.ListCharges(ctx, filter.PayoutFilter, p)
			}, []any{"charge", "sender", "amount", "status", "failure", "provider", "created"}, func(c *wire.Payment) []any {
				return []any{c.ID, c.UserID, formatYuan(c.Amount), c.Status, failureCode(c.Failure), c.Provider, formatTime(c.CreatedAt)}
			})
		},
	}
}

func chargesShow() command {
	return command{
		use: "show <charge id>", short: "Show a charge with its attempts and timeline",
		args: chargeID.arg, complete: charges.failed, as: callerFinance,
		run: func(ctx context.Context, t *call) error {
			c, err := t.staff.Charge(ctx, t.args[0])
			return t.shown(err, func() error {
				t.printFacts([][]any{
					{"charge", c.ID}, {"packet", c.PacketID}, {"sender", c.UserID}, {"amount", formatAmount(c.Amount)}, {"status", c.Status},
					{"failure", failureText(c.Failure)}, {"provider", c.Provider}, {"order number", optionalText(c.OrderNo)},
					{"created", formatTime(c.CreatedAt)}, {"changed", formatTime(c.UpdatedAt)}, {"workflow", c.Workflow.ID},
					{"Temporal UI", uiLink(c.Workflow)},
				})
				return t.printHistory(c.Attempts, c.Timeline, c.Temporal)
			})
		},
	}
}
