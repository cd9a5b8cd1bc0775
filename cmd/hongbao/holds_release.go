package main

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	"hongbao/internal/payout"
	"hongbao/wire"
)

func holdsRelease() command {
	var filter wire.BulkHoldFilter
	yes := false
	return command{
		use:   "release <hold id> --reason <text> | release --scope <scope> ...",
		short: "Release a hold, or all holds of packets and payments that filters select",
		long: `Release a hold. When that lets money of a packet or payment go, or when a recovery of
MySQL holds the balances of apps, two persons of finance have to run it: the first one
requests it, the second one releases. Show the hold first: it says what moves.

Without an id the command releases the active holds of packets and payments that the
filters select, the newest 200, with a key of finance. Without --yes it is a dry run that
lists what each release moves, and the sum. With --yes the first person asks for what lets
money go; the same command by a second person releases it, unless it would move something
else than the first one was shown.`,
		example: `  hongbao holds release h12 --reason 'looked at'
  hongbao holds release --scope packet --kind recovery
  hongbao holds release --scope packet --kind recovery --reason 'recovery of May 3 is checked' --yes`,
		args: optional(holdID.arg), as: callerOps, writes: true, dry: func(t *call) bool { return len(t.args) == 0 && !yes },
		flags: func(flags *pflag.FlagSet) {
			choice(flags, &filter.Scope, "scope", "only of this `scope`: packet or payment",
				[]payout.HoldScope{payout.HoldPacket, payout.HoldPayment})
			flags.StringVar(&filter.Name, "name", "", "only of the packet or payment with this `name`")
			choice(flags, &filter.Kind, "kind", "only of this `kind`: ", holdKinds)
			flags.BoolVar(&yes, "yes", false, "release the selected ones instead of a dry run")
		},
		run: func(ctx context.Context, t *call) error {
			filtered := filter.Scope+filter.Name+filter.Kind != ""
			switch {
			case len(t.args) == 1 && (filtered || yes):
				return &usageError{errors.New("a hold id cannot be combined with filters or --yes: give one of them")}
			case len(t.args) == 1:
				return t.releaseHold(ctx)
			case !filtered:
				return &usageError{errors.New("give a hold id, or a filter that selects holds, such as --scope packet")}
			}
			return t.releaseHolds(ctx, wire.BulkRelease{Filter: filter, Reason: t.reason, DryRun: !yes})
		},
	}
}

func (t *call) releaseHold(ctx context.Context) error {
	h, err := t.staff.ReleaseHold(ctx, t.args[0], t.why(), t.key())
	if err := t.shown(err, func() error { return t.printHold(h) }); err != nil || h.Hold.ReleasedAt != nil {
		return err
	}
	return errNeedsApproval
}

// releaseHolds releases many holds and prints the result of each.
func (t *call) releaseHolds(ctx context.Context, r wire.BulkRelease) error {
	done, err := t.staff.ReleaseHolds(ctx, r, t.key())
	if err != nil {
		return err
	}
	results := map[string]int{}
	for _, item := range done.Items {
		results[item.Result]++
	}
	return bulkEnd(done.DryRun, results, t.printReleased(done, results))
}

// Results of a release of many, with resultSkipped.
const (
	resultReleased = "released"
	resultWaiting  = "waiting"
)

func (t *call) printReleased(done *wire.BulkReleased, results map[string]int) error {
	if t.json {
		return t.printAnswer()
	}
	if len(done.Items) == 0 {
		return printf(t.out, "No hold matches. A release that you have asked for waits for another person.\n")
	}
	show := newGrid(t.out, "hold", "scope", "name", "result", "asked by", "its release lets go")
	for _, item := range done.Items {
		show.row(item.ID, item.Scope, item.Name, bulkResult(item.Result, item.Code), optionalText(item.AskedBy), releasesOf(item.Releases).What())
	}
	show.render()
	sum, more := releasesOf(done.Releases), bulkMore(done.More)
	if done.DryRun {
		return printf(t.out, "Selected: %d, %s (%s). Nothing was released; add --yes and --reason to release.%s\n", done.Count,
			formatAmount(sum.Amount()), sum.What(), more)
	}
	return printf(t.out, "Of %d holds, %s (%s): %d released, %d wait for a second person, %d refused.%s\n", len(done.Items),
		formatAmount(sum.Amount()), sum.What(), results[resultReleased], results[resultWaiting], results[resultSkipped], more)
}
