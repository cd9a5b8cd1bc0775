package main

import (
	"context"
	"io"
	"maps"
	"slices"

	"github.com/spf13/pflag"

	"hongbao/internal/staff"
	"hongbao/internal/store"
	"hongbao/internal/store/report"
)

func ledgerCommand() command {
	asJSON := false
	verify := command{
		use:   "verify",
		short: "Verify every transfer, payment and packet against the rules of the ledger",
		long: `Verify every transfer, payment and packet against the rules of the ledger. The command
reads one snapshot of MySQL in pages, takes no locks and changes nothing: run it at any
time, also on a replica.

  transfer   the amount is above zero, between two accounts that the kind permits
  reference  the reference is order number and kind, and unique
  negative   holding, owed and refunding are never below zero
  total      charge and shares equal the total, and every fen is in an account
  status     the packet's status agrees with its balances
  claims     claimed shares, claims, claim transfers and payouts agree
  remainder  the remainder is total less claimed, and equals its transfer
  payment    a payment's status agrees with its transfers
  attempt    an attempt is booked if and only if its transfer exists
  settled    status and timestamp agree
  unknown    every transfer and attempt belongs to a payment
  balance    the balance of an app is the sum of its transfers, and its credits and debits were approved

Money that moved twice (suspense) and open breaks are reported but are no violations:
the ledger records them correctly, and staff has to act.

Exit code: 0 no violation; 1 violations, each reported.`,
		as: local(cmdLedger),
		flags: func(flags *pflag.FlagSet) {
			flags.BoolVar(&asJSON, "json", false, "print each violation, then the summary, as one JSON object per line")
		},
		run: func(ctx context.Context, t *call) error {
			return verifyLedger(ctx, t.config.secret("mysql-dsn"), t.out, asJSON)
		},
	}
	return command{use: "ledger", short: "Verify the ledger", sub: []command{verify}}
}

// verifyLedger prints violations as it finds them: there may be many.
func verifyLedger(ctx context.Context, dsn Secret, out io.Writer, asJSON bool) error {
	return withStore(ctx, dsn, func(db *store.Store) error {
		found, err := report.New(db.MySQL()).VerifyLedger(ctx, func(v staff.Violation) error {
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
	})
}

func showVerified(out io.Writer, v staff.VerifyReport) error {
	rules := newGrid(out, "rule", "violations")
	for _, rule := range staff.Rules {
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
		return printf(out, "The ledger is NOT VALID: %d violations\n", n)
	}
	return printf(out, "The ledger is valid.\n")
}
