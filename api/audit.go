package api

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"time"
	"unicode/utf8"

	"hongbao/internal/staff"
	"hongbao/wire"
)

// verifyLimit bounds one verification of the audit. A million entries take some seconds,
// longer than the limit of other requests.
const verifyLimit = 60 * time.Second

// auditCursor is the last entry of a page, with the filters of the list.
type auditCursor struct {
	Filters map[string]string `json:"f"`
	At      time.Time         `json:"at"`
	Seq     int64             `json:"seq"`
}

// maxActor is the largest length of an actor, 64 characters, in bytes.
const maxActor = 64 * utf8.UTFMax

func checkActor(s string) *fault {
	if s == "" || len(s) > maxActor || !utf8.ValidString(s) {
		return &fault{faultFormat, fmt.Sprintf("must have 1 to %d bytes of UTF-8", maxActor)}
	}
	return nil
}

// readAuditFilter reads the filters of the audit.
func readAuditFilter(q *query) staff.AuditFilter {
	f := staff.AuditFilter{}
	f.Actor = q.text("actor", checkActor)
	f.Action = q.text("action", checkCode)
	f.Subject = q.text("subject", checkFilter)
	f.From, f.To = q.span("from", "to")
	return f
}

func renderAuditEntry(e staff.AuditEntry) wire.AuditEntry {
	return wire.AuditEntry{Seq: e.Seq, At: wire.At(e.At), Actor: e.Actor, Role: e.Role, KeyID: textOrNull(e.KeyID),
		Action: e.Action, Subject: e.Subject, Reason: e.Reason, Before: wire.State(e.Before), After: wire.State(e.After),
		Hash: hex.EncodeToString(e.Hash[:])}
}

func listAudit(r *request) (answer, error) {
	q := readQuery(r)
	filter := readAuditFilter(q)
	given := q.given()
	limit, text := q.page()
	if err := q.done(); err != nil {
		return answer{}, err
	}
	if text != "" {
		var c auditCursor
		if decodeCursor(text, &c) != nil || c.Seq < 1 || !inMySQLRange(c.At) || len(given) > 0 && !maps.Equal(given, c.Filters) {
			return answer{}, badCursor()
		}
		again := filtersOf(c.Filters)
		if filter = readAuditFilter(again); again.done() != nil {
			return answer{}, badCursor()
		}
		filter.AfterTime, filter.AfterSeq, given = c.At, c.Seq, c.Filters
	}
	filter.Limit = limit + 1
	ctx, cancel := context.WithTimeout(r.ctx, readTimeout)
	defer cancel()
	entries, err := r.server.cfg.Store.Audit(ctx, filter)
	if err != nil {
		return answer{}, err
	}
	page := wire.List[wire.AuditEntry]{Items: []wire.AuditEntry{}}
	if len(entries) > limit {
		entries = entries[:limit]
		last := entries[limit-1]
		page.NextCursor = encodeCursor(auditCursor{Filters: given, At: last.At, Seq: last.Seq})
	}
	for _, e := range entries {
		page.Items = append(page.Items, renderAuditEntry(e))
	}
	return answer{status: http.StatusOK, body: page}, nil
}

func verifyAudit(r *request) (answer, error) {
	ctx, cancel := context.WithTimeout(r.server.base, verifyLimit)
	defer cancel()
	check, err := r.server.cfg.Store.VerifyAudit(ctx)
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: wire.AuditVerdict{Valid: check.FirstBad == nil, Entries: check.Entries,
		Head: hex.EncodeToString(check.Head.Hash[:]), FirstBad: check.FirstBad}}, nil
}

// filtersOf returns a query with the filters that a cursor keeps.
func filtersOf(kept map[string]string) *query {
	q := &query{values: map[string][]string{}}
	for name, value := range kept {
		q.values[name] = []string{value}
	}
	return q
}

// instant returns a time parameter; the zero time when it is missing.
func (q *query) instant(name string) time.Time {
	var at time.Time
	q.text(name, func(s string) *fault {
		parsed, err := parseTime(s)
		if err != nil {
			return &fault{faultFormat, "must be an RFC 3339 time, such as 2026-02-17T20:00:00Z; write + as %2B"}
		}
		if ms := parsed.UnixMilli(); ms < 0 || ms > maxMs {
			return &fault{faultRange, "must be from 1970 to 9999"}
		}
		at = parsed.UTC()
		return nil
	})
	return at
}

// span returns the time range [from, to) of two parameters.
func (q *query) span(from, to string) (begin, end time.Time) {
	begin, end = q.instant(from), q.instant(to)
	if !begin.IsZero() && !end.IsZero() && !begin.Before(end) {
		q.fault(to, fault{faultRange, fmt.Sprintf("must be after %s", from)})
	}
	return begin, end
}
