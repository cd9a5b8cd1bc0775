package main

import (
	"context"
	"encoding/hex"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"hongbao/internal/store"
)

func newAuditCommand(env environment) *cobra.Command {
	group := &cobra.Command{
		Use:   "audit",
		Short: "List and check what is on record of the decisions of staff",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	group.AddCommand(newAuditListCommand(env), newAuditVerifyCommand(env))
	return group
}

func newAuditVerifyCommand(env environment) *cobra.Command {
	f, overHTTP := newAuditDesk(), false
	f.timeout = 10 * time.Minute
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that the audit is as it was written",
		Long: `Check that the audit is as it was written: every entry holds a hash over the one
before and itself, and the last one is the head. Entries that were changed,
removed, added or moved are found. It reads one moment of the database; it locks
nothing and changes nothing, so it may run beside everything else, on a replica
too. With --api the API does it, for an auditor who has a key and no database.

Keep the head that it prints elsewhere: an audit that was cut off or written anew
together with its head is found by comparing only.

Exit code: 0 as it was written; 1 not so.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if overHTTP {
				return f.run(cmd, env, func(ctx context.Context, t *clerk) error { return t.verifyAudit(ctx) })
			}
			c, err := readConfig(cmd, cmdAudit, env)
			if err != nil {
				return err
			}
			return verifyAudit(cmd.Context(), c.secret("mysql-dsn"), cmd.OutOrStdout(), f.json)
		},
	}
	f.add(cmd, false)
	addSettings(cmd, cmdAudit)
	cmd.Flags().BoolVar(&overHTTP, "api", false, "have the API check it, instead of reading MySQL")
	cmd.Flags().Lookup("timeout").Usage = "with --api: give up after this `time`; 0 = never"
	return cmd
}

func verifyAudit(ctx context.Context, dsn Secret, out io.Writer, asJSON bool) error {
	db, err := openMigrated(ctx, store.Config{DSN: dsn.Reveal(), MaxOpenConns: 1}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	check, err := db.VerifyAudit(ctx)
	if err != nil {
		return err
	}
	return tellAudit(out, asJSON, auditVerdict{check.FirstBad == nil, check.Entries, hex.EncodeToString(check.Head.Hash[:]), check.FirstBad})
}

// auditVerdict is what is said of the audit, by the API and by us.
type auditVerdict struct {
	Valid    bool   `json:"valid"`
	Entries  int64  `json:"entries"`
	Head     string `json:"head"`
	FirstBad *int64 `json:"first_bad"`
}

// tellAudit prints the verdict and turns it into the exit code.
func tellAudit(out io.Writer, asJSON bool, v auditVerdict) error {
	var err error
	switch {
	case asJSON:
		err = encodeJSON(out, v)
	case !v.Valid && v.FirstBad != nil:
		err = printf(out, "The audit is NOT as it was written: the first wrong, missing or additional entry is number %d\n%d entries, head %s\n",
			*v.FirstBad, v.Entries, v.Head)
	default:
		err = printf(out, "The audit is as it was written.\n%d entries, head %s\n", v.Entries, v.Head)
	}
	if err == nil && !v.Valid {
		err = errSilent
	}
	return err
}
