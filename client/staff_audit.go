package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"time"

	"hongbao/wire"
)

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

// ListAudit returns one page of the audit.
func (s *Staff) ListAudit(ctx context.Context, f AuditFilter, p Page) (*wire.List[wire.AuditEntry], error) {
	return page[wire.AuditEntry](ctx, s.caller, wire.PathAudit, f.values(), p)
}

// Audit iterates over the audit, newest first.
func (s *Staff) Audit(ctx context.Context, f AuditFilter) iter.Seq2[*wire.AuditEntry, error] {
	return each[wire.AuditEntry](ctx, s.caller, wire.PathAudit, f.values())
}

// auditPatience exceeds the API's time limit of a verification.
const auditPatience = 75 * time.Second

// VerifyAudit verifies every entry of the audit, which may take a minute.
func (s *Staff) VerifyAudit(ctx context.Context) (*wire.AuditVerdict, error) {
	v := new(wire.AuditVerdict)
	if err := s.caller.do(ctx, call{method: http.MethodGet, path: wire.PathAudit + "/verify", patience: auditPatience}, v); err != nil {
		return nil, err
	}
	return v, nil
}
