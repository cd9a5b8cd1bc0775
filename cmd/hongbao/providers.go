package main

import (
	"context"

	"github.com/spf13/cobra"

	"hongbao/client"
	"hongbao/wire"
)

func providersCommand() command {
	return command{
		use: "providers", short: "List, hold and release payment providers",
		sub: []command{
			providersList(),
			providerHold("hold", "Hold a provider: send nothing to it, continue to query",
				`Hold a provider: charges, payouts and refunds to it wait. Queries about sent payments
continue. Repeating it changes nothing.`, (*client.Staff).HoldProvider),
			providerHold("release", "Release the hold of a provider",
				`Release the hold of a provider: waiting payments are sent. Repeating it changes nothing.
After a recovery two persons of finance release the balances of apps: hongbao holds release.`, (*client.Staff).ReleaseProvider),
		},
	}
}

func providersList() command {
	return command{
		use: "list", short: "List the payment providers and their holds", as: callerOps,
		run: func(ctx context.Context, t *call) error {
			return printList(t, pageFlags{}, func(client.Page) (*wire.List[wire.PaymentProvider], error) { return t.staff.ListProviders(ctx) },
				[]any{"provider", "held", "by", "why", "since", "per second"}, func(p *wire.PaymentProvider) []any {
					row := []any{p.Name, "no", "", "", "", "no limit"}
					if p.Hold != nil {
						row = []any{p.Name, "HELD", p.Hold.By, p.Hold.Reason, formatTime(p.Hold.Since), "no limit"}
					}
					if p.RatePerSecond != nil {
						row[5] = *p.RatePerSecond
					}
					return row
				})
		},
	}
}

// providerHold is a command that holds or releases a provider.
func providerHold(verb, short, long string, do decision[wire.PaymentProvider]) command {
	return command{
		use:     verb + " <provider> --reason <text>",
		short:   short,
		long:    long,
		example: "  hongbao providers " + verb + " sandbox --reason 'statement of yesterday does not tie'",
		args:    oneArg, as: callerOps, writes: true,
		complete: func(ctx context.Context, t *call) ([]cobra.Completion, error) {
			list, err := t.staff.ListProviders(ctx)
			return completions(list, err, func(p *wire.PaymentProvider) (string, string) { return p.Name, "" })
		},
		run: func(ctx context.Context, t *call) error {
			p, err := do(t.staff, ctx, t.args[0], t.why(), t.key())
			return t.shown(err, func() error {
				if p.Hold == nil {
					return printf(t.out, "%s is not on hold.\n", p.Name)
				}
				return printf(t.out, "%s is on hold since %s: %s (%s).\n", p.Name, formatTime(p.Hold.Since), p.Hold.Reason, p.Hold.By)
			})
		},
	}
}
