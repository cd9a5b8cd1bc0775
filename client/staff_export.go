package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"hongbao/wire"
)

// ExportPayouts writes payouts to w as CSV, as the API sends them: a header line, then one
// line per payout, newest first. Memory does not grow with their number, and only ctx bounds
// the time. It retries only before the first byte is written; after an error w may hold an
// incomplete file, which must not be used.
func (s *Staff) ExportPayouts(ctx context.Context, f wire.PayoutFilter, w io.Writer) error {
	return s.export(ctx, "payouts", f, w)
}

// ExportRefunds writes refunds to w as CSV, like ExportPayouts.
func (s *Staff) ExportRefunds(ctx context.Context, f wire.RefundFilter, w io.Writer) error {
	return s.export(ctx, "refunds", f, w)
}

// ExportCharges writes charges to w as CSV, like ExportPayouts.
func (s *Staff) ExportCharges(ctx context.Context, f wire.PayoutFilter, w io.Writer) error {
	return s.export(ctx, "charges", f, w)
}

// ExportPackets writes the packets of all apps to w as CSV, like ExportPayouts.
func (s *Staff) ExportPackets(ctx context.Context, f wire.StaffPacketFilter, w io.Writer) error {
	return s.export(ctx, "packets", f, w)
}

// ExportBreaks writes breaks to w as CSV, like ExportPayouts.
func (s *Staff) ExportBreaks(ctx context.Context, f wire.BreakFilter, w io.Writer) error {
	return s.export(ctx, "breaks", f, w)
}

// ExportApprovals writes decisions that need, or needed, a second person to w as CSV, like
// ExportPayouts.
func (s *Staff) ExportApprovals(ctx context.Context, f wire.ApprovalFilter, w io.Writer) error {
	return s.export(ctx, "approvals", f, w)
}

// ExportAudit writes audit entries to w as CSV, like ExportPayouts. It needs the role auditor.
func (s *Staff) ExportAudit(ctx context.Context, f wire.AuditFilter, w io.Writer) error {
	return s.export(ctx, "audit", f, w)
}

// export writes the file of a list to w.
func (s *Staff) export(ctx context.Context, list string, filter any, w io.Writer) error {
	q := call{method: http.MethodGet, path: wire.PathExports + "/" + list + ".csv", query: queryOf(filter)}
	return s.caller.repeat(ctx, q, func([]byte) (bool, error) { return s.caller.stream(ctx, q, w) })
}

// stream sends a request once and copies its answer to w.
func (c *caller) stream(ctx context.Context, q call, w io.Writer) (again bool, err error) {
	req, err := c.request(ctx, q, nil)
	if err != nil {
		return false, err
	}
	req.Header.Set("Accept", "text/csv, application/problem+json")
	res, err := c.http.Do(req)
	if err != nil {
		return true, withoutAddress(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode/100 != 2 {
		text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
		if err != nil {
			return true, fmt.Errorf("read answer: %w", err)
		}
		p := readProblem(res, text)
		return worthRepeating(p), p
	}
	if err := wholeFile(res); err != nil {
		return false, err
	}
	to := &fileWriter{to: w}
	n, err := io.Copy(to, res.Body)
	switch {
	case to.err != nil: // a repeat would not help and would read the whole list again
		return false, fmt.Errorf("write the file after %d bytes: %w", n, to.err)
	case err != nil:
		return n == 0, fmt.Errorf("incomplete after %d bytes: %w", n, err)
	}
	return false, nil
}

// wholeFile refuses an answer that is not a file, such as a proxy's page, a partial answer,
// and one whose end cannot be distinguished from a lost connection.
func wholeFile(res *http.Response) error {
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case res.StatusCode != http.StatusOK || err != nil || kind != "text/csv":
		return fmt.Errorf("not a CSV file: status %d, content type %q", res.StatusCode, res.Header.Get("Content-Type"))
	case res.ContentLength < 0 && res.ProtoMajor < 2 && !res.Uncompressed && len(res.TransferEncoding) == 0:
		return errors.New("the answer has neither a length nor chunks: a proxy removed them")
	}
	return nil
}

// fileWriter keeps the write error of the file apart from errors of the connection.
type fileWriter struct {
	to  io.Writer
	err error
}

// Write implements io.Writer.
func (w *fileWriter) Write(text []byte) (n int, err error) {
	if n, err = w.to.Write(text); err == nil && n < len(text) {
		err = io.ErrShortWrite
	}
	w.err = err
	return n, err
}
