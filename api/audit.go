package api

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"hongbao/internal/staff"
)

// verifyLimit bounds one verification of the audit. A million entries take some seconds,
// longer than the limit of other requests.
const verifyLimit = 60 * time.Second

// AuditEntry is one entry of the audit.
type AuditEntry struct {
	Seq     int64            `json:"seq" minimum:"1" doc:"Numbered from 1 without gaps." example:"4711"`
	At      Stamp            `json:"at" doc:"When the action took place."`
	Actor   string           `json:"actor" doc:"The owner of the key that acted." example:"li.na"`
	Role    string           `json:"role" doc:"The role of the key." example:"finance"`
	KeyID   Nullable[string] `json:"key_id" doc:"The id of the key that acted; null for a command on one of our machines, and for the worker."`
	Action  string           `json:"action" doc:"The action." example:"retry"`
	Subject string           `json:"subject" doc:"What the action was about, mostly the id of a payment." example:"p3q5k9v0c1m7e2u8h4r6t0003"`
	Reason  string           `json:"reason" doc:"The reason that the actor gave."`
	Before  State            `json:"before" doc:"The state before the action."`
	After   State            `json:"after" doc:"The state after the action."`
	Hash    string           `json:"hash" pattern:"^[0-9a-f]{64}$" doc:"Hex SHA-256 of the previous hash and this entry; see docs/audit.md."`
}

// State is the state of a subject in an audit entry: a JSON object as it was written, or null.
type State json.RawMessage

// MarshalJSON implements json.Marshaler. A state that was tampered with and is not an object
// is rendered as text, so that it stays visible.
func (s State) MarshalJSON() ([]byte, error) {
	text := bytes.TrimSpace(s)
	if json.Valid(text) && (text[0] == '{' || string(text) == "null") {
		return text, nil
	}
	return json.Marshal(map[string]string{"unreadable": string(s)})
}

// Schema implements huma.SchemaProvider: members depend on the action.
func (State) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{AnyOf: []*huma.Schema{{Type: huma.TypeObject, AdditionalProperties: true}, {Type: "null"}},
		Examples: []any{map[string]any{"status": "failed"}}}
}

// AuditEntries is a page of the audit.
type AuditEntries struct {
	Items      []AuditEntry     `json:"items" nullable:"false" doc:"Newest first."`
	NextCursor Nullable[string] `json:"next_cursor" doc:"The cursor of the next page; null on the last page."`
}

// AuditVerdict is the result of a verification of the audit.
type AuditVerdict struct {
	Valid    bool            `json:"valid" doc:"true: the hashes of all entries form a chain that ends at the head."`
	Entries  int64           `json:"entries" minimum:"0" doc:"The count of entries." example:"4711"`
	Head     string          `json:"head" pattern:"^[0-9a-f]{64}$" doc:"Hex hash of the last entry, which is stored separately; 64 zeros before the first entry. Keep a copy elsewhere: an audit that was truncated or rewritten together with its head is found only by comparing."`
	FirstBad Nullable[int64] `json:"first_bad" doc:"The first entry that was changed, is missing or was added; null when valid. Entries after it cannot be judged."`
}

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
	page := AuditEntries{Items: []AuditEntry{}}
	if len(entries) > limit {
		entries = entries[:limit]
		last := entries[limit-1]
		page.NextCursor = encodeCursor(auditCursor{Filters: given, At: last.At, Seq: last.Seq})
	}
	for _, e := range entries {
		page.Items = append(page.Items, AuditEntry{Seq: e.Seq, At: Stamp(e.At), Actor: e.Actor, Role: e.Role, KeyID: textOrNull(e.KeyID),
			Action: e.Action, Subject: e.Subject, Reason: e.Reason, Before: State(e.Before), After: State(e.After),
			Hash: hex.EncodeToString(e.Hash[:])})
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
	return answer{status: http.StatusOK, body: AuditVerdict{Valid: check.FirstBad == nil, Entries: check.Entries,
		Head: hex.EncodeToString(check.Head.Hash[:]), FirstBad: orNull(check.FirstBad)}}, nil
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
