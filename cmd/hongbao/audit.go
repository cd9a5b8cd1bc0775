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
		Short: "List and verify the audit of staff decisions",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	group.AddCommand(newAuditListCommand(env), newAuditVerifyCommand(env))
	return group
}

func newAuditVerifyCommand(env environment) *cobra.Command {
	f, overHTTP := newAuditorFlags(), false
	f.timeout = 10 * time.Minute
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Verify that no audit entry was changed, removed, added or moved",
		Long: `Verify the hash chain of the audit: each entry holds a hash over itself and the entry
before; the last entry is the head. The command finds entries that were changed,
removed, added or moved. It reads one snapshot of MySQL, takes no locks and changes
nothing: run it at any time, also on a replica. With --api the API verifies, for an
auditor with a key and without database access.

Store the printed head outside MySQL. A truncated audit, or one that was rewritten
together with its head, is found only by comparing heads.

Exit code: 0 intact; 1 not intact.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if overHTTP {
				return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error { return t.verifyAudit(ctx) })
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
	cmd.Flags().BoolVar(&overHTTP, "api", false, "let the API verify instead of reading MySQL")
	cmd.Flags().Lookup("timeout").Usage = "with --api: give up after this `duration`; 0 = never"
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
	return printAuditVerdict(out, asJSON, auditVerdict{check.FirstBad == nil, check.Entries, hex.EncodeToString(check.Head.Hash[:]),
		check.FirstBad})
}

// auditVerdict is the result of a verification, by the API or by this process.
type auditVerdict struct {
	Valid    bool   `json:"valid"`
	Entries  int64  `json:"entries"`
	Head     string `json:"head"`
	FirstBad *int64 `json:"first_bad"`
}

// printAuditVerdict prints the verdict. It returns errReported when the audit is not intact.
func printAuditVerdict(out io.Writer, asJSON bool, v auditVerdict) error {
	var err error
	switch {
	case asJSON:
		err = encodeJSON(out, v)
	case !v.Valid && v.FirstBad != nil:
		err = printf(out, "The audit is NOT intact: the first changed, missing or additional entry is %d.\n%d entries, head %s\n",
			*v.FirstBad, v.Entries, v.Head)
	default:
		err = printf(out, "The audit is intact.\n%d entries, head %s\n", v.Entries, v.Head)
	}
	if err == nil && !v.Valid {
		err = errReported
	}
	return err
}
