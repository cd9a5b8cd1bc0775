package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"hongbao/wire"
)

func shareConflictsCommand() command {
	return command{
		use:   "share-conflicts",
		short: "Honour or void many share conflicts",
		long: `Honour or void many share conflicts: acknowledged claims without a share. The house pays
what is honoured. One whose user has another claim of the packet is voided by default.`,
		sub: []command{
			conflictsDecide("honour", "Honour the selected share conflicts with the money of the house"),
			conflictsDecide("void", "Void the selected share conflicts, so that nothing is paid"),
		},
	}
}

func conflictsDecide(decision, short string) command {
	var filter wire.BulkConflictFilter
	yes := false
	return command{
		use:   decision + " --default-decision <decision> ...",
		short: short,
		long: short + `: the newest 200 that match and that nobody has decided about.
Without --yes it is a dry run that lists them, and the sum. With --yes the first person asks;
the same command by another person of finance decides.`,
		example: fmt.Sprintf(`  hongbao share-conflicts %[1]s --default-decision %[1]s
  hongbao share-conflicts %[1]s --default-decision %[1]s --reason 'worker was suspended, incident 17' --yes`, decision),
		as: callerFinance, writes: true, dry: func(*call) bool { return !yes },
		flags: func(flags *pflag.FlagSet) {
			packetID.flag(flags, &filter.PacketID, "packet", "only of the packet with this `id`")
			flags.StringVar(&filter.UserID, "user", "", "only of the user with this `id`")
			choice(flags, &filter.DefaultDecision, "default-decision", "only those whose default `decision` is honour or void",
				[]string{"honour", "void"})
			flags.BoolVar(&yes, "yes", false, "decide instead of a dry run")
		},
		run: func(ctx context.Context, t *call) error {
			if filter.PacketID+filter.UserID+filter.DefaultDecision == "" {
				return &usageError{errors.New("give a filter that selects share conflicts, such as --default-decision " + decision)}
			}
			decide := t.staff.HonourShareConflicts
			if decision == "void" {
				decide = t.staff.VoidShareConflicts
			}
			done, err := decide(ctx, wire.BulkConflictDecision{Filter: filter, Reason: t.reason, DryRun: !yes}, t.key())
			if err != nil {
				return err
			}
			results := map[string]int{}
			for _, item := range done.Items {
				results[item.Result]++
			}
			return bulkEnd(done.DryRun, results, t.printConflicts(done, results))
		},
	}
}

// bulkEnd is the error of a bulk call that two persons make, by its results; err is the error of printing them.
func bulkEnd(dry bool, results map[string]int, err error) error {
	switch {
	case err != nil || dry:
		return err
	case results[resultSkipped] > 0:
		return errSomeRefused
	case results[resultWaiting] > 0:
		return errNeedsApproval
	}
	return nil
}

// bulkResult is the result for one item of a bulk call.
func bulkResult(result string, code *string) string {
	if result == resultSkipped {
		return "refused: " + optionalText(code)
	}
	return result
}

// bulkMore says that a bulk call has left items out.
func bulkMore(more bool) string {
	if more {
		return " More match: run the command again for the rest."
	}
	return ""
}

func (t *call) printConflicts(done *wire.BulkConflictsDecided, results map[string]int) error {
	if t.json {
		return t.printAnswer()
	}
	if len(done.Items) == 0 {
		return printf(t.out, "No share conflict matches. One that you have asked for waits for another person.\n")
	}
	show := newGrid(t.out, "payout", "packet", "user", "amount", "default", "result", "asked by")
	for _, item := range done.Items {
		show.row(item.ID, item.PacketID, item.UserID, formatAmount(item.Amount), item.DefaultDecision, bulkResult(item.Result, item.Code),
			optionalText(item.AskedBy))
	}
	show.render()
	if done.DryRun {
		return printf(t.out, "Selected: %d, %s. Nothing was decided; add --yes and --reason to decide.%s\n", done.Count,
			formatAmount(done.Amount), bulkMore(done.More))
	}
	return printf(t.out, "Of %d share conflicts, %s: %d decided, %d wait for a second person, %d refused.%s\n", len(done.Items),
		formatAmount(done.Amount), results["decided"], results[resultWaiting], results[resultSkipped], bulkMore(done.More))
}
