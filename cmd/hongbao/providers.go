package main

import (
	"context"

	"github.com/spf13/cobra"

	"hongbao/client"
)

// newOpsFlags is the flags of a command of operations.
func newOpsFlags() staffFlags { return staffFlags{command: cmdOps, key: "ops-key"} }

func newProvidersCommand(env environment) *cobra.Command {
	group := &cobra.Command{
		Use:   "providers",
		Short: "Stop what is sent to a payment provider, and let it go",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	group.AddCommand(newProvidersListCommand(env),
		newHoldCommand(env, "hold", "Stop what is sent to a provider; asking goes on",
			`Stop charges, payouts and refunds to a provider: they wait. What was sent is asked
about as ever. Holding a provider that is held changes nothing.`, (*client.Staff).HoldProvider),
		newHoldCommand(env, "release", "Let go what a hold has kept waiting",
			`Let go what a hold has kept waiting. Releasing a provider that is not held changes
nothing.`, (*client.Staff).ReleaseProvider))
	return group
}

func newProvidersListCommand(env environment) *cobra.Command {
	f := newOpsFlags()
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the payment providers, and who holds them",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				fetch := func(ctx context.Context, _ client.Page) (*client.List[client.Provider], error) {
					return t.staff.ListProviders(ctx)
				}
				return printList(ctx, t.appCommand, pageFlags{}, fetch, []any{"provider", "held", "by", "why", "since", "per second"},
					func(p *client.Provider) []any {
						row := []any{p.Name, "no", "", "", "", "no limit"}
						if p.Hold != nil {
							row = []any{p.Name, "HELD", p.Hold.By, p.Hold.Reason, formatTime(p.Hold.Since), "no limit"}
						}
						if p.RatePerSecond != nil {
							row[5] = *p.RatePerSecond
						}
						return row
					})
			})
		},
	}
	f.add(cmd, false)
	return cmd
}

// holdDecision is a method of the client that holds or releases a provider.
type holdDecision func(*client.Staff, context.Context, string, client.HoldRequest) (*client.Provider, error)

func newHoldCommand(env environment, verb, short, long string, do holdDecision) *cobra.Command {
	f := newOpsFlags()
	cmd := &cobra.Command{
		Use:     verb + " <provider> --reason <text>",
		Short:   short,
		Long:    long,
		Example: "  hongbao providers " + verb + " sandbox --reason 'statement of yesterday does not tie'",
		Args:    oneArg,
		ValidArgsFunction: completeItems(env, &f, func(ctx context.Context, t *staffCommand) (found []cobra.Completion, err error) {
			list, err := t.staff.ListProviders(ctx)
			if err != nil {
				return nil, err
			}
			for _, p := range list.Items {
				found = append(found, p.Name)
			}
			return found, nil
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				p, err := do(t.staff, ctx, args[0], client.HoldRequest{IdempotencyKey: f.idempotencyKey, Reason: f.reason})
				switch {
				case err != nil:
					return err
				case t.json:
					return t.printRaw(p.Raw)
				case p.Hold != nil:
					return printf(t.out, "Nothing is sent to %s since %s: %s (%s).\n", p.Name, formatTime(p.Hold.Since), p.Hold.Reason, p.Hold.By)
				}
				return printf(t.out, "Payments to %s go out.\n", p.Name)
			})
		},
	}
	f.add(cmd, true)
	return cmd
}
