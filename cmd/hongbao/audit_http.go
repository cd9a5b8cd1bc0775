package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"hongbao/client"
	"hongbao/wire"
)

// newAuditorFlags returns the flags of a command for auditors.
func newAuditorFlags() staffFlags { return staffFlags{command: cmdAuditor, key: "auditor-key"} }

func newAuditListCommand(env environment) *cobra.Command {
	f, page, filter := newAuditorFlags(), pageFlags{}, client.AuditFilter{}
	var from, to string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List audit entries, newest first",
		Long: `List audit entries (who decided what, and why), newest first, through the API with the
key of an auditor. Entries match all filters. --json includes the state before and after.`,
		Example: "  hongbao audit list --actor li.na --from 2026-02-17T00:00:00+08:00",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if filter.From, err = optionalTime("from", from); err != nil {
				return err
			}
			if filter.To, err = optionalTime("to", to); err != nil {
				return err
			}
			if err := page.check(); err != nil {
				return err
			}
			return f.run(cmd, env, func(ctx context.Context, t *staffCommand) error {
				fetch := func(ctx context.Context, p client.Page) (*wire.List[wire.AuditEntry], error) {
					return t.staff.ListAudit(ctx, filter, p)
				}
				return printList(ctx, t.appCommand, page, fetch, []any{"entry", "at", "who", "role", "key", "what", "about", "why"},
					func(e *wire.AuditEntry) []any {
						return []any{e.Seq, formatTime(e.At), e.Actor, e.Role, optionalText(e.KeyID), e.Action, e.Subject, e.Reason}
					})
			})
		},
	}
	f.add(cmd, false)
	page.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&filter.Actor, "actor", "", "only decisions of this `person`")
	flags.StringVar(&filter.Action, "action", "", "only this `action`: retry, approve, hold, ...")
	flags.StringVar(&filter.Subject, "subject", "", "only entries about this `id`")
	flags.StringVar(&from, "from", "", "only entries at or after this `time` (RFC 3339)")
	flags.StringVar(&to, "to", "", "only entries before this `time` (RFC 3339)")
	for _, name := range []string{"actor", "action", "subject", "from", "to"} {
		complete(cmd, name)
	}
	return cmd
}

// optionalTime parses a flag with an RFC 3339 time; empty is the zero time.
func optionalTime(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, &usageError{fmt.Errorf("parse --%s %q: write an RFC 3339 time such as 2026-02-17T20:00:00+08:00", flag, text)}
	}
	return at, nil
}

// verifyAudit lets the API verify the audit.
func (t *staffCommand) verifyAudit(ctx context.Context) error {
	v, err := t.staff.VerifyAudit(ctx)
	if err != nil {
		return err
	}
	return printAuditVerdict(t.out, t.json, auditVerdict{v.Valid, v.Entries, v.Head, v.FirstBad})
}
