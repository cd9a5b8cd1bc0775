package client_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"hongbao/client"
	"hongbao/wire"
)

// fullDisk takes some bytes, then no more.
type fullDisk struct{ left int }

func (d *fullDisk) Write(text []byte) (int, error) {
	n := min(d.left, len(text))
	if d.left -= n; n < len(text) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

// shortWriter takes less than it is given and calls that well.
type shortWriter struct{}

func (shortWriter) Write(text []byte) (int, error) { return len(text) / 2, nil }

// exports are all that write a file.
func exports(staff *client.Staff, t *testing.T) map[string]func(io.Writer) error {
	ctx := t.Context()
	return map[string]func(io.Writer) error{
		"payouts":   func(w io.Writer) error { return staff.ExportPayouts(ctx, wire.PayoutFilter{}, w) },
		"refunds":   func(w io.Writer) error { return staff.ExportRefunds(ctx, wire.RefundFilter{}, w) },
		"charges":   func(w io.Writer) error { return staff.ExportCharges(ctx, wire.PayoutFilter{}, w) },
		"packets":   func(w io.Writer) error { return staff.ExportPackets(ctx, wire.StaffPacketFilter{}, w) },
		"breaks":    func(w io.Writer) error { return staff.ExportBreaks(ctx, wire.BreakFilter{}, w) },
		"approvals": func(w io.Writer) error { return staff.ExportApprovals(ctx, wire.ApprovalFilter{}, w) },
		"audit":     func(w io.Writer) error { return staff.ExportAudit(ctx, wire.AuditFilter{}, w) },
		"close":     func(w io.Writer) error { return staff.ExportClose(ctx, "2026-02-17", w) },
	}
}

func exportServer(t *testing.T, answer http.HandlerFunc) *client.Staff {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	staff, err := client.NewStaff(server.URL, "key", client.WithRetry(client.Retry{MinPause: time.Millisecond}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(staff.Close)
	return staff
}

// TestExportToFullDisk: a file that cannot be written is no broken network. It is asked for
// once, and the error is that of the file.
func TestExportToFullDisk(t *testing.T) {
	t.Parallel()
	calls := 0
	staff := exportServer(t, func(w http.ResponseWriter, _ *http.Request) {
		calls++
		w.Header().Set("Content-Type", "text/csv; charset=utf-8; header=present")
		_, _ = io.WriteString(w, strings.Repeat("x", 10_000))
	})
	for name, export := range exports(staff, t) {
		for what, to := range map[string]io.Writer{"full": &fullDisk{}, "full soon": &fullDisk{left: 1000}, "short": shortWriter{}} {
			calls = 0
			err := export(to)
			if calls != 1 || !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, io.ErrShortWrite) ||
				!strings.Contains(err.Error(), "write the file") {
				t.Errorf("%s, %s: %d calls, %v", name, what, calls, err)
			}
		}
	}
}

// TestExportRefusesOtherAnswers: what is no whole file is none, and leaves nothing in the file.
func TestExportRefusesOtherAnswers(t *testing.T) {
	t.Parallel()
	for name, head := range map[string]string{
		"page":       "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n",
		"no type":    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n",
		"part":       "HTTP/1.1 206 Partial Content\r\nContent-Type: text/csv\r\nContent-Length: 2\r\n",
		"no content": "HTTP/1.1 204 No Content\r\nContent-Type: text/csv\r\n",
		"no end":     "HTTP/1.1 200 OK\r\nContent-Type: text/csv\r\nConnection: close\r\n",
		"no end 1.0": "HTTP/1.0 200 OK\r\nContent-Type: text/csv\r\n",
	} {
		staff := exportServer(t, func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, head+"\r\nid")
			_ = conn.Close()
		})
		for of, export := range exports(staff, t) {
			var file bytes.Buffer
			if err := export(&file); err == nil || file.Len() > 0 {
				t.Errorf("%s of %s: %v, %q", name, of, err, file.String())
			}
		}
	}
}
