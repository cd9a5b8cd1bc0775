package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// AuditEntry is one entry of the audit: actor, action, reason, and the state before and after.
// It needs the role auditor.
type AuditEntry struct {
	Seq     int64          `json:"seq"` // from 1 without gaps
	At      time.Time      `json:"at"`
	Actor   string         `json:"actor"`
	Role    string         `json:"role"`
	KeyID   *string        `json:"key_id"` // of the key that acted; nil: a command on one of our machines, or the worker
	Action  string         `json:"action"`
	Subject string         `json:"subject"`
	Reason  string         `json:"reason"`
	Before  map[string]any `json:"before"`
	After   map[string]any `json:"after"`
	Hash    string         `json:"hash"` // hex, over the previous hash and this entry
}

// AuditFilter filters the audit; zero members do not filter.
type AuditFilter struct {
	Actor   string
	Action  string
	Subject string
	From    time.Time // at or after
	To      time.Time // before
}

func (f AuditFilter) values() url.Values {
	v := url.Values{}
	put(v, "actor", f.Actor)
	put(v, "action", f.Action)
	put(v, "subject", f.Subject)
	putTime(v, "from", f.From)
	putTime(v, "to", f.To)
	return v
}

func putTime(v url.Values, name string, at time.Time) {
	if !at.IsZero() {
		v.Set(name, at.UTC().Format(time.RFC3339Nano))
	}
}

const audit = "/v1/staff/audit"

// ListAudit returns one page of the audit.
func (s *Staff) ListAudit(ctx context.Context, f AuditFilter, p Page) (*List[AuditEntry], error) {
	return page[AuditEntry](ctx, s.caller, audit, f.values(), p)
}

// Audit iterates over the audit, newest first.
func (s *Staff) Audit(ctx context.Context, f AuditFilter) iter.Seq2[*AuditEntry, error] {
	return each[AuditEntry](ctx, s.caller, audit, f.values())
}

// AuditVerdict is the result of a verification of the audit.
type AuditVerdict struct {
	Valid    bool   `json:"valid"`
	Entries  int64  `json:"entries"`
	Head     string `json:"head"`      // hex hash of the last entry: a copy kept elsewhere reveals a rewritten audit
	FirstBad *int64 `json:"first_bad"` // the first entry that was changed, is missing or was added; nil when valid

	// Raw is the verdict as received.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler; it keeps Raw.
func (v *AuditVerdict) UnmarshalJSON(text []byte) error {
	type plain AuditVerdict
	v.Raw = append(json.RawMessage(nil), text...)
	return json.Unmarshal(text, (*plain)(v))
}

// auditPatience exceeds the API's time limit of a verification.
const auditPatience = 75 * time.Second

// VerifyAudit verifies every entry of the audit, which may take a minute.
func (s *Staff) VerifyAudit(ctx context.Context) (*AuditVerdict, error) {
	v := new(AuditVerdict)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: audit + "/verify", patience: auditPatience}, v); err != nil {
		return nil, err
	}
	return v, nil
}
