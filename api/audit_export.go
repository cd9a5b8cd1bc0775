package api

import (
	"context"

	"hongbao/wire"
)

// auditColumns are the members of an AuditEntry, one per column, followed by columns formatted
// for people.
var auditColumns = fileColumns{names: []string{"seq", "at", "actor", "role", "action", "subject", "reason", "before", "after", "hash",
	"at_local",
	"local_zone", "key_id"}}

func exportAudit(r *request) (answer, error) {
	q := readQuery(r)
	filter := readAuditFilter(q)
	form, err := q.fileForm()
	if err != nil {
		return answer{}, err
	}
	filter.Limit = exportStep
	store := r.server.cfg.Store
	return exportItems(r, form, "audit", auditColumns, func(ctx context.Context) (items []wire.AuditEntry, end bool, err error) {
		entries, err := store.Audit(ctx, filter)
		for _, e := range entries {
			items = append(items, renderAuditEntry(e))
			filter.AfterTime, filter.AfterSeq = e.At, e.Seq
		}
		return items, len(entries) < exportStep, err
	})
}
