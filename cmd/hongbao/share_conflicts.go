package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"hongbao/client"
	"hongbao/wire"
)

// conflictFlags are the flags of a decision about many share conflicts.
type conflictFlags struct {
	staffFlags
	filter wire.BulkConflictFilter
	yes    bool
}

func newShareConflictsCommand(env environment) *cobra.Command {
	group := &cobra.Command{
		Use:   "share-conflicts",
		Short: "Honour or void many share conflicts",
		Long: `Honour or void many share conflicts: acknowledged claims without a share. The house pays
what is honoured. One whose user has another claim of the packet is voided by default.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	group.AddCommand(newConflictsCommand(env, "honour", "Honour the selected share conflicts with the money of the house"),
		newConflictsCommand(env, "void", "Void the selected share conflicts, so that nothing is paid"))
	return group
}

func newConflictsCommand(env environment, decision, short string) *cobra.Command {
	f := &conflictFlags{staffFlags: newFinanceFlags()}
	cmd := &cobra.Command{
		Use:   decision + " --default-decision <decision> ...",
		Short: short,
		Long: short + `: the newest 200 that match and that nobody has decided about.
Without --yes it is a dry run that lists them, and the sum. With --yes the first person asks;
the same command by another person of finance decides.`,
		Example: fmt.Sprintf(`  hongbao share-conflicts %[1]s --default-decision %[1]s
  hongbao share-conflicts %[1]s --default-decision %[1]s --reason 'worker was suspended, incident 17' --yes`, decision),
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.decide(cmd, env, decision) },
	}
	f.add(cmd, true)
	flags := cmd.Flags()
	packetID.flag(cmd, &f.filter.PacketID, "packet", "only of the packet with this `id`")
	flags.StringVar(&f.filter.UserID, "user", "", "only of the user with this `id`")
	flags.StringVar(&f.filter.DefaultDecision, "default-decision", "", "only those whose default `decision` is honour or void")
	flags.BoolVar(&f.yes, "yes", false, "decide instead of a dry run")
	complete(cmd, "packet")
	complete(cmd, "user")
	complete(cmd, "default-decision", "honour", "void")
	return cmd
}

func (f *conflictFlags) decide(cmd *cobra.Command, env environment, decision string) error {
	if f.filter.PacketID+f.filter.UserID+f.filter.DefaultDecision == "" {
		return &usageError{errors.New("give a filter that selects share conflicts, such as --default-decision " + decision)}
	}
	if !f.yes && f.reason == "" {
		f.reason = dryRunReason
	}
	return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
		call := t.staff.HonourShareConflicts
		if decision == "void" {
			call = t.staff.VoidShareConflicts
		}
		done, err := call(ctx, wire.BulkConflictDecision{Filter: f.filter, Reason: f.reason, DryRun: !f.yes}, client.Key(f.idempotencyKey))
		if err != nil {
			return err
		}
		results := map[string]int{}
		for _, item := range done.Items {
			results[item.Result]++
		}
		if err := t.printConflicts(done, results); err != nil || done.DryRun {
			return err
		}
		return bulkError(results)
	})
}

// bulkError is the error of a bulk call that two persons make, by its results.
func bulkError(results map[string]int) error {
	switch {
	case results[resultSkipped] > 0:
		return errSomeRefused
	case results[resultWaiting] > 0:
		return errNeedsApproval
	}
	return nil
}

func (t *staffCommand) printConflicts(done *wire.BulkConflictsDecided, results map[string]int) error {
	if t.json {
		return t.printAnswer()
	}
	if len(done.Items) == 0 {
		return printf(t.out, "No share conflict matches. One that you have asked for waits for another person.\n")
	}
	show := newGrid(t.out, "payout", "packet", "user", "amount", "default", "result", "asked by")
	for _, item := range done.Items {
		result := item.Result
		if result == resultSkipped {
			result = "refused: " + optionalText(item.Code)
		}
		show.row(item.ID, item.PacketID, item.UserID, formatAmount(item.Amount), item.DefaultDecision, result, optionalText(item.AskedBy))
	}
	show.render()
	more := ""
	if done.More {
		more = " More match: run the command again for the rest."
	}
	if done.DryRun {
		return printf(t.out, "Selected: %d, %s. Nothing was decided; add --yes and --reason to decide.%s\n", done.Count,
			formatAmount(done.Amount), more)
	}
	return printf(t.out, "Of %d share conflicts, %s: %d decided, %d wait for a second person, %d refused.%s\n", len(done.Items),
		formatAmount(done.Amount), results["decided"], results[resultWaiting], results[resultSkipped], more)
}
