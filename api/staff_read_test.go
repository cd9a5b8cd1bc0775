package api_test

import (
	"database/sql"
	"net/http"
	"slices"
	"testing"

	"hongbao/internal/store"
)

// database opens the books behind the back of the API.
func (h *fixture) database(dsn string) *sql.DB {
	h.t.Helper()
	db, err := store.OpenSQL(dsn)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = db.Close() })
	return db
}

// TestStaffReads: who may read what, and that reading is all there is.
func TestStaffReads(t *testing.T) {
	t.Parallel()
	h := sharedFixture(t)
	id, _ := h.failed()
	everyone := []string{
		"/v1/staff/payouts", "/v1/staff/refunds", "/v1/staff/packets", "/v1/staff/packets/" + id, "/v1/staff/packets/" + id + "/proof",
		"/v1/staff/export/payouts.csv", "/v1/staff/export/refunds.csv", "/v1/staff/export/charges.csv",
		"/v1/staff/export/packets.csv", "/v1/staff/export/breaks.csv",
		"/v1/staff/export/approvals.csv",
	}
	auditors := []string{"/v1/staff/audit", "/v1/staff/audit/verify", "/v1/staff/export/audit.csv"}
	for _, path := range append(everyone, auditors...) {
		for _, who := range []owner{h.finance, h.ops, h.auditor} {
			want, code := http.StatusOK, ""
			if who.token != h.auditor.token && slices.Contains(auditors, path) {
				want, code = http.StatusForbidden, "forbidden"
			}
			if r := h.as(who, "GET", path, ""); r.status != want || r.code() != code {
				t.Errorf("%s for %s: %.200s", path, who.key.Role, r)
			}
			if want != http.StatusOK {
				continue
			}
			if r := h.as(who, "HEAD", path, ""); r.status != want || len(r.body) != 0 {
				t.Errorf("HEAD %s for %s: %.200s", path, who.key.Role, r)
			}
		}
		for _, method := range []string{"PUT", "DELETE", "PATCH", "POST"} {
			if method == "POST" && path == "/v1/staff/payouts" {
				continue
			}
			r := h.as(h.auditor, method, path, "")
			if r.status != http.StatusMethodNotAllowed || r.code() != "method_not_allowed" || r.header.Get("Allow") == "" {
				t.Errorf("%s %s: %s", method, path, r)
			}
		}
		if r := h.as(h.app, "GET", path, ""); r.code() != "forbidden" {
			t.Errorf("%s for an app: %s", path, r)
		}
		if r := h.get(path); r.code() != "unauthenticated" {
			t.Errorf("%s for nobody: %s", path, r)
		}
	}
}
