package main

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"hongbao/internal/payout"
	"hongbao/internal/store"
)

func newLedgerCommand(env environment) *cobra.Command {
	group := &cobra.Command{
		Use:   "ledger",
		Short: "Check the books",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var asJSON bool
	verify := &cobra.Command{
		Use:   "verify",
		Short: "Check every posting, payment and packet against the rules of the ledger",
		Long: `Check every posting, payment and packet against the rules of the ledger. It reads
one moment of the database, in pages; it locks nothing and changes nothing, so it
may run beside everything else, on a replica too.

  transfer   amount above zero, two different accounts, those of the kind
  reference  the reference is order number and kind, and made once
  negative   holding, owed and refunding are below zero at no moment
  total      the charge and the shares are the total, and every fen is somewhere
  status     the packet's status agrees with its money
  claims     claimed shares, claims, claim postings and payouts are the same
  remainder  the remainder is total less claimed, and what was posted
  payment    a payment's status is what its postings say
  attempt    an attempt says booked when its posting is there, and only then
  settled    status and timestamp agree
  unknown    every posting and attempt belongs to a payment

Money that moved twice (suspense) and open breaks are told, but violate nothing:
the books say what happened, and a person has to act.

Exit code: 0 no violation; 1 violations, each of them told.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := readConfig(cmd, cmdLedger, env)
			if err != nil {
				return err
			}
			return verifyLedger(cmd.Context(), c.secret("mysql-dsn"), cmd.OutOrStdout(), asJSON)
		},
	}
	verify.Flags().BoolVar(&asJSON, "json", false, "print each violation, then the summary, as one JSON object a line")
	addSettings(verify, cmdLedger)
	group.AddCommand(verify)
	return group
}

// verifyLedger tells violations as they are found: there may be many.
func verifyLedger(ctx context.Context, dsn Secret, out io.Writer, asJSON bool) error {
	db, err := openMigrated(ctx, store.Config{DSN: dsn.Reveal(), MaxOpenConns: 1}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	found, err := db.VerifyLedger(ctx, func(v payout.Violation) error {
		if asJSON {
			return encodeJSON(out, v)
		}
		return printf(out, "VIOLATION %s: packet %s %s: %s\n", v.Rule, v.PacketID, v.Subject, v.Detail)
	})
	if err != nil {
		return err
	}
	if asJSON {
		err = encodeJSON(out, found)
	} else {
		err = showVerified(out, found)
	}
	if err == nil && found.ViolationCount() > 0 {
		err = errReported
	}
	return err
}

func showVerified(out io.Writer, v payout.VerifyReport) error {
	rules := newGrid(out, "rule", "violations")
	for _, rule := range payout.Rules {
		rules.row(rule, v.Violations[rule])
	}
	rules.render()
	if err := printf(out, "%d packets, %d payments, %d attempts, %d transfers; moved twice: %s\n", v.Packets, v.Payments, v.Attempts,
		v.Transfers, v.Suspense); err != nil {
		return err
	}
	for _, kind := range slices.Sorted(maps.Keys(v.OpenBreaks)) {
		if err := printf(out, "open breaks, %s: %d\n", kind, v.OpenBreaks[kind]); err != nil {
			return err
		}
	}
	if n := v.ViolationCount(); n > 0 {
		return printf(out, "The ledger is NOT RIGHT: %d violations\n", n)
	}
	return printf(out, "The ledger is right.\n")
}
