package client

import (
	"context"
	"iter"
	"net/http"
	"time"

	"hongbao/wire"
)

// ListAudit returns one page of the audit.
func (s *Staff) ListAudit(ctx context.Context, f wire.AuditFilter, p Page) (*wire.List[wire.AuditEntry], error) {
	return page[wire.AuditEntry](ctx, s.caller, wire.PathAudit, f, p)
}

// Audit iterates over the audit, newest first.
func (s *Staff) Audit(ctx context.Context, f wire.AuditFilter) iter.Seq2[*wire.AuditEntry, error] {
	return each[wire.AuditEntry](ctx, s.caller, wire.PathAudit, f)
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
