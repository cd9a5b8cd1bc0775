package api

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"

	"hongbao/internal/staff"
	"hongbao/wire"
)

// auditColumns are the members of an AuditEntry, one per column, followed by columns formatted
// for people.
var auditColumns = []string{"seq", "at", "actor", "role", "action", "subject", "reason", "before", "after", "hash", "at_local",
	"local_zone", "key_id"}

func auditLine(e staff.AuditEntry, form fileForm) ([]string, error) {
	states := make([]string, 2)
	for i, state := range []string{e.Before, e.After} {
		text, err := wire.State(state).MarshalJSON() // as the list renders it, an invalid one too
		if err != nil {
			return nil, fmt.Errorf("audit entry %d: %w", e.Seq, err)
		}
		states[i] = cell(string(text))
	}
	return []string{
		strconv.FormatInt(e.Seq, 10), wire.At(e.At).String(), cell(e.Actor), cell(e.Role), cell(e.Action), cell(e.Subject), cell(e.Reason),
		states[0], states[1], cell(hex.EncodeToString(e.Hash[:])), form.local(e.At), form.zone.String(),
		cell(e.KeyID),
	}, nil
}

func exportAudit(r *request) (answer, error) {
	q := readQuery(r)
	filter := readAuditFilter(q)
	form, err := q.fileForm()
	if err != nil {
		return answer{}, err
	}
	filter.Limit = exportStep
	store := r.server.cfg.Store
	return r.sendFile(form, listFile{name: "audit", columns: auditColumns, more: func(ctx context.Context) (lines [][]string, end bool,
		err error) {
		entries, err := store.Audit(ctx, filter)
		if err != nil {
			return nil, false, err
		}
		for _, e := range entries {
			line, err := auditLine(e, form)
			if err != nil {
				return nil, false, err
			}
			lines = append(lines, line)
			filter.AfterTime, filter.AfterSeq = e.At, e.Seq
		}
		return lines, len(entries) < exportStep, nil
	}})
}
