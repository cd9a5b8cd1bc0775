package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hongbao/client"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

func holdsCommand() command {
	return command{
		use:   "holds",
		short: "List, place and release holds of providers, packets and payments",
		long: `List, place and release holds. A hold stops sends, closings and decisions of what it
names until it is released. Claims are recorded and queries continue under every hold.`,
		sub: []command{holdsList(), holdsShow(), holdsPlace(), holdsRelease()},
	}
}

func holdsList() command {
	var filter wire.HoldFilter
	var all bool
	return command{
		use: "list", short: "List the active holds", example: "  hongbao holds list --scope packet", as: callerOps, pages: true,
		flags: func(flags *pflag.FlagSet) {
			flags.BoolVar(&all, "released", false, "released holds too")
			choice(flags, &filter.Scope, "scope", "only of this `scope`: all, provider, packet or payment", payout.HoldScopes)
			flags.StringVar(&filter.Name, "name", "", "only of the provider, packet or payment with this `name`")
			choice(flags, &filter.Kind, "kind", "only of this `kind`: ", holdKinds)
		},
		run: func(ctx context.Context, t *call) error {
			if active := true; !all {
				filter.Active = &active
			}
			return printList(t, t.page, func(p client.Page) (*wire.List[wire.StaffHold], error) {
				return t.staff.ListHolds(ctx, filter, p)
			}, []any{"hold", "scope", "name", "kind", "by", "why", "since", "released"}, func(h *wire.StaffHold) []any {
				return []any{h.ID, h.Scope, h.Name, h.Kind, h.By, h.Reason, formatTime(h.Since), formatOptionalTime(h.ReleasedAt)}
			})
		},
	}
}

// holdKinds are the kinds of stored holds.
var holdKinds = []payout.HoldKind{payout.HoldStaff, payout.HoldRecovery, payout.HoldSecondSuccess, payout.HoldChargeReturned,
	payout.HoldOtherAccount}

func holdsShow() command {
	return command{
		use: "show <hold id>", short: "Show a hold and what its release lets go", args: holdID.arg, as: callerOps,
		run: func(ctx context.Context, t *call) error {
			h, err := t.staff.GetHold(ctx, t.args[0])
			return t.shown(err, func() error { return t.printHold(h) })
		},
	}
}

func holdsPlace() command {
	return command{
		use:   "place <scope> [<name>] --reason <text>",
		short: "Place a hold on a provider, a packet, a payment or on all providers",
		example: `  hongbao holds place packet 1c5emuasbbm9p6qmv2gr --reason 'stolen account'
  hongbao holds place all --reason 'payments are checked by hand today'`,
		args: holdArgs, valid: cobra.FixedCompletions(textsOf(payout.HoldScopes), cobra.ShellCompDirectiveNoFileComp),
		as: callerOps, writes: true,
		run: func(ctx context.Context, t *call) error {
			hold := wire.NewHold{Scope: t.args[0], Reason: t.reason}
			if len(t.args) > 1 {
				hold.Name = t.args[1]
			}
			h, err := t.staff.PlaceHold(ctx, hold, t.key())
			return t.shown(err, func() error { return t.printHold(h) })
		},
	}
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
func (t *call) printHold(item *wire.HeldItem) error {
	h := item.Hold
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
