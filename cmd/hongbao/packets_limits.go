package main

import (
	"context"

	"hongbao/internal/money"
)

// packetsLimits is the command that shows what the payment providers can do.
func packetsLimits() command {
	return command{
		use: "limits", short: "Show the methods and limits of the payment providers",
		long: `Show by which methods senders can pay, and the limits of charges and payouts. * marks the
provider of new packets, and the default method. The shares of a new packet lie within the limits of
payouts.`,
		example: "  hongbao packets limits", as: callerApp,
		run: func(ctx context.Context, t *call) error {
			list, err := t.app.ListProviders(ctx)
			return t.shown(err, func() error {
				show := newGrid(t.out, "provider", "for", "method", "smallest", "largest")
				for _, p := range list.Items {
					for i, m := range p.Charges.Methods {
						show.row(p.Name, "charges", m.Name+markIf(i == 0 && p.Charges.Default), formatBound(m.MinAmount), formatBound(m.MaxAmount))
					}
					show.row(p.Name, "payouts"+markIf(p.Payouts.Default), "", formatBound(p.Payouts.MinAmount), formatBound(p.Payouts.MaxAmount))
				}
				show.render()
				return nil
			})
		},
	}
}

func markIf(yes bool) string {
	if yes {
		return " *"
	}
	return ""
}

// formatBound is the text of a limit of amounts.
func formatBound(amount *money.Fen) string {
	if amount == nil {
		return "none"
	}
	return formatYuan(*amount)
}
