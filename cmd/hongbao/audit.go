package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"hongbao/store"
)

func newAuditCommand(env environment) *cobra.Command {
	group := &cobra.Command{
		Use:   "audit",
		Short: "Check what is on record of staff's decisions",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var asJSON bool
	verify := &cobra.Command{
		Use:   "verify",
		Short: "Check that the audit is as it was written",
		Long: `Check that the audit is as it was written: every entry holds a hash over the one
before and itself, and the last one is the head. Entries that were changed,
removed, added or moved are found. It reads one moment of the database; it locks
nothing and changes nothing, so it may run beside everything else, on a replica
too.

Keep the head that it prints elsewhere: an audit that was cut off or written anew
together with its head is found by comparing only.

Exit code: 0 as it was written; 1 not so.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := readConfig(cmd, cmdAudit, env)
			if err != nil {
				return err
			}
			return verifyAudit(cmd.Context(), c.secret("mysql-dsn"), cmd.OutOrStdout(), asJSON)
		},
	}
	verify.Flags().BoolVar(&asJSON, "json", false, "print the verdict as JSON, as the API does")
	addSettings(verify, cmdAudit)
	group.AddCommand(verify)
	return group
}

func verifyAudit(ctx context.Context, dsn Secret, out io.Writer, asJSON bool) error {
	db, err := store.Open(store.Config{DSN: dsn.Reveal(), MaxOpenConns: 1})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	check, err := db.VerifyAudit(ctx)
	if err != nil {
		return err
	}
	head := hex.EncodeToString(check.Head.Hash[:])
	switch {
	case asJSON:
		err = json.NewEncoder(out).Encode(struct {
			Valid    bool   `json:"valid"`
			Entries  int64  `json:"entries"`
			Head     string `json:"head"`
			FirstBad *int64 `json:"first_bad"`
		}{check.FirstBad == nil, check.Entries, head, check.FirstBad})
	case check.FirstBad != nil:
		err = printf(out, "The audit is NOT as it was written: the first wrong, missing or additional entry is number %d\n%d entries, head %s\n", *check.FirstBad, check.Entries, head)
	default:
		err = printf(out, "The audit is as it was written.\n%d entries, head %s\n", check.Entries, head)
	}
	if err == nil && check.FirstBad != nil {
		err = errSilent
	}
	return err
}
