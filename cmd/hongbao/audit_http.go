package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"hongbao/client"
)

// newAuditDesk is the flags of a command of auditors.
func newAuditDesk() staffFlags { return staffFlags{command: cmdAuditor, key: "auditor-key"} }

func newAuditListCommand(env environment) *cobra.Command {
	f, page, filter := newAuditDesk(), pageFlags{}, client.AuditFilter{}
	var from, to string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List who decided what and why, newest first",
		Long: `List who decided what and why, newest first, through the API and with the key of an
auditor. All filters have to fit. --json has what was before and after, too.`,
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
			return f.run(cmd, env, func(ctx context.Context, t *clerk) error {
				fetch := func(ctx context.Context, p client.Page) (*client.List[client.AuditEntry], error) {
					return t.staff.ListAudit(ctx, filter, p)
				}
				return tellList(ctx, t.teller, page, fetch, []any{"entry", "at", "who", "role", "key", "what", "about", "why"},
					func(e *client.AuditEntry) []any {
						return []any{e.Seq, when(e.At), e.Actor, e.Role, orNone(e.KeyID), e.Action, e.Subject, e.Reason}
					})
			})
		},
	}
	f.add(cmd, false)
	page.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&filter.Actor, "actor", "", "by this `person`")
	flags.StringVar(&filter.Action, "action", "", "what was done: retry, approve, hold, ...")
	flags.StringVar(&filter.Subject, "subject", "", "about this `id`")
	flags.StringVar(&from, "from", "", "at or after this RFC 3339 `time`")
	flags.StringVar(&to, "to", "", "before this RFC 3339 `time`")
	for _, name := range []string{"actor", "action", "subject", "from", "to"} {
		complete(cmd, name)
	}
	return cmd
}

// optionalTime reads a flag with a time, which may be left out.
func optionalTime(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, &usageError{fmt.Errorf("--%s %q is not an RFC 3339 time such as 2026-02-17T20:00:00+08:00", flag, text)}
	}
	return at, nil
}

// verifyAudit has the API check the audit.
func (t *clerk) verifyAudit(ctx context.Context) error {
	v, err := t.staff.VerifyAudit(ctx)
	if err != nil {
		return err
	}
	return tellAudit(t.out, t.json, auditVerdict{v.Valid, v.Entries, v.Head, v.FirstBad})
}
