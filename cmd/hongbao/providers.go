package main

import (
	"context"

	"github.com/spf13/cobra"

	"hongbao/client"
	"hongbao/wire"
)

// newOpsFlags returns the flags of a command for operations.
func newOpsFlags() staffFlags { return staffFlags{command: cmdOps, key: "ops-key"} }

func newProvidersCommand(env environment) *cobra.Command {
	group := &cobra.Command{
		Use:   "providers",
		Short: "List, hold and release payment providers",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	group.AddCommand(newProvidersListCommand(env),
		newHoldCommand(env, "hold", "Hold a provider: send nothing to it, continue to query",
			`Hold a provider: charges, payouts and refunds to it wait. Queries about sent payments
continue. Repeating it changes nothing.`, (*client.Staff).HoldProvider),
		newHoldCommand(env, "release", "Release the hold of a provider",
			`Release the hold of a provider: waiting payments are sent. Repeating it changes nothing.`, (*client.Staff).ReleaseProvider))
	return group
}

func newProvidersListCommand(env environment) *cobra.Command {
	f := newOpsFlags()
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the payment providers and their holds",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				fetch := func(ctx context.Context, _ client.Page) (*wire.List[wire.PaymentProvider], error) {
					return t.staff.ListProviders(ctx)
				}
				return printList(ctx, t.appCommand, pageFlags{}, fetch, []any{"provider", "held", "by", "why", "since", "per second"},
					func(p *wire.PaymentProvider) []any {
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

// holdDecision is a client method that holds or releases a provider.
type holdDecision func(*client.Staff, context.Context, string, wire.Reason, ...client.Key) (*wire.PaymentProvider, error)

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
				p, err := do(t.staff, ctx, args[0], wire.Reason{Reason: f.reason}, client.Key(f.idempotencyKey))
				switch {
				case err != nil:
					return err
				case t.json:
					return t.printAnswer()
				case p.Hold != nil:
					return printf(t.out, "%s is on hold since %s: %s (%s).\n", p.Name, formatTime(p.Hold.Since), p.Hold.Reason, p.Hold.By)
				}
				return printf(t.out, "%s is not on hold.\n", p.Name)
			})
		},
	}
	f.add(cmd, true)
	return cmd
}
