package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"hongbao/client"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

func newHoldsCommand(env environment) *cobra.Command {
	group := &cobra.Command{
		Use:   "holds",
		Short: "List, place and release holds of providers, packets and payments",
		Long: `List, place and release holds. A hold stops sends, closings and decisions of what it
names until it is released. Claims are recorded and queries continue under every hold.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	group.AddCommand(newHoldsListCommand(env), newHoldsShowCommand(env), newHoldsPlaceCommand(env), newHoldsReleaseCommand(env))
	return group
}

func newHoldsListCommand(env environment) *cobra.Command {
	f, page := newOpsFlags(), pageFlags{}
	var filter client.HoldFilter
	var all bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the active holds",
		Example: "  hongbao holds list --scope packet",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				if active := true; !all {
					filter.Active = &active
				}
				fetch := func(ctx context.Context, p client.Page) (*wire.List[wire.StaffHold], error) {
					return t.staff.ListHolds(ctx, filter, p)
				}
				return printList(ctx, t.appCommand, page, fetch, []any{"hold", "scope", "name", "kind", "by", "why", "since", "released"},
					func(h *wire.StaffHold) []any {
						released := ""
						if h.ReleasedAt != nil {
							released = formatTime(*h.ReleasedAt)
						}
						return []any{h.ID, h.Scope, h.Name, h.Kind, h.By, h.Reason, formatTime(h.Since), released}
					})
			})
		},
	}
	f.add(cmd, false)
	page.add(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&all, "released", false, "released holds too")
	flags.StringVar(&filter.Scope, "scope", "", "only of this `scope`: all, provider, packet or payment")
	flags.StringVar(&filter.Name, "name", "", "only of the provider, packet or payment with this `name`")
	flags.StringVar(&filter.Kind, "kind", "", "only of this `kind`: "+strings.Join(holdKinds, ", "))
	complete(cmd, "scope", holdScopes()...)
	complete(cmd, "name")
	complete(cmd, "kind", holdKinds...)
	return cmd
}

// holdKinds are the kinds of stored holds.
var holdKinds = []string{string(payout.HoldStaff), string(payout.HoldRecovery), string(payout.HoldSecondSuccess),
	string(payout.HoldChargeReturned)}

func holdScopes() []string {
	var scopes []string
	for _, s := range payout.HoldScopes {
		scopes = append(scopes, string(s))
	}
	return scopes
}

func newHoldsShowCommand(env environment) *cobra.Command {
	f := newOpsFlags()
	cmd := &cobra.Command{
		Use:   "show <hold id>",
		Short: "Show a hold and what its release lets go",
		Args:  holdID.arg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				h, err := t.staff.GetHold(ctx, args[0])
				if err != nil {
					return err
				}
				return t.printHold(h)
			})
		},
	}
	f.add(cmd, false)
	return cmd
}

func newHoldsPlaceCommand(env environment) *cobra.Command {
	f := newOpsFlags()
	cmd := &cobra.Command{
		Use:   "place <scope> [<name>] --reason <text>",
		Short: "Place a hold on a provider, a packet, a payment or on all providers",
		Example: `  hongbao holds place packet 1c5emuasbbm9p6qmv2gr --reason 'stolen account'
  hongbao holds place all --reason 'payments are checked by hand today'`,
		Args:      holdArgs,
		ValidArgs: holdScopes(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				hold := wire.NewHold{Scope: args[0], Reason: f.reason}
				if len(args) > 1 {
					hold.Name = args[1]
				}
				h, err := t.staff.PlaceHold(ctx, hold, client.Key(f.idempotencyKey))
				if err != nil {
					return err
				}
				return t.printHold(h)
			})
		},
	}
	f.add(cmd, true)
	return cmd
}

// holdArgs checks scope and name of a hold.
func holdArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 1 && args[0] == string(payout.HoldAll) {
		return nil
	}
	if len(args) != 2 {
		return &usageError{fmt.Errorf("%s takes a scope and a name: all, provider <name>, packet <id> or payment <id>", cmd.CommandPath())}
	}
	switch payout.HoldScope(args[0]) {
	case payout.HoldProvider:
		return nil
	case payout.HoldPacket:
		return packetID.argument(args[1])
	case payout.HoldPayment:
		return anyPaymentID.argument(args[1])
	}
	return &usageError{fmt.Errorf("scope %q: write all, provider, packet or payment", args[0])}
}

// printHold prints a hold and what its release lets go.
func (t *staffCommand) printHold(item *wire.HeldItem) error {
	h := item.Hold
	if t.json {
		return t.printAnswer()
	}
	name := h.Scope
	if h.Name != "" {
		name += " " + h.Name
	}
	state := "active"
	switch {
	case h.ReleasedAt != nil:
		state = "released " + formatTime(*h.ReleasedAt)
		if h.ReleasedBy != nil {
			state += " by " + *h.ReleasedBy
		}
	case h.Release != nil:
		state = "active; " + h.Release.By + " has asked to release it, another person of finance has to release it too"
	case item.SecondPerson:
		state = "active; two persons of finance have to release it"
	}
	return printf(t.out, "Hold %s on %s (%s) by %s since %s: %s\nState: %s\nIts release lets go: %s\n", h.ID, name, h.Kind, h.By,
		formatTime(h.Since), h.Reason, state, releasesOf(item.Releases).What())
}

// releasesOf are the parts of what a release lets go.
func releasesOf(r wire.Releases) staff.Releases {
	out := make(staff.Releases, len(r.Parts))
	for i, p := range r.Parts {
		out[i].Code = staff.ReleaseCode(p.Code)
		if p.Count != nil {
			out[i].Count = *p.Count
		}
		if p.Amount != nil {
			out[i].Amount = *p.Amount
		}
	}
	return out
}
