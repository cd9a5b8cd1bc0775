package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"hongbao/internal/payout"
	"hongbao/internal/recovery"
)

// recoverFlags are the flags of "recover".
type recoverFlags struct {
	dryRun bool
	json   bool
	since  time.Time
	lanes  bool
	by     string
}

func recoverCommand() command {
	var f recoverFlags
	return command{
		use:   "recover",
		short: "Bring a MySQL that was restored from a backup up to date",
		long: `Bring a MySQL that was restored from a backup up to date (docs/disaster.md). The command
reads the provider's statement since the backup, queries the provider about every order
number that may have been sent, and reads packets and claims from Redis and from
Temporal's runs. It moves no money.

Workers and API may run: until recovery ends they send, close and decide nothing. The
command may be interrupted and repeated; it records nothing twice. It does not change a
MySQL that is not restored.

What cannot be decided becomes a break of kind restored, and its packet is held until
two persons release it. That includes orders without a usable answer of the provider:
when it answers later, run recover with --since before the hold is released. With more
than 20 such orders the provider is away: MySQL stays restored, run the command again.

Exit code: 0 recovered (or --dry-run); 1 not recovered, or breaks are left to staff; 2
wrong settings.`,
		as: local(cmdRecover),
		flags: func(flags *pflag.FlagSet) {
			flags.BoolVar(&f.dryRun, "dry-run", false, "record only that MySQL is restored, and report the work to do")
			flags.BoolVar(&f.json, "json", false, "print the report as JSON")
			timeFlag(flags, &f.since, "since", "`time` (RFC 3339) up to which MySQL is complete; default: its last heartbeat. "+
				"Also declares MySQL restored when no process has detected it")
			flags.BoolVar(&f.lanes, "rebuild-lanes", false, "Redis was restored or lost too: rebuild every lane from MySQL after recovery")
			flags.StringVar(&f.by, "by", "", "your `name`, for the audit (required)")
		},
		run: func(ctx context.Context, t *call) error {
			if f.by == "" {
				return &usageError{fmt.Errorf("--by %w: write your name, for the audit", errMissing)}
			}
			return withRecovery(ctx, t.config, t.notes, func(r *recovery.Recovery) error { return f.recover(ctx, r, t.out, t.notes) })
		},
	}
}

// recover runs the recovery and prints its progress to errs.
func (f recoverFlags) recover(ctx context.Context, r *recovery.Recovery, out, errs io.Writer) error {
	r.By, r.Since, r.DryRun, r.Rebuild = f.by, f.since, f.dryRun, f.lanes
	var shown meter
	r.Progress = func(done, of int) {
		if shown == nil {
			shown = newMeter(errs, "packets", of)
		}
		shown.set(done)
	}
	report, err := r.Run(ctx)
	if shown != nil {
		shown.end()
	}
	if errors.Is(err, recovery.ErrProviderAway) {
		return fmt.Errorf("%w: contact the provider and run the command again", err)
	}
	if err != nil {
		return err
	}
	if f.json {
		err = encodeJSON(out, report)
	} else {
		err = showRecovery(out, report)
	}
	if err == nil && len(report.Undecided) > 0 {
		err = errReported
	}
	return err
}

func showRecovery(out io.Writer, v recovery.Report) error {
	if !v.Ended && !v.DryRun || v.DryRun && v.MySQL.State == payout.MySQLNormal {
		return printf(out, "MySQL is not restored (heartbeat %d); nothing was changed.\n", v.MySQL.Heartbeat)
	}
	t := newGrid(out)
	for _, row := range [][]any{
		{"statement read since", v.Since.UTC().Format(time.RFC3339)}, {"movements since then", v.Lines}, {"of them missing in MySQL", v.Unknown},
		{"packets checked", v.Packets}, {"packets recovered", v.Made}, {"claims recovered", v.Claims},
		{"of them known by account only", v.Guessed}, {"order numbers recovered", v.Numbers}, {"cancels recovered", v.Cancels},
		{"packets that were closed", v.Closed}, {"queries to the provider", v.Asked}, {"lanes with a later epoch in Redis", v.Raised},
		{"lanes to rebuild", v.Shut}, {"packets held for staff", v.Held}, {"their amount", v.HeldAmount},
	} {
		t.row(row...)
	}
	t.render()
	for _, u := range v.Undecided {
		if err := printf(out, "UNDECIDED %s\n", u); err != nil {
			return err
		}
	}
	if v.DryRun {
		return printf(out, "Dry run: nothing was recovered. MySQL is %s.\n", v.MySQL.State)
	}
	err := printf(out, "MySQL is %s (heartbeat %d); %d left to staff.\n", v.MySQL.State, v.MySQL.Heartbeat, len(v.Undecided))
	if err != nil {
		return err
	}
	return printf(out, "Every provider is held: check what was held before the restore, then run `hongbao providers release`; two persons of "+
		"finance release the balances of apps (`hongbao holds list --name %s`).\n", payout.BalanceProvider)
}
