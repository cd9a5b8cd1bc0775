package main

import (
	"context"
	"encoding/hex"
	"io"
	"time"

	"github.com/spf13/pflag"

	"hongbao/client"
	"hongbao/internal/store"
	"hongbao/internal/store/report"
	"hongbao/wire"
)

func auditCommand() command {
	return command{use: "audit", short: "List and verify the audit of staff decisions", sub: []command{auditList(), auditVerify()}}
}

func auditList() command {
	var filter wire.AuditFilter
	return command{
		use:   "list",
		short: "List audit entries, newest first",
		long: `List audit entries (who decided what, and why), newest first, through the API with the
key of an auditor. Entries match all filters. --json includes the state before and after.`,
		example: "  hongbao audit list --actor li.na --from 2026-02-17T00:00:00+08:00",
		as:      callerAuditor, pages: true,
		flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&filter.Actor, "actor", "", "only decisions of this `person`")
			flags.StringVar(&filter.Action, "action", "", "only this `action`: retry, approve, hold, ...")
			flags.StringVar(&filter.Subject, "subject", "", "only entries about this `id`")
			timeFlag(flags, &filter.From, "from", "only entries at or after this `time` (RFC 3339)")
			timeFlag(flags, &filter.To, "to", "only entries before this `time` (RFC 3339)")
		},
		run: func(ctx context.Context, t *call) error {
			return printList(t, t.page, func(p client.Page) (*wire.List[wire.AuditEntry], error) { return t.staff.ListAudit(ctx, filter, p) },
				[]any{"entry", "at", "who", "role", "key", "what", "about", "why"}, func(e *wire.AuditEntry) []any {
					return []any{e.Seq, formatTime(e.At), e.Actor, e.Role, optionalText(e.KeyID), e.Action, e.Subject, e.Reason}
				})
		},
	}
}

func auditVerify() command {
	overHTTP := false
	return command{
		use:   "verify",
		short: "Verify that no audit entry was changed, removed, added or moved",
		long: `Verify the hash chain of the audit: each entry holds a hash over itself and the entry
before; the last entry is the head. The command finds entries that were changed,
removed, added or moved. It reads one snapshot of MySQL, takes no locks and changes
nothing: run it at any time, also on a replica. With --api the API verifies, for an
auditor with a key and without database access.

Store the printed head outside MySQL. A truncated audit, or one that was rewritten
together with its head, is found only by comparing heads.

Exit code: 0 intact; 1 not intact.`,
		as: callerAuditor, or: local(cmdAudit), timeout: 10 * time.Minute,
		flags: func(flags *pflag.FlagSet) {
			flags.BoolVar(&overHTTP, "api", false, "let the API verify instead of reading MySQL")
			flags.Lookup("timeout").Usage = "with --api: give up after this `duration`; 0 = never"
		},
		choose: func(*call) (caller, error) {
			if overHTTP {
				return callerAuditor, nil
			}
			return local(cmdAudit), nil
		},
		run: func(ctx context.Context, t *call) error {
			if t.staff == nil {
				return verifyAudit(ctx, t.config.secret("mysql-dsn"), t.out, t.json)
			}
			v, err := t.staff.VerifyAudit(ctx)
			if err != nil {
				return err
			}
			return printAuditVerdict(t.out, t.json, auditVerdict{v.Valid, v.Entries, v.Head, v.FirstBad})
		},
	}
}

func verifyAudit(ctx context.Context, dsn Secret, out io.Writer, asJSON bool) error {
	return withStore(ctx, dsn, func(db *store.Store) error {
		check, err := report.New(db.MySQL()).VerifyAudit(ctx)
		if err != nil {
			return err
		}
		return printAuditVerdict(out, asJSON, auditVerdict{check.FirstBad == nil, check.Entries, hex.EncodeToString(check.Head.Hash[:]),
			check.FirstBad})
	})
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
