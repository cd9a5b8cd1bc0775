package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"hongbao/client"
	"hongbao/internal/payout"
	"hongbao/wire"
)

// releaseFlags are the flags of "holds release", for one and for many.
type releaseFlags struct {
	staffFlags
	filter wire.BulkHoldFilter
	yes    bool
}

func newHoldsReleaseCommand(env environment) *cobra.Command {
	f := &releaseFlags{staffFlags: newOpsFlags()}
	cmd := &cobra.Command{
		Use:   "release <hold id> --reason <text> | release --scope <scope> ...",
		Short: "Release a hold, or all holds of packets and payments that filters select",
		Long: `Release a hold. When that lets money of a packet or payment go, two persons of finance
have to run it: the first one asks, the second one releases. Show the hold first: it says
what moves.

Without an id the command releases the active holds of packets and payments that the
filters select, the newest 200, with a key of finance. Without --yes it is a dry run that
lists what each release moves, and the sum. With --yes the first person asks for what lets
money go; the same command by a second person releases it, unless it would move something
else than the first one was shown.`,
		Example: `  hongbao holds release h12 --reason 'looked at'
  hongbao holds release --scope packet --kind recovery
  hongbao holds release --scope packet --kind recovery --reason 'recovery of May 3 is checked' --yes`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return holdID.arg(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.release(cmd, env, args) },
	}
	f.add(cmd, true)
	scopes := []string{string(payout.HoldPacket), string(payout.HoldPayment)}
	flags := cmd.Flags()
	flags.StringVar(&f.filter.Scope, "scope", "", "only of this `scope`: "+strings.Join(scopes, " or "))
	flags.StringVar(&f.filter.Name, "name", "", "only of the packet or payment with this `name`")
	flags.StringVar(&f.filter.Kind, "kind", "", "only of this `kind`: "+strings.Join(holdKinds, ", "))
	flags.BoolVar(&f.yes, "yes", false, "release the selected ones instead of a dry run")
	complete(cmd, "scope", scopes...)
	complete(cmd, "name")
	complete(cmd, "kind", holdKinds...)
	return cmd
}

func (f *releaseFlags) release(cmd *cobra.Command, env environment, args []string) error {
	filtered := f.filter.Scope+f.filter.Name+f.filter.Kind != ""
	switch {
	case len(args) == 1 && (filtered || f.yes):
		return &usageError{errors.New("a hold id cannot be combined with filters or --yes: give one of them")}
	case len(args) == 0 && !filtered:
		return &usageError{errors.New("give a hold id, or a filter that selects holds, such as --scope packet")}
	}
	if len(args) == 0 && !f.yes && f.reason == "" {
		f.reason = dryRunReason
	}
	return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
		if len(args) == 0 {
			return t.releaseHolds(ctx, wire.BulkRelease{Filter: f.filter, Reason: f.reason,
				DryRun: !f.yes}, client.Key(f.idempotencyKey))
		}
		h, err := t.staff.ReleaseHold(ctx, args[0], wire.Reason{Reason: f.reason}, client.Key(f.idempotencyKey))
		if err != nil {
			return err
		}
		if err := t.printHold(h); err != nil || h.Hold.ReleasedAt != nil {
			return err
		}
		return errNeedsApproval
	})
}

// releaseHolds releases many holds and prints the result of each.
func (t *staffCommand) releaseHolds(ctx context.Context, r wire.BulkRelease, key client.Key) error {
	done, err := t.staff.ReleaseHolds(ctx, r, key)
	if err != nil {
		return err
	}
	results := map[string]int{}
	for _, item := range done.Items {
		results[item.Result]++
	}
	if err := t.printReleased(done, results); err != nil || done.DryRun {
		return err
	}
	return bulkError(results)
}

// Results of a release of many, with resultSkipped.
const (
	resultReleased = "released"
	resultWaiting  = "waiting"
)

func (t *staffCommand) printReleased(done *wire.BulkReleased, results map[string]int) error {
	if t.json {
		return t.printAnswer()
	}
	if len(done.Items) == 0 {
		return printf(t.out, "No hold matches. A release that you have asked for waits for another person.\n")
	}
	show := newGrid(t.out, "hold", "scope", "name", "result", "asked by", "its release lets go")
	for _, item := range done.Items {
		result := item.Result
		if result == resultSkipped {
			result = "refused: " + optionalText(item.Code)
		}
		show.row(item.ID, item.Scope, item.Name, result, optionalText(item.AskedBy), releasesOf(item.Releases).What())
	}
	show.render()
	more := ""
	if done.More {
		more = " More match: run the command again for the rest."
	}
	sum := releasesOf(done.Releases)
	if done.DryRun {
		return printf(t.out, "Selected: %d, %s (%s). Nothing was released; add --yes and --reason to release.%s\n", done.Count,
			formatAmount(sum.Amount()), sum.What(), more)
	}
	return printf(t.out, "Of %d holds, %s (%s): %d released, %d wait for a second person, %d refused.%s\n", len(done.Items),
		formatAmount(sum.Amount()), sum.What(), results[resultReleased], results[resultWaiting], results[resultSkipped], more)
}
